"""Figure 7: accumulating reward.

Return of the learned policy after each episode of Q-learning over primitive actions,
averaged over 100 runs, as eigenoptions (both signs) are added to the behaviour that
explores. Evaluation has epsilon 0.01 and random ties.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pandas as pd
from matplotlib.figure import Figure

from reproduction.claims import (
    Finding,
    Tests,
    at_least,
    claim,
    list_items,
    move_limit,
)
from reproduction.drawing import add_legend, draw_learning, make_graphs, shade_lines
from reproduction.lab import Data, Jobs, Results
from reproduction.readings import (
    FEW_EXCEPTED,
    FINAL,
    NO_MARGIN,
    PUBLISHED_LEARNER,
    TWO_OPTIONS,
    WALLS,
    complete_readings,
)
from reproduction.runs.learning import (
    COUNTS,
    EPISODES,
    Learner,
    list_choice_jobs,
    list_learning_jobs,
    stack_curves,
    stack_runs,
)
from reproduction.runs.options import BASIS_READINGS, OPTION_READINGS, limit_counts
from reproduction.runs.published import PUBLISHED_COUNTS, list_published_jobs
from reproduction.statistics import (
    Difference,
    IsBetter,
    compare_means,
    is_above_zero,
    negate,
)
from reproduction.thresholds import FEW, MARGIN, ROBUST

SECTION = "4.3"
ORDER = 80
QUICK = {
    "episodes": {"i-maze": 30, "four-rooms": 40},
    "options": [0, 2, 4, 16, 64],
    "runs": 4,
    "labels": [0, 2, 32],
    "published_runs": 4,
}

# Runs of all agents: a row per run.
Runs: TypeAlias = pd.DataFrame


def list_jobs(
    *,
    episodes: Mapping[str, int] = EPISODES,
    options: Sequence[int] = COUNTS,
    runs: int = 100,
    labels: Sequence[int] = PUBLISHED_COUNTS,
    published_runs: int = 300,
    seed: int = 2017,
) -> Jobs:
    """Learning with each number of options; the last is all of them, both signs.

    The same follows under other readings. Some of these jobs are those of other
    experiments: the choices that the paper leaves open, and the published program,
    which has `labels` options.
    """
    learners = [
        Learner(maze, {"n": n}, {"n_options": n})
        for maze in episodes
        for n in limit_counts(maze, options)
    ]
    others = [
        Learner(
            maze,
            {"n": n, **OPTION_READINGS[reading]},
            {"reading": reading, "n_options": n},
        )
        for reading in (WALLS, *BASIS_READINGS)
        for maze in episodes
        if reading == WALLS or maze == "open-room"
        for n in limit_counts(maze, options)[1:]
    ]
    return {
        "learning": list_learning_jobs(
            learners, runs=runs, episodes=episodes, seed=seed
        ),
        "readings": list_learning_jobs(
            others, runs=runs, episodes=episodes, seed=seed + 2
        ),
        "choices": list_choice_jobs(
            episodes=episodes, options=options, runs=runs, seed=seed + 1
        ),
        "published": list_published_jobs(
            episodes=episodes, options=labels, runs=published_runs, seed=seed + 3
        ),
    }


def tabulate_results(results: Results) -> Data:
    """Runs and curves by domain and number of options, and runs by reading."""
    choices = stack_runs(results["choices"])
    published = stack_runs(results["published"])
    tables = [
        stack_runs(results["readings"]),
        choices[choices.choice.isin(OPTION_READINGS)].rename(
            columns={"choice": "reading"}
        ),
        published.rename(columns={"label": "n_options"}).assign(
            reading=PUBLISHED_LEARNER
        ),
    ]
    readings = pd.concat(tables)
    return {
        "runs": stack_runs(results["learning"]),
        "curves": stack_curves(results["learning"]),
        "readings": readings[readings.n_options > 0],
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
    means = _average_returns(data["runs"])["four-rooms"]
    words = (
        "of the evaluation episodes reach the goal of Figure 7 with 64 eigenoptions, "
        f"{means[0]:.0%} without"
    )
    return f"{means[64]:.0%}", words


@claim("most-scenarios", "In most scenarios eigenoptions improve performance.")
def improve_performance(data: Data) -> Finding:
    def judge(runs: Runs, is_better: IsBetter = Difference.above) -> Tests:
        gains = _compare_with_primitive_actions(runs)
        return [at_least(map(is_better, gains), len(gains) // 2 + 1)]

    gains = _compare_with_primitive_actions(data["runs"])
    late = _compare_with_primitive_actions(_take_late_returns(data["runs"]))
    n_better = [gain.above() for gain in gains].count(True)
    n_better_late = [gain.above() for gain in late].count(True)
    return Finding(
        tests=judge(data["runs"]),
        readings={
            NO_MARGIN: judge(data["runs"], is_above_zero),
            **_judge_readings(data, judge),
        },
        measured=f"in {n_better} of {len(gains)} scenarios the mean return "
        "is better than with primitive actions",
        evidence="A scenario is a domain and a number of options. Final performance is "
        f"better in {n_better_late}: by the last episodes primitive actions reach the "
        "goal, too.",
        table=_tabulate_counts(gains.map(str), "minus primitive actions"),
    )


@claim(
    "exceptions-few",
    "Exceptions occur when only a few options are added to the agent's action set.",
)
def need_more_than_a_few(data: Data) -> Finding:
    def judge(
        runs: Runs, is_better: IsBetter = Difference.above, few: int = FEW
    ) -> Tests:
        gains = _compare_with_primitive_actions(runs)
        is_few = gains.index.get_level_values("n_options") <= few
        fails_with_few = [negate(is_better(gain)) for gain in gains[is_few]]
        helps_with_more = [is_better(gain) for gain in gains[~is_few]]
        has_exceptions = at_least(fails_with_few, 1)
        only_with_few = [has_exceptions, *helps_with_more]
        return [has_exceptions, at_least(only_with_few, len(only_with_few))]

    runs = data["runs"]
    gains = _compare_with_primitive_actions(runs)
    exceptions = [scenario for scenario, gain in gains.items() if not gain.above()]
    names = ", ".join(f"{domain} with {n}" for domain, n in exceptions)
    return Finding(
        tests=judge(runs),
        readings={
            NO_MARGIN: judge(runs, is_above_zero),
            TWO_OPTIONS: judge(runs, few=2),
            **_judge_readings(data, judge),
        },
        measured=f"not better than primitive actions: {names or 'none'}",
        evidence="Two tests: there are exceptions with a few options, at most "
        f"{FEW}, and all larger numbers are better than primitive actions.",
    )


@claim(
    "few-hurt-enough-help",
    "Few options may hurt the agents' performance while enough options speed up "
    "learning.",
    section="4",
)
def hurt_then_speed_up_learning(data: Data) -> Finding:
    def judge(runs: Runs, margin: float = MARGIN, few: int = FEW) -> Tests:
        gains = _compare_with_primitive_actions(runs)
        is_few = gains.index.get_level_values("n_options") <= few
        hurts = at_least([gain.below(margin) for gain in gains[is_few]], 1)
        helps = [
            at_least([gain.above(margin) for gain in by_domain], 1)
            for _, by_domain in gains.groupby("domain", sort=False)
        ]
        return [hurts, *helps]

    runs = data["runs"]
    tests = judge(runs)
    hurt = _list_counts_that_hurt(_compare_with_primitive_actions(runs), FEW)
    measured = "worse with: " + list_items(
        "{} {}", {domain: counts or "none" for domain, counts in hurt.items()}
    )
    if all(tests[1:]):
        measured += ". Better in every domain with some number"
    return Finding(
        tests=tests,
        readings={
            NO_MARGIN: judge(runs, margin=0.0),
            TWO_OPTIONS: judge(runs, few=2),
            **_judge_readings(data, judge),
        },
        measured=measured,
        evidence="Worse in some domain with a few options, and better in every domain "
        "with some number of them.",
    )


@claim("best-64", "The best results were obtained using 64 options.")
def learn_best_with_64_options(data: Data) -> Finding:
    def judge(runs: Runs, is_better: IsBetter = Difference.above) -> Tests:
        return [negate(is_better(lead)) for _, lead in _find_leads(runs).values()]

    runs = data["runs"]
    leads = _find_leads(runs)
    late = _find_leads(_take_late_returns(runs))
    return Finding(
        tests=judge(runs),
        readings={
            NO_MARGIN: judge(runs, is_above_zero),
            **_judge_readings(data, judge),
        },
        measured=f"best other number minus 64: {_describe_leads(leads)}",
        evidence="A test per domain: no other number of options is ahead of 64 by "
        f"what matters. By final performance: {_describe_leads(late)}. The I-Maze "
        "has only 38 eigenoptions.",
        lesson="4 to 16 options learn faster in this task, whose goal is a corner "
        "where the first options end; over all goals 32 to 128 options are a plateau "
        "without a best number.",
        table=_tabulate_counts(_average_returns(runs), "mean return"),
    )


@claim(
    "robust",
    "The agent's performance is fairly robust across different numbers of options.",
)
def keep_performance_across_numbers(data: Data) -> Finding:
    def judge(runs: Runs, limit: float = ROBUST) -> Tests:
        return [with_any >= limit for with_any, _ in _find_lowest(runs).values()]

    runs = data["runs"]
    lowest = _find_lowest(runs)
    return Finding(
        tests=judge(runs),
        readings={
            **_judge_readings(data, judge),
            FEW_EXCEPTED: [with_more >= ROBUST for _, with_more in lowest.values()],
            **move_limit("ROBUST", lambda limit: judge(runs, limit)),
        },
        measured="lowest share of the best return with any number of options, and "
        f"with more than {FEW}: " + list_items("{0} {1[0]:.0%} and {1[1]:.0%}", lowest),
        evidence=f"The lowest mean return must be at least {ROBUST:.0%} of the "
        "highest, in each domain, over all numbers of options.",
    )


def _judge_readings(data: Data, judge: Callable[[Runs], Tests]) -> dict[str, Tests]:
    """The tests under the readings that have runs of their own, or another measure."""
    runs = data["runs"]
    tables = complete_readings(runs, data["readings"])
    return {
        FINAL: judge(_take_late_returns(runs)),
        **{reading: judge(table) for reading, table in tables.items()},
    }


def _take_late_returns(runs: Runs) -> Runs:
    """The runs with their final performance as the return."""
    return runs.assign(mean_return=runs.late_return)


def _list_counts_that_hurt(gains: pd.Series, few: int) -> dict[str, str]:
    """In each domain, the small numbers of options that are worse than none."""
    hurt = {}
    for domain, by_domain in gains.groupby("domain", sort=False):
        by_count = by_domain.droplevel("domain")
        worse = [str(n) for n, gain in by_count.items() if n <= few and gain.below()]
        hurt[domain] = " and ".join(worse)
    return hurt


def _find_lowest(runs: Runs) -> dict[str, tuple[float, float]]:
    """Lowest share of the best return, with any number of options and above a few."""
    means = _average_returns(runs)
    lowest = {}
    for domain in means.index.unique("domain"):
        returns = means[domain]
        with_any = returns.loc[1:].min() / returns.max()
        with_more = returns.loc[FEW + 1 :].min() / returns.max()
        lowest[domain] = (with_any, with_more)
    return lowest


def _compare_with_primitive_actions(runs: Runs) -> pd.Series:
    """Difference of the mean return to primitive actions, by domain and number."""
    scenarios = runs.groupby(["domain", "n_options"], sort=False)
    # Returns of the runs, by domain and number.
    returns = dict(iter(scenarios.mean_return))
    with_options = [(domain, n) for domain, n in returns if n > 0]
    gains = []
    for domain, n in with_options:
        gain = compare_means(
            returns[domain, n],
            returns[domain, 0],
            n_intervals=len(with_options),
        )
        gains.append(gain)
    names = pd.MultiIndex.from_tuples(with_options, names=["domain", "n_options"])
    return pd.Series(gains, index=names)


def _find_leads(runs: Runs) -> dict[str, tuple[int, Difference]]:
    """In each domain that has 64 options, the best other number and its lead."""
    leads = {}
    # An agent without options is not another number of options.
    with_options = runs[runs.n_options > 0]
    for domain, its_runs in with_options.groupby("domain", sort=False):
        returns = dict(iter(its_runs.groupby("n_options").mean_return))
        if 64 not in returns:
            continue
        returns_with_64 = returns.pop(64)
        best = max(returns, key=lambda n: float(returns[n].mean()))
        # The best was chosen among them all, so their intervals hold together.
        lead = compare_means(returns[best], returns_with_64, n_intervals=len(returns))
        leads[domain] = (best, lead)
    return leads


def _describe_leads(leads: Mapping[str, tuple[int, Difference]]) -> str:
    """The best other numbers of options, as text."""
    return list_items("{0} {1[0]} options {1[1]}", leads)


def _average_returns(runs: Runs) -> pd.Series:
    """Mean return by domain and number of options."""
    return runs.groupby(["domain", "n_options"], sort=False).mean_return.mean()


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
