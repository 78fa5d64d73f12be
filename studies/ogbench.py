"""OGBench PointMaze: `eigenoptions.Planner` on logged data (docs/planner.md).

``python -m studies ogbench [--quick] [--only giant] [--steps 100000] [--seeds 8]
[--episodes 50]`` records data by the rule of OGBench's ``generate_locomaze.py``, since
the files cannot always be downloaded. It writes ``ogbench.csv``, ``tables.md`` with
published networks beside the planner, and ``potentials.svg`` to a folder. The published
data have a million steps.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from math import hypot
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.sparse.csgraph import shortest_path

import eigenoptions as eo
from eigenoptions import MDP
from eigenoptions._types import BoolArray, FloatArray, IndexArray
from eigenoptions.evaluation.intervals import mean_interval
from eigenoptions.plots import draw_values
from reproduction.lab import open_lab
from reproduction.markdown import make_table
from studies.potentials import COMPARED

STEPS = 100_000
MAZES = ("medium", "large", "giant", "teleport")
KINDS = ("navigate", "stitch")

# Mazes on which greedy descent is tried, with these potentials.
DESCENTS = {"giant": tuple(COMPARED), "teleport": ("log-z",)}

# Success in percent: OGBench's own table for navigate, Table 3 of SAW for stitch; ALPS,
# and QRL on giant-navigate, as reported for ALPS (2602.05031). With a star: under a
# changed protocol.
PUBLISHED = {
    "medium-navigate": {"QRL": "82", "HIQL": "79", "MCTD*": "100"},
    "large-navigate": {"QRL": "86", "HIQL": "58", "MCTD*": "98"},
    "giant-navigate": {"QRL": "68", "ALPS": "67", "TTGS": "92", "MCTD*": "100"},
    "medium-stitch": {"QRL": "80", "HIQL": "74", "CompDiffuser*": "100"},
    "large-stitch": {"QRL": "84", "HIQL": "13", "ALPS": "96", "CompDiffuser*": "100"},
    "giant-stitch": {
        "QRL": "50",
        "HIQL": "0",
        "ALPS": "98",
        "TTGS": "98",
        "CompDiffuser*": "68",
    },
    "teleport-stitch": {"ALPS": "13"},
}


class Log(NamedTuple):
    """Recorded steps."""

    obs: FloatArray
    action: FloatArray
    next_obs: FloatArray


def main(arguments: Sequence[str]) -> None:
    """Record the data, plan, and write the tables and the figure."""
    options = make_parser().parse_args(arguments)
    if options.quick:
        options.steps = 20_000
        options.seeds = 1
        options.episodes = 2
        options.only = MAZES[0]
    calls = [
        {
            "maze": maze,
            "kind": kind,
            "steps": options.steps,
            "seed": seed,
            "episodes": options.episodes,
        }
        for maze in MAZES
        for kind in KINDS
        for seed in range(options.seeds)
        if f"{maze}-{kind}".startswith(tuple(options.only.split(",")))
    ]
    if not calls:
        raise ValueError(
            f"--only {options.only}: no such data set; choose from {', '.join(MAZES)}"
        )

    with open_lab(options.out, quick=options.quick) as lab:
        lab.describe("planning")
        rows = []
        for measured in lab.pmap(measure_data_set, calls):
            rows += measured
        shown = choose_shown(calls)
        log = lab.pmap(record_data, [shown])[0]

    results = pd.DataFrame(rows)
    results.to_csv(options.out / "ogbench.csv", index=False, float_format="%.6g")
    tables = write_tables(results)
    (options.out / "tables.md").write_text(tables)
    draw_potentials(log).savefig(options.out / "potentials.svg")
    print(tables)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command."""
    parser = argparse.ArgumentParser("python -m studies ogbench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="one small data set of the medium maze"
    )
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of a data set")
    parser.add_argument("--seeds", type=int, default=8, help="data sets of each kind")
    parser.add_argument(
        "--episodes", type=int, default=50, help="episodes of each of the five tasks"
    )
    parser.add_argument(
        "--only", default="", metavar="NAME,...", help="such as giant,teleport-stitch"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("ogbench"), metavar="DIR", help="folder"
    )
    return parser


