"""Appendix D: random options.

Diffusion time (logarithmic axis) and learning curves of eigenoptions and of options
that lead to random states, 24 sets of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.sparse.csgraph import shortest_path
from scipy.special import fdtri

import eigenoptions as eo
from reproduction.claims import Finding, at_least, claim, list_items
from reproduction.drawing import add_legend, draw_learning, draw_lines, make_graphs
from reproduction.lab import Data, Job, Jobs, Results
from reproduction.readings import OTHER_MARGIN
from reproduction.runs.diffusion import diffuse, stack_times
from reproduction.runs.learning import (
    Learner,
    list_learning_jobs,
    stack_curves,
    stack_runs,
)
from reproduction.statistics import CONFIDENCE, compare_means
from reproduction.thresholds import MAJOR, NEARLY_ALL, SEVERAL

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
    "episodes": 20,
}

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
    episodes: int = 500,
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
    episodes, seed : int
        Episodes of a run, and the seed of all.
    """
    counts = (*fewer, options)
    many = [
        Job(
            learn_random_set,
            {
                "maze": maze,
                "counts": counts,
                "runs": many_runs,
                "episodes": episodes,
                "seed": seed + 1,
                "number": number,
            },
        )
        for number in range(many_sets)
    ]
    return {
        "diffusion": _list_diffusion_jobs(maze, counts, sets, sequences),
        "learning": list_learning_jobs(
            _list_learners(maze, counts, sets),
            runs=runs,
            episodes=episodes,
            seed=seed,
        ),
        "many": many,
    }


def _list_diffusion_jobs(
    maze: str, counts: tuple[int, ...], sets: int, sequences: int
) -> list[Job]:
    """Eigenoptions, sequences of random options, and eigenoptions in other orders."""

    def make_job(
        kind: str, number: int, options: Mapping[str, Any], **others: Any
    ) -> Job:
        arguments = {"maze": maze, "options": options, **others}
        return Job(diffuse, arguments, {"domain": maze, "kind": kind, "set": number})

    grid = tuple(sorted({0, 2, *counts, *list_shares(eo.maze(maze).n_states)}))
    jobs = [make_job("eigenoptions", 0, {})]
    for number in range(sequences):
        random = {"method": "random", "rng": number}
        jobs.append(make_job("random", number, random, counts=grid))
    for number in range(sets):
        shuffled = {"n": max(counts), "shuffle": number}
        jobs.append(make_job(SHUFFLED, number, shuffled, counts=(0, *counts)))
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


def learn_random_set(
    *,
    maze: str,
    number: int,
    counts: Sequence[int],
    runs: int,
    episodes: int,
    seed: int,
) -> pd.DataFrame:
    """Mean return with the first few options of a random set, by how many they are.

    ``steps_to_goal`` is the distance of the goal from the nearest end of an option.
    """
    mdp = eo.maze(maze)
    options = eo.discover(mdp, max(counts), method="random", rng=number)
    # The only state where a random option terminates is its goal.
    ends = options.termination.argmax(axis=1)
    distances = shortest_path(eo.graph(mdp), unweighted=True)[mdp.goal, ends]

    rows = []
    for i, n in enumerate(counts):
        learned = eo.q_learning(
            mdp,
            options[:n],
            runs=runs,
            episodes=episodes,
            rng=np.random.SeedSequence(seed, spawn_key=(number * len(counts) + i,)),
        )
        rows.append(
            {
                "set": number,
                "n_options": n,
                "mean_return": learned.returns.mean(),
                "steps_to_goal": distances[:n].min(),
            }
        )
    return pd.DataFrame(rows)


