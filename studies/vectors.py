"""`explore` where nothing repeats: steps to the first goal, beside what a user may try.

``python -m studies vectors [--seeds 10] [--tasks MountainCar ...] [--methods explore]``
appends one row per run to ``studies/vectors.csv`` and prints the table. Runs that are
stored are not repeated.

The halls are 20 x 20 m with two walls, whose doors are 3 m wide; the goal is a disc of
1 m in the far corner, and episodes have 500 steps. Baselines use cells of 1.5 large
steps, which they measure in 300 steps that count.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
from gymnasium.spaces import Box, Discrete

import eigenoptions as eo
from eigenoptions.explore.axes import choose_axes
from eigenoptions.explore.controls import Controls

STORED = Path(__file__).with_suffix(".csv")
# Seeds that no setting was chosen with.
FIRST_SEED = 5000


class Hall(gym.Env[Any, Any]):
    """A hall with two walls.

    Parameters
    ----------
    kind : {"momentum", "robot", "box"}
        Five forces on a mass, a robot that turns and drives, or a force as a vector.
    """

    walls = ((7.0, 16.0, 19.0), (13.0, 1.0, 4.0))
    action_space: Any

    def __init__(self, kind: str) -> None:
        self.kind = kind
        spaces = {"momentum": Discrete(5), "robot": Discrete(3)}
        self.action_space = spaces.get(kind, Box(-1.0, 1.0, (2,), np.float32))
        self.observation_space = Box(-np.inf, np.inf, (4,), np.float32)
        self.position = np.zeros(2)
        self.velocity = np.zeros(2)
        self.heading = 0.0
        self.n_steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Begin in a corner, at rest."""
        super().reset(seed=seed)
        self.position = self.np_random.uniform(1.0, 3.0, 2)
        self.velocity = np.zeros(2)
        self.heading = self.np_random.uniform(-np.pi, np.pi)
        self.n_steps = 0
        return self.observe(), {}

    def observe(self) -> Any:
        """Place and velocity, or place and heading."""
        further = self.velocity
        if self.kind == "robot":
            further = np.array([np.cos(self.heading), np.sin(self.heading)])
        return np.concatenate([self.position, further]).astype(np.float32)

    def step(self, action: Any) -> Any:
        """Push, turn or drive."""
        self.n_steps += 1
        if self.kind == "robot":
            self.turn_or_drive(int(action))
        else:
            forces = np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)])
            force = action if self.kind == "box" else forces[int(action)]
            velocity = 0.95 * self.velocity + 0.1 * np.clip(force, -1, 1)
            self.velocity = np.clip(velocity, -0.6, 0.6)
            self.move(self.velocity)
        distance = np.linalg.norm(self.position - 18.5)
        is_won = bool(distance < 1.0)
        return self.observe(), float(is_won), is_won, self.n_steps >= 500, {}

    def turn_or_drive(self, action: int) -> None:
        """Turn by 15 degrees, or drive 0.4 m."""
        if action < 2:
            self.heading += np.pi / 12 * (1 - 2 * action)
            return
        self.move(0.4 * np.array([np.cos(self.heading), np.sin(self.heading)]))

    def move(self, change: Any) -> None:
        """Move along each axis as far as there is no wall."""
        for axis in (0, 1):
            following = self.position.copy()
            following[axis] += change[axis]
            if self.is_free(following):
                self.position = following
            else:
                self.velocity[axis] = 0.0

    def is_free(self, position: Any) -> bool:
        """Whether a place is in the hall and not in a wall."""
        if (position < 0).any() or (position > 20).any():
            return False
        x, y = position
        return all(
            abs(x - wall) >= 0.3 or low <= y <= high for wall, low, high in self.walls
        )


TASKS: dict[str, Callable[[], gym.Env[Any, Any]]] = {
    "MountainCar": lambda: gym.make("MountainCar-v0"),
    "MountainCarContinuous": lambda: gym.make("MountainCarContinuous-v0"),
    "Acrobot": lambda: gym.make("Acrobot-v1"),
    "hall, momentum": lambda: Hall("momentum"),
    "hall, robot": lambda: Hall("robot"),
    "hall, box": lambda: Hall("box"),
}


