"""Looking closer: choices that the paper leaves open.

Here Figures 6 and 7 are computed with another Laplacian, without the eigenvector of
eigenvalue zero, with one sign, with another discount of the options (0.9 in the
authors' code; the paper gives none for tables), with the tolerance of the authors' code
(0.001), and with ties between actions broken in other orders (thin lines).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

import pandas as pd
from matplotlib.figure import Figure

from reproduction.drawing import add_legend, draw_lines, make_graphs
from reproduction.experiment import Block
from reproduction.lab import Data, Job, Jobs, Results
from reproduction.runs.diffusion import diffuse, stack_times
from reproduction.runs.learning import (
    COUNTS,
    EPISODES,
    list_choice_jobs,
    stack_runs,
)
from reproduction.runs.options import CHOICES, limit_counts

SECTION = "4.2 and 4.3"
ORDER = 150
QUICK = {"episodes": {"i-maze": 20}, "options": [0, 2, 16], "runs": 4, "orders": 3}
OURS = True


def list_jobs(
    *,
    episodes: Mapping[str, int] = EPISODES,
    options: Sequence[int] = COUNTS,
    runs: int = 100,
    orders: int = 8,
    seed: int = 2018,
) -> Jobs:
    """Diffusion time and learning for each choice, and for orders of equal actions."""
    diffusion = []
    for maze in episodes:
        for choice, settings in CHOICES.items():
            counts = limit_counts(maze, options, **settings)
            arguments = {"maze": maze, "options": settings, "counts": counts}
            columns = {"domain": maze, "choice": choice}
            diffusion.append(Job(diffuse, arguments, columns))

    ties = []
    for maze in episodes:
        counts = limit_counts(maze, [n for n in options if n <= 64])
        for order in list(permutations(range(4)))[:orders]:
            arguments = {
                "maze": maze,
                "options": {"action_order": order},
                "counts": counts,
            }
            columns = {"domain": maze, "order": repr(order)}
            ties.append(Job(diffuse, arguments, columns))
    # Eigenvalue 1 of the 4-room domain is repeated eight times.
    bases = [
        Job(
            diffuse,
            {
                "maze": maze,
                "options": {"gamma": 0.99, "basis": basis},
                "counts": limit_counts(maze, [0, max(options)]),
            },
            {"domain": maze, "basis": basis or 0},
        )
        for maze in episodes
        for basis in (None, 1, 2, 3, 4, 5)
    ]
    return {
        "diffusion": diffusion,
        "bases": bases,
        "learning": list_choice_jobs(
            episodes=episodes, options=options, runs=runs, seed=seed
        ),
        "ties": ties,
    }


def tabulate_results(results: Results) -> Data:
    """Diffusion time and mean return of each choice, and diffusion time by order."""
    runs = stack_runs(results["learning"])
    agents = runs.groupby(["domain", "choice", "n_options"], sort=False)
    returns = agents.mean_return.mean().reset_index()
    return {
        "choices": stack_times(results["diffusion"]).merge(returns),
        "ties": stack_times(results["ties"]),
        "bases": stack_times(results["bases"]),
    }


def draw_figure(data: Data) -> Figure:
    """Diffusion time (above) and mean return (below), a column per domain."""
    domains = data["choices"].domain.unique()
    n_domains = len(domains)
    figure, axes = make_graphs(2 * n_domains, columns=n_domains)
    for i, domain in enumerate(domains):
        times = _tabulate_counts(data["choices"], domain, "choice", "diffusion_time")
        returns = _tabulate_counts(data["choices"], domain, "choice", "mean_return")
        ties = _tabulate_counts(data["ties"], domain, "order", "diffusion_time")
        counts = times.columns[times.notna().all()]
        positions = range(len(counts))
        draw_lines(
            axes[i],
            positions,
            dict(times[counts].iterrows()),
            thin={"orders of equal actions": ties[counts]},
            baseline=times[0].iloc[0],
            ticks=counts,
            title=domain,
            yscale="log",
        )
        draw_lines(
            axes[n_domains + i],
            positions,
            dict(returns[counts].iterrows()),
            ticks=counts,
            xlabel="options",
            ylim=(-0.02, 1.02),
        )
    axes[0].set_ylabel("diffusion time")
    axes[n_domains].set_ylabel("mean return")
    return add_legend(figure, columns=3)


def write_notes(data: Data) -> Iterator[Block]:
    """What each choice does, and what the order of equal actions does."""
    choices = data["choices"].groupby(["domain", "choice"], sort=False)
    rows = [
        {"domain": domain, "choice": choice, **_summarize_choice(table)}
        for (domain, choice), table in choices
    ]
    yield (
        "Diffusion time relative to primitive actions, and mean return, by number of "
        "options (all, where there are fewer). The first options depend on these "
        "choices, above all on whether eigenvalue zero counts. With enough options the "
        "discount matters most: with 0.99 options run longer, and in the 4-room domain "
        "both exploration and learning are worse. With one sign, an option that leads "
        "somewhere often has none that leads back.",
        pd.DataFrame(rows),
    )

    bases = data["bases"].pivot(
        index=["domain", "basis"], columns="n_options", values="diffusion_time"
    )
    with_all = bases.ffill(axis=1).iloc[:, -1]
    relative = (with_all / bases[0]).unstack()
    relative.columns = ["ours", *(f"random basis {i}" for i in relative.columns[1:])]
    yield (
        "With all options and the discount 0.99, the basis of repeated eigenvalues "
        "matters as much. Diffusion time relative to primitive actions:",
        relative.reset_index(),
    )

    ties = data["ties"]
    with_options = ties[ties.n_options > 0].groupby(["domain", "n_options"])
    ranges = with_options.diffusion_time.agg(
        lambda times: f"{times.min():,.0f} to {times.max():,.0f}"
    )
    yield (
        "Which of two equally good actions an option takes is not in the paper; in its "
        "authors' code rounding errors of the eigenvectors decide. Diffusion time over "
        f"{ties.order.nunique()} orders of the actions, by number of options:",
        ranges.unstack().reset_index(),
    )


def _summarize_choice(table: pd.DataFrame) -> dict[str, str]:
    """Relative diffusion time and mean return of a choice with some numbers."""
    by_count = table.set_index("n_options")
    times = by_count.diffusion_time / by_count.diffusion_time[0]
    returns = by_count.mean_return

    # Where there are fewer options, the last of these are all of them.
    row = {}
    for n in (4, 16, 32, 64):
        row[f"{n} options"] = f"{times.loc[:n].iloc[-1]:,.2f}"
    row["all"] = f"{times.iloc[-1]:.2f}"
    for n in (4, 64):
        row[f"return, {n}"] = f"{returns.loc[:n].iloc[-1]:.2f}"
    row["return, all"] = f"{returns.iloc[-1]:.2f}"
    return row


def _tabulate_counts(
    table: pd.DataFrame, domain: str, index: str, values: str
) -> pd.DataFrame:
    """A row per choice or order of one domain, and a column per number of options."""
    rows = table[table.domain == domain]
    by_count = rows.pivot(index=index, columns="n_options", values=values)
    return by_count.loc[rows[index].unique()]
