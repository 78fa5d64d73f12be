"""Compare the numbers on the pages with computed ones, or with a stored table.

``--write`` puts them right.

A statement is a page, a sentence with a placeholder ``{}`` per number, and the function
that gives the numbers as text.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from inspect import signature
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import shortest_path

import eigenoptions as eo
from eigenoptions._types import FloatArray
from eigenoptions.samples.walking import walk

ROOT = Path(__file__).resolve().parent.parent


@cache
def measure_diffusion(
    maze: str, n_options: int = 0, option_chance: float | None = None
) -> str:
    """The diffusion time of a maze with eigenoptions, in whole steps."""
    mdp = eo.maze(maze)
    options = eo.discover(mdp, n_options) if n_options else None
    return f"{eo.diffusion_time(mdp, options, option_chance=option_chance):,.0f}"


def measure_diffusion_as_paper(n_options: int) -> str:
    """The same in four rooms, options of eigenvalue zero counted as in the paper."""
    mdp = eo.maze("four-rooms")
    return (
        f"{eo.diffusion_time(mdp, eo.discover(mdp, n_options, skip_zero=False)):,.0f}"
    )


@cache
def compute_slow_features() -> tuple[eo.MDP, list[FloatArray]]:
    """Compute three kinds of functions of four rooms, each centred and of length 1.

    They are proto-value functions, the paper's singular vectors of feature
    differences, and slow features; the features are 512 random waves.
    """
    mdp = eo.maze("four-rooms")
    n, rng = mdp.n_states, np.random.default_rng(0)
    assert mdp.successors is not None
    points = np.asarray(mdp.coords, dtype=float)
    frequencies, phases = rng.normal(0, 1.0, (512, 2)), rng.uniform(0, 2 * np.pi, 512)
    features = np.sqrt(2 / 512) * np.cos(points @ frequencies.T + phases)
    state, action = np.indices((n, mdp.n_actions)).reshape(2, -1)
    data = eo.Transitions.of((state, action, mdp.successors[state, action]))
    kinds = [eo.spectrum(eo.graph(mdp), 17, "combinatorial").vectors[:, 1:]]
    for whiten in (False, True):
        found = eo.feature_spectrum(
            data, lambda s: features[np.asarray(s)], whiten=whiten
        )
        functions = features @ found.vectors[:, found.n_zero : found.n_zero + 16]
        centred = functions - functions.mean(axis=0)
        kinds.append(centred / np.linalg.norm(centred, axis=0))
    return mdp, kinds


def compare_slow_features() -> list[str]:
    """Compare eigenpurposes and slow features: cosines and diffusion times.

    The cosines are those with the true eigenvectors.
    """
    mdp, (true, *kinds) = compute_slow_features()
    cosines, times = [], []
    for centred in kinds:
        cosines.append(np.abs((true * centred)[:, :10].sum(axis=0)).mean())
        purposes = [eo.Purpose(sign * f) for f in centred.T for sign in (1.0, -1.0)]
        times.append(
            eo.diffusion_time(mdp, eo.solve(mdp, purposes), option_chance=0.05)
        )
    exact = eo.discover(mdp, 32, operator="combinatorial")
    times.append(eo.diffusion_time(mdp, exact, option_chance=0.05))
    return [*(f"{c:.2f}" for c in cosines), *(f"{t:.0f}" for t in times)]


METHODS = (
    "eigen",
    "successor",
    "successor-goals",
    "covering",
    "diffusion",
    "neo",
)
METHODS += ("betweenness", "bottleneck", "community", "random")


def compare_methods() -> list[str]:
    """Diffusion times of every method without a reward, on two maps.

    They come in the order of the page.
    """
    numbers = [measure_diffusion(maze) for maze in ("four-rooms", "rooms:2x2")]
    for method in METHODS:
        for maze in ("four-rooms", "rooms:2x2"):
            mdp = eo.maze(maze)
            options = eo.discover(mdp, None if method == "bottleneck" else 8, method)
            numbers.append(
                f"{eo.diffusion_time(mdp, options, option_chance=0.05):,.0f}"
            )
    return numbers


def read_ogbench(maze: str, kind: str) -> list[str]:
    """Mean success of the planner on OGBench's sets of 100,000 steps, as stored."""
    rows = pd.read_csv(ROOT / "studies" / "ogbench.csv")
    rows = rows[(rows.maze == maze) & (rows.kind == kind) & (rows.steps == 100_000)]
    return [f"{rows[rows.policy == 'solved'].success.mean():.1f}"]


