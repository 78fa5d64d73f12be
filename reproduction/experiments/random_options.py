"""Appendix D: random options.

Diffusion time (logarithmic axis) and learning curves of eigenoptions and of options that lead to random states, 24
sets of them.
"""

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import shortest_path
from scipy.special import fdtri

import eigenoptions as eo
from reproduction.drawing import (
    Figure,
    add_legend,
    draw_learning,
    draw_lines,
    make_graphs,
)
from reproduction.experiments.agents import diffuse_all, learn_all
from reproduction.lab import (
    MAJOR,
    NEARLY_ALL,
    SEVERAL,
    Claim,
    Claims,
    Data,
    Lab,
    at_least,
    list_items,
)
from reproduction.statistics import CONFIDENCE, compare_means

SECTION, ORDER = "Appendix D", 100
QUICK = {"maze": "i-maze", "options": 16, "fewer": [4, 8], "sets": 3, "runs": 4}
QUICK |= {"sequences": 4, "many_sets": 6, "many_runs": 2, "episodes": 20}
# Steps from the goal up to which the end of an option counts as near it, and fewest sets on one side that can decide.
CLOSE, MIN_SETS = 2, 10
SHUFFLED = "eigenoptions in another order"


def run(
    lab: Lab,
    *,
    maze="four-rooms",
    options=64,
    fewer=(4, 8, 16, 32),
    sets=24,
    sequences=200,
    runs=100,
    many_sets=400,
    many_runs=10,
    episodes=500,
    seed=2017,
) -> Data:
    """Diffusion times of sequences of random options, and learning with the first few of each."""
    counts = (*fewer, options)
    grid = tuple(sorted({0, 2, *counts, *list_shares(eo.maze(maze).n_states)}))

    def name(kind, number, options, **columns):
        return {
            "maze": maze,
            "kind": kind,
            "set": number,
            "options": options,
            **columns,
        }

    diffusing = [name("eigenoptions", 0, {})]
    diffusing += [
        name("random", i, {"method": "random", "rng": i}, counts=grid)
        for i in range(sequences)
    ]
    diffusing += [
        name(SHUFFLED, i, {"n": options, "shuffle": i}, counts=(0, *counts))
        for i in range(sets)
    ]
    learning = [name("primitive", 0, {"n": 0}, n_options=0)]
    for n in counts:
        learning.append(name("eigenoptions", 0, {"n": n}, n_options=n))
        random = {"method": "random", "n": n}
        learning += [
            name("random", i, {**random, "rng": i}, n_options=n) for i in range(sets)
        ]
    tables = learn_all(lab, learning, runs=runs, episodes=episodes, seed=seed)
    settings = {
        "maze": maze,
        "counts": counts,
        "runs": many_runs,
        "episodes": episodes,
        "seed": seed + 1,
    }
    return {
        "diffusion": diffuse_all(lab, diffusing),
        "runs": tables["runs"],
        "curves": tables["curves"][tables["curves"].n_options.isin((0, options))],
        "many": pd.concat(
            lab.pmap(
                learn_random_set, [{**settings, "number": i} for i in range(many_sets)]
            )
        ),
    }


def learn_random_set(*, maze, number, counts, runs, episodes, seed) -> pd.DataFrame:
    """Mean return with the first few options of a random set, and the distance of the goal from their nearest end."""
    mdp = eo.maze(maze)
    options = eo.discover(mdp, max(counts), method="random", rng=number)
    # The only state where a random option terminates is its goal.
    distances = shortest_path(eo.graph(mdp), unweighted=True)[
        mdp.goal, options.termination.argmax(axis=1)
    ]
    rows = []
    for i, n in enumerate(counts):
        rng = np.random.SeedSequence(seed, spawn_key=(number * len(counts) + i,))
        mean = eo.q_learning(
            mdp, options[:n], runs=runs, episodes=episodes, rng=rng
        ).returns.mean()
        rows.append((number, n, mean, distances[:n].min()))
    return pd.DataFrame(
        rows, columns=["set", "n_options", "mean_return", "steps_to_goal"]
    )


