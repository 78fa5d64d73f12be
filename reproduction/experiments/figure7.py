"""Figure 7: accumulating reward.

Return of the learned policy after each episode of Q-learning over primitive actions,
averaged over 100 runs, as eigenoptions (both signs) are added to the behaviour that
explores. Evaluation has epsilon 0.01 and random ties.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from reproduction.claims import Finding, at_least, claim, list_items
from reproduction.drawing import add_legend, draw_learning, make_graphs, shade_lines
from reproduction.lab import Data, Jobs, Results
from reproduction.readings import OTHER_MARGIN
from reproduction.runs.learning import (
    COUNTS,
    EPISODES,
    Learner,
    list_learning_jobs,
    stack_curves,
    stack_runs,
)
from reproduction.runs.options import ANGLES, limit_counts
from reproduction.statistics import Difference, compare_means
from reproduction.thresholds import FEW, ROBUST

SECTION = "4.3"
ORDER = 80
QUICK = {
    "episodes": {"i-maze": 30, "four-rooms": 40},
    "options": [0, 2, 4, 16, 64],
    "runs": 4,
}


def list_jobs(
    *,
    episodes: Mapping[str, int] = EPISODES,
    options: Sequence[int] = COUNTS,
    runs: int = 100,
    seed: int = 2017,
) -> Jobs:
    """Learning with each number of options; the last is all of them, both signs.

    The open room has repeated eigenvalues, whose basis is a matter of choice: there
    agents learn in other bases, too.
    """
    learners = [
        Learner(maze, {"n": n}, {"n_options": n})
        for maze in episodes
        for n in limit_counts(maze, options)
    ]
    turned = [
        Learner("open-room", {"n": n, "angle": angle}, {"angle": angle, "n_options": n})
        for angle in ANGLES
        for n in limit_counts("open-room", options)[1:]
    ]
    return {
        "learning": list_learning_jobs(
            learners, runs=runs, episodes=episodes, seed=seed
        ),
        "turned": list_learning_jobs(
            turned, runs=runs, episodes=EPISODES, seed=seed + 1
        ),
    }


def tabulate_results(results: Results) -> Data:
    """Runs and curves by domain and number of options, and runs in other bases."""
    return {
        "runs": stack_runs(results["learning"]),
        "curves": stack_curves(results["learning"]),
        "bases": stack_runs(results["turned"]),
    }


def draw_figure(data: Data) -> Figure:
    """Learning curves with some numbers of options, a graph per domain."""
    domains = data["curves"].groupby("domain", sort=False)
    figure, axes = make_graphs(len(domains), sharey=True, ylabel="return")
    for ax, (domain, curves) in zip(axes, domains, strict=True):
        shown = [0, 2, 4, FEW, 64, curves.n_options.max()]
        lines = {
            _name_agent(n): curve
            for n, curve in curves.groupby("n_options")
            if n in shown
        }
        with_options = [name for name in lines if name != _name_agent(0)]
        draw_learning(ax, lines, colors=shade_lines(with_options), title=domain)
    return add_legend(figure)


def write_headline(data: Data) -> tuple[str, str]:
    """How many evaluation episodes reach the goal of the 4-room domain."""
    means = _average_returns(data)["four-rooms"]
    words = (
        "of the evaluation episodes reach the goal of Figure 7 with 64 eigenoptions, "
        f"{means[0]:.0%} without"
    )
    return f"{means[64]:.0%}", words


@claim("most-scenarios", "In most scenarios eigenoptions improve performance.")
def improve_performance(data: Data) -> Finding:
    gains = _compare_with_primitive_actions(data)
    better = [gain.above() for gain in gains]
    return Finding(
        tests=[at_least(better, len(gains) // 2 + 1)],
        measured=f"in {better.count(True)} of {len(gains)} scenarios the mean return "
        "is better than with primitive actions",
        evidence="A scenario is a domain and a number of options.",
        table=_tabulate_counts(gains.map(str), "minus primitive actions"),
    )


@claim(
    "exceptions-few",
    "Exceptions occur when only a few options are added to the agent's action set.",
)
def need_more_than_a_few(data: Data) -> Finding:
    gains = _compare_with_primitive_actions(data)
    exceptions = [scenario for scenario, gain in gains.items() if not gain.better]
    is_few = [n <= FEW for _, n in exceptions]
    names = ", ".join(f"{domain} with {n}" for domain, n in exceptions)

    turned = data["bases"][data["bases"].n_options == 4]
    returns = turned.groupby("angle").mean_return.mean()
    return Finding(
        tests=[any(is_few), bool(is_few) and all(is_few)],
        measured=f"not better than primitive actions: {names or 'none'}",
        evidence="Two tests: there are exceptions with a few options, at most "
        f"{FEW}, and with no larger number. The open room has repeated eigenvalues, "
        "whose basis is a matter of choice: turned by other angles, its mean return "
        f"with 4 options is {list_items('{1:.2f} ({0} degrees)', returns)}.",
    )


@claim(
    "few-hurt-enough-help",
    "Few options may hurt the agents' performance while enough options speed up "
    "learning.",
    section="4",
)
def hurt_then_speed_up_learning(data: Data) -> Finding:
    gains = _compare_with_primitive_actions(data)
    hurt: dict[str, str] = {}
    helped = []
    for domain, by_domain in gains.groupby("domain", sort=False):
        by_count = by_domain.droplevel("domain")
        worse = [str(n) for n, gain in by_count.items() if n <= FEW and gain.worse]
        hurt[domain] = " and ".join(worse)
        helped.append(at_least([gain.above() for gain in by_count], 1))

    measured = "worse with: " + list_items(
        "{} {}", {domain: counts or "none" for domain, counts in hurt.items()}
    )
    if all(helped):
        measured += ". Better in every domain with some number"
    return Finding(
        tests=[any(hurt.values()), *helped],
        measured=measured,
        evidence="Worse in some domain with a few options, and better in every domain "
        "with some number of them.",
    )


@claim("best-64", "The best results were obtained using 64 options.")
def learn_best_with_64_options(data: Data) -> Finding:
    measures = {
        "late_return": "final performance",
        "mean_return": "area under the curve",
    }
    leads: dict[str, Difference] = {}
    for measure, words in measures.items():
        for domain, runs in data["runs"].groupby("domain", sort=False):
            if 64 in set(runs.n_options):
                n, lead = _find_lead(runs, measure)
                leads[f"{words}, {domain}: {n} options minus 64"] = lead

    return Finding(
        tests=[not lead.better for lead in leads.values()],
        readings={OTHER_MARGIN: [not lead.above() for lead in leads.values()]},
        measured="; ".join(f"{words} {lead}" for words, lead in leads.items()),
        evidence="Final performance, of which the paper speaks, is the return of the "
        "last tenth of the episodes; the area under the curve is that of all of them. "
        "A test per measure and domain: no other number of options is ahead of 64 by "
        "more than noise. The I-Maze has only 38 eigenoptions.",
        lesson="4 to 16 options learn faster in this task, whose goal is a corner "
        "where the first options end; over all goals 32 to 128 options are a plateau "
        "without a best number.",
        table=_tabulate_counts(_average_returns(data), "area under the curve"),
    )


@claim(
    "robust",
    "The agent's performance is fairly robust across different numbers of options.",
)
def keep_performance_across_numbers(data: Data) -> Finding:
    means = _average_returns(data)
    lowest = {}
    for domain in means.index.unique("domain"):
        returns = means[domain]
        with_any = returns.loc[1:].min() / returns.max()
        with_more = returns.loc[FEW + 1 :].min() / returns.max()
        lowest[domain] = (with_any, with_more)
    return Finding(
        tests=[share >= ROBUST for shares in lowest.values() for share in shares],
        measured="lowest share of the best return with any number of options, and "
        f"with more than {FEW}: " + list_items("{0} {1[0]:.0%} and {1[1]:.0%}", lowest),
        evidence=f"The lowest mean return must be at least {ROBUST:.0%} of the "
        "highest. Two tests per domain: over all numbers of options, and over those "
        f"above {FEW}.",
    )


def _compare_with_primitive_actions(data: Data) -> pd.Series:
    """Difference of the mean return to primitive actions, by domain and number."""
    scenarios = data["runs"].groupby(["domain", "n_options"], sort=False)
    returns = dict(iter(scenarios.mean_return))
    with_options = [(domain, n) for domain, n in returns if n > 0]
    gains = [
        compare_means(returns[domain, n], returns[domain, 0], len(with_options))
        for domain, n in with_options
    ]
    names = pd.MultiIndex.from_tuples(with_options, names=["domain", "n_options"])
    return pd.Series(gains, index=names)


def _find_lead(runs: pd.DataFrame, measure: str) -> tuple[int, Difference]:
    """Of all numbers of options but 64 the best, and its difference to 64."""
    returns = dict(iter(runs.groupby("n_options")[measure]))
    returns.pop(0, None)
    ours = returns.pop(64)
    best = max(returns, key=lambda n: float(returns[n].mean()))
    return best, compare_means(returns[best], ours, len(returns))


def _average_returns(data: Data) -> pd.Series:
    """Mean return by domain and number of options."""
    scenarios = data["runs"].groupby(["domain", "n_options"], sort=False)
    return scenarios.mean_return.mean()


def _tabulate_counts(values: pd.Series, head: str) -> pd.DataFrame:
    """Table for readers: one row per number of options, one column per domain."""
    domains = values.index.unique("domain")
    table = values.unstack("domain").sort_index()[domains]
    table.insert(0, head, [_name_agent(n) for n in table.index])
    return table


def _name_agent(n_options: int) -> str:
    """Name of an agent with this many options."""
    if n_options == 0:
        return "primitive actions"
    return f"{n_options} options"