@cache
def measure_seen(n_walks: int = 10, n_steps: int = 60_000) -> list[str]:
    """Percentage of the states of 16 rooms that walks see, as in the example.

    After 10,000 steps and at the end: without options, with eight of them, and with the
    same ones that stop by chance.
    """
    rooms = eo.maze("rooms:4x4")
    endless = eo.MDP(rooms.transition)
    logging.disable(logging.WARNING)
    options = eo.discover(rooms, 8)
    logging.disable(logging.NOTSET)

    numbers = []
    for option_chance, stop_chance in ((0.0, 0.0), (0.05, 0.0), (0.05, 0.1)):
        n_early = 0
        n_late = 0
        for seed in range(n_walks):
            transitions = walk(
                endless,
                n_steps,
                options,
                option_chance=option_chance,
                stop_chance=stop_chance,
                rng=seed,
            )
            n_early += len(np.unique(transitions.next_obs[:10_000]))
            n_late += len(np.unique(transitions.next_obs))
        for n_seen in (n_early, n_late):
            numbers.append(f"{100 * n_seen / n_walks / rooms.n_states:.0f}")
    return numbers


def count_faster() -> list[str]:
    """Spaces that 32 options explore faster, all, and those of 8, as stored."""
    rows = pd.read_csv(ROOT / "studies" / "exploration.csv")
    n_faster = (rows.ratio < 1).groupby(rows.options).sum()
    return [f"{n_faster[32]}", f"{rows.space.nunique()}", f"{n_faster[8]}"]


def read_tuning_seconds() -> list[str]:
    """The least and the largest CPU time of tuning, as stored."""
    rows = pd.read_csv(ROOT / "studies" / "exploration.csv")
    return [f"{rows.tuning.min():.2f}", f"{rows.tuning.max():.2f}"]


def read_turning() -> list[str]:
    """Poses of 40 that robots which turn by 22.5 degrees reach, as stored.

    After the shortest log, and after the next one.
    """
    rows = pd.read_csv(ROOT / "benchmarks" / "ratios.csv")
    rows = rows[rows.benchmark == "turning"]
    fine = rows[rows.name.str.contains("22.5 degrees", regex=False)].ours
    return [f"{n:.0f}" for n in fine.iloc[:2]]


def read_act_time() -> list[str]:
    """Microseconds of a call of `Planner.act`, mean of all halls, as stored."""
    rows = pd.read_csv(ROOT / "benchmarks" / "ratios.csv")
    microseconds = rows[(rows.benchmark == "planner") & (rows.unit == "us")].ours
    return [f"{round(microseconds.mean(), -1):.0f}"]


def read_exploration_errors() -> list[str]:
    """The least and the largest two standard errors of a ratio, as stored."""
    rows = pd.read_csv(ROOT / "studies" / "exploration.csv")
    errors = rows[rows.option_chance > 0].error
    return [f"{errors.min():.2f}", f"{errors.max():.2f}"]


def read_environments(outcome: str) -> list[str]:
    """How many of 63 environments have an outcome, and sample options, as stored."""
    rows = pd.read_csv(ROOT / "studies" / "environments.csv")
    rows = rows[rows.outcome == outcome]
    return [f"{len(rows)}", f"{(rows.option_chance > 0).sum()}"]


def read_seen() -> list[str]:
    """States that `explore` and random actions see in four environments, as stored."""
    rows = pd.read_csv(ROOT / "studies" / "environments_seen.csv")
    numbers = []
    for row in rows.itertuples():
        numbers += [f"{row.explore:,.0f}", f"{row.random:,.0f}"]
    return numbers


