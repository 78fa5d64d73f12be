"""A smoke suite for ``make test-oldest``: every dependency is used once, at the lowest version that we declare.

The versions are in tests/oldest.txt. Each test is one thing that users do; numbers are those of the contracts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from importlib.metadata import version
from importlib.util import find_spec

import gymnasium as gym
import httpx
import numpy as np
import pytest
import uvicorn
from tests.test_floors import oldest

import eigenoptions as eo
from eigenoptions.studio import app
from eigenoptions.studio.server import listen


def run(*command: str, timeout: float = 600) -> str:
    """Standard output of the command line, in a process of its own, where every warning is an error."""
    environment = {**os.environ, "PYTHONWARNINGS": "error::DeprecationWarning:eigenoptions"}
    done = subprocess.run(
        [sys.executable, "-m", "eigenoptions", *command],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return done.stdout


@pytest.mark.skipif("EIGENOPTIONS_OLDEST" not in os.environ, reason="only in the venv of make test-oldest")
@pytest.mark.parametrize("name", sorted(oldest()))
def test_the_oldest_version_is_installed(name):
    assert version(name).split("+")[0] == oldest()[name]


def test_the_pipeline(tmp_path):
    mdp = eo.maze("four-rooms")
    options = eo.discover(mdp, 8)
    assert round(eo.diffusion_time(mdp), 3) == 620.769
    assert options.labels[0] == "e2+"
    options.save(tmp_path / "skills.safetensors")
    np.testing.assert_array_equal(eo.load_options(tmp_path / "skills.safetensors").policy, options.policy)
    W = eo.graph(eo.maze("rooms:3x3"))
    sparse, dense = (eo.spectrum(W, 6, solver=solver) for solver in ("sparse", "dense"))
    np.testing.assert_allclose(sparse.vectors, dense.vectors, atol=1e-9)
    assert eo.q_learning(mdp, options, runs=4, episodes=20, rng=0).returns.shape == (4, 20)
    assert eo.diffusion_estimate(mdp, options, walks=10, rng=0).low > 0


@pytest.mark.parametrize("method", [m for m in eo.methods() if m != "reward-aware"])
def test_every_method(method):
    assert len(eo.discover("four-rooms", 2, method)) >= 1


def test_environments_and_agents():
    assert eo.from_env("FrozenLake-v1").n_states == 16
    env = eo.OptionsWrapper(gym.make("eigenoptions/FourRooms-v0"), eo.discover("four-rooms", 4))
    env.reset(seed=0)
    env.action_space.seed(0)
    assert env.step(env.action_space.sample())[4]["duration"] >= 1
    seen = eo.collect("MountainCar-v0", 300, rng=0)
    assert eo.discover(seen, n_options=2, features="fourier").labels[0] == "e2+"
    pytest.importorskip("minigrid")
    assert eo.from_env("MiniGrid-Empty-5x5-v0").n_states > 9


def test_pictures(tmp_path):
    eo.plots.save(eo.plots.options(eo.discover("four-rooms", 4)), tmp_path / "options.svg")
    assert (tmp_path / "options.svg").stat().st_size > 1000


def test_the_command_line(tmp_path):
    assert "reproduce" in run("--help")
    assert "four-rooms" in run("mazes")
    assert "e2+" in run("discover", "four-rooms", "-n", "4", "--out", str(tmp_path / "skills"))
    assert "e2+" in run("show", str(tmp_path / "skills" / "options.safetensors"))
    assert json.loads(run("diffusion", "i-maze", "-n", "2", "--json"))
    assert json.loads(run("learn", "i-maze", "--runs", "2", "--episodes", "5", "--json"))
    report = ("reproduce", "--settings", "quick", "--only", "figure2", "--out", str(tmp_path / "report"))
    run(*report, "--engine", "processes", "--workers", "2")
    assert (tmp_path / "report" / "index.html").exists()


def test_the_studio():
    with listen("127.0.0.1", 0) as listener:
        server = uvicorn.Server(uvicorn.Config(app(), log_level="critical", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with httpx.Client(
                base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=300
            ) as client:
                assert "<html" in client.get("/").text
                answer = client.post("/api/options", json={"map": "S...\n.#..\n...G", "n_options": 4})
                assert answer.status_code == 200
        finally:
            server.should_exit = True
            thread.join()


@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_engines(engine):
    if engine == "ray" and find_spec("ray") is None:
        pytest.skip("ray is not installed")
    assert eo.parallel.pmap(abs, [-1, 2, -3], engine=engine, workers=2) == [1, 2, 3]


def test_games():
    pytest.importorskip("ale_py")
    starts = eo.atari.find_starts("Freeway", n=2, bursts=10)
    gram = eo.atari.collect("Freeway", starts, n=500, longest=400)
    assert (gram.n_features, gram.n_transitions) == (1024, 1003)


def test_stable_baselines():
    pytest.importorskip("sb3_contrib")
    from eigenoptions.envs.sb3 import OptionsDQN

    env = gym.make("eigenoptions/FourRooms-v0", max_episode_steps=50)
    env = eo.OptionsWrapper(env, eo.discover("four-rooms", 4), gamma=0.9, record_steps=True)
    agent = OptionsDQN("MlpPolicy", env, gamma=0.9, learning_starts=8, seed=0).learn(16)
    assert agent.replay_buffer.size() >= 16


def test_learned_features():
    pytest.importorskip("torch")
    seen = eo.collect("MountainCar-v0", 600, rng=0)
    assert eo.deep.learn(seen, k=2, steps=5, rng=0).vectors.shape[1] == 2