def figure(data: Data) -> Figure:
    picture, (left, right) = make_graphs(2)
    own, others = (
        find_diffusion(data, "eigenoptions").loc[0],
        find_diffusion(data, "random")[:24],
    )
    draw_lines(
        left,
        others.columns,
        {},
        thin={"random options": others},
        title="Diffusion time",
    )
    own = own.loc[: max(others)]
    draw_lines(left, own.index, {"eigenoptions": own}, baseline=own[0], yscale="log")
    left.set(xlabel="options", ylabel="diffusion time")
    kinds = dict(list(data["curves"].groupby("kind")))
    lines = {
        "eigenoptions": kinds["eigenoptions"],
        "primitive actions": kinds["primitive"],
    }
    sets = {
        "random options": kinds["random"].pivot(
            index="set", columns="episode", values="mean"
        )
    }
    title = f"Learning with {count_options(data)} options"
    draw_learning(right, lines, thin=sets, title=title, ylabel="return")
    return add_legend(picture)


def claims(data: Data) -> Claims:
    yield from judge_diffusion(data)
    yield from judge_learning(data)
    yield from judge_fewer_options(data)


def judge_diffusion(data: Data) -> Claims:
    own, sets = (
        find_diffusion(data, "eigenoptions").loc[0],
        find_diffusion(data, "random"),
    )
    bare, n = own[0], count_options(data)
    above = {m: (sets[m] >= bare).mean() for m in list_shares(max(own.index) // 2)}
    half, *_, nearly = above
    yield Claim(
        "random-fail-to-reduce",
        "Most of the obtained sequences of random options fail to reduce the agent's diffusion time until having "
        "enough options available to the point that the graph is almost fully connected.",
        tests=[above[half] > 0.5, above[nearly] > 0.5],
        measured="sequences that are still above primitive actions: "
        + list_items("{1:.0%} with {0} options", above),
        evidence=f"{len(sets)} sequences. Two tests: most fail with half of the options, and most still fail just "
        f"before {NEARLY_ALL:.0%} of them are there. Eigenoptions are below for good from "
        f"{own.index[own >= bare].max() + 1} on.",
    )
    peak = (sets.max(axis=1) / bare).median()
    yield Claim(
        "orders-of-magnitude",
        "They increase it by several orders of magnitude.",
        tests=[peak >= SEVERAL, peak >= 10],
        measured=f"the median sequence rises to {peak:,.0f} times the diffusion time of primitive actions, the "
        f"highest to {sets.max(axis=None) / bare:,.0f} times",
        evidence=f"Several orders: at least {SEVERAL:,.0f} times; partly from 10 times on. Eigenoptions rise to "
        f"{own.max() / bare:,.0f} times, with {own.idxmax()} options.",
    )
    better = (own[n] < sets[n]).sum()
    yield Claim(
        "more-than-random-states",
        "The results clearly show that eigenoptions do more than going to a randomly selected state.",
        tests=[better == len(sets), better > len(sets) / 2],
        measured=f"with {n} options eigenoptions take {own[n]:,.0f} steps, random options {sets[n].min():,.0f} to "
        f"{sets[n].max():,.0f}",
        evidence=f"Eigenoptions are below {better} of {len(sets)} sets of random options; they must be below all, or "
        "most for a part.",
    )
    others = find_diffusion(data, SHUFFLED)
    medians = others[[n // 4, n]].median()
    yield Claim(
        "order-matters",
        "The ordering in which the eigenoptions are discovered can have a major impact on the agents' performance.",
        tests=[
            not 1 / MAJOR < median / own[m] < MAJOR for m, median in medians.items()
        ],
        measured="; ".join(
            f"with {m} options {own[m]:,.0f} steps in order of eigenvalue, {median:,.0f} in the median of random orders"
            for m, median in medians.items()
        ),
        evidence=f"Diffusion time of {len(others)} random orders; major is a factor of {MAJOR:g} up or down. "
        "Learning was not compared.",
    )


def judge_learning(data: Data) -> Claims:
    runs, n = data["runs"], count_options(data)
    returns = runs[runs.n_options == n].set_index("kind")
    ours, random = (
        returns.mean_return["eigenoptions"],
        returns.loc["random"].groupby("set").mean_return,
    )
    few, many = random.mean(), data["many"][data["many"].n_options == n].mean_return
    better = [compare_means(ours, x, len(few)).above() for _, x in random]
    small, average = compare_means(ours, few), compare_means(ours, many)
    yield Claim(
        "no-run-competitive",
        "We can see that no individual run is competitive to eigenoptions.",
        tests=[at_least(better, len(few)), at_least(better, len(few) // 2 + 1)],
        measured=f"eigenoptions learn better than {better.count(True)} of {len(few)} sets of {n} random options; "
        f"{(many > ours.mean()).mean():.0%} of {len(many)} sets have a higher mean return",
        evidence=f"Each thin line is one set, the mean of {len(ours)} runs. Eigenoptions must be better than every "
        "set; partly if better than most.",
        lesson="Most sets of 64 random options have one that ends on or beside the goal, and those learn as fast as "
        "eigenoptions.",
    )
    yield Claim(
        "random-not-competitive",
        "On average, random options are not competitive to eigenoptions.",
        tests=[average.above()],
        measured=f"eigenoptions minus the average over {len(many)} sets of {n} random options: {average}; over "
        f"{len(few)} sets, as many as in the paper: {small}",
        evidence=f"Mean return; sets are the sample. Some sets have no option near the goal (the lowest reaches "
        f"{many.min():.3f}); the median set reaches {many.median():.3f}, eigenoptions {ours.mean():.3f}.",
        lesson="The average set of random options learns a little more slowly, by less than what matters.",
        edge=f"It turns with the margin: the difference is above zero and below what matters. {len(few)} sets decide "
        "nothing."
        if average.better and not average.above()
        else "",
    )


def judge_fewer_options(data: Data) -> Claims:
    n, table = count_options(data), data["many"].pivot(index="set", columns="n_options")
    many, near = table.mean_return, table.steps_to_goal <= CLOSE
    fewer = [m for m in many if m != n]
    wider = many[fewer].var() / many[n].var()
    bound = float(
        fdtri(len(many) - 1, len(many) - 1, 1 - (1 - CONFIDENCE) / len(fewer))
    )
    yield Claim(
        "fewer-options-vary",
        "When fewer options are used, the variance across individual runs is even larger.",
        tests=[
            True if ratio > bound else False if ratio < 1 / bound else None
            for ratio in wider
        ],
        measured=f"{list_items('{} options: {:.1f} times', wider)} the variance with {n}",
        evidence=f"Variance over {len(many)} sets of the mean return. An F test for each number: larger above "
        f"{bound:.2f} times, smaller below {1 / bound:.2f}, and in between the sample does not decide.",
    )
    apart = {
        m: compare_means(many[m][near[m]], many[m][~near[m]], len(fewer))
        for m in fewer
        if min(near[m].sum(), (~near[m]).sum()) >= min(MIN_SETS, len(near) // 3)
    }
    yield Claim(
        "near-goal-matters",
        "The variance depends on whether one of the random options terminates near the goal state.",
        tests=[difference.above() for difference in apart.values()],
        measured=list_items("{} options: {.mean:+.2f}", apart)
        or "too few sets on one side",
        evidence=f"Mean return of sets with an end at most {CLOSE} steps from the goal, minus that of the others; a "
        f"number of options with fewer than {MIN_SETS} sets on one side is left out.",
    )
    runs = data["runs"].assign(is_lost=data["runs"].late_return == 0)
    lost = runs.groupby(["kind", "n_options"]).is_lost.mean()
    yield Claim(
        "never-learns",
        "In some runs the agent never even learns to reach the goal.",
        tests=[lost["random"].any()],
        measured="runs that do not reach it: "
        + list_items("{1:.0%} with {0} options", lost["random"]),
        evidence="None of the last tenth of the evaluation episodes reaches the goal. With primitive actions that is "
        f"{lost['primitive', 0]:.0%}.",
    )


def list_shares(most: int) -> tuple[int, int, int]:
    """A half, three quarters, and just less than what counts as almost all of so many options.

    >>> list_shares(104)
    (52, 78, 93)
    """
    return most // 2, 3 * most // 4, int(np.ceil(NEARLY_ALL * most)) - 1


def find_diffusion(data: Data, kind: str) -> pd.DataFrame:
    """Diffusion times, one row per set and one column per number of options."""
    diffusion = data["diffusion"][data["diffusion"].kind == kind]
    return diffusion.pivot(index="set", columns="n_options", values="diffusion_time")


def count_options(data: Data) -> int:
    """The number of options that the figure shows."""
    return int(data["runs"].n_options.max())
