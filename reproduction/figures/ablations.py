"""Looking closer: choices that the paper leaves open.

Here Figures 6 and 7 are computed with another Laplacian, without the eigenvector of eigenvalue zero, with one sign,
with another discount of the options, with the tolerance of the authors' code, and with ties between actions broken in
other orders (thin lines).

These are which Laplacian, whether the eigenvector of eigenvalue zero counts, one sign or both, the discount by which
options are solved (0.9 in the authors' code; the paper gives none for tables), which values count as zero (in the
authors' code those below 0.001), and which of two equally good actions an option takes. Other bases of repeated
eigenvalues are in Figures 6 and 7.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import pandas as pd

import eigenoptions as eo
from reproduction.drawing import add_legend, draw_lines, make_graphs
from reproduction.figures.agents import (
    COUNTS,
    EPISODES,
    diffuse_all,
    learn_all,
    make_eigenoptions,
)
from reproduction.lab import Block, Data, Lab

CHOICES: dict[str, dict[str, Any]] = {
    "as reported": {},
    "eigenvalue zero left out": {"skip_zero": True},
    "combinatorial Laplacian": {"operator": "combinatorial"},
    "random-walk Laplacian": {"operator": "random-walk"},
    "values below 0.001 are zero": {"tolerance": 0.001},
    "one sign only": {"both_signs": False},
    "option discount 0.5": {"gamma": 0.5},
    "option discount 0.99": {"gamma": 0.99},
}

DISCOUNTS = {"option discount 0.5": 0.5, "as reported": 0.9, "option discount 0.99": 0.99}

SECTION, ORDER = "4.2 and 4.3", 150
QUICK = {"episodes": {"i-maze": 20}, "options": [0, 2, 16], "runs": 4, "orders": 3, "first": 8}
OURS = True


def run(
    lab: Lab,
    *,
    episodes: Mapping[str, int] = EPISODES,
    options: Sequence[int] = COUNTS,
    runs: int = 100,
    orders: int = 8,
    first: int = 64,
    seed: int = 2018,
) -> Data:
    """Diffusion time and mean return for each choice, and diffusion time for each order of equal actions."""
    pairs = [(name, choice) for name in episodes for choice in CHOICES]
    agents: list[dict[str, Any]] = [
        {"maze": name, "options": CHOICES[c], "domain": name, "choice": c} for name, c in pairs
    ]
    shown = [{**agent, "options": {**agent["options"], "n": first}} for agent in agents]
    # The curves end at the first options; beyond, only the diffusion time with all of them is wanted.
    totals = lab.pmap(diffuse_with_all, [{"maze": a["maze"], "options": a["options"]} for a in agents])
    totals = [
        {"domain": agent["domain"], "choice": agent["choice"], "n_options": n, "diffusion_time": time}
        for agent, (n, time) in zip(agents, totals, strict=True)
        if n > first
    ]
    ties = [
        {"maze": name, "options": {"n": first, "action_order": order}, "domain": name, "order": repr(order)}
        for name in episodes
        for order in list(permutations(range(4)))[:orders]
    ]
    learning = []
    for agent in agents:
        most = eo.maze(agent["maze"]).n_states - agent["options"].get("skip_zero", False)
        most *= 1 + agent["options"].get("both_signs", True)
        for n in sorted({min(n, most) for n in options}):
            learning.append({**agent, "options": {**agent["options"], "n": n}, "n_options": n})
    learned = learn_all(lab, learning, runs=runs, episodes=episodes, seed=seed)
    return {
        "diffusion": pd.concat([diffuse_all(lab, shown), pd.DataFrame(totals)], ignore_index=True),
        "ties": diffuse_all(lab, ties),
        "learning": pd.DataFrame(
            [{**columns, "mean_return": returns[0].mean()} for columns, returns in learned]
        ),
    }


def diffuse_with_all(*, maze: str, options: Mapping[str, Any]) -> tuple[int, float]:
    """Number of all options, and the diffusion time with them."""
    mdp = eo.maze(maze)
    found = make_eigenoptions(mdp, **options)
    return len(found), eo.diffusion_time(mdp, found)


def figure(data: Data) -> Any:
    domains = data["diffusion"].domain.unique()
    picture, axes = make_graphs(2 * len(domains), columns=len(domains))
    for upper, lower, domain in zip(axes[: len(domains)], axes[len(domains) :], domains, strict=True):
        curves, ties, returns = (tabulate(data, name, domain) for name in ("diffusion", "ties", "learning"))
        shown = curves.columns[curves.notna().all() & (curves.columns <= min(64, ties.columns.max()))]
        draw_lines(
            upper,
            shown,
            {choice: row[shown] for choice, row in curves.iterrows()},
            thin={"orders of equal actions": ties[shown]},
            baseline=curves[0].iloc[0],
            title=domain,
            xlabel="options",
            yscale="log",
        )
        counts = returns.columns[returns.notna().all()]
        draw_lines(
            lower,
            range(len(counts)),
            {choice: row[counts] for choice, row in returns.iterrows()},
            ticks=counts.astype(str),
            xlabel="options",
            ylim=(-0.02, 1.02),
        )
    axes[0].set_ylabel("diffusion time")
    axes[len(domains)].set_ylabel("mean return")
    add_legend(picture, columns=3)
    return picture


def notes(data: Data) -> Iterator[Block]:
    few, many = 4, 64
    table: dict[str, dict[str, str]] = {choice: {"choice": choice} for choice in CHOICES}
    never = []
    for prefix, name, form in (("", "diffusion", "{:,.0f}"), ("return ", "learning", "{:.2f}")):
        for domain in data["diffusion"].domain.unique():
            for choice, row in tabulate(data, name, domain).iterrows():
                values = row.dropna()
                for n in (few, many):
                    table[choice][f"{prefix}{domain}, {n}"] = form.format(values[values.index <= n].iloc[-1])
                if name == "diffusion" and values.iloc[-1] >= values.iloc[0]:
                    never.append(f"{choice} in {domain}")
    yield (
        f"Diffusion time and mean return with {few} and with {many} options (all, where there are fewer). The "
        "first options depend on these choices, above all on whether eigenvalue zero counts. With enough options "
        "the discount of the options matters most: with 0.99 they run longer, and in the 4-room domain both "
        "exploration and learning are worse.",
        pd.DataFrame(table.values()),
    )
    rows = []
    for domain in data["diffusion"].domain.unique():
        curves, returns = tabulate(data, "diffusion", domain), tabulate(data, "learning", domain)
        for choice, discount in DISCOUNTS.items():
            times, mean = curves.loc[choice].dropna() / curves.loc[choice, 0], returns.loc[choice].dropna()
            row: dict[str, Any] = {"domain": domain, "discount": discount}
            row |= {f"{n} options": f"{times[n]:.2f}" for n in (16, 32, 64) if n in times}
            row |= {"all": f"{times.iloc[-1]:.2f}", "return, 64 or all": f"{mean.loc[:many].iloc[-1]:.3f}"}
            rows.append(row | {"return, all": f"{mean.iloc[-1]:.3f}"})
    yield (
        "The options' own discount, which the paper does not give for tables: diffusion time relative to primitive "
        "actions, and mean return.",
        pd.DataFrame(rows),
    )
    yield (
        "Enough options reduce the diffusion time, and keep it reduced as more are added, under every choice "
        + (
            f"but these: {', '.join(never)}. With one sign, an option that leads somewhere often has none that "
            "leads back."
            if never
            else "in every domain."
        )
    )
    yield (
        "Under the combinatorial and the random-walk Laplacian the eigenvector of eigenvalue zero is constant, "
        "and its two options start nowhere. Under the normalized one, which the paper uses, it follows the "
        "degree of the states: its option with a minus sign runs to the nearest state with the fewest "
        "neighbours (a corner or a doorway), its option with a plus sign away from the walls."
    )
    rows = []
    for domain in data["ties"].domain.unique():
        ties = tabulate(data, "ties", domain)
        counts = [n for n in (2, 4, 16, ties.columns.max()) if n in ties]
        rows.append(
            {"domain": domain}
            | {f"{n} options": f"{ties[n].min():,.0f} to {ties[n].max():,.0f}" for n in counts}
        )
    yield (
        "Which of two equally good actions an option takes is not in the paper; in its authors' code rounding "
        f"errors of the eigenvectors decide. Diffusion time over {data['ties'].order.nunique()} orders of the "
        "actions:",
        pd.DataFrame(rows),
    )


def tabulate(data: Data, name: str, domain: str) -> pd.DataFrame:
    """A table of one domain with a row per choice (or order) and a column per number of options."""
    table = data[name][data[name].domain == domain]
    index = "order" if name == "ties" else "choice"
    values = "mean_return" if name == "learning" else "diffusion_time"
    return table.pivot(index=index, columns="n_options", values=values).loc[table[index].unique()]
