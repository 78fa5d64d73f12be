"""Figure 7: accumulating reward.

Return of the learned policy after each episode of Q-learning over primitive actions, averaged over 100 runs, as
eigenoptions (both signs) are added to the behaviour that explores. Evaluation has epsilon 0.01 and random ties.
"""

import pandas as pd

from reproduction.drawing import Figure, add_legend, draw_learning, make_graphs
from reproduction.experiments.agents import (
    ANGLES,
    COUNTS,
    EPISODES,
    counts_for,
    learn_all,
)
from reproduction.lab import (
    FEW,
    MARGIN,
    ROBUST,
    Claim,
    Claims,
    Data,
    Lab,
    at_least,
    list_items,
)
from reproduction.statistics import Difference, compare_means

SECTION, ORDER = "4.3", 80
QUICK = {
    "episodes": {"i-maze": 30, "four-rooms": 40},
    "options": [0, 2, 4, 16, 64],
    "runs": 4,
}


def run(lab: Lab, *, episodes=EPISODES, options=COUNTS, runs=100, seed=2017) -> Data:
    """Returns with each number of options; the last is all of them, both signs."""
    counts = {name: counts_for(name, options) for name in episodes}
    agents = [
        {"maze": name, "options": {"n": n}, "n_options": n}
        for name in counts
        for n in counts[name]
    ]
    # The open room has repeated eigenvalues, whose basis is a matter of choice.
    turned = [
        {
            "maze": "open-room",
            "options": {"n": n, "angle": angle},
            "angle": angle,
            "n_options": n,
        }
        for angle in ANGLES
        for n in counts_for("open-room", options)[1:]
    ]
    bases = learn_all(lab, turned, runs=runs, episodes=EPISODES, seed=seed + 1)["runs"]
    return {
        **learn_all(lab, agents, runs=runs, episodes=episodes, seed=seed),
        "bases": bases,
    }


def figure(data: Data) -> Figure:
    domains = data["curves"].groupby("domain", sort=False)
    picture, axes = make_graphs(len(domains), sharey=True, ylabel="return")
    for ax, (domain, curves) in zip(axes, domains, strict=True):
        shown = [0, 2, 4, FEW, 64, curves.n_options.max()]
        lines = {
            name_agent(n): curve
            for n, curve in curves.groupby("n_options")
            if n in shown
        }
        draw_learning(ax, lines, title=domain)
    return add_legend(picture)


