"""`StateNumber`: the number of the present state as the agent's observation."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.envs import FixedSeed, MazeEnv, StateNumber


def walk(env: gym.Env[Any, Any], n_steps: int, seed: int = 0) -> list[int]:
    """Return the observations of a random walk."""
    rng = np.random.default_rng(seed)
    observations = [env.reset(seed=seed)[0]]
    for _ in range(n_steps):
        obs, _, terminated, truncated, _ = env.step(rng.integers(env.action_space.n))
        observations.append(obs)
        if terminated or truncated:
            observations.append(env.reset()[0])
    return observations


def test_equal_states_have_equal_numbers_in_order_of_the_first_visit() -> None:
    maze = eo.maze("four-rooms")
    states = walk(MazeEnv(maze), 200)
    numbers = walk(StateNumber(MazeEnv(maze)), 200)
    assert len(set(zip(states, numbers, strict=True))) == len(set(states))
    assert list(dict.fromkeys(numbers)) == list(range(len(set(states))))


def make_grid(numbers: Any = None) -> StateNumber:
    grid = gym.make("minigrid:MiniGrid-FourRooms-v0")
    return StateNumber(FixedSeed(grid, 3), key="pose", numbers=numbers)


def test_a_second_environment_shares_the_numbers() -> None:
    env = make_grid()
    first = walk(env, 300)
    same = make_grid(env.numbers)
    # Without the numbers of the first, another walk would count from its own start.
    walk(same, 300, seed=1)
    assert walk(same, 300) == first
    assert same.numbers is env.numbers


def test_what_is_found_has_the_numbers_that_the_agent_sees() -> None:
    env = make_grid()
    found = eo.explore(env, 2000, key="observation", until="reward")
    assert len(found.rewarded)
    # The option to the reward reads numbers, also in another environment.
    way = eo.OptionsWrapper(make_grid(env.numbers), found.option())
    way.reset(seed=5)
    _, reward, terminated, _, _ = way.step(way.action_space.n - 1)
    assert reward > 0
    assert terminated


def test_more_states_than_the_space_are_refused() -> None:
    env = StateNumber(MazeEnv("four-rooms"), max_states=5)
    with pytest.raises(ValueError, match="max_states"):
        walk(env, 200)


def test_numbers_are_observations_of_the_space() -> None:
    env = make_grid()
    assert all(env.observation_space.contains(number) for number in walk(env, 50))
