"""`Planner` in a hall with two walls: goals reached, and the time of `act`.

Also goals that a robot reaches which turns and drives.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import eigenoptions as eo
from benchmarks.timing import Row, measure_best
from tests.halls import Hall, TurningRobot

N_GOALS = 20


def measure_hall(seed: int = 100) -> Iterator[Row]:
    """Goals of 20 that an episode reaches, and microseconds of `act` on the way."""
    for n_steps in (20_000, 200_000):
        for one_axis in (False, True):
            for thickness in (0.6, 1.2, 2.0):
                rng = np.random.default_rng(seed)
                hall = Hall(thickness)
                planner = eo.Planner(hall.record(rng, n_steps, one_axis))
                arrived, microseconds = _visit_goals(planner, hall, rng)
                kind = "one axis" if one_axis else "free"
                name = f"hall, walls {thickness} m, {n_steps:,} steps, {kind}"
                yield Row(f"{name}: goals of {N_GOALS}", arrived, unit="")
                yield Row(f"{name}: act", microseconds, unit="us")


def _visit_goals(
    planner: eo.Planner, hall: Hall, rng: np.random.Generator, limit: int = 400
) -> tuple[int, float]:
    """The number of goals that are reached, and microseconds of `Planner.act`."""
    n_arrived = 0
    places: list[tuple[Any, Any]] = []
    starts = hall.draw_free(rng, N_GOALS)
    goals = hall.draw_free(rng, N_GOALS)
    for position, goal in zip(starts, goals, strict=True):
        run = planner.start(goal)
        for _ in range(limit):
            if np.linalg.norm(position - goal) < 0.3:
                n_arrived += 1
                break
            places.append((position, goal))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                position = hall.move(position, run.act(position))

    def act_everywhere() -> None:
        for position, goal in places:
            planner.act(position, goal)

    # All options are computed, so this is the time of a decision alone.
    seconds = measure_best(act_everywhere, rounds=10)
    return n_arrived, 1e6 * seconds / len(places)


def measure_turning(n_seeds: int = 2) -> Iterator[Row]:
    """Poses behind a wall, of 20 in each log, that a turning robot reaches."""
    for degrees in (90.0, 45.0, 22.5):
        robot = TurningRobot(np.deg2rad(degrees))
        for n_episodes in (60, 200, 600):
            n_arrived = 0
            for seed in range(n_seeds):
                rng = np.random.default_rng(seed)
                data = robot.record(rng, n_episodes)
                planner = eo.Planner(data)
                n_arrived += _visit_poses(planner, robot, rng)
            n_goals = n_seeds * N_GOALS
            name = f"turns of {degrees:g} degrees, {len(data[0]):,} steps"
            yield Row(f"{name}: goals of {n_goals}", n_arrived, unit="")


def _visit_poses(
    planner: eo.Planner,
    robot: TurningRobot,
    rng: np.random.Generator,
    limit: int = 400,
) -> int:
    """The number of poses on the other side of the wall that are reached."""
    n_arrived = 0
    for _ in range(N_GOALS):
        is_right = bool(rng.integers(2))
        pose = robot.draw_pose(rng, is_right, depth=4.0)
        goal = robot.draw_pose(rng, not is_right, depth=4.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = planner.start(robot.show(goal))
            try:
                while not run.arrived and run.steps < limit:
                    pose = robot.move(pose, run.act(robot.show(pose)))
            except ValueError:
                # The data show no way from here.
                continue
        n_arrived += run.arrived
    return n_arrived
