"""Looking closer: choices that the paper leaves open.

Here Figures 6 and 7 are computed with another Laplacian, without the eigenvector of eigenvalue zero, with one sign,
with another discount of the options (0.9 in the authors' code; the paper gives none for tables), with the tolerance of
the authors' code (0.001), and with ties between actions broken in other orders (thin lines).
"""

from itertools import permutations, product

import pandas as pd

from reproduction.drawing import Figure, add_legend, draw_lines, make_graphs
from reproduction.experiments.agents import (
    CHOICES,
    COUNTS,
    EPISODES,
    counts_for,
    diffuse_all,
    learn_all,
)
from reproduction.lab import Blocks, Data, Lab

SECTION, ORDER = "4.2 and 4.3", 150
QUICK = {"episodes": {"i-maze": 20}, "options": [0, 2, 16], "runs": 4, "orders": 3}
OURS = True


def run(
    lab: Lab, *, episodes=EPISODES, options=COUNTS, runs=100, orders=8, seed=2018
) -> Data:
    """Diffusion time and mean return for each choice, and diffusion time for each order of equal actions."""
    agents = [
        {
            "maze": name,
            "options": settings,
            "choice": choice,
            "counts": counts_for(name, options, **settings),
        }
        for name, (choice, settings) in product(episodes, CHOICES.items())
    ]
    counts = {
        name: counts_for(name, [n for n in options if n <= 64]) for name in episodes
    }
    ties = [
        {
            "maze": name,
            "options": {"action_order": order},
            "order": repr(order),
            "counts": counts[name],
        }
        for name, order in product(episodes, list(permutations(range(4)))[:orders])
    ]
    learning = [
        {
            "maze": a["maze"],
            "choice": a["choice"],
            "options": {**a["options"], "n": n},
            "n_options": n,
        }
        for a in agents
        for n in a["counts"]
    ]
    learned = learn_all(lab, learning, runs=runs, episodes=episodes, seed=seed)["runs"]
    means = (
        learned.groupby(["domain", "choice", "n_options"], sort=False)
        .mean_return.mean()
        .reset_index()
    )
    return {
        "choices": diffuse_all(lab, agents).merge(means),
        "ties": diffuse_all(lab, ties),
    }


def figure(data: Data) -> Figure:
    domains = data["choices"].domain.unique()
    picture, axes = make_graphs(2 * len(domains), columns=len(domains))
    for domain, upper, lower in zip(domains, axes, axes[len(domains) :], strict=False):
        times = tabulate(data["choices"], domain, "choice", "diffusion_time")
        returns = tabulate(data["choices"], domain, "choice", "mean_return")
        counts = times.columns[times.notna().all()]
        x, ties = (
            range(len(counts)),
            tabulate(data["ties"], domain, "order", "diffusion_time")[counts],
        )
        more = {
            "thin": {"orders of equal actions": ties},
            "baseline": times[0].iloc[0],
            "yscale": "log",
        }
        draw_lines(
            upper, x, dict(times[counts].iterrows()), ticks=counts, title=domain, **more
        )
        more = {"xlabel": "options", "ylim": (-0.02, 1.02)}
        draw_lines(lower, x, dict(returns[counts].iterrows()), ticks=counts, **more)
    axes[0].set_ylabel("diffusion time")
    axes[len(domains)].set_ylabel("mean return")
    return add_legend(picture, columns=3)


def notes(data: Data) -> Blocks:
    rows = []
    for (domain, choice), table in data["choices"].groupby(
        ["domain", "choice"], sort=False
    ):
        by_count = table.set_index("n_options")
        times, returns = (
            by_count.diffusion_time / by_count.diffusion_time[0],
            by_count.mean_return,
        )
        row = {"domain": domain, "choice": choice}
        row |= {
            f"{n} options": f"{times.loc[:n].iloc[-1]:,.2f}" for n in (4, 16, 32, 64)
        }
        row |= {"all": f"{times.iloc[-1]:.2f}"}
        row |= {f"return, {n}": f"{returns.loc[:n].iloc[-1]:.2f}" for n in (4, 64)}
        rows.append(row | {"return, all": f"{returns.iloc[-1]:.2f}"})
    yield (
        "Diffusion time relative to primitive actions, and mean return, by number of options (all, where there are "
        "fewer). The first options depend on these choices, above all on whether eigenvalue zero counts. With enough "
        "options the discount matters most: with 0.99 options run longer, and in the 4-room domain both exploration "
        "and learning are worse. With one sign, an option that leads somewhere often has none that leads back.",
        pd.DataFrame(rows),
    )
    times = (
        data["ties"][data["ties"].n_options > 0]
        .groupby(["domain", "n_options"])
        .diffusion_time
    )
    ranges = times.agg(lambda values: f"{values.min():,.0f} to {values.max():,.0f}")
    yield (
        "Which of two equally good actions an option takes is not in the paper; in its authors' code rounding errors "
        f"of the eigenvectors decide. Diffusion time over {data['ties'].order.nunique()} orders of the actions, by "
        "number of options:",
        ranges.unstack().reset_index(),
    )


def tabulate(table: pd.DataFrame, domain: str, index: str, values: str) -> pd.DataFrame:
    """A table of one domain with a row per choice (or order) and a column per number of options."""
    table = table[table.domain == domain]
    return table.pivot(index=index, columns="n_options", values=values).loc[
        table[index].unique()
    ]