def run_explore(env: gym.Env[Any, Any], most: int, seed: int) -> int | None:
    """Steps of `explore` to the first reward."""
    found = eo.explore(env, most, until="reward", seed=seed, progress=False)
    return found.n_steps if len(found.rewarded) else None


Chooser = Callable[[Any], int]


def walk(
    env: gym.Env[Any, Any],
    most: int,
    seed: int,
    choose: Chooser,
    learn: Callable[[Any, int, Any, bool], None] | None = None,
) -> int | None:
    """Steps of a walk to the first end of an episode."""
    controls = Controls(env.action_space)
    obs, _ = env.reset(seed=seed)
    for step in range(1, most + 1):
        action = choose(obs)
        given = controls.given[action]
        next_obs, _, terminated, truncated, _ = env.step(given)
        if learn is not None:
            learn(obs, action, next_obs, bool(terminated))
        obs = next_obs
        if terminated:
            return step
        if truncated:
            obs, _ = env.reset()
    return None


def run_random(
    env: gym.Env[Any, Any], most: int, seed: int, repeat: int = 1
) -> int | None:
    """Random actions, each of which is repeated."""
    return walk(env, most, seed, repeat_random(env, seed, repeat))


def repeat_random(env: gym.Env[Any, Any], seed: int, repeat: int) -> Chooser:
    """A chooser of random actions, each of which is repeated."""
    rng = np.random.default_rng(seed)
    n_actions = len(Controls(env.action_space))

    def draw() -> Iterator[int]:
        while True:
            action = int(rng.integers(n_actions))
            for _ in range(repeat):
                yield action

    actions = draw()
    return lambda obs: next(actions)


def run_repeated(env: gym.Env[Any, Any], most: int, seed: int) -> int | None:
    """Random actions, each repeated ten times."""
    return run_random(env, most, seed, repeat=10)


def measure_cells(env: gym.Env[Any, Any], seed: int, n: int = 300) -> Any:
    """Cells of 1.5 large steps, from steps of repeated actions; or the goal's step."""
    rows: list[Any] = []
    controls = Controls(env.action_space)

    def learn(obs: Any, action: int, next_obs: Any, terminated: bool) -> None:
        rows.append((obs, controls.vectors[action], next_obs))

    step = walk(env, n, seed, repeat_random(env, seed, 5), learn)
    if step is not None:
        return step
    before, acts, after = (
        np.array(part, np.float64) for part in zip(*rows, strict=True)
    )
    axes = choose_axes(before, after, acts)

    def find_cell(obs: Any) -> tuple[int, ...]:
        points = axes.read(np.asarray(obs, np.float64)[None])
        return tuple(np.floor(points[0] / 1.5).astype(int).tolist())

    return find_cell


def run_count_bonus(env: gym.Env[Any, Any], most: int, seed: int) -> int | None:
    """Q-learning of a bonus for rare cells."""
    find_cell = measure_cells(env, seed)
    if isinstance(find_cell, int):
        return find_cell
    rng = np.random.default_rng(seed)
    n_actions = len(Controls(env.action_space))
    values: Any = defaultdict(lambda: np.full(n_actions, 0.1 / 0.03))
    visits: Any = defaultdict(int)

    def choose(obs: Any) -> int:
        row = values[find_cell(obs)]
        return int(rng.choice(np.flatnonzero(row >= row.max() - 1e-9)))

    def learn(obs: Any, action: int, next_obs: Any, terminated: bool) -> None:
        cell, after = find_cell(obs), find_cell(next_obs)
        visits[after] += 1
        future = 0.0 if terminated else values[after].max()
        target = 1.0 / np.sqrt(visits[after]) + 0.97 * future
        values[cell][action] += 0.3 * (target - values[cell][action])

    step = walk(env, most - 300, seed, choose, learn)
    return None if step is None else step + 300


