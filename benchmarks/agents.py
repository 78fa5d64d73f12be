"""Wrappers: microseconds per step, beside those of the bare environment."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

import eigenoptions as eo
from benchmarks.timing import Row, measure, measure_best
from eigenoptions.envs import MazeEnv
from studies.arena.tasks import make_task


def time_wrapper(n_steps: int = 20_000) -> Iterator[Row]:
    """Time primitive actions through `OptionsWrapper`."""
    options_by_env = {
        "eigenoptions/FourRooms-v0": eo.discover("eigenoptions/FourRooms-v0", 8),
        "FrozenLake-v1": eo.discover("FrozenLake-v1", 8),
        "CartPole-v1": eo.discover("CartPole-v1", 4, steps=2000),
    }
    for name, options in options_by_env.items():
        bare = gym.make(name)
        wrapped = eo.OptionsWrapper(gym.make(name), options)
        actions = _draw_actions(bare, n_steps)
        yield Row(
            f"{name}, step of a primitive action",
            _time_step(wrapped, actions),
            _time_step(bare, actions),
            rival="bare environment",
            unit="us",
        )


def _draw_actions(env: gym.Env[Any, Any], n_steps: int) -> list[int]:
    assert isinstance(env.action_space, gym.spaces.Discrete)
    rng = np.random.default_rng(0)
    actions: list[int] = rng.integers(int(env.action_space.n), size=n_steps).tolist()
    return actions


def _time_step(env: gym.Env[Any, Any], actions: list[int]) -> float:
    """Measure the microseconds of a step."""

    def take_steps() -> None:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    env.reset(seed=0)
    return measure_best(take_steps, rounds=3) / len(actions) * 1e6


def time_vector_wrapper(n_envs: int = 64, n_steps: int = 300) -> Iterator[Row]:
    """Time random decisions in many environments at once."""
    options = eo.discover("four-rooms", 8)
    bare = gym.make_vec("eigenoptions/FourRooms-v0", n_envs)
    envs = eo.OptionsVectorWrapper(bare, options)
    envs.reset(seed=0)
    envs.action_space.seed(0)

    def take_steps() -> None:
        for _ in range(n_steps):
            envs.step(envs.action_space.sample())

    yield Row(
        f"OptionsVectorWrapper, {n_envs} environments, step of one",
        measure(take_steps) / n_steps / n_envs * 1e6,
        unit="us",
    )


def time_explore(max_steps: int = 20_000) -> Iterator[Row]:
    """Time a step of `explore`, that of the environment, a table, included."""
    for name in ("FourRooms", "slippery rooms", "DoorKey"):
        task = make_task(name)
        n_states = len(task.states)
        n_steps = min(4 * n_states, max_steps)
        explore = partial(eo.explore, MazeEnv(task.mdp), n_steps, seed=0, rng=0)
        yield Row(
            f"explore, {name}, {n_states:,} states, a step",
            1e3 * measure(explore) / n_steps,
            unit="ms",
        )