FOUR_ROOMS = "four-rooms"
MAZES = ("open-room", "i-maze", FOUR_ROOMS)
STATEMENTS: list[tuple[str, str, Callable[[], Sequence[str]]]] = [
    (
        "docs/environments.md",
        "| options of all states | {} | {} |",
        partial(read_environments, "options"),
    ),
    (
        "docs/environments.md",
        "| options of the part that `explore` found, with a warning | {} | {} |",
        partial(read_environments, "options of a part"),
    ),
    (
        "docs/explore.md",
        "it sees {} states of BabyAI-GoToLocal (random actions: {}), {} of "
        "KeyCorridorS5R3 ({}), {} of ObstructedMaze-1Q ({}) and {} of UnlockPickup "
        "({}).",
        read_seen,
    ),
    (
        "README.md",
        "| the table | steps between two random cells of four rooms, with 16 "
        "eigenoptions in one decision out of twenty | {} | {} |",
        lambda: [
            measure_diffusion(FOUR_ROOMS),
            measure_diffusion(FOUR_ROOMS, 16, 0.05),
        ],
    ),
    (
        "README.md",
        "teleport-navigate ([published methods](docs/planner-results.md)) | | {}%, "
        "{}% |",
        lambda: [
            read_ogbench("giant", "stitch")[0].removesuffix(".0"),
            *read_ogbench("teleport", "navigate"),
        ],
    ),
    (
        "docs/faq.md",
        "with 4 eigenoptions the diffusion time is {} steps under uniform choice, "
        "{} without options, and {} when one",
        lambda: [
            measure_diffusion(FOUR_ROOMS, 4),
            measure_diffusion(FOUR_ROOMS),
            measure_diffusion(FOUR_ROOMS, 4, 0.05),
        ],
    ),
    (
        "docs/faq.md",
        "have diffusion times of {} and {} steps. Both are right.",
        lambda: [measure_diffusion_as_paper(4), measure_diffusion(FOUR_ROOMS, 4)],
    ),
    (
        "docs/choosing.md",
        "In 16 rooms primitive actions see {}% of the states in 10,000 steps and {}% "
        "in 60,000. With eight options in one of twenty decisions it is {}% and {}%; "
        "stopped with probability 0.1, the same options see {}% and {}%",
        measure_seen,
    ),
    (
        "docs/choosing.md",
        "With 32, {} of {} state spaces are explored faster; with 8, {} are.",
        count_faster,
    ),
    (
        "docs/planner.md",
        "turns by 22.5 degrees reaches {} of 40 poses behind a wall after 9,000 steps, "
        "{} after 30,000 and all after 90,000.",
        read_turning,
    ),
    ("docs/planner.md", "A call takes about {} microseconds.", read_act_time),
    (
        "docs/choosing-results.md",
        "Two standard errors are {} to {}.",
        read_exploration_errors,
    ),
    (
        "docs/choosing-results.md",
        "The simulation takes {} to {} CPU seconds.",
        read_tuning_seconds,
    ),
    (
        "docs/methods.md",
        "".join(
            f"| {name} | {{}} | {{}} |\n"
            for name in ("no options", *(f"`{method}`" for method in METHODS))
        ),
        compare_methods,
    ),
    (
        "docs/slow-features.md",
        "with the true eigenvectors is {} without and {} with normalisation; the "
        "diffusion time of their 32 options, "
        "one decision in twenty, is {} and {} steps ({} with the true eigenvectors).",
        compare_slow_features,
    ),
]


def count_learned(agent: str, *ways: str) -> list[str]:
    """Goals that a deep agent learned, and runs, as stored."""
    rows = pd.read_csv(ROOT / "studies" / "arena" / "deep.csv")
    rows = rows[rows.agent == agent]
    numbers = []
    for way in ways:
        reached = rows[rows.way == way].reached
        numbers += [str((reached >= 0.5).sum()), str(len(reached))]
    return numbers


