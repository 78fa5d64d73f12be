"""OGBench PointMaze: `eigenoptions.Planner` on logged data, beside published networks (docs/planner.md).

``python -m reproduction ogbench [--quick] [--only giant] [--steps 100000] [--seeds 8] [--episodes 50]``.
It records data by the rule of OGBench's ``generate_locomaze.py``, since the files cannot always be downloaded, and
writes ``ogbench.csv``, ``tables.md`` and ``potentials.svg`` to a folder. The published data have a million steps.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from importlib import import_module
from math import hypot
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

import eigenoptions as eo
from eigenoptions.evaluation.intervals import mean_interval
from eigenoptions.planner.planner import POTENTIALS
from eigenoptions.plots import draw_values
from reproduction.lab import open_lab

STEPS, MAZES, KINDS = (
    100_000,
    ("medium", "large", "giant", "teleport"),
    ("navigate", "stitch"),
)
# Mazes on which greedy descent is tried, with these potentials.
DESCENTS = {"giant": POTENTIALS, "teleport": POTENTIALS[:1]}
# Success in percent: Table 3 of SAW for stitch; QRL on giant-navigate and ALPS as reported for ALPS (2602.05031).
PUBLISHED = {
    "medium-stitch": {"GCIVL": 70, "QRL": 80, "HIQL": 74},
    "large-stitch": {"GCIVL": 12, "QRL": 84, "HIQL": 13, "ALPS": 96},
    "giant-stitch": {"GCIVL": 0, "QRL": 50, "HIQL": 0, "ALPS": 98},
    "giant-navigate": {"QRL": 68, "ALPS": 67},
    "teleport-stitch": {"ALPS": 13},
}


def main(arguments: Sequence[str]) -> None:
    """Record the data, plan, and write the tables and the figure."""
    parser = argparse.ArgumentParser(
        "python -m reproduction ogbench", description=__doc__
    )
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
    options = parser.parse_args(arguments)
    if options.quick:
        options.steps, options.seeds, options.episodes, options.only = (
            20_000,
            1,
            2,
            MAZES[0],
        )
    jobs = [
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
    if not jobs:
        raise ValueError(
            f"--only {options.only}: no such data set; choose from {', '.join(MAZES)}"
        )
    shown = dict(
        max(jobs, key=lambda job: (job["maze"] == "giant", job["kind"], -job["seed"]))
    )
    del shown["episodes"]
    with open_lab(options.out, quick=options.quick) as lab:
        lab.describe("planning")
        rows = [row for rows in lab.pmap(run, jobs) for row in rows]
        data = lab.pmap(record, [shown])[0]
    results = pd.DataFrame(rows)
    results.to_csv(options.out / "ogbench.csv", index=False, float_format="%.6g")
    (options.out / "tables.md").write_text(write_tables(results))
    draw_potentials(data).savefig(options.out / "potentials.svg")
    print(write_tables(results))


def record(maze: str, kind: str, steps: int, seed: int) -> tuple[NDArray[Any], ...]:
    """``obs, action, next_obs`` of an agent that walks to goals with noise 0.5 (OGBench's rule).

    In "navigate" a new goal follows each one reached, in "stitch" a goal is four cells away and the episode short.
    """
    env: Any = make(maze, terminate_at_goal=False)
    env.reset(seed=seed)
    env.action_space.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - OGBench draws starts and teleports from NumPy's global generator
    rng = np.random.default_rng(seed)
    layout: Any = eo.maze(
        "\n".join("".join(".#"[wall] for wall in row) for row in env.maze_map)
    )
    number = {tuple(cell): state for state, cell in enumerate(layout.coords.tolist())}
    centers = np.array([env.ij_to_xy(cell) for cell in layout.coords])
    moves = shortest_path(eo.graph(layout), unweighted=True)
    # Of the cell and its neighbours, in OGBench's order, the first that is nearest to the goal: a state for each pair.
    around = np.column_stack(
        [np.arange(layout.n_states), layout.successors[:, [0, 3, 2, 1]]]
    )
    nearest = np.take_along_axis(around, moves[around].argmin(axis=1), axis=1)
    # A corridor has exactly two free neighbours, opposite to each other.
    up, right, down, left = np.arange(layout.n_states) != layout.successors.T
    turns = np.flatnonzero((up != down) | (left != right) | (up == left))
    length = 200 if kind == "stitch" else 2_000 if maze == "giant" else 1_000
    rows = []
    for _ in range(max(1, steps // length)):
        start = rng.integers(layout.n_states)
        goals = turns if kind == "navigate" else np.flatnonzero(moves[start] == 4)
        goal = goals[rng.integers(len(goals))] if len(goals) else start
        cells = {"init_ij": layout.coords[start], "goal_ij": layout.coords[goal]}
        obs, _ = env.reset(options={"task_info": cells})
        for noise in rng.normal(0.0, 0.5, (length, 2)):
            # Not the last observation, which is that before a teleport.
            position = env.get_xy()
            direction = (
                centers[nearest[number[env.xy_to_ij(position)], goal]] - position
            )
            action = direction / (hypot(*direction) + 1e-6) + noise
            action = np.minimum(np.maximum(action, -1.0), 1.0)
            next_obs, _, _, _, info = env.step(action)
            rows.append((obs, action, next_obs))
            obs = next_obs
            if info["success"] and kind == "navigate":
                goal = turns[rng.integers(len(turns))]
                env.set_goal(goal_xy=env.add_noise(centers[goal]))
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def run(
    maze: str, kind: str, steps: int, seed: int, episodes: int
) -> list[dict[str, Any]]:
    """Record a data set, and measure the planner; greedy descent in a tenth of the episodes."""
    data = record(maze, kind, steps, seed)
    job = {"maze": maze, "kind": kind, "seed": seed, "steps": len(data[0])}
    rows = [
        {
            **job,
            "policy": "solved",
            "potential": "log-z",
            **measure(maze, data, seed, episodes),
        }
    ]
    for potential in DESCENTS.get(maze, ()):
        result = measure(
            maze, data, seed, max(1, episodes // 10), potential=potential, greedy=True
        )
        rows.append({**job, "policy": "greedy", "potential": potential, **result})
    return rows


def measure(
    maze: str, data: tuple[NDArray[Any], ...], seed: int, episodes: int, **settings: Any
) -> dict[str, float]:
    """Success of a planner on the five tasks of a maze, the seconds of its fit, and local minima of its potential."""
    begin = time.process_time()
    planner = eo.Planner(data, **settings)
    fit = time.process_time() - begin
    env: Any = make(maze)
    np.random.seed(1_000 + seed)  # noqa: NPY002
    reached, stuck = [], []
    for task in range(1, 6):
        for _ in range(episodes):
            obs, info = env.reset(options={"task_id": task})
            goal, way, success = info["goal"], [obs], False
            stuck.append(find_minima(planner, goal).sum())
            while len(way) <= 1_000 and not success:
                try:
                    obs, _, success, _, _ = env.step(planner.act(obs, goal))
                except (
                    ValueError
                ):  # no way from here, such as a dead end behind a teleporter
                    break
                if not success and np.array_equal(obs, way[-1]):  # at rest for ever
                    break
                way.append(obs)
            reached.append(success)
    return {
        "episodes": episodes,
        "success": 100.0 * float(np.mean(reached)),
        "local_minima": float(np.mean(stuck)),
        "states": planner.mdp.n_states,
        "fit_seconds": fit,
    }


def find_minima(planner: eo.Planner, goal: Any) -> NDArray[np.bool_]:
    """States other than the goal with a way to it, where no move is expected to raise the potential."""
    value = planner.potential(goal)
    known = np.isfinite(value)
    value = np.where(known, value, 10.0 * value[known].min() - 1.0)
    gain = (planner.mdp.transition @ value).reshape(len(value), -1).max(axis=1) - value
    return np.asarray(
        known & (gain <= 1e-9) & (np.arange(len(value)) != planner.state(goal))
    )


def write_tables(results: pd.DataFrame) -> str:
    """Success beside published numbers, and the four potentials, as Markdown."""
    methods = ["GCIVL", "QRL", "HIQL", "ALPS"]
    lines = [
        f"| data set | `Planner` | {' | '.join(methods)} | data sets | fit, CPU s |"
    ]
    lines.append("|---|" + "--:|" * 7)
    solved = results[results.policy == "solved"].groupby(
        ["maze", "kind", "steps"], sort=False
    )
    for (maze, kind, steps), rows in solved:
        published = PUBLISHED.get(f"{maze}-{kind}", {})
        others = " | ".join(str(published.get(name, "")) for name in methods)
        cost = f"{len(rows)} | {rows.fit_seconds.mean():.2f}"
        size = "" if steps == STEPS else f", {steps:,} steps"
        lines.append(
            f"| {maze}-{kind}{size} | {describe(rows.success)} | {others} | {cost} |"
        )
    lines += [
        "",
        "| data set | potential | local minima | success of greedy descent |",
        "|---|---|--:|--:|",
    ]
    for names, rows in results[results.policy == "greedy"].groupby(
        ["maze", "kind", "potential"], sort=False
    ):
        minima = f"{rows.local_minima.mean():.1f} of {rows.states.mean():.0f} states"
        lines.append(
            f"| {names[0]}-{names[1]} | {names[2]} | {minima} | {describe(rows.success)} |"
        )
    return "\n".join(lines) + "\n"


def describe(success: pd.Series) -> str:
    """Mean success, with an interval where there are several data sets."""
    if len(success) < 2:
        return f"{success.mean():.0f}"
    low, high = mean_interval(success.to_numpy())
    return f"{success.mean():.1f} ({max(low, 0.0):.1f} to {min(high, 100.0):.1f})"


def draw_potentials(data: tuple[NDArray[Any], ...]) -> Any:
    """The four potentials of one goal, with the states where greedy descent stops."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6.4), layout="constrained")
    for ax, name in zip(figure.subplots(2, 2).flat, POTENTIALS, strict=True):
        planner = eo.Planner(data, potential=name, greedy=True)
        assert planner.centers is not None
        assert planner.mdp.coords is not None
        goal = planner.centers[np.argmin(planner.centers.sum(axis=1))]
        value = planner.potential(goal)
        known = np.isfinite(value)
        draw_values(
            ax, planner.mdp, np.where(known, value, value[known].min()), signed=False
        )
        stops = find_minima(planner, goal)
        rows, columns = planner.mdp.coords[stops].T
        ax.plot(columns, rows, "x", color="red", markersize=5)
        row, column = planner.mdp.coords[planner.state(goal)]
        ax.plot(column, row, "*", color="red", markersize=9)
        ax.set_title(f"{name}: {stops.sum()} local minima of {known.sum()} states")
    return figure


def make(maze: str, **settings: Any) -> Any:
    """The environment without its wrappers."""
    warnings.filterwarnings("ignore", module="(gymnasium|ogbench)")
    import_module("ogbench.locomaze")
    return gym.make(f"pointmaze-{maze}-v0", **settings).unwrapped
