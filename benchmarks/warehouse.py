"""A DQN in a warehouse, plain and with options of a robot's log.

``python -m benchmarks.warehouse [--seeds 10] [--steps 20000]`` measures, and ``--show``
prints the means of the stored rows, ``benchmarks/warehouse.csv``. ``--store`` adds rows
to them; what is stored is not measured again.

The robot turns by 45 degrees and drives half a metre through a hall with two walls, and
its battery falls (`Warehouse`). The log has 20,000 random steps that begin anywhere, in
episodes of 100; it shows no goal. The agent begins in the first room, and gets a reward
at the far end of the second, which random actions reach in two of a hundred episodes of
400 steps. Both ways use one agent with the same settings, and an update for every four
primitive steps.
"""

from __future__ import annotations

import argparse
import logging
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
import torch
from gymnasium.spaces import Box
from gymnasium.wrappers import TimeLimit
from torch import nn

import eigenoptions as eo
from benchmarks.stored import read_table, store_table
from benchmarks.vector_options import Warehouse
from studies.arena.deep_budget import Budget, take_exam
from studies.arena.deep_dqn import TorchDQN

# The battery is column 4: `discover` warns of it, and names these as the remedy.
WAYS = ("plain", "options")


class GoalWarehouse(Warehouse):
    """The warehouse with a start in its first room, and a reward in the second."""

    goal = np.array([5.0, 1.0])

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Begin an episode anywhere in the first room."""
        super().reset(seed=seed)
        self.place = self.np_random.uniform((0.0, 0.0), (2.6, 10.0))
        return self.observe(), {}

    def step(self, action: int) -> Any:
        """Take a step; near the goal the episode ends with reward 1."""
        obs, _, _, truncated, info = super().step(action)
        has_arrived = bool(np.linalg.norm(self.place - self.goal) < 1.0)
        return obs, float(has_arrived), has_arrived, truncated, info


class _Scale(nn.Module):
    """Observations between the bounds of their space become -1 to 1."""

    def __init__(self, space: Box) -> None:
        super().__init__()
        self.register_buffer("low", torch.as_tensor(space.low))
        self.register_buffer("extent", torch.as_tensor(space.high - space.low))

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        scaled: torch.Tensor = 2 * (obs - self.low) / self.extent - 1
        return scaled


def make_network(env: gym.Env[Any, Any], n_choices: int) -> nn.Module:
    """Make two hidden layers of 64, whose values begin near 0."""
    space = env.observation_space
    assert isinstance(space, Box)
    last = nn.Linear(64, n_choices)
    nn.init.normal_(last.weight, std=1e-3)
    nn.init.zeros_(last.bias)
    return nn.Sequential(
        _Scale(space),
        nn.Linear(space.shape[0], 64),
        nn.ReLU(),
        nn.Linear(64, 64),
        nn.ReLU(),
        last,
    )


def record_log(seed: int, n_steps: int = 20_000) -> eo.Transitions:
    """Random steps that begin anywhere."""
    return eo.collect(lambda: TimeLimit(Warehouse(True), 100), n_steps, rng=seed)


def run_agent(seed: int, way: str, n_steps: int) -> dict[str, Any]:
    """One row of the table: an agent that learns, and its exam."""
    options = None
    if way == "options":
        options = eo.discover(
            record_log(seed),
            n_options=8,
            n_actions=4,
            space=Warehouse.observation_space,
            columns=[0, 1, 2, 3],
        )

    budget = Budget(TimeLimit(GoalWarehouse(), 400), n_steps)
    env: Any = budget
    exam: Any = TimeLimit(GoalWarehouse(), 400)
    if options is not None:
        env = eo.OptionsWrapper(budget, options, record_steps=True)
        exam = eo.OptionsWrapper(exam, options)
    agent = TorchDQN(env, budget, seed, network=make_network)
    agent.learn()
    reached = take_exam(exam, agent.choose, 1_000 + seed)
    return {
        "way": way,
        "seed": seed,
        "steps": n_steps,
        "first_goal": budget.first_goal,
        "goals": budget.goals,
        "reached": reached,
    }


def summarize(way: str, rows: pd.DataFrame) -> str:
    """One line: means over the seeds of a way."""
    n_found = (rows.goals > 0).sum()
    n_learned = (rows.reached >= 0.5).sum()
    return (
        f"{way:8} {len(rows)} seeds  found the goal {n_found}, first after "
        f"{rows.first_goal.median():,.0f} steps (median), "
        f"{rows.goals.mean():.0f} times; learned {n_learned}, "
        f"reached {rows.reached.mean():.0%}"
    )


def main() -> None:
    """Measure what is not stored yet, and print a line for each way."""
    parser = argparse.ArgumentParser(description="A DQN with options of a log.")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)

    rows = read_table("warehouse").to_dict("records")
    known = {(row["way"], row["seed"], row["steps"]) for row in rows}
    jobs = product(range(arguments.seeds), WAYS)
    for seed, way in [] if arguments.show else jobs:
        if (way, seed, arguments.steps) in known:
            continue
        rows.append(run_agent(seed, way, arguments.steps))
        print(rows[-1], flush=True)
        if arguments.store:
            store_table("warehouse", pd.DataFrame(rows))

    table = pd.DataFrame(rows)
    for way in WAYS:
        print(summarize(way, table[table.way == way]))


if __name__ == "__main__":
    main()