def compare_first_visits(has_interval: bool = True) -> list[str]:
    """First visits of explore relative to a count bonus and to R-max, as stored.

    Geometric means over the twenty tasks of the arena, with intervals over tasks.
    """
    sys.path.insert(0, str(ROOT))
    page = import_module("studies.arena.tabular_page")
    runs = page.read("tabular")
    numbers = []
    for baseline in ("strong count bonus", "R-max"):
        ratio = page.bootstrap_tasks(page.measure_ratios(runs, baseline))
        numbers.append(f"{ratio.value:.2f}")
        if has_interval:
            numbers += [f"{ratio.low:.2f}", f"{ratio.high:.2f}"]
    return numbers


def count_followed() -> list[str]:
    """Percent of the goals that `found.option()` reaches on two tasks, as stored."""
    rows = pd.read_csv(ROOT / "studies" / "arena" / "tabular.csv")
    reached = rows[rows.way == "followed"].groupby("task").learned.mean()
    return [f"{100 * reached[task]:.0f}" for task in ("slippery rooms", "FrozenLake")]


def compare_views() -> list[str]:
    """States that explore sees by views, relative to a count bonus, as stored."""
    sys.path.insert(0, str(ROOT))
    page = import_module("studies.arena.tabular_page")
    table = page.read("views")
    names = table.env.drop_duplicates()
    return [f"{page.measure_views(table, name):.1f}" for name in names]


def compare_rounds() -> list[str]:
    """First visits of walks and options in turn, relative to explore, as stored."""
    sys.path.insert(0, str(ROOT))
    page = import_module("studies.arena.tabular_page")
    ratios = page.measure_doors(page.read("doors"), page.read("tabular"))
    ways = ("rounds, eigen", "rounds, neo", "covering-eigen", "plain")
    return [f"{page.average(ratios[way]):.1f}" for way in ways]


def compare_ablation() -> list[str]:
    """First visits of random actions and a count bonus with options, as stored."""
    sys.path.insert(0, str(ROOT))
    page = import_module("studies.arena.tabular_page")
    table = page.read("ablation")
    return [
        f"{page.average(page.measure_ablation(table, walker, kind)):.2f}"
        for kind in ("nearest frontier", "eigenoptions", "random known states")
        for walker in ("random actions", "count bonus")
    ]


@cache
def compute_curves(maze: str) -> tuple[list[float], list[float]]:
    """Diffusion times relative to primitive actions, with 0, 2, 4, ... options.

    The first list is as the paper counts, the second has a step for terminating, as the
    published program does.
    """
    sys.path.insert(0, str(ROOT))
    diffusion = import_module("reproduction.runs.diffusion")
    mdp = eo.maze(maze)
    options = eo.discover(mdp, skip_zero=False)
    counts = range(0, len(options) + 1, 2)
    times, longer = diffusion.compute_diffusion_times(mdp, options, counts)
    return (times / times[0]).tolist(), (longer / times[0]).tolist()


def find_least_times() -> list[str]:
    """The least diffusion time of each maze, relative to primitive actions."""
    return [f"{min(compute_curves(maze)[0]):.2f}" for maze in MAZES]


def count_extra_steps() -> list[str]:
    """What a step for terminating changes in the I-Maze and in the open room."""
    without = eo.diffusion_time(eo.maze("i-maze"))
    times, longer = compute_curves("i-maze")
    return [
        f"{without * longer[4 // 2]:.2f}",
        f"{without * times[4 // 2]:.2f}",
        f"{min(compute_curves('open-room')[1]):.2f}",
    ]


def compare_bases() -> list[str]:
    """Diffusion times of the open room with four options, by the basis of e2 and e3."""
    sys.path.insert(0, str(ROOT))
    options = import_module("reproduction.runs.options")
    mdp = eo.maze("open-room")
    numbers = []
    for angle in (0, 90, 45):
        found = options.make_eigenoptions(mdp, 4, angle=angle)
        numbers.append(f"{eo.diffusion_time(mdp, found):,.0f}")
    return numbers