def tabulate_results(results: Results) -> Data:
    """Diffusion times, runs of all agents, and the curves that the figure shows."""
    curves = stack_curves(results["learning"])
    is_shown = curves.n_options.isin((0, curves.n_options.max()))
    return {
        "diffusion": stack_times(results["diffusion"]),
        "runs": stack_runs(results["learning"]),
        "curves": curves[is_shown],
        "many": pd.concat([table for _, table in results["many"]]),
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
    sets = _find_diffusion(data, "random")
    without = own[0]
    n_states = max(own.index) // 2
    above = {n: (sets[n] >= without).mean() for n in list_shares(n_states)}
    half, *_, nearly_all = above.values()
    last_above = own.index[own >= without].max()
    return Finding(
        tests=[half > 0.5, nearly_all > 0.5],
        measured="sequences that are still above primitive actions: "
        + list_items("{1:.0%} with {0} options", above),
        evidence=f"{len(sets)} sequences. Two tests: most fail with half of the "
        f"options, and most still fail just before {NEARLY_ALL:.0%} of them are there. "
        f"Eigenoptions are below for good from {last_above + 1} on.",
    )


@claim(
    "orders-of-magnitude",
    "They increase it by several orders of magnitude.",
)
def increase_diffusion_time_by_orders(data: Data) -> Finding:
    own = _find_diffusion(data, "eigenoptions").loc[0]
    sets = _find_diffusion(data, "random")
    without = own[0]
    peaks = sets.max(axis=1) / without
    median = peaks.median()
    return Finding(
        tests=[median >= SEVERAL, median >= 10],
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
    own = _find_diffusion(data, "eigenoptions").loc[0, n]
    sets = _find_diffusion(data, "random")[n]
    n_better = (own < sets).sum()
    return Finding(
        tests=[n_better == len(sets), n_better > len(sets) / 2],
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
    own = _find_diffusion(data, "eigenoptions").loc[0]
    shuffled = _find_diffusion(data, SHUFFLED)

    tests = []
    words = []
    for count in (n // 4, n):
        median = shuffled[count].median()
        ratio = median / own[count]
        tests.append(ratio <= 1 / MAJOR or ratio >= MAJOR)
        words.append(
            f"with {count} options {own[count]:,.0f} steps in order of eigenvalue, "
            f"{median:,.0f} in the median of random orders"
        )
    return Finding(
        tests=tests,
        measured="; ".join(words),
        evidence=f"Diffusion time of {len(shuffled)} random orders; major is a factor "
        f"of {MAJOR:g} up or down. Learning was not compared.",
    )


# Learning


@claim(
    "no-run-competitive",
    "We can see that no individual run is competitive to eigenoptions.",
)
def beat_every_set(data: Data) -> Finding:
    n = _count_options(data)
    own = _find_returns(data, "eigenoptions").mean_return
    sets = _find_returns(data, "random").groupby("set").mean_return
    many = _find_many(data)
    better = [compare_means(own, returns, len(sets)).above() for _, returns in sets]
    is_higher = many > own.mean()
    return Finding(
        tests=[at_least(better, len(sets)), at_least(better, len(sets) // 2 + 1)],
        measured=f"eigenoptions learn better than {better.count(True)} of {len(sets)} "
        f"sets of {n} random options; {is_higher.mean():.0%} of {len(many)} sets have "
        "a higher mean return",
        evidence=f"Each thin line is one set, the mean of {len(own)} runs. "
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
    own = _find_returns(data, "eigenoptions").mean_return
    sets = _find_returns(data, "random").groupby("set").mean_return.mean()
    many = _find_many(data)
    lead_over_sets = compare_means(own, sets)
    lead = compare_means(own, many)

    return Finding(
        tests=[lead.above()],
        readings={OTHER_MARGIN: [lead.better]},
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
    returns = data["many"].pivot(index="set", columns="n_options").mean_return
    variances = returns.var()
    ratios = variances.drop(n) / variances[n]

    # An F test for each number of options, all held together.
    freedom = len(returns) - 1
    bound = float(fdtri(freedom, freedom, 1 - (1 - CONFIDENCE) / len(ratios)))
    tests: list[bool | None] = []
    for ratio in ratios:
        if ratio > bound:
            tests.append(True)
        elif ratio < 1 / bound:
            tests.append(False)
        else:
            tests.append(None)
    return Finding(
        tests=tests,
        measured=f"{list_items('{} options: {:.1f} times', ratios)} the variance with "
        f"{n}",
        evidence=f"Variance over {len(returns)} sets of the mean return. An F test for "
        f"each number: larger above {bound:.2f} times, smaller below "
        f"{1 / bound:.2f}, and in between the sample does not decide.",
    )


@claim(
    "near-goal-matters",
    "The variance depends on whether one of the random options terminates near the "
    "goal state.",
)
def depend_on_ends_near_goal(data: Data) -> Finding:
    table = data["many"].pivot(index="set", columns="n_options")
    returns = table.mean_return.drop(columns=_count_options(data))
    is_near = table.steps_to_goal <= CLOSE
    fewest = min(MIN_SETS, len(table) // 3)

    gains = {}
    for n in returns:
        near = returns[n][is_near[n]]
        far = returns[n][~is_near[n]]
        if min(len(near), len(far)) >= fewest:
            gains[n] = compare_means(near, far, returns.shape[1])
    return Finding(
        tests=[gain.above() for gain in gains.values()],
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
    return Finding(
        tests=[lost["random"].any()],
        measured="runs that do not reach it: "
        + list_items("{1:.0%} with {0} options", lost["random"]),
        evidence="None of the last tenth of the evaluation episodes reaches the goal. "
        f"With primitive actions that is {lost['primitive', 0]:.0%}.",
    )


def list_shares(n: int) -> tuple[int, int, int]:
    """A half, three quarters, and just less than almost all of n options.

    >>> list_shares(104)
    (52, 78, 93)
    """
    almost_all = int(np.ceil(NEARLY_ALL * n))
    return n // 2, 3 * n // 4, almost_all - 1


def _find_diffusion(data: Data, kind: str) -> pd.DataFrame:
    """Diffusion times, one row per set and one column per number of options."""
    diffusion = data["diffusion"][data["diffusion"].kind == kind]
    return diffusion.pivot(index="set", columns="n_options", values="diffusion_time")


def _find_returns(data: Data, kind: str) -> pd.DataFrame:
    """Runs of a kind with the number of options that the figure shows."""
    runs = data["runs"]
    return runs[(runs.kind == kind) & (runs.n_options == _count_options(data))]


def _find_many(data: Data) -> pd.Series:
    """Mean returns of the further sets with that number of options."""
    many = data["many"]
    return many[many.n_options == _count_options(data)].mean_return


def _count_options(data: Data) -> int:
    """The number of options that the figure shows."""
    return int(data["runs"].n_options.max())
