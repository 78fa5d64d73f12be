"""Environments outside of the arena, and when the first reward is found.

The arena counts states, and its tasks pay for one state. These eleven were chosen by an
independent audit, and nothing was changed for them. All ways recognise states alike, by
MiniGrid's true state, a number or an observation; ``explore, pose`` by the pose.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pandas as pd

from eigenoptions.envs import FixedSeed, MazeEnv, StateNumber
from eigenoptions.explore.explorer import Explorer
from eigenoptions.mdp import MDP, maze
from reproduction.lab import Lab
from reproduction.markdown import make_table as make_markdown
from studies.arena.deep_budget import Budget, BudgetSpentError, Env
from studies.arena.domains import make_one_way_rooms
from studies.arena.own_search import OwnSearch

STORED = Path(__file__).with_name("outside.csv")
SEEDS = range(3)
WAYS = ("random", "count bonus", "own search", "explore", "explore, pose")


class Task(NamedTuple):
    """From a seed to an environment with a time limit, and the steps of a run."""

    make: Callable[[int], Env]
    budget: int


def make_grid(seed: int, name: str) -> Env:
    """MiniGrid or BabyAI in the layout of the seed."""
    return FixedSeed(gym.make(f"minigrid:{name}"), seed)


def make_gymnasium(seed: int, name: str) -> Env:
    """An environment of Gymnasium."""
    return gym.make(name)


def make_table(seed: int, make_mdp: Callable[[np.random.Generator], MDP]) -> Env:
    """An environment of a table that the seed draws, with 300 steps per episode."""
    # Agents draw by the seed: they must not draw what the table has drawn.
    mdp = make_mdp(np.random.default_rng([seed, 1]))
    return gym.wrappers.TimeLimit(MazeEnv(mdp), 300)


def make_ring(rng: np.random.Generator) -> MDP:
    """Four rooms in a ring whose doors open one way, and a drawn goal."""
    rooms = make_one_way_rooms()
    return rooms.with_task(rooms.start, int(rng.integers(rooms.n_states)))


def make_graph(rng: np.random.Generator, n_states: int = 2000) -> MDP:
    """Every action leads to a drawn state: no action is better than another."""
    successors = rng.integers(n_states, size=(n_states, 4))
    return MDP.from_successors(successors, start=0, goal=n_states - 1)


def make_lock(rng: np.random.Generator, length: int = 60) -> MDP:
    """A combination lock: one drawn action goes on, the others go to the start."""
    successors = np.zeros((length, 4), dtype=np.int64)
    right = rng.integers(4, size=length)
    successors[np.arange(length), right] = np.minimum(np.arange(length) + 1, length - 1)
    return MDP.from_successors(successors, start=0, goal=length - 1)


def make_decoy(rng: np.random.Generator, size: int = 12) -> MDP:
    """A large room, and an action that leads from one cell to the goal.

    >>> make_decoy(np.random.default_rng(0), 3).n_states
    10
    """
    room = maze("\n".join(["." * size] * size))
    assert room.successors is not None
    stay = np.arange(room.n_states)[:, None]
    successors = np.hstack([room.successors, stay])
    goal = room.n_states
    successors = np.vstack([successors, np.full(5, goal)])
    successors[rng.integers(goal), 4] = goal
    return MDP.from_successors(successors, start=int(rng.integers(goal)), goal=goal)


TASKS = {
    "LavaGapS7": Task(partial(make_grid, name="MiniGrid-LavaGapS7-v0"), 3000),
    "Unlock": Task(partial(make_grid, name="MiniGrid-Unlock-v0"), 5000),
    "Dynamic-Obstacles": Task(
        partial(make_grid, name="MiniGrid-Dynamic-Obstacles-6x6-v0"), 3000
    ),
    "BabyAI-OpenDoor": Task(partial(make_grid, name="BabyAI-OpenDoor-v0"), 4000),
    "BabyAI-GoToObj": Task(partial(make_grid, name="BabyAI-GoToObj-v0"), 4000),
    "FrozenLake8x8": Task(partial(make_gymnasium, name="FrozenLake8x8-v1"), 10_000),
    "Blackjack": Task(partial(make_gymnasium, name="Blackjack-v1"), 4000),
    "ring of one-way doors": Task(partial(make_table, make_mdp=make_ring), 8000),
    "random graph": Task(partial(make_table, make_mdp=make_graph), 9000),
    "combination lock": Task(partial(make_table, make_mdp=make_lock), 12_000),
    "decoy room": Task(partial(make_table, make_mdp=make_decoy), 8000),
}


def run(lab: Lab) -> pd.DataFrame:
    """Return one row per task, way and seed."""
    seeds = SEEDS[:1] if lab.quick else SEEDS
    jobs = []
    for task, way in product(TASKS, WAYS):
        if way != "explore, pose" or is_grid(task):
            jobs += [{"task": task, "way": way, "seed": seed} for seed in seeds]
    return pd.DataFrame(lab.pmap(find_reward, jobs))


def is_grid(task: str) -> bool:
    """Whether a task shows a view, from which a pose can be told."""
    env = TASKS[task].make(0)
    return hasattr(env.observation_space, "spaces") and "image" in env.reset()[0]


def find_reward(task: str, way: str, seed: int) -> dict[str, Any]:
    """Explore in a way until the first reward: its step, or the budget.

    >>> find_reward("combination lock", "explore", 0)["first_reward"] < 12_000
    True
    """
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)
    make, steps = TASKS[task]
    budget = Budget(make(seed), steps)
    budget.action_space.seed(seed)
    walk(budget, way, seed)
    return {
        "task": task,
        "way": way,
        "seed": seed,
        "budget": steps,
        "first_reward": budget.first_goal,
    }


def walk(budget: Budget, way: str, seed: int) -> None:
    """Take the steps of a way until the first reward or the end of the budget."""
    with suppress(BudgetSpentError):
        if way.startswith("explore"):
            key = "pose" if way == "explore, pose" else None
            explorer = Explorer(budget, key=key, seed=seed, rng=seed)
            while not budget.goals:
                explorer.step()
            return
        env = StateNumber(budget, max_states=1_000_000)
        if way == "own search":
            OwnSearch(env, seed).explore(lambda: budget.goals > 0)
        elif way == "count bonus":
            count(env, budget, seed)
        else:
            wander(env, budget, seed)


def wander(env: Env, budget: Budget, seed: int) -> None:
    """Act at random."""
    env.reset(seed=seed)
    while not budget.goals:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()


def count(env: Env, budget: Budget, seed: int) -> None:
    """Greedy Q-learning with the arena's strong count bonus, 0.0001 / n."""
    rng = np.random.default_rng(seed)
    n_actions = int(env.action_space.n)  # type: ignore[attr-defined]
    # As in the arena: what the first bonus would be worth in every step.
    first_value = 0.0001 / (1.0 - 0.999)
    values: defaultdict[Hashable, Any] = defaultdict(
        lambda: np.full(n_actions, first_value)
    )
    visits: Counter[Hashable] = Counter()
    state, _ = env.reset(seed=seed)
    while not budget.goals:
        best = np.flatnonzero(values[state] == values[state].max())
        action = int(rng.choice(best))
        new, reward, terminated, truncated, _ = env.step(action)
        visits[new] += 1
        ahead = 0.0 if terminated else 0.999 * values[new].max()
        values[state][action] = reward + 0.0001 / visits[new] + ahead
        state = new
        if terminated or truncated:
            state, _ = env.reset()


def tabulate(runs: pd.DataFrame) -> str:
    """Mean step of the first reward, and in how many runs it was found, as Markdown."""
    rows = []
    for task, budget in runs.groupby("task", sort=False).budget.first().items():
        cells = []
        for way in WAYS:
            chosen = runs[(runs.task == task) & (runs.way == way)]
            n_found = int((chosen.first_reward < chosen.budget).sum())
            cell = f"{chosen.first_reward.mean():,.0f} ({n_found})"
            cells.append(cell if len(chosen) else "")
        rows.append([f"{task}, {budget:,} steps", *cells])
    return make_markdown(["task", *WAYS], rows)