def compare_orders() -> list[str]:
    """What tie orders and signs do to the diffusion time of the first options.

    The most with the order of the report, the least and the most over all orders, how
    many these are, and in how many some number of options helps.
    """
    sys.path.insert(0, str(ROOT))
    figure6 = import_module("reproduction.experiments.figure6")
    times = pd.concat(
        figure6.break_ties(maze="four-rooms", order=order)
        for order in permutations(range(4))
    ).pivot(index=["order", "first_sign"], columns="n_options", values="diffusion_time")
    relative = times.drop(columns=0).div(times[0], axis=0)
    most = relative.max(axis=1)
    helps = (relative <= 1).any(axis=1)
    return [
        f"{most['URDL', '+']:,.0f}",
        f"{most.min():,.0f}",
        f"{most.max():,.0f}",
        f"{len(most)}",
        f"{helps.sum()}",
    ]


@cache
def count_verdicts(is_game: bool | None) -> list[str]:
    """The paper's claims, how many have each verdict, and how many turn, as stored.

    They turn by a choice that the paper leaves open.
    """
    readings, rows = read_stored_verdicts()
    if is_game is not None:
        rows = rows[rows.game == is_game]
    main = rows[rows.reading == "main"].verdict
    verdicts = ("holds", "partly", "does not hold", "not decided")
    is_open = ~rows.reading.isin(readings.OURS)
    n_turning = (rows[is_open].groupby("claim").verdict.nunique() > 1).sum()
    return [str(len(main)), *(str((main == v).sum()) for v in verdicts), str(n_turning)]


def read_stored_verdicts() -> tuple[Any, pd.DataFrame]:
    """The readings, and the stored verdicts on the paper's claims."""
    sys.path.insert(0, str(ROOT))
    rows = import_module("reproduction.stored_run").read_verdicts()
    return import_module("reproduction.readings"), rows[rows.section != "ours"]


def count_limits() -> list[str]:
    """The limits for words of degree, and those fixed before results were seen."""
    sys.path.insert(0, str(ROOT))
    thresholds = import_module("reproduction.thresholds")
    limits = {name for name in vars(thresholds) if name.isupper()}
    limits -= {"MOVED", "FIXED_LATE"}
    return [f"{len(limits)}", f"{len(limits - {*thresholds.FIXED_LATE})}"]


def count_turning() -> list[str]:
    """Claims that turn under any reading, and all of them."""
    _, rows = read_stored_verdicts()
    is_turning = rows.groupby("claim").verdict.nunique() > 1
    return [f"{is_turning.sum()}", f"{len(is_turning)}"]


def read_freeway() -> list[str]:
    """Best points in Freeway: singular vectors, the program's rows, one action.

    All follow the paper's protocol, and are stored.
    """
    folder = ROOT / "reproduction" / "atari" / "results"
    rows = pd.read_csv(folder / "freeway-long.csv.gz")
    scores = rows[rows.variant == "paper"].groupby("kind").score.max()
    return [f"{scores[kind]:.0f}" for kind in ("singular", "published", "constant")]


def read_giant_maze() -> list[str]:
    """Descent of the commute time and of log Z in OGBench's giant maze, as stored.

    Local minima of the former and states, and success of both.
    """
    rows = pd.read_csv(ROOT / "studies" / "ogbench.csv")
    rows = rows[(rows.maze == "giant") & (rows.kind == "stitch")]
    greedy = rows[rows.policy == "greedy"].groupby("potential").mean(numeric_only=True)
    commute = greedy.loc["commute"]
    return [
        f"{commute.local_minima:.1f}",
        f"{commute.states:.0f}",
        f"{commute.success:.0f}",
        f"{greedy.loc['log-z'].success:.0f}",
    ]


def measure_rooms() -> list[str]:
    """States of 25 rooms, and moves to the last one from the farthest."""
    rooms = eo.maze("rooms:5x5")
    goal = rooms.n_states - 1
    n_moves = shortest_path(eo.graph(rooms), unweighted=True, indices=goal)
    return [f"{rooms.n_states:,}", f"{n_moves.max():.0f}"]


