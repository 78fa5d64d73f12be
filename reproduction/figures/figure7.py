"""Figure 7: accumulating reward.

Return of the learned policy after each episode of Q-learning over primitive actions, averaged over 100 runs, as
eigenoptions (both signs) are added to the behaviour that explores. Evaluation has epsilon 0.01 and random ties.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from reproduction.drawing import add_legend, draw_learning, draw_lines, make_graphs
from reproduction.figures.agents import ANGLES, COUNTS, EPISODES, counts_for, learn_all
from reproduction.lab import FEW, MARGIN, ROBUST, Block, Claim, Data, Lab, at_least
from reproduction.statistics import Difference, compare_means, tabulate_learning

SECTION, ORDER = "4.3", 80
QUICK = {"episodes": {"i-maze": 30, "four-rooms": 40}, "options": [0, 2, 16, 64], "runs": 4}


def run(
    lab: Lab,
    *,
    episodes: Mapping[str, int] = EPISODES,
    options: Sequence[int] = COUNTS,
    runs: int = 100,
    seed: int = 2017,
) -> Data:
    """Returns with each number of options; the last is all of them, both signs."""
    settings: dict[str, Any] = {"runs": runs, "episodes": episodes}
    pairs = [(name, n) for name in episodes for n in counts_for(name, options)]
    agents = [{"maze": name, "options": {"n": n}, "domain": name, "n_options": n} for name, n in pairs]
    # The open room has repeated eigenvalues, whose basis is a matter of choice.
    turned = [
        {"maze": name, "options": {"n": n, "angle": angle}, "angle": angle, "n_options": n}
        for angle in ANGLES
        for name, n in pairs
        if name == "open-room" and n
    ]
    learned = learn_all(lab, agents, seed=seed, **settings)
    bases = [
        {**columns, "mean_return": returns[0].mean()}
        for columns, returns in learn_all(lab, turned, seed=seed + 1, **settings)
    ]
    bases = pd.DataFrame(bases, columns=["angle", "n_options", "mean_return"])
    return {**tabulate_learning(learned), "bases": bases}


def figure(data: Data) -> Any:
    domains = data["curves"].groupby("domain", sort=False)
    picture, axes = make_graphs(len(domains), sharey=True)
    for ax, (domain, curves) in zip(axes, domains, strict=True):
        shown = [0, 2, 4, FEW, 64, curves.n_options.max()]
        draw_learning(
            ax, {name_agent(n): curve for n, curve in curves.groupby("n_options") if n in shown}, title=domain
        )
    axes[0].set_ylabel("return")
    add_legend(picture)
    return picture


def closer(data: Data) -> Any:
    domains = data["runs"].groupby("domain", sort=False)
    picture, axes = make_graphs(len(domains), sharey=True)
    for ax, (domain, runs) in zip(axes, domains, strict=True):
        returns = runs.pivot(index="run", columns="n_options", values="mean_return")
        bases = data["bases"].pivot(index="angle", columns="n_options", values="mean_return")
        bases.insert(0, 0, returns[0].mean())
        draw_lines(
            ax,
            range(returns.shape[1]),
            {"eigenoptions": returns},
            thin={"other bases": bases} if domain == "open-room" else None,
            baseline=returns[0].mean(),
            ticks=returns.columns.astype(str),
            title=domain,
            xlabel="options",
            ylim=(-0.02, 1.02),
        )
    axes[0].set_ylabel("mean return of a run")
    add_legend(picture)
    return picture


def claims(data: Data) -> Iterator[Claim]:
    gains = compare_with_primitive_actions(data)
    better = [gain.above() for gain in gains]
    exceptions = [key for key, gain in gains.items() if not gain.better]
    yield Claim(
        "most-scenarios",
        "In most scenarios eigenoptions improve performance.",
        tests=[at_least(better, len(gains) // 2 + 1)],
        measured=f"in {better.count(True)} of {len(gains)} scenarios the mean return is better than with "
        "primitive actions",
        evidence="A scenario is a domain and a number of options; the table has the differences of the mean "
        "return.",
        table=tabulate(gains.map(str), "minus primitive actions"),
    )
    few = [n <= FEW for _, n in exceptions]
    yield Claim(
        "exceptions-few",
        "Exceptions occur when only a few options are added to the agent's action set.",
        tests=[any(few), bool(few) and all(few)],
        measured="not better than primitive actions: "
        f"{', '.join(f'{d} with {n}' for d, n in exceptions) or 'none'}",
        evidence=f"Two tests: there are exceptions with a few options, at most {FEW}, and with no larger "
        "number. The open room with 4 depends on the basis of a repeated eigenvalue, see Figure 3.",
    )
    domains = {domain: gain.droplevel("domain") for domain, gain in gains.groupby("domain", sort=False)}
    worse = {domain: [n for n, d in gain.items() if n <= FEW and d.worse] for domain, gain in domains.items()}
    helped = [at_least([d.above() for d in gain], 1) for gain in domains.values()]
    yield Claim(
        "few-hurt-enough-help",
        "Few options may hurt the agents' performance while enough options speed up learning.",
        section="4",
        tests=[any(worse.values()), *helped],
        measured="worse with: "
        + "; ".join(f"{domain} {', '.join(map(str, counts)) or 'none'}" for domain, counts in worse.items())
        + (". Better in every domain with some number" if all(helped) else ""),
        evidence="Worse in some domain with a few options, and better in every domain with some number of "
        "them.",
    )
    means = average(data["runs"], "mean_return")
    domains = {domain: mean.droplevel("domain") for domain, mean in means.groupby("domain", sort=False)}
    leads = [
        (words, domain, *find_lead(runs, measure))
        for measure, words in (("late_return", "final performance"), ("mean_return", "area under the curve"))
        for domain, runs in data["runs"].groupby("domain", sort=False)
        if 64 in set(runs.n_options)
    ]
    yield Claim(
        "best-64",
        "The best results were obtained using 64 options.",
        tests=[not lead.better for *_, lead in leads],
        measured="; ".join(
            f"{words}, {domain}: {n} options minus 64 {lead}" for words, domain, n, lead in leads
        ),
        evidence="Final performance, of which the paper speaks, is the return of the last tenth of the evaluation "
        "episodes; the area under the curve is that of all of them and measures the speed. A test per measure and "
        "domain: no other number of options is ahead of 64 by more than noise. The I-Maze has 19 states and "
        "therefore only 38 eigenoptions. What is known of how the paper's figure was made is under "
        '"Looking closer: the published program".',
        lesson="4 to 16 options learn faster in this task, whose goal is a corner where the first options end; "
        "over all goals 32 to 128 options are a plateau without a best number.",
        edge=f"No lead is as large as {MARGIN:g}, a difference that matters: by that margin all of this is a tie."
        if not any(lead.above() for *_, lead in leads)
        else "",
        table=tabulate(means.map("{:.3f}".format), "area under the curve"),
    )
    lowest = {
        domain: [mean[mean.index > least].min() / mean.max() for least in (0, FEW)]
        for domain, mean in domains.items()
    }
    yield Claim(
        "robust",
        "The agent's performance is fairly robust across different numbers of options.",
        tests=[share >= ROBUST for shares in lowest.values() for share in shares],
        measured="; ".join(
            f"{domain}: at least {every:.0%} of the best with any number, {more:.0%} with more than {FEW}"
            for domain, (every, more) in lowest.items()
        ),
        evidence=f"The lowest mean return must be at least {ROBUST:.0%} of the highest. Two tests per domain: over "
        f"all numbers of options, and over those above {FEW}.",
    )


def notes(data: Data) -> Iterator[Block]:
    if len(data["bases"]):
        own = average(data["runs"], "mean_return")["open-room"].drop(0)
        turned = data["bases"].pivot(index="angle", columns="n_options", values="mean_return")
        table = pd.DataFrame([own, *[row for _, row in turned.iterrows()]]).map("{:.2f}".format)
        table.insert(
            0,
            "open room, options",
            ["as reported", *(f"turned by {angle} degrees" for angle in turned.index)],
        )
        yield (
            "The open room in other bases of its repeated eigenvalues, which are equally right: with four "
            "options e2 runs along a diagonal that misses the goal, along the other one, or along a wall.",
            table,
        )


def headline(data: Data) -> tuple[str, str]:
    mean = average(data["runs"], "mean_return")["four-rooms"]
    words = (
        f"of the evaluation episodes reach the goal of Figure 7 with 64 eigenoptions, {mean[0]:.0%} without"
    )
    return f"{mean[64]:.0%}", words


def compare_with_primitive_actions(data: Data) -> pd.Series:
    """Difference of the mean return to primitive actions, by domain and number of options."""
    returns = {
        key: runs.mean_return for key, runs in data["runs"].groupby(["domain", "n_options"], sort=False)
    }
    pairs = [(domain, n) for domain, n in returns if n]
    gains = [compare_means(returns[domain, n], returns[domain, 0], len(pairs)) for domain, n in pairs]
    return pd.Series(gains, index=pd.MultiIndex.from_tuples(pairs, names=["domain", "n_options"]))


def find_lead(runs: pd.DataFrame, measure: str) -> tuple[int, Difference]:
    """Of all numbers of options but 64, the one with the highest mean; and its difference to 64."""
    returns = {n: rows[measure] for n, rows in runs.groupby("n_options") if n}
    ours = returns.pop(64)
    best = max(returns, key=lambda n: float(returns[n].mean()))
    return best, compare_means(returns[best], ours, len(returns))


def average(runs: pd.DataFrame, measure: str) -> pd.Series:
    """Mean over runs, by domain and number of options."""
    return runs.groupby(["domain", "n_options"], sort=False)[measure].mean()


def tabulate(values: pd.Series, head: str) -> pd.DataFrame:
    """Table for readers: one row per number of options, one column per domain."""
    table = values.unstack("domain").sort_index()[values.index.unique("domain")].fillna("")
    table.insert(0, head, [name_agent(n) for n in table.index])
    return table


def name_agent(n: int) -> str:
    """Name of an agent with this many options."""
    return f"{n} options" if n else "primitive actions"