def claims(data: Data) -> Claims:
    gains = compare_with_primitive_actions(data)
    better = [gain.above() for gain in gains]
    yield Claim(
        "most-scenarios",
        "In most scenarios eigenoptions improve performance.",
        tests=[at_least(better, len(gains) // 2 + 1)],
        measured=f"in {better.count(True)} of {len(gains)} scenarios the mean return is better than with primitive "
        "actions",
        evidence="A scenario is a domain and a number of options.",
        table=tabulate(gains.map(str), "minus primitive actions"),
    )
    exceptions = [key for key, gain in gains.items() if not gain.better]
    bases = (
        data["bases"][data["bases"].n_options == 4].groupby("angle").mean_return.mean()
    )
    few = [n <= FEW for _, n in exceptions]
    yield Claim(
        "exceptions-few",
        "Exceptions occur when only a few options are added to the agent's action set.",
        tests=[any(few), bool(few) and all(few)],
        measured=f"not better than primitive actions: {', '.join(f'{d} with {n}' for d, n in exceptions) or 'none'}",
        evidence=f"Two tests: there are exceptions with a few options, at most {FEW}, and with no larger number. The "
        "open room has repeated eigenvalues, whose basis is a matter of choice: turned by other angles, its mean "
        f"return with 4 options is {list_items('{1:.2f} ({0} degrees)', bases)}.",
    )
    domains = {
        domain: gain.droplevel("domain")
        for domain, gain in gains.groupby("domain", sort=False)
    }
    hurt = {
        d: [str(n) for n, gain in some.items() if n <= FEW and gain.worse]
        for d, some in domains.items()
    }
    helped = [at_least([gain.above() for gain in some], 1) for some in domains.values()]
    yield Claim(
        "few-hurt-enough-help",
        "Few options may hurt the agents' performance while enough options speed up learning.",
        section="4",
        tests=[any(hurt.values()), *helped],
        measured=f"worse with: {list_items('{} {}', {d: ' and '.join(ns) or 'none' for d, ns in hurt.items()})}"
        + (". Better in every domain with some number" if all(helped) else ""),
        evidence="Worse in some domain with a few options, and better in every domain with some number of them.",
    )
    leads = [
        (words, domain, *find_lead(runs, measure))
        for measure, words in (
            ("late_return", "final performance"),
            ("mean_return", "area under the curve"),
        )
        for domain, runs in data["runs"].groupby("domain", sort=False)
        if 64 in set(runs.n_options)
    ]
    means = average_returns(data)
    yield Claim(
        "best-64",
        "The best results were obtained using 64 options.",
        tests=[not lead.better for *_, lead in leads],
        measured="; ".join(
            f"{words}, {d}: {n} options minus 64 {lead}" for words, d, n, lead in leads
        ),
        evidence="Final performance, of which the paper speaks, is the return of the last tenth of the episodes; the "
        "area under the curve is that of all of them. A test per measure and domain: no other number of options is "
        "ahead of 64 by more than noise. The I-Maze has only 38 eigenoptions.",
        lesson="4 to 16 options learn faster in this task, whose goal is a corner where the first options end; over "
        "all goals 32 to 128 options are a plateau without a best number.",
        edge=f"No lead is as large as {MARGIN:g}, a difference that matters: by that margin all of this is a tie."
        if not any(lead.above() for *_, lead in leads)
        else "",
        table=tabulate(means, "area under the curve"),
    )
    lowest = {
        d: [means[d].loc[least:].min() / means[d].max() for least in (1, FEW + 1)]
        for d in domains
    }
    yield Claim(
        "robust",
        "The agent's performance is fairly robust across different numbers of options.",
        tests=[share >= ROBUST for shares in lowest.values() for share in shares],
        measured="lowest share of the best return with any number of options, and with more than "
        f"{FEW}: {list_items('{0} {1[0]:.0%} and {1[1]:.0%}', lowest)}",
        evidence=f"The lowest mean return must be at least {ROBUST:.0%} of the highest. Two tests per domain: over all "
        f"numbers of options, and over those above {FEW}.",
    )


def headline(data: Data) -> tuple[str, str]:
    bare, ours = average_returns(data)["four-rooms"][[0, 64]]
    words = f"of the evaluation episodes reach the goal of Figure 7 with 64 eigenoptions, {bare:.0%} without"
    return f"{ours:.0%}", words


def compare_with_primitive_actions(data: Data) -> pd.Series:
    """Difference of the mean return to primitive actions, by domain and number of options."""
    returns = dict(
        list(data["runs"].groupby(["domain", "n_options"], sort=False).mean_return)
    )
    pairs = [(domain, n) for domain, n in returns if n]
    gains = [
        compare_means(returns[domain, n], returns[domain, 0], len(pairs))
        for domain, n in pairs
    ]
    return pd.Series(
        gains, index=pd.MultiIndex.from_tuples(pairs, names=["domain", "n_options"])
    )


def find_lead(runs: pd.DataFrame, measure: str) -> tuple[int, Difference]:
    """Of all numbers of options but 64, the one with the highest mean; and its difference to 64."""
    returns = {n: values for n, values in runs.groupby("n_options")[measure] if n}
    ours = returns.pop(64)
    best = max(returns, key=lambda n: float(returns[n].mean()))
    return best, compare_means(returns[best], ours, len(returns))


def average_returns(data: Data) -> pd.Series:
    """Mean return by domain and number of options."""
    return data["runs"].groupby(["domain", "n_options"], sort=False).mean_return.mean()


def tabulate(values: pd.Series, head: str) -> pd.DataFrame:
    """Table for readers: one row per number of options, one column per domain."""
    table = values.unstack("domain").sort_index()[values.index.unique("domain")]
    table.insert(0, head, [name_agent(n) for n in table.index])
    return table


def name_agent(n: int) -> str:
    """Name of an agent with this many options."""
    return f"{n} options" if n else "primitive actions"