def read_runs(benchmark: str, function: str, parameter: str) -> str:
    """A setting of the runs of a benchmark: the default of a parameter."""
    sys.path.insert(0, str(ROOT))
    measure = getattr(import_module(f"benchmarks.{benchmark}"), function)
    return f"{signature(measure).parameters[parameter].default:,}"


STATEMENTS += [
    (
        "docs/planner-results.md",
        "In the rooms ({} states, {} moves to the goal)",
        measure_rooms,
    ),
    (
        "docs/pixels.md",
        "then {} actions of `action_space.sample()`",
        lambda: [read_runs("pixel_rooms", "measure_share", "n_steps")],
    ),
    (
        "docs/choosing-results.md",
        "then {} random decisions with the tuned pair",
        lambda: [read_runs("vector_options", "measure_task", "steps")],
    ),
    (
        "docs/benchmarks.md",
        "of the literature from {} transitions, and compares",
        lambda: [read_runs("deep", "measure_cosines", "n_transitions")],
    ),
    (
        "docs/arena.md",
        "the option to the nearest frontier helps most: {} and {} times the steps. "
        "Eigenoptions ({} and {}) are a little better than options to random known "
        "states ({} and {}), and",
        compare_ablation,
    ),
    (
        "docs/arena.md",
        "alone reaches {}% of the goals in slippery rooms and {}% on FrozenLake.",
        count_followed,
    ),
    (
        "docs/arena.md",
        "`explore` sees {} times as many true states as the better count bonus in "
        "FourRooms, and {} times in MultiRoom-N6.",
        compare_views,
    ),
    (
        "docs/arena.md",
        "need {} (`eigen`), {} (`neo`) or {} times (covering eigenoptions) the steps "
        "of `explore`, random actions {}.",
        compare_rounds,
    ),
    (
        "docs/article.md",
        "| {} about tables and theory | {} | {} | {} | {} | {} |",
        partial(count_verdicts, False),
    ),
    (
        "docs/article.md",
        "| {} about Atari games | {} | {} | {} | {} | {} |",
        partial(count_verdicts, True),
    ),
    (
        "docs/article.md",
        "| {} in all | {} | {} | {} | {} | {} |",
        partial(count_verdicts, None),
    ),
    ("docs/article.md", "count as well, {} of {} do.", count_turning),
    (
        "docs/article.md",
        "Of {} limits for words of degree, {} were fixed",
        count_limits,
    ),
    (
        "docs/article.md",
        "the diffusion time falls to {} (open room), {} (I-Maze) and {} (four rooms) "
        "of that of primitive actions.",
        find_least_times,
    ),
    (
        "docs/article.md",
        "Four options in the I-Maze then take {} steps instead of {}, and the least "
        "time in the open room is {} of that of primitive actions",
        count_extra_steps,
    ),
    ("docs/article.md", "Four options take {}, {} or {} steps", compare_bases),
    (
        "docs/article.md",
        "takes up to {} times as long as without, but {} to {} times over the {} "
        "orders of actions and signs; in {} of them",
        compare_orders,
    ),
    (
        "docs/article.md",
        "The best true singular vector scores {} points. The published program follows "
        "rows of V instead, numbered by bits of memory, and the best of these scores "
        "{}; it holds UP most of the time, and holding UP alone gives {}.",
        read_freeway,
    ),
    (
        "docs/article.md",
        "the diffusion time is {} steps if options are chosen as often as actions, {} "
        "without options, and {} if one decision in twenty is for an option.",
        lambda: [
            measure_diffusion(FOUR_ROOMS, 4),
            measure_diffusion(FOUR_ROOMS),
            measure_diffusion(FOUR_ROOMS, 4, 0.05),
        ],
    ),
    (
        "docs/article.md",
        "In 16 rooms eight options see {}% of the states in 60,000 steps, and {}% if "
        "they stop with probability 0.1; primitive actions see {}%.",
        lambda: [measure_seen()[i] for i in (3, 5, 1)],
    ),
    (
        "docs/article.md",
        "{} of {} states in OGBench's giant maze, where greedy descent reaches {}% of "
        "the goals. The logarithm of the default representation, log Z, has none in "
        "the same table, and reaches {}%",
        read_giant_maze,
    ),
    (
        "docs/article.md",
        "the average state is seen after {} of the steps of a count bonus, and {} of "
        "those of R-max",
        partial(compare_first_visits, has_interval=False),
    ),
    (
        "docs/article.md",
        "DQN that starts from what was found learns {} of {} goals, and plain DQN {} "
        "of {}",
        partial(count_learned, "PyTorch DQN", "explore, way", "plain"),
    ),
    (
        "README.md",
        "which plans, too | 1, 1 | {} ({} to {}), {} ({} to {}) |",
        compare_first_visits,
    ),
    (
        "README.md",
        "`studies/arena/deep_dqn.py`): plain, or after `explore` with the path to the "
        "reward as an option | {} of {} | {} of {} |",
        partial(count_learned, "PyTorch DQN", "plain", "explore, way"),
    ),
    (
        "README.md",
        "the same, DQN of Stable-Baselines3 | {} of {} | {} of {} |",
        partial(count_learned, "SB3 DQN", "plain", "explore, way"),
    ),
    (
        "README.md",
        "the same, PPO of Stable-Baselines3: with a count bonus, or cloned from what "
        "`explore` found | {} of {} | {} of {} |",
        partial(count_learned, "SB3 PPO", "counts", "explore, cloning"),
    ),
    (
        "README.md",
        "follows the path that `explore` found, reaches {} of the {} goals; breadth-"
        "first search in a dict, 40 lines of your own, reaches {} of {}",
        lambda: (
            count_learned("no agent", "followed")
            + count_learned("no agent", "own search, followed")
        ),
    ),
    (
        "docs/explore.md",
        "relative to the better of two count bonuses: {} ({} to {}); relative to R-max "
        "{} ({} to {})",
        compare_first_visits,
    ),
]


