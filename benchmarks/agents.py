"""Wrappers: microseconds per primitive step above the bare environment, one and many at a time."""

from __future__ import annotations

from collections.abc import Iterator

import gymnasium as gym
import numpy as np

import eigenoptions as eo
from benchmarks.timing import Row, measure


def time_wrapper(n_steps: int = 20_000) -> Iterator[Row]:
    """Primitive actions through `OptionsWrapper`, and whole options, against the bare environment."""
    for name in ("eigenoptions/FourRooms-v0", "FrozenLake-v1", "CartPole-v1"):
        bare = gym.make(name)
        n_actions = int(bare.action_space.n)  # type: ignore[attr-defined]
        sampled = name == "CartPole-v1"
        options = eo.discover(name, 4, steps=2000) if sampled else eo.discover(name, 8)
        wrapped = eo.OptionsWrapper(gym.make(name), options)

        def run(env: gym.Env, n_actions: int = n_actions) -> float:
            actions = np.random.default_rng(0).integers(n_actions, size=n_steps)
            env.reset(seed=0)

            def steps() -> None:
                for action in actions:
                    _, _, terminated, truncated, _ = env.step(int(action))
                    if terminated or truncated:
                        env.reset()

            return min(measure(steps) for _ in range(3)) / n_steps * 1e6

        ours, theirs = run(wrapped), run(bare)
        yield Row(
            f"{name}, step of a primitive action",
            ours,
            theirs,
            "bare environment",
            "us",
        )


def time_vector_wrapper(n_envs: int = 64, n_steps: int = 300) -> Iterator[Row]:
    """Decisions per second of 64 environments."""
    options = eo.discover("four-rooms", 8)
    env = eo.OptionsVectorWrapper(
        gym.make_vec("eigenoptions/FourRooms-v0", n_envs), options
    )
    env.reset(seed=0)
    env.action_space.seed(0)
    seconds = measure(
        lambda: [env.step(env.action_space.sample()) for _ in range(n_steps)]
    )
    yield Row(
        f"OptionsVectorWrapper, {n_envs} environments, step of one",
        seconds / n_steps / n_envs * 1e6,
        unit="us",
    )
