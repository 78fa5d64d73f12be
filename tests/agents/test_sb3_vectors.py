"""Agents of Stable-Baselines3 begin with what was explored where nothing repeats."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import eigenoptions as eo

pytest.importorskip("stable_baselines3")

from stable_baselines3 import DQN, PPO, SAC

from eigenoptions.agents.sb3 import clone, fill_replay


def test_a_clone_drives_up_the_hill() -> None:
    name = "MountainCar-v0"
    found = eo.explore(name, 1000, until="reward", seed=40)
    agent = PPO("MlpPolicy", name, seed=0, device="cpu")
    cloned = clone(agent, found, steps=1500, learning_rate=0.003, min_accuracy=0.5)
    assert cloned.accuracy > 0.7

    env = gym.make(name)
    n_won = 0
    for seed in range(5):
        obs, _ = env.reset(seed=9000 + seed)
        terminated = truncated = False
        while not (terminated or truncated):
            action, _ = agent.predict(obs, deterministic=True)
            obs, _, terminated, truncated, _ = env.step(int(action))
        n_won += terminated
    assert n_won >= 3


@pytest.mark.parametrize(
    ("kind", "name"), [(DQN, "MountainCar-v0"), (SAC, "MountainCarContinuous-v0")]
)
def test_a_buffer_holds_the_steps(kind: type, name: str) -> None:
    found = eo.explore(name, 200, seed=0)
    agent = kind("MlpPolicy", name, seed=0, device="cpu", learning_starts=0)
    assert fill_replay(agent, found) == 200
    buffer = agent.replay_buffer
    assert np.allclose(buffer.observations[:200, 0], found.transitions.obs)
    assert np.allclose(buffer.next_observations[:200, 0], found.transitions.next_obs)
    actions = buffer.actions[:200, 0]
    assert np.array_equal(actions.reshape(-1), found.transitions.action.reshape(-1))