def find_differences(write: bool = False) -> list[str]:
    """Find sentences whose numbers differ from the computed ones, or that are missing.

    With `write`, the numbers on the pages are corrected.
    """
    differences = []
    for name, sentence, compute in STATEMENTS:
        page = ROOT / name
        text = page.read_text(encoding="utf-8")
        # Line breaks are free, and a placeholder matches any number.
        pattern = (
            re.escape(sentence)
            .replace(r"\{\}", r"([\d.,]*\d)")
            .replace(r"\ ", r"\s+")
            .replace("\\\n", "\n")
        )
        match = re.search(pattern, text)
        if match is None:
            differences.append(f"{name}: no sentence {sentence!r}")
            continue
        numbers = list(compute())
        if list(match.groups()) == numbers:
            continue
        differences.append(
            f"{name}: {', '.join(match.groups())} should be {', '.join(numbers)}"
        )
        if write:
            for i in range(len(numbers), 0, -1):
                text = text[: match.start(i)] + numbers[i - 1] + text[match.end(i) :]
            page.write_text(text, encoding="utf-8")
    return differences


def main() -> None:
    """Print what differs; exit with 1 if something does and is not corrected."""
    parser = argparse.ArgumentParser(
        description="Compare the numbers on the pages with the computed ones."
    )
    parser.add_argument("--write", action="store_true", help="correct the pages")
    write = parser.parse_args().write
    sys.path.insert(0, str(ROOT))
    arena = import_module("studies.arena.page")
    tables = import_module("page_tables")
    STATEMENTS.extend(import_module("page_atari").STATEMENTS)
    differences = [
        *find_differences(write),
        *tables.find_differences(write),
        *arena.find_differences(write),
    ]
    print("\n".join(differences) or "all numbers are as computed")
    raise SystemExit(bool(differences) and not write)


if __name__ == "__main__":
    main()