def run_rmax(env: gym.Env[Any, Any], most: int, seed: int) -> int | None:
    """The nearest untried action of a cell, by the last outcomes (R-max)."""
    find_cell = measure_cells(env, seed)
    if isinstance(find_cell, int):
        return find_cell
    rng = np.random.default_rng(seed)
    n_actions = len(Controls(env.action_space))
    outcomes: Any = defaultdict(dict)
    plan: deque[Any] = deque()

    def choose(obs: Any) -> int:
        cell = find_cell(obs)
        if plan and plan[0][0] != cell:
            plan.clear()
        if not plan:
            plan.extend(find_untried(outcomes, cell, n_actions, rng))
        return int(plan.popleft()[1])

    def learn(obs: Any, action: int, next_obs: Any, terminated: bool) -> None:
        outcomes[find_cell(obs)][action] = None if terminated else find_cell(next_obs)

    step = walk(env, most - 300, seed, choose, learn)
    return None if step is None else step + 300


def find_untried(
    outcomes: Any, start: Any, n_actions: int, rng: np.random.Generator
) -> list[Any]:
    """The way from a cell to the nearest untried action; a random action if none."""
    came_from: dict[Any, Any] = {start: None}
    queue = deque([start])
    while queue and len(came_from) < 3000:
        cell = queue.popleft()
        free = [a for a in range(n_actions) if a not in outcomes[cell]]
        if free:
            plan = [(cell, free[int(rng.integers(len(free)))])]
            while came_from[plan[0][0]] is not None:
                plan.insert(0, came_from[plan[0][0]])
            return plan
        for action, after in outcomes[cell].items():
            if after is not None and after not in came_from:
                came_from[after] = (cell, action)
                queue.append(after)
    return [(start, int(rng.integers(n_actions)))]


# Each method, and the most steps of a run.
METHODS: dict[str, tuple[Callable[..., int | None], int]] = {
    "explore": (run_explore, 10_000),
    "repeated": (run_repeated, 50_000),
    "random": (run_random, 50_000),
    "count bonus": (run_count_bonus, 30_000),
    "R-max": (run_rmax, 30_000),
}


def read_stored(path: Path = STORED) -> pd.DataFrame:
    """Runs that are stored."""
    names = ["task", "method", "seed", "steps", "most", "cpu"]
    if not path.exists():
        return pd.DataFrame(columns=names)
    return pd.read_csv(path)


def summarize(runs: pd.DataFrame) -> pd.DataFrame:
    """Median, worst and share of runs that arrived, per task and method."""
    rows = []
    for (task, method), group in runs.groupby(["task", "method"], sort=False):
        steps = group.steps.fillna(np.inf)
        taken = group.steps.fillna(group.most)
        rows.append(
            {
                "task": task,
                "method": method,
                "median": steps.median(),
                "worst": steps.max(),
                "arrived": f"{int(group.steps.notna().sum())}/{len(group)}",
                "ms per step": round(1e3 * group.cpu.sum() / taken.sum(), 3),
            }
        )
    return pd.DataFrame(rows)


def main(arguments: list[str]) -> None:
    """Run what is not stored, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument(
        "--methods", nargs="+", default=list(METHODS), choices=list(METHODS)
    )
    given = parser.parse_args(arguments)

    runs = read_stored()
    for method in given.methods:
        run, most = METHODS[method]
        for task in given.tasks:
            for seed in range(FIRST_SEED, FIRST_SEED + given.seeds):
                key = (
                    (runs.task == task) & (runs.method == method) & (runs.seed == seed)
                )
                if key.any():
                    continue
                began = time.process_time()
                steps = run(TASKS[task](), most, seed)
                cpu = round(time.process_time() - began, 3)
                row = [task, method, seed, steps, most, cpu]
                runs.loc[len(runs)] = row
                runs.to_csv(STORED, index=False)
    print(summarize(runs).to_string(index=False))
