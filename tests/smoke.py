"""A smoke suite for ``make test-oldest`` and ``make test-newest``.

Every dependency is used once.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import eigenoptions as eo


def test_pipeline(tmp_path: Path) -> None:
    mdp = eo.maze("four-rooms")
    options = eo.discover(mdp, 8)
    assert round(eo.diffusion_time(mdp), 3) == 620.769
    options.save(tmp_path / "skills.safetensors")
    np.testing.assert_array_equal(
        eo.load_options(tmp_path / "skills.safetensors").policy, options.policy
    )
    assert eo.q_learning(mdp, options, runs=4, episodes=20, rng=0).returns.shape == (
        4,
        20,
    )
    assert eo.spectrum(eo.graph(eo.maze("rooms:3x3")), 6).n_zero == 1


@pytest.mark.parametrize("method", [m for m in eo.methods() if m != "reward-aware"])
def test_method(method: str) -> None:
    assert len(eo.discover("four-rooms", 2, method)) >= 1


def test_environments_and_agents() -> None:
    assert eo.from_env("FrozenLake-v1").n_states == 16
    env = eo.OptionsWrapper(
        gym.make("eigenoptions/FourRooms-v0"), eo.discover("four-rooms", 4)
    )
    env.reset(seed=0)
    env.action_space.seed(0)
    assert env.step(env.action_space.sample())[4]["duration"] >= 1
    transitions = eo.collect("MountainCar-v0", 300, rng=0)
    assert eo.discover(transitions, n_options=2, features="fourier").labels[0] == "e2+"
    pytest.importorskip("minigrid")
    assert eo.from_env("MiniGrid-Empty-5x5-v0").n_states > 9


def test_command_line(tmp_path: Path) -> None:
    for command in (
        ["mazes"],
        ["discover", "four-rooms", "-n", "4", "--out", "skills"],
        ["diffusion", "i-maze"],
    ):
        subprocess.run(
            [sys.executable, "-m", "eigenoptions", *command], cwd=tmp_path, check=True
        )


@pytest.mark.parametrize("engine", ["serial", "processes", "ray"])
def test_engine(engine: str) -> None:
    if engine == "ray":
        pytest.importorskip("ray")
    with eo.parallel.using(engine, workers=2):
        assert eo.parallel.run_jobs(abs, [-1, 2, -3]) == [1, 2, 3]


def test_atari() -> None:
    pytest.importorskip("ale_py")
    assert eo.atari.Emulator("Freeway").ram().shape == (128,)


def test_stable_baselines() -> None:
    pytest.importorskip("sb3_contrib")
    from eigenoptions.agents.sb3 import OptionsDQN

    env = gym.make("eigenoptions/FourRooms-v0", max_episode_steps=50)
    env = eo.OptionsWrapper(env, eo.discover("four-rooms", 4), gamma=0.9)
    agent = OptionsDQN("MlpPolicy", env, gamma=0.9, learning_starts=8, seed=0).learn(16)
    assert agent.replay_buffer.size() >= 16


def test_learned_features() -> None:
    pytest.importorskip("torch")
    transitions = eo.collect("MountainCar-v0", 600, rng=0)
    assert eo.deep.learn(transitions, k=2, steps=5, rng=0).vectors.shape[1] == 2
