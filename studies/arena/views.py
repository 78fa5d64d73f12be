"""MiniGrid's views as states: how many true states each way to explore sees.

The agent's view shows 7 x 7 cells and not all of the state, so that it is not Markov.
Every run has a layout of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eigenoptions.envs import FixedSeed
from eigenoptions.envs.families import find_family
from eigenoptions.explore.explorer import Explorer
from reproduction.lab import Job, Lab

# Steps of a run in each environment.
STEPS = {"FourRooms": 2000, "MultiRoom-N6": 4000}
LAYOUTS = range(40, 50)


# The key of `explore` in each of its columns.
KEYS = {"explore, view": "observation", "explore, pose": "pose", "explore, state": None}
WAYS = ("random actions", "count bonus", "strong count bonus", *KEYS)


class TrueStates(gym.Wrapper[Any, Any, Any, Any]):
    """Notes the true states that are seen, whatever the agent observes."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.seen: set[Hashable] = set()

    def reset(self, **settings: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        obs, info = self.env.reset(**settings)
        self._note(obs)
        return obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._note(obs)
        return obs, reward, terminated, truncated, info

    def _note(self, obs: Any) -> None:
        family = find_family(self.env)
        self.seen.add(family.identify_state(self.env.unwrapped, obs))


class Bonus(NamedTuple):
    """The settings of a count bonus of views."""

    bonus: float
    alpha: float = 0.5
    gamma: float = 0.99
    decay: float = 0.5
    epsilon: float = 0.05


def walk_at_random(env: gym.Env[Any, Any], steps: int, seed: int) -> None:
    """Take random actions."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    for _ in range(steps):
        action = int(rng.integers(env.action_space.n))  # type: ignore[attr-defined]
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()


def walk_by_counts(
    env: gym.Env[Any, Any], steps: int, seed: int, settings: Bonus
) -> None:
    """Learn by Q-learning with a bonus for views that were seldom seen."""
    rng = np.random.default_rng(seed)
    n_actions = int(env.action_space.n)  # type: ignore[attr-defined]
    first_value = settings.bonus / (1.0 - settings.gamma)
    values: dict[bytes, NDArray[np.float64]] = {}
    visits: dict[bytes, int] = {}

    def find_values(view: bytes) -> NDArray[np.float64]:
        return values.setdefault(view, np.full(n_actions, first_value))

    obs, _ = env.reset(seed=seed)
    view = _hash_view(env, obs)
    for _ in range(steps):
        row = find_values(view)
        action = int(rng.choice(np.flatnonzero(row == row.max())))
        if rng.random() < settings.epsilon:
            action = int(rng.integers(n_actions))
        obs, _, terminated, truncated, _ = env.step(action)
        after = _hash_view(env, obs)
        visits[after] = visits.get(after, 0) + 1
        target = settings.bonus / visits[after] ** settings.decay
        if not terminated:
            target += settings.gamma * find_values(after).max()
        row[action] += settings.alpha * (target - row[action])
        view = after
        if terminated or truncated:
            obs, _ = env.reset()
            view = _hash_view(env, obs)


def _hash_view(env: gym.Env[Any, Any], obs: dict[str, Any]) -> bytes:
    """Return what the agent sees and carries, as bytes."""
    has_object: bool = env.unwrapped.carrying is not None  # type: ignore[attr-defined]
    return obs["image"].tobytes() + bytes([int(obs["direction"]), has_object])


def walk_to_the_unknown(
    env: gym.Env[Any, Any], steps: int, seed: int, layout: int, key: str | None
) -> None:
    """Explore as `explore` does."""
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)
    explorer = Explorer(env, key=key, seed=layout, rng=seed)
    for _ in range(steps):
        explorer.step()


def count_states(name: str, way: str, layout: int) -> int:
    """Return how many true states a run sees.

    Parameters
    ----------
    name : str
        Name of the environment, as in `STEPS`.
    way : str
        One of `WAYS`.
    layout : int
        Seed of the layout and of the run.
    """
    env = TrueStates(FixedSeed(gym.make(f"minigrid:MiniGrid-{name}-v0"), layout))
    steps = STEPS[name]
    if way == "random actions":
        walk_at_random(env, steps, layout)
    elif way == "count bonus":
        walk_by_counts(env, steps, layout, Bonus(0.0001))
    elif way == "strong count bonus":
        strong = Bonus(0.0001, alpha=1.0, gamma=0.999, decay=1.0, epsilon=0.0)
        walk_by_counts(env, steps, layout, strong)
    else:
        walk_to_the_unknown(env, steps, layout, layout, KEYS[way])
    return len(env.seen)


def run(lab: Lab) -> pd.DataFrame:
    """Return one row per environment, way and layout."""
    jobs = []
    layouts = LAYOUTS[:1] if lab.quick else LAYOUTS
    for name in STEPS:
        for way in WAYS:
            for layout in layouts:
                columns = {"env": name, "way": way, "layout": layout}
                arguments = {"name": name, "way": way, "layout": layout}
                jobs.append(Job(count_states, arguments, columns))
    results = lab.run({"views": jobs})["views"]
    return pd.DataFrame(
        [{**result.columns, "states": result.value} for result in results]
    )
