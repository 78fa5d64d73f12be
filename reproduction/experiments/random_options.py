"""Appendix D: random options.

Diffusion time (logarithmic axis) and learning curves of eigenoptions and of options
that lead to random states, 24 sets of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.sparse.csgraph import shortest_path
from scipy.special import fdtri

import eigenoptions as eo
from reproduction.claims import (
    Finding,
    Tests,
    at_least,
    claim,
    list_items,
    move_limit,
)
from reproduction.drawing import add_legend, draw_learning, draw_lines, make_graphs
from reproduction.lab import Data, Job, Jobs, Results, stack_tables
from reproduction.readings import (
    COMBINATORIAL,
    EXTRA_STEP,
    FINAL,
    HIGH_DISCOUNT,
    LAXER,
    LOW_DISCOUNT,
    NO_MARGIN,
    PUBLISHED_LEARNER,
    STRICTER,
    TOLERANCE,
    WITHOUT_E1,
)
from reproduction.runs.diffusion import diffuse, stack_times
from reproduction.runs.learning import (
    Learner,
    list_learning_jobs,
    stack_curves,
    stack_runs,
)
from reproduction.runs.options import OPTION_READINGS
from reproduction.runs.published import learn_in_two_steps
from reproduction.statistics import (
    CONFIDENCE,
    Difference,
    IsBetter,
    compare_means,
    is_above_zero,
    summarize_runs,
)
from reproduction.thresholds import MAJOR, MOVED, NEARLY_ALL, SEVERAL

SECTION = "Appendix D"
ORDER = 100
QUICK = {
    "maze": "i-maze",
    "options": 16,
    "fewer": [4, 8],
    "sets": 3,
    "runs": 4,
    "sequences": 4,
    "many_sets": 6,
    "many_runs": 2,
    "published_sets": 6,
    "episodes": 20,
    "readings": [WITHOUT_E1],
}

# Readings that change the first 64 eigenoptions of the 4-room domain.
READINGS = (WITHOUT_E1, COMBINATORIAL, LOW_DISCOUNT, HIGH_DISCOUNT, TOLERANCE)

# Shares of all options that make a graph "almost fully connected".
LIMITS = (NEARLY_ALL, *MOVED["NEARLY_ALL"])

# Steps from the goal up to which the end of an option counts as near it.
CLOSE = 2

# Fewest sets on one side of a comparison that can decide.
MIN_SETS = 10

SHUFFLED = "eigenoptions in another order"


def list_jobs(
    *,
    maze: str = "four-rooms",
    options: int = 64,
    fewer: Sequence[int] = (4, 8, 16, 32),
    sets: int = 24,
    sequences: int = 200,
    runs: int = 100,
    many_sets: int = 400,
    many_runs: int = 10,
    published_sets: int = 200,
    episodes: int = 500,
    readings: Sequence[str] = READINGS,
    seed: int = 2017,
) -> Jobs:
    """Diffusion times of sequences of random options, and learning with sets of them.

    Parameters
    ----------
    maze : str
        Name of the maze.
    options, fewer : int, sequence of int
        Number of options of a set, and smaller numbers.
    sets, runs : int
        Sets of random options with which agents learn, and runs of each.
    sequences : int
        Sequences of random options whose diffusion time is measured.
    many_sets, many_runs : int
        Further sets, with fewer runs of each.
    published_sets : int
        How many of these the learner of the published program has, too.
    episodes : int
        Episodes of a run.
    readings : sequence of str
        Other readings, of the eigenoptions.
    seed : int
        Seed of all.
    """
    counts = (*fewer, options)
    many = {
        "counts": counts,
        "runs": many_runs,
        "episodes": episodes,
        "seed": seed + 1,
    }
    others = [
        Learner(
            maze,
            {"n": options, **OPTION_READINGS[reading]},
            {"kind": "eigenoptions", "n_options": options, "reading": reading},
        )
        for reading in readings
    ]
    return {
        "diffusion": _list_diffusion_jobs(maze, counts, sets, sequences),
        "diffusion_of_readings": [
            job
            for reading in readings
            for job in _list_jobs_of_reading(maze, reading, options, sets)
        ],
        "learning": list_learning_jobs(
            _list_learners(maze, counts, sets),
            runs=runs,
            episodes=episodes,
            seed=seed,
        ),
        "readings": list_learning_jobs(
            others, runs=runs, episodes=episodes, seed=seed + 2
        ),
        "orders": list_learning_jobs(
            _list_orders(maze, options, sets),
            runs=many_runs,
            episodes=episodes,
            seed=seed + 4,
        ),
        "published": _list_published_jobs(
            maze,
            options,
            sets,
            {"runs": runs, "episodes": episodes, "seed": seed + 3},
        ),
        "many": _list_set_jobs(maze, many_sets, many, as_published=False),
        "many_published": _list_set_jobs(maze, published_sets, many, as_published=True),
    }


def _list_set_jobs(
    maze: str, n_sets: int, settings: Mapping[str, Any], *, as_published: bool
) -> list[Job]:
    """Learning with further sets of random options."""
    return [
        Job(
            learn_random_set,
            {
                "maze": maze,
                "number": number,
                "as_published": as_published,
                **settings,
            },
        )
        for number in range(n_sets)
    ]


def _list_published_jobs(
    maze: str, options: int, sets: int, settings: Mapping[str, int]
) -> list[Job]:
    """Learning by the published program, in which 64 eigenoptions are labelled 128.

    The label 64 stands for 32 of them; random options have no second sign.
    """
    agents: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"n": options // 2}, {"kind": "eigenoptions", "set": 0})
    ]
    for number in range(sets):
        random = {"method": "random", "n": options, "rng": number}
        agents.append((random, {"kind": "random", "set": number}))
    return [
        Job(
            learn_in_two_steps,
            {"maze": maze, "options": arguments, **settings},
            {**columns, "n_options": options},
        )
        for arguments, columns in agents
    ]


def _list_diffusion_jobs(
    maze: str, counts: tuple[int, ...], sets: int, sequences: int
) -> list[Job]:
    """Eigenoptions, sequences of random options, and eigenoptions in other orders."""

    def make_job(
        kind: str, number: int, options: Mapping[str, Any], **others: Any
    ) -> Job:
        arguments = {"maze": maze, "options": options, **others}
        columns = {"domain": maze, "kind": kind, "set": number}
        return Job(diffuse, arguments, columns)

    n_states = eo.maze(maze).n_states
    shares = [list_shares(n_states, limit) for limit in LIMITS]
    grid = tuple(sorted({0, 2, *counts}.union(*shares)))
    jobs = [make_job("eigenoptions", 0, {}, counts=range(2 * n_states + 1))]
    for number in range(sequences):
        random = {"method": "random", "rng": number}
        jobs.append(make_job("random", number, random, counts=grid))
    for number in range(sets):
        shuffled = {"n": max(counts), "shuffle": number}
        jobs.append(make_job(SHUFFLED, number, shuffled, counts=(0, *counts)))
    return jobs


def _list_jobs_of_reading(
    maze: str, reading: str, options: int, sets: int
) -> list[Job]:
    """Eigenoptions under another reading, in their own and in other orders."""
    settings = OPTION_READINGS[reading]
    counts = (0, options // 4, options)
    jobs = [
        Job(
            diffuse,
            {"maze": maze, "options": settings, "counts": counts},
            {"reading": reading, "kind": "eigenoptions", "set": 0},
        )
    ]
    for number in range(sets):
        shuffled = {"n": options, "shuffle": number, **settings}
        jobs.append(
            Job(
                diffuse,
                {"maze": maze, "options": shuffled, "counts": counts},
                {"reading": reading, "kind": SHUFFLED, "set": number},
            )
        )
    return jobs


def _list_learners(maze: str, counts: tuple[int, ...], sets: int) -> list[Learner]:
    """Agents without options, with eigenoptions, and with sets of random options."""

    def make_learner(kind: str, number: int, options: Mapping[str, Any]) -> Learner:
        columns = {"kind": kind, "set": number, "n_options": options["n"]}
        return Learner(maze, options, columns)

    learners = [make_learner("primitive", 0, {"n": 0})]
    for n in counts:
        learners.append(make_learner("eigenoptions", 0, {"n": n}))
        for number in range(sets):
            random = {"method": "random", "n": n, "rng": number}
            learners.append(make_learner("random", number, random))
    return learners


def _list_orders(maze: str, options: int, sets: int) -> list[Learner]:
    """Agents with eigenoptions in order of eigenvalue and in random orders."""
    learners = []
    for n in (options // 4, options):
        columns = {"kind": "eigenoptions", "set": 0, "n_options": n}
        learners.append(Learner(maze, {"n": n}, columns))
        for number in range(sets):
            columns = {"kind": SHUFFLED, "set": number, "n_options": n}
            learners.append(Learner(maze, {"n": n, "shuffle": number}, columns))
    return learners


def learn_random_set(
    *,
    maze: str,
    number: int,
    counts: Sequence[int],
    runs: int,
    episodes: int,
    seed: int,
    as_published: bool,
) -> pd.DataFrame:
    """Mean return with the first few options of a random set, by how many they are.

    ``steps_to_goal`` is the distance of the goal from the nearest end of an option. The
    learner is that of the paper, or of the published program.
    """
    mdp = eo.maze(maze)
    options = eo.discover(mdp, max(counts), method="random", rng=number)
    # The only state where a random option terminates is its goal.
    ends = options.termination.argmax(axis=1)
    distances = shortest_path(eo.graph(mdp), unweighted=True)[mdp.goal, ends]

    rows = []
    for i, n in enumerate(counts):
        own_seed = number * len(counts) + i
        if as_published:
            returns = learn_in_two_steps(
                maze=maze,
                options={"method": "random", "n": n, "rng": number},
                runs=runs,
                episodes=episodes,
                seed=seed + own_seed,
            )
        else:
            learned = eo.q_learning(
                mdp,
                options[:n],
                runs=runs,
                episodes=episodes,
                rng=np.random.SeedSequence(seed, spawn_key=(own_seed,)),
            )
            returns = learned.returns
        rows.append(
            {
                "set": number,
                "n_options": n,
                "mean_return": returns.mean(),
                "late_return": summarize_runs(returns).late_return.mean(),
                "steps_to_goal": distances[:n].min(),
            }
        )
    return pd.DataFrame(rows)


def tabulate_results(results: Results) -> Data:
    """Diffusion times, runs of all agents, and the curves that the figure shows."""
    # The figure shows the agents without options and with most of them.
    curves = stack_curves(results["learning"])
    is_shown = curves.n_options.isin((0, curves.n_options.max()))
    return {
        "diffusion": stack_times(results["diffusion"]),
        "diffusion_of_readings": stack_times(results["diffusion_of_readings"]),
        "runs": stack_runs(results["learning"]),
        "curves": curves[is_shown],
        "many": stack_tables(results["many"]),
        "many_published": stack_tables(results["many_published"]),
        "readings": stack_runs(results["readings"]),
        "published": stack_runs(results["published"]),
        "orders": stack_runs(results["orders"]),
    }


def draw_figure(data: Data) -> Figure:
    """Diffusion time and learning, of eigenoptions and of sets of random options."""
    figure, (left, right) = make_graphs(2)

    sets = _find_diffusion(data, "random")[:24]
    draw_lines(
        left, sets.columns, {}, thin={"random options": sets}, title="Diffusion time"
    )
    own = _find_diffusion(data, "eigenoptions").loc[0]
    shown = own.loc[: max(sets)]
    draw_lines(
        left, shown.index, {"eigenoptions": shown}, baseline=shown[0], yscale="log"
    )
    left.set(xlabel="options", ylabel="diffusion time")

    kinds = dict(iter(data["curves"].groupby("kind")))
    random = kinds["random"].pivot(index="set", columns="episode", values="mean")
    draw_learning(
        right,
        {
            "eigenoptions": kinds["eigenoptions"],
            "primitive actions": kinds["primitive"],
        },
        thin={"random options": random},
        title=f"Learning with {_count_options(data)} options",
        ylabel="return",
    )
    return add_legend(figure)


# Diffusion time


@claim(
    "random-fail-to-reduce",
    "Most of the obtained sequences of random options fail to reduce the agent's "
    "diffusion time until having enough options available to the point that the graph "
    "is almost fully connected.",
)
def fail_to_reduce_diffusion_time(data: Data) -> Finding:
    own = _find_diffusion(data, "eigenoptions").loc[0]
    n_states = max(own.index) // 2

    def find_shares(column: str = "diffusion_time") -> pd.Series:
        sets = _find_diffusion(data, "random", column)
        return (sets.gt(sets[0], axis=0)).mean()

    def judge(above: pd.Series, limit: float = NEARLY_ALL) -> Tests:
        half, before = list_shares(n_states, limit)
        return [above[half] > 0.5, above[before] > 0.5]

    above = find_shares()
    without = own[0]
    counts = sorted({n for limit in LIMITS for n in list_shares(n_states, limit)})
    shown = above[counts]
    last_above = own.index[own >= without].max()
    n_sets = data["diffusion"][data["diffusion"].kind == "random"].set.nunique()
    return Finding(
        tests=judge(above),
        readings={
            EXTRA_STEP: judge(find_shares("with_extra_step")),
            **move_limit("NEARLY_ALL", lambda limit: judge(above, limit)),
        },
        measured="sequences that are still above primitive actions: "
        + list_items("{1:.0%} with {0} options", shown),
        evidence=f"{n_sets} sequences. Two tests: most fail with half of the "
        f"options, and most still fail just before {NEARLY_ALL:.0%} of them are there. "
        f"Eigenoptions are below for good from {last_above + 1} on.",
    )


@claim(
    "orders-of-magnitude",
    "They increase it by several orders of magnitude.",
)
def increase_diffusion_time_by_orders(data: Data) -> Finding:
    def find_median(column: str) -> float:
        sets = _find_diffusion(data, "random", column)
        return float((sets.max(axis=1) / sets[0]).median())

    def judge(median: float, limit: float = SEVERAL) -> Tests:
        return [median >= limit, median >= 10]

    own = _find_diffusion(data, "eigenoptions").loc[0]
    sets = _find_diffusion(data, "random")
    without = own[0]
    peaks = sets.max(axis=1) / without
    median = find_median("diffusion_time")
    return Finding(
        tests=judge(median),
        readings={
            EXTRA_STEP: judge(find_median("with_extra_step")),
            **move_limit("SEVERAL", lambda limit: judge(median, limit)),
        },
        measured=f"the median sequence rises to {median:,.0f} times the diffusion time "
        f"of primitive actions, the highest to {peaks.max():,.0f} times",
        evidence=f"Several orders: at least {SEVERAL:,.0f} times; partly from 10 times "
        f"on. Eigenoptions rise to {own.max() / without:,.0f} times, with "
        f"{own.idxmax()} options.",
    )


@claim(
    "more-than-random-states",
    "The results clearly show that eigenoptions do more than going to a randomly "
    "selected state.",
)
def do_more_than_random_goals(data: Data) -> Finding:
    n = _count_options(data)

    # There is one set of eigenoptions, number 0, and there are many of random options.
    def find_times(column: str) -> tuple[float, pd.Series]:
        own = _find_diffusion(data, "eigenoptions", column).loc[0, n]
        sets = _find_diffusion(data, "random", column)[n]
        return own, sets

    def judge(own: float, sets: pd.Series) -> Tests:
        n_better = (own < sets).sum()
        return [n_better == len(sets), n_better > len(sets) / 2]

    own, sets = find_times("diffusion_time")
    n_better = (own < sets).sum()
    times_of_readings = _find_times_of_readings(data)[n]
    return Finding(
        tests=judge(own, sets),
        readings={
            EXTRA_STEP: judge(*find_times("with_extra_step")),
            **{name: judge(time, sets) for name, time in times_of_readings.items()},
        },
        measured=f"with {n} options eigenoptions take {own:,.0f} steps, random options "
        f"{sets.min():,.0f} to {sets.max():,.0f}",
        evidence=f"Eigenoptions are below {n_better} of {len(sets)} sets of random "
        "options; they must be below all, or most for a part.",
    )


@claim(
    "order-matters",
    "The ordering in which the eigenoptions are discovered can have a major impact on "
    "the agents' performance.",
)
def depend_on_order(data: Data) -> Finding:
    n = _count_options(data)
    counts = (n // 4, n)

    def find_ratios(column: str) -> list[float]:
        own = _find_diffusion(data, "eigenoptions", column).loc[0]
        shuffled = _find_diffusion(data, SHUFFLED, column)
        return [shuffled[count].median() / own[count] for count in counts]

    def compare_learning(measure: str = "mean_return") -> list[float]:
        orders = data["orders"].groupby(["n_options", "kind", "set"])[measure].mean()
        medians = orders.groupby(["n_options", "kind"]).median().unstack("kind")
        return list(medians[SHUFFLED] / medians["eigenoptions"])

    learning = compare_learning()

    def judge(
        ratios: Sequence[float],
        factor: float = MAJOR,
        learning: Sequence[float] = learning,
    ) -> Tests:
        return [
            ratio <= 1 / factor or ratio >= factor for ratio in [*ratios, *learning]
        ]

    own = _find_diffusion(data, "eigenoptions").loc[0]
    shuffled = _find_diffusion(data, SHUFFLED)
    ratios = find_ratios("diffusion_time")
    words = [
        f"with {count} options {own[count]:,.0f} steps in order of eigenvalue, "
        f"{shuffled[count].median():,.0f} in the median of random orders"
        for count in counts
    ]
    return Finding(
        tests=judge(ratios),
        readings={
            FINAL: judge(ratios, learning=compare_learning("late_return")),
            EXTRA_STEP: judge(find_ratios("with_extra_step")),
            **{
                reading: judge(list(ratios_of_reading))
                for reading, ratios_of_reading in _compare_orders(data).iterrows()
            },
            **move_limit("MAJOR", lambda factor: judge(ratios, factor)),
        },
        measured="; ".join(words)
        + "; the mean return in the median of random orders is "
        + " and ".join(f"{ratio:.2f}" for ratio in learning)
        + " of that in order of eigenvalue",
        evidence=f"{len(shuffled)} random orders, with each number of options; major "
        f"is a factor of {MAJOR:g} up or down, of the diffusion time and of the mean "
        "return. A test for each of the four. Other readings change the diffusion "
        "time only.",
    )


# Learning


@claim(
    "no-run-competitive",
    "We can see that no individual run is competitive to eigenoptions.",
)
def beat_every_set(data: Data) -> Finding:
    n = _count_options(data)

    def compare(returns: Returns) -> list[Difference]:
        sets = list(returns.sets.groupby("set").mean_return)
        return [compare_means(returns.own, table, len(sets)) for _, table in sets]

    def judge(returns: Returns, is_better: IsBetter = Difference.above) -> Tests:
        better = [is_better(lead) for lead in compare(returns)]
        n_sets = len(better)
        return [at_least(better, n_sets), at_least(better, n_sets // 2 + 1)]

    returns = _find_returns(data)
    better = [lead.above() for lead in compare(returns)]
    is_higher = returns.many > returns.own.mean()
    return Finding(
        tests=judge(returns),
        readings={
            NO_MARGIN: judge(returns, is_above_zero),
            **_judge_readings(data, judge),
        },
        measured="eigenoptions learn better than "
        f"{better.count(True)} of {len(better)} sets of {n} random options; "
        f"{is_higher.mean():.0%} of {len(is_higher)} sets have a higher mean return",
        evidence=f"Each thin line is one set, the mean of {len(returns.own)} runs. "
        "Eigenoptions must be better than every set; partly if better than most.",
        lesson="Most sets of 64 random options have one that ends on or beside the "
        "goal, and those learn as fast as eigenoptions.",
    )


@claim(
    "random-not-competitive",
    "On average, random options are not competitive to eigenoptions.",
)
def beat_average_set(data: Data) -> Finding:
    n = _count_options(data)

    def compare(returns: Returns) -> Difference:
        # Few sets where there are no further ones.
        sets = returns.many
        if sets is None:
            sets = returns.sets.groupby("set").mean_return.mean()
        return compare_means(returns.own, sets)

    def judge(returns: Returns, is_better: IsBetter = Difference.above) -> Tests:
        return [is_better(compare(returns))]

    returns = _find_returns(data)
    own = returns.own
    many = returns.many
    sets = returns.sets.groupby("set").mean_return.mean()
    lead_over_sets = compare_means(own, sets)
    lead = compare(returns)
    return Finding(
        tests=judge(returns),
        readings={
            NO_MARGIN: judge(returns, is_above_zero),
            **_judge_readings(data, judge),
        },
        measured=f"eigenoptions minus the average over {len(many)} sets of {n} random "
        f"options: {lead}; over {len(sets)} sets, as many as in the paper: "
        f"{lead_over_sets}",
        evidence="Mean return; sets are the sample. Some sets have no option near the "
        f"goal (the lowest reaches {many.min():.3f}); the median set reaches "
        f"{many.median():.3f}, eigenoptions {own.mean():.3f}.",
        lesson="The average set of random options learns a little more slowly, by less "
        "than what matters.",
    )


# Fewer options


@claim(
    "fewer-options-vary",
    "When fewer options are used, the variance across individual runs is even larger.",
)
def vary_more_with_fewer_options(data: Data) -> Finding:
    n = _count_options(data)

    # An F test for each number of options, all held together.
    n_tests = data["many"].n_options.nunique() - 1
    confidence = 1 - (1 - CONFIDENCE) / n_tests

    def find_bound(table: str) -> float:
        n_sets = data[table].set.nunique()
        return float(fdtri(n_sets - 1, n_sets - 1, confidence))

    def find_ratios(measure: str, table: str = "many") -> pd.Series:
        returns = data[table].pivot(index="set", columns="n_options")[measure]
        variances = returns.var()
        return variances.drop(n) / variances[n]

    def judge(ratios: pd.Series, table: str = "many") -> Tests:
        bound = find_bound(table)
        tests: list[bool | None] = []
        for ratio in ratios:
            if ratio > bound:
                tests.append(True)
            elif ratio < 1 / bound:
                tests.append(False)
            else:
                tests.append(None)
        return tests

    ratios = find_ratios("mean_return")
    published = find_ratios("mean_return", "many_published")
    n_sets = data["many"].set.nunique()
    bound = find_bound("many")
    return Finding(
        tests=judge(ratios),
        readings={
            FINAL: judge(find_ratios("late_return")),
            PUBLISHED_LEARNER: judge(published, "many_published"),
        },
        measured=f"{list_items('{} options: {:.1f} times', ratios)} the variance with "
        f"{n}",
        evidence=f"Variance over {n_sets} sets of the mean return. An F test for "
        f"each number: larger above {bound:.2f} times, smaller below "
        f"{1 / bound:.2f}, and in between the sample does not decide.",
    )


@claim(
    "near-goal-matters",
    "The variance depends on whether one of the random options terminates near the "
    "goal state.",
)
def depend_on_ends_near_goal(data: Data) -> Finding:
    def compare(
        measure: str = "mean_return", close: int = CLOSE, sets: str = "many"
    ) -> dict[int, Difference]:
        table = data[sets].pivot(index="set", columns="n_options")
        fewest = min(MIN_SETS, len(table) // 3)
        returns = table[measure].drop(columns=_count_options(data))
        is_near = table.steps_to_goal <= close
        gains = {}
        for n in returns:
            near = returns[n][is_near[n]]
            far = returns[n][~is_near[n]]
            if min(len(near), len(far)) >= fewest:
                gains[n] = compare_means(near, far, returns.shape[1])
        return gains

    def judge(
        gains: Mapping[int, Difference], is_better: IsBetter = Difference.above
    ) -> Tests:
        return [is_better(gain) for gain in gains.values()]

    gains = compare()
    return Finding(
        tests=judge(gains),
        readings={
            FINAL: judge(compare("late_return")),
            NO_MARGIN: judge(gains, is_above_zero),
            STRICTER: judge(compare(close=1)),
            LAXER: judge(compare(close=4)),
            PUBLISHED_LEARNER: judge(compare(sets="many_published")),
        },
        measured=list_items("{} options: {.mean:+.2f}", gains)
        or "too few sets on one side",
        evidence=f"Mean return of sets with an end at most {CLOSE} steps from the "
        "goal, minus that of the others; a number of options with fewer than "
        f"{MIN_SETS} sets on one side is left out.",
    )


@claim("never-learns", "In some runs the agent never even learns to reach the goal.")
def never_learn_goal(data: Data) -> Finding:
    runs = data["runs"].assign(is_lost=data["runs"].late_return == 0)
    lost = runs.groupby(["kind", "n_options"]).is_lost.mean()
    never = runs[runs.mean_return == 0]
    published = data["published"][data["published"].kind == "random"]
    return Finding(
        tests=[lost["random"].any()],
        readings={
            STRICTER: [(never.kind == "random").any()],
            PUBLISHED_LEARNER: [(published.late_return == 0).any()],
        },
        measured="runs that do not reach it: "
        + list_items("{1:.0%} with {0} options", lost["random"]),
        evidence="None of the last tenth of the evaluation episodes reaches the goal "
        "(stricter: none of all). "
        f"With primitive actions that is {lost['primitive', 0]:.0%}.",
    )


def list_shares(n: int, limit: float = NEARLY_ALL) -> tuple[int, int]:
    """A half of n options, and the largest number below a share of them.

    >>> list_shares(104)
    (52, 93)
    """
    return n // 2, int(np.ceil(limit * n)) - 1


@dataclass(frozen=True)
class Returns:
    """Mean returns with the number of options that the figure shows.

    Attributes
    ----------
    own : Series
        One per run of eigenoptions.
    sets : DataFrame
        A row per run of the sets of random options.
    many : Series or None
        One per further set; None where there are none.
    """

    own: pd.Series
    sets: pd.DataFrame
    many: pd.Series | None


def _find_returns(
    data: Data, table: str = "runs", measure: str = "mean_return"
) -> Returns:
    """The returns of the main reading, or of another table or measure."""
    n = _count_options(data)
    runs = data[table][data[table].n_options == n]
    runs = runs.assign(mean_return=runs[measure])
    many = None
    if table == "runs":
        many = data["many"][data["many"].n_options == n][measure]
    return Returns(
        own=runs[runs.kind == "eigenoptions"].mean_return,
        sets=runs[runs.kind == "random"],
        many=many,
    )


def _judge_readings(data: Data, judge: Callable[[Returns], Tests]) -> dict[str, Tests]:
    """The tests under another measure, learner or set of eigenoptions."""
    main = _find_returns(data)
    tests = {
        FINAL: judge(_find_returns(data, measure="late_return")),
        PUBLISHED_LEARNER: judge(_find_returns(data, "published")),
    }
    for reading, runs in data["readings"].groupby("reading", sort=False):
        tests[reading] = judge(replace(main, own=runs.mean_return))
    return tests


def _find_diffusion(
    data: Data, kind: str, column: str = "diffusion_time"
) -> pd.DataFrame:
    """Diffusion times, one row per set and one column per number of options."""
    diffusion = data["diffusion"][data["diffusion"].kind == kind]
    return diffusion.pivot(index="set", columns="n_options", values=column)


def _find_times_of_readings(data: Data) -> pd.DataFrame:
    """Diffusion times of eigenoptions, a row per reading, a column per number."""
    times = data["diffusion_of_readings"]
    times = times[times.kind == "eigenoptions"]
    return times.pivot(index="reading", columns="n_options", values="diffusion_time")


def _compare_orders(data: Data) -> pd.DataFrame:
    """How much longer diffusion takes in the median of other orders, by reading."""
    times = data["diffusion_of_readings"]
    times = times[times.n_options > 0]
    groups = times.groupby(["reading", "kind", "n_options"], sort=False)
    medians = groups.diffusion_time.median().unstack("n_options")
    in_own_order = medians.xs("eigenoptions", level="kind")
    in_others = medians.xs(SHUFFLED, level="kind")
    return in_others / in_own_order


def _count_options(data: Data) -> int:
    """The number of options that the figure shows."""
    return int(data["runs"].n_options.max())
