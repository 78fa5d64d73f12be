"""Options of cells against options fitted to features, on recorded vectors.

``python -m benchmarks.vector_options [TASK ...] [--logs 5] [--store]`` records 10,000
random steps of each task, discovers 8 options in both ways, and prints a row for each
log and way: CPU seconds of `discover`, how long executions last, and how many cells of
one fixed grid random decisions see in 5,000 steps, with the options' own exploration,
relative to primitive actions. In the hall and in the warehouse the log begins anywhere,
and exploration in one corner. In the warehouse both ways leave out the battery. With
``--store``, the rows of the task replace those in ``benchmarks/vector_options.csv``.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import TimeLimit

import eigenoptions as eo
from benchmarks.stored import read_table, store_table
from eigenoptions.samples.collection import run_options


class Hall(gym.Env[Any, Any]):
    """A hall of 10 x 10 with two walls; steps of 0.4 along one axis.

    Parameters
    ----------
    anywhere : bool, default=False
        Whether episodes begin anywhere, and not in one corner.
    """

    action_space = Discrete(4)
    observation_space = Box(0.0, 10.0, (2,), np.float64)

    def __init__(self, anywhere: bool = False) -> None:
        self.anywhere = anywhere
        self.place = np.ones(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Begin an episode."""
        super().reset(seed=seed)
        self.place = self.np_random.uniform(0.7, 1.3, 2)
        if self.anywhere:
            self.place = self.np_random.uniform((0.0, 0.0), (2.6, 10.0))
            self.place[0] += 3.7 * self.np_random.integers(3)
            self.place[0] = min(self.place[0], 10.0)
        return self.observe(), {}

    def observe(self) -> Any:
        """Return the observation."""
        return self.place.copy()

    def step(self, action: int) -> Any:
        """Take a step, which may be blocked."""
        self.act(action)
        return self.observe(), 0.0, False, False, {}

    def act(self, action: int) -> None:
        """Move up, right, down or left."""
        directions = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
        self.move(0.4 * directions[action])

    def move(self, displacement: Any) -> None:
        """Move a little to the side of a displacement, unless a wall is there."""
        place = self.place + displacement + self.np_random.normal(0, 0.03, 2)
        x, y = place
        is_inside = bool((place >= 0).all() and (place <= 10).all())
        in_first_wall = 2.7 < x < 3.3 and y < 7
        in_second_wall = 6.7 < x < 7.3 and y > 3
        if is_inside and not in_first_wall and not in_second_wall:
            self.place = place


class Warehouse(Hall):
    """The same hall for a robot that turns and drives, with a battery.

    Observations are x, y, sine and cosine of the heading, and the battery. Actions are
    forward, backward, left and right.
    """

    observation_space = Box(
        np.array([0.0, 0.0, -1.0, -1.0, 0.0]), np.array([10.0, 10.0, 1.0, 1.0, 1.0])
    )

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Begin an episode with a full battery."""
        self.heading = 0.0
        self.battery = 1.0
        super().reset(seed=seed)
        self.heading = self.np_random.uniform(0, 2 * np.pi)
        return self.observe(), {}

    def observe(self) -> Any:
        """Return the observation."""
        heading = [np.sin(self.heading), np.cos(self.heading)]
        return np.array([*self.place, *heading, self.battery], dtype=np.float32)

    def act(self, action: int) -> None:
        """Drive, or turn by 45 degrees."""
        self.battery -= 0.001
        if action >= 2:
            self.heading += np.pi / 4 * (1 if action == 2 else -1)
            return
        distance = 0.5 if action == 0 else -0.5
        direction = np.array([np.cos(self.heading), np.sin(self.heading)])
        self.move(distance * direction)


# For each task: the environment, the columns of the fixed grid, and its cells.
TASKS: dict[str, Any] = {
    "hall": (lambda anywhere: TimeLimit(Hall(anywhere), 400), [0, 1], 20),
    "warehouse": (lambda anywhere: TimeLimit(Warehouse(anywhere), 400), [0, 1], 20),
    "MountainCar-v0": (lambda anywhere: gym.make("MountainCar-v0"), [0, 1], 30),
    "CartPole-v1": (lambda anywhere: gym.make("CartPole-v1"), [0, 1, 2, 3], 10),
    "Acrobot-v1": (lambda anywhere: gym.make("Acrobot-v1"), [0, 1, 2, 3, 4, 5], 6),
}


def count_cells(env: Any, columns: list[int], size: Any, seed: int, steps: int) -> int:
    """Return how many cells of a grid random decisions see."""
    env.action_space.seed(seed)
    obs, _ = env.reset(seed=seed)
    seen = set()
    n_steps = 0
    while n_steps < steps:
        obs, _, terminated, truncated, info = env.step(env.action_space.sample())
        visited = [step.next_obs for step in info.get("steps", [])]
        for place in [*visited, obs]:
            seen.add(tuple(np.floor(place[columns] / size).astype(int).tolist()))
        n_steps += info.get("duration", 1)
        if terminated or truncated:
            obs, _ = env.reset()
    return len(seen)


def measure_task(
    name: str, seed: int = 50, steps: int = 5_000
) -> Iterator[dict[str, Any]]:
    """Measure both kinds of options in one log of a task: a row for each."""
    make_env, columns, n_cells = TASKS[name]
    log = eo.collect(lambda: make_env(True), 10_000, rng=seed)
    size = np.ptp(log.obs[:, columns], axis=0) / n_cells
    n_actions = int(make_env(False).action_space.n)
    seeds = range(seed, seed + 3)
    plain = [count_cells(make_env(False), columns, size, s, steps) for s in seeds]

    used = {"columns": [0, 1, 2, 3]} if name == "warehouse" else {}
    for kind, features in (("cells", None), ("fitted", "fourier")):
        begin = time.process_time()
        options = eo.discover(log, 8, n_actions=n_actions, features=features, **used)
        seconds = time.process_time() - begin
        paths = run_options(make_env(False), options, runs=4, max_steps=400)
        lengths = [len(path) - 1 for of_option in paths for path in of_option]
        seen = []
        for s in seeds:
            # A random walk also stops options by chance.
            env = eo.OptionsWrapper(
                make_env(False),
                options,
                option_chance=options.exploration.option_chance,
                stop_chance=options.exploration.stop_chance,
                record_steps=True,
            )
            seen.append(count_cells(env, columns, size, s, steps))
        yield {
            "task": name,
            "log": seed,
            "options": kind,
            "cpu_seconds": round(seconds, 1),
            "median_length": float(np.median(lengths)),
            "longest": max(lengths),
            "option_chance": env.option_chance,
            "stop_chance": env.stop_chance,
            "seen": round(float(np.mean(seen) / np.mean(plain)), 2),
        }


def main() -> None:
    """Print rows as they are measured."""
    parser = argparse.ArgumentParser(description="Cells against fitted options.")
    parser.add_argument("tasks", nargs="*", default=list(TASKS), metavar="TASK")
    parser.add_argument(
        "--store", action="store_true", help="write benchmarks/vector_options.csv"
    )
    parser.add_argument("--logs", type=int, default=5)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)

    for name in arguments.tasks:
        rows = []
        for number in range(arguments.logs):
            for row in measure_task(name, 50 + 1_000 * number):
                print(row, flush=True)
                rows.append(row)
        if arguments.store:
            stored = read_table("vector_options")
            if not stored.empty:
                stored = stored[stored.task != name]
            store_table("vector_options", pd.concat([stored, pd.DataFrame(rows)]))


if __name__ == "__main__":
    main()