def choose_shown(calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The data set that the figure shows: of the giant maze, for stitching."""
    shown = max(
        calls,
        key=lambda call: (call["maze"] == "giant", call["kind"], -call["seed"]),
    )
    return {name: value for name, value in shown.items() if name != "episodes"}


# Data


class Episode(NamedTuple):
    """A recorded episode of n steps; `qpos` and `qvel` are those before each step."""

    obs: FloatArray
    action: FloatArray
    next_obs: FloatArray
    qpos: FloatArray
    qvel: FloatArray


class Places(NamedTuple):
    """The cells of a maze, as OGBench's rule sees them.

    Attributes
    ----------
    cells : ndarray of shape (S, 2)
        Row and column of each cell.
    numbers : dict
        The number of each cell.
    centers : ndarray of shape (S, 2)
        Coordinates of their middles.
    moves : ndarray of shape (S, S)
        Fewest moves from each cell to each.
    nearest : ndarray of shape (S, S)
        The neighbour of each cell that is nearest to each goal.
    turns : ndarray of int
        Cells that are not inside a corridor.
    """

    cells: IndexArray
    numbers: dict[tuple[int, int], int]
    centers: FloatArray
    moves: FloatArray
    nearest: IndexArray
    turns: IndexArray


def record_data(maze: str, kind: str, steps: int, seed: int) -> Log:
    """Steps of an agent that walks to goals with noise 0.5, by OGBench's rule."""
    episodes = list(record_episodes(maze, kind, steps, seed))
    return Log(
        np.concatenate([episode.obs for episode in episodes]),
        np.concatenate([episode.action for episode in episodes]),
        np.concatenate([episode.next_obs for episode in episodes]),
    )


def record_episodes(maze: str, kind: str, steps: int, seed: int) -> Iterator[Episode]:
    """Episodes of an agent that walks to goals with noise 0.5, by OGBench's rule.

    In "navigate" a new goal follows each one reached. In "stitch" a goal is four cells
    away and the episode is short.
    """
    env = make_env(maze, terminate_at_goal=False)
    env.reset(seed=seed)
    env.action_space.seed(seed)
    # OGBench draws starts and teleports from NumPy's global generator.
    np.random.seed(seed)  # noqa: NPY002
    rng = np.random.default_rng(seed)

    places = read_places(env)
    length = choose_length(maze, kind)
    for _ in range(count_episodes(maze, kind, steps)):
        start = rng.integers(len(places.cells))
        goals = places.turns
        if kind != "navigate":
            goals = np.flatnonzero(places.moves[start] == 4)
        goal = start
        if len(goals):
            goal = goals[rng.integers(len(goals))]
        task = {"init_ij": places.cells[start], "goal_ij": places.cells[goal]}
        obs, _ = env.reset(options={"task_info": task})

        rows = []
        for noise in rng.normal(0.0, 0.5, (length, 2)):
            action = choose_noisy_action(env, places, goal, noise)
            next_obs, _, _, _, info = env.step(action)
            rows.append((obs, action, next_obs, info["prev_qpos"], info["prev_qvel"]))
            obs = next_obs
            if info["success"] and kind == "navigate":
                goal = places.turns[rng.integers(len(places.turns))]
                env.set_goal(goal_xy=env.add_noise(places.centers[goal]))
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        yield Episode(*columns)


def choose_noisy_action(
    env: Any, places: Places, goal: int, noise: FloatArray
) -> FloatArray:
    """The step towards the next cell on the way to a goal, with noise ``(2,)``."""
    # Not the last observation, which is that before a teleport.
    position = env.get_xy()
    here = places.numbers[env.xy_to_ij(position)]
    direction = places.centers[places.nearest[here, goal]] - position
    action = direction / (hypot(*direction) + 1e-6) + noise
    return np.minimum(np.maximum(action, -1.0), 1.0)


def count_episodes(maze: str, kind: str, steps: int) -> int:
    """Number of episodes that have about so many steps, at least one."""
    return max(1, steps // choose_length(maze, kind))


def choose_length(maze: str, kind: str) -> int:
    """Steps of a recorded episode."""
    if kind == "stitch":
        return 200
    if maze == "giant":
        return 2_000
    return 1_000


def read_layout(env: Any) -> MDP:
    """The maze of an environment as a table."""
    characters = np.where(np.asarray(env.maze_map), "#", ".")
    return eo.maze("\n".join("".join(row) for row in characters))


def read_places(env: Any) -> Places:
    """The cells of an environment's maze."""
    layout = read_layout(env)
    assert layout.coords is not None
    cells = [tuple(cell) for cell in layout.coords.tolist()]
    moves = shortest_path(eo.graph(layout), unweighted=True)
    return Places(
        cells=layout.coords,
        numbers={cell: state for state, cell in enumerate(cells)},
        centers=np.array([env.ij_to_xy(cell) for cell in cells]),
        moves=moves,
        nearest=find_nearest_neighbors(layout, moves),
        turns=find_turns(layout),
    )


def find_nearest_neighbors(layout: MDP, moves: FloatArray) -> IndexArray:
    """``(S, S)`` the neighbour of each state that is nearest to each goal.

    Of the cell and its neighbours, in OGBench's order, it is the first that is nearest.
    `moves` ``(S, S)`` are distances.
    """
    assert layout.successors is not None
    states = np.arange(layout.n_states)
    up_left_down_right = layout.successors[:, [0, 3, 2, 1]]
    around = np.column_stack([states, up_left_down_right])
    nearest: IndexArray = np.take_along_axis(
        around, moves[around].argmin(axis=1), axis=1
    )
    return nearest


def find_turns(layout: MDP) -> IndexArray:
    """The states that are not inside a corridor.

    A corridor has exactly two free neighbours, opposite to each other.
    """
    assert layout.successors is not None
    is_free = np.arange(layout.n_states) != layout.successors.T
    up, right, down, left = is_free
    is_corridor = (up == down) & (left == right) & (up != left)
    return np.flatnonzero(~is_corridor)


# Planning


def measure_data_set(
    maze: str, kind: str, steps: int, seed: int, episodes: int
) -> list[dict[str, Any]]:
    """Record a data set, and plan with it.

    Greedy descent has a tenth of the episodes.
    """
    log = record_data(maze, kind, steps, seed)
    key = {"maze": maze, "kind": kind, "seed": seed, "steps": len(log.obs)}
    solved = measure_planner(maze, log, seed, episodes)
    rows = [{**key, "policy": "solved", "potential": "log-z", **solved}]
    for potential in DESCENTS.get(maze, ()):
        greedy = measure_planner(
            maze,
            log,
            seed,
            max(1, episodes // 10),
            potential=COMPARED[potential],
            greedy=True,
        )
        rows.append({**key, "policy": "greedy", "potential": potential, **greedy})
    return rows


def measure_planner(
    maze: str, log: Log, seed: int, episodes: int, greedy: bool = False, **settings: Any
) -> dict[str, float]:
    """Success of a planner on the five tasks of a maze.

    Beside it are the seconds of its fit and the local minima of its potential. Greedy
    descent shows its minima: it never varies a move.
    """
    start = time.process_time()
    planner = eo.Planner(log, greedy=greedy, **settings)
    fit_seconds = time.process_time() - start

    env = make_env(maze)
    np.random.seed(1_000 + seed)  # noqa: NPY002
    successes = []
    n_minima = []
    for task in range(1, 6):
        for _ in range(episodes):
            obs, info = env.reset(options={"task_id": task})
            n_minima.append(find_minima(planner, info["goal"]).sum())
            goal = info["goal"]
            successes.append(reach_goal(env, planner, obs, goal, varied=not greedy))
    return {
        "episodes": episodes,
        "success": 100.0 * float(np.mean(successes)),
        "local_minima": float(np.mean(n_minima)),
        "states": planner.mdp.n_states,
        "fit_seconds": fit_seconds,
    }


def reach_goal(
    env: Any,
    planner: eo.Planner,
    obs: FloatArray,
    goal: FloatArray,
    varied: bool = True,
) -> bool:
    """Act by a planner for at most 1,000 steps; whether the goal was reached."""
    for _ in range(1_000):
        try:
            action = planner.act(obs, goal, varied=varied)
        except ValueError:
            # No way from here, such as a dead end behind a teleporter.
            return False
        next_obs, _, success, _, _ = env.step(action)
        if success:
            return True
        if not varied and np.array_equal(next_obs, obs):
            # At rest for ever.
            return False
        obs = next_obs
    return False


def find_minima(planner: eo.Planner, goal: FloatArray) -> BoolArray:
    """States with a way to the goal where no move should raise the potential."""
    value = planner.potential(goal)
    n_states = len(value)
    is_known = np.isfinite(value)
    # States without a way are far worse than all others.
    value = np.where(is_known, value, 10.0 * value[is_known].min() - 1.0)
    expected = (planner.mdp.transition @ value).reshape(n_states, -1)
    gain = expected.max(axis=1) - value
    is_goal = np.arange(n_states) == planner.state(goal)
    minima: BoolArray = is_known & (gain <= 1e-9) & ~is_goal
    return minima


def make_env(maze: str, **settings: Any) -> Any:
    """The environment without its wrappers."""
    warnings.filterwarnings("ignore", module="(gymnasium|ogbench)")
    import_module("ogbench.locomaze")
    return gym.make(f"pointmaze-{maze}-v0", **settings).unwrapped


# Tables and figure


def write_tables(results: pd.DataFrame) -> str:
    """Both tables, as Markdown."""
    return f"{tabulate_success(results)}\n{tabulate_descents(results)}"


def tabulate_success(results: pd.DataFrame) -> str:
    """Success of the planner beside published numbers, as Markdown."""
    rows = []
    solved = results[results.policy == "solved"]
    keys = ["maze", "kind", "steps"]
    shortest = results[results.potential == "shortest"].groupby(keys).success.mean()
    for key, runs in solved.groupby(keys, sort=False):
        maze, kind, steps = key
        published = PUBLISHED.get(f"{maze}-{kind}", {})
        name = f"{maze}-{kind}"
        if steps != STEPS:
            name += f", {steps:,} steps"
        rows.append(
            [
                name,
                describe_success(runs.success),
                f"{shortest[key]:.0f}" if key in shortest else "",
                ", ".join(f"{method} {value}" for method, value in published.items()),
                str(len(runs)),
            ]
        )
    head = ["data set", "`Planner`", "shortest paths", "published", "data sets"]
    return make_table(head, rows)


def tabulate_descents(results: pd.DataFrame) -> str:
    """Local minima of each potential, and success of descending it, as Markdown."""
    greedy = results[(results.policy == "greedy") & (results.steps == STEPS)]
    head = ["potential"]
    rows: dict[str, list[str]] = {}
    for key, runs in greedy.groupby(["maze", "kind"], sort=False):
        maze, kind = key
        head.append(f"{maze}-{kind}: minima")
        head.append("success")
        for potential in COMPARED:
            row = rows.setdefault(potential, [potential])
            tried = runs[runs.potential == potential]
            if tried.empty:
                row += ["", ""]
            else:
                minima = tried.local_minima.mean()
                row.append(f"{minima:.1f} of {tried.states.mean():.0f}")
                row.append(f"{tried.success.mean():.0f}")
    return make_table(head, list(rows.values()))


def describe_success(success: pd.Series) -> str:
    """Mean success, with an interval where data sets differ."""
    if success.nunique() < 2:
        return f"{success.mean():.0f}"
    low, high = mean_interval(success.to_numpy())
    return f"{success.mean():.1f} ({max(low, 0.0):.1f}–{min(high, 100.0):.1f})"


def draw_potentials(log: Log) -> Figure:
    """The four potentials of one goal, with the states where greedy descent stops."""
    figure = Figure(figsize=(9, 6.4), layout="constrained")
    for ax, name in zip(figure.subplots(2, 2).flat, COMPARED, strict=True):
        planner = eo.Planner(log, potential=COMPARED[name], greedy=True)
        assert planner.centers is not None
        assert planner.mdp.coords is not None
        goal = planner.centers[np.argmin(planner.centers.sum(axis=1))]

        value = planner.potential(goal)
        is_known = np.isfinite(value)
        shown = np.where(is_known, value, value[is_known].min())
        draw_values(ax, planner.mdp, shown, signed=False)

        minima = find_minima(planner, goal)
        rows, columns = planner.mdp.coords[minima].T
        ax.plot(columns, rows, "x", color="red", markersize=5)
        row, column = planner.mdp.coords[planner.state(goal)]
        ax.plot(column, row, "*", color="red", markersize=9)
        ax.set_title(f"{name}: {minima.sum()} local minima of {is_known.sum()} states")
    return figure
