"""What is of the wrong kind is refused in one line that says what is taken."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from pickle import dumps

import gymnasium as gym
import numba
import numpy as np
import pytest
from scipy.sparse import coo_array

import eigenoptions as eo
from eigenoptions.discovery.hierarchy import mdp_with_options
from eigenoptions.evaluation import mean_interval
from eigenoptions.samples.features import Fourier, Raw
from eigenoptions.samples.incidence import feature_spectrum, incidence
from eigenoptions.samples.walking import walk
from eigenoptions.studio import write_studio

MDP = eo.maze("i-maze")


def make_vector() -> eo.OptionsVectorWrapper:
    env = gym.make_vec("eigenoptions/IMaze-v0", num_envs=2, vectorization_mode="sync")
    return eo.OptionsVectorWrapper(env, eo.discover(MDP, 2))


W = eo.graph(MDP)

ENDLESS: list[object] = []
ENDLESS.append(ENDLESS)
PLACES = np.random.default_rng(0).random((200, 2))
LOG = (PLACES[:-1], np.arange(199) % 2, PLACES[1:])


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: eo.graph(W), "MDP"),
        (lambda: eo.solve("four-rooms", []), "MDP"),
        (lambda: eo.discover(MDP, 2)[0].act(-1), "state"),
        (lambda: eo.discover(MDP, 2).check("x"), "environment"),
        (lambda: incidence("x", lambda obs: obs), "Transitions"),
        (lambda: walk("x", 3), "MDP"),
        (lambda: eo.MDP.from_transitions(([0], [0], [1]), n_states=0), "n_states"),
        (lambda: eo.MDP.from_transitions(([0], [0], [1]), n_actions="a"), "n_actions"),
        (lambda: eo.MDP(np.eye(3), weights="abc"), "weights"),
        (lambda: eo.MDP(np.eye(3), weights=np.eye(4)), "weights"),
        (lambda: eo.MDP(np.eye(3), states=5), "states"),
        (lambda: eo.MDP(np.eye(3), states="abc"), "states"),
        (lambda: eo.MDP(np.eye(3), states=["a", "b"]), "3 entries"),
        (lambda: eo.MDP(np.eye(3), states=["a", "b", "a"]), "'a' 2 times"),
        (lambda: eo.MDP(np.eye(3), states=np.array(3)), "states"),
        (lambda: eo.MDP(np.eye(3), reward=["a", "b", "c"]), "reward"),
        (lambda: eo.MDP(np.eye(3), positions=[[1], [1, 2]]), "positions"),
        (lambda: eo.MDP(np.eye(3), name=3), "name"),
        (lambda: eo.MDP(np.eye(3), recognition=[1]), "recognition"),
        (lambda: eo.MDP.from_successors([[0], [0, 1]]), "successors"),
        (lambda: eo.discover(MDP, 2, method=np.zeros(3)), "method"),
        (lambda: eo.discover(LOG, 2, features=np.zeros(3)), "features"),
        (lambda: eo.discover(MDP, 2, gamma=10**400), "gamma"),
        (lambda: eo.discover(MDP, 2, gamma=1 - 1e-13), "got 1 - 1e-13"),
        (lambda: eo.Purpose([0.0], sign=np.zeros((9, 9))), "sign"),
        (lambda: eo.Purpose(["a"]), "potential"),
        (lambda: eo.Purpose([0.0], eigenvalue=[1, 2]), "eigenvalue"),
        (lambda: eo.solve(MDP, MDP), "purposes"),
        (lambda: eo.solve(MDP, [], provenance=5), "provenance"),
        (lambda: eo.OptionSet(MDP, np.zeros((1, 19), int), purposes=3), "purposes"),
        (lambda: eo.discover(MDP, 2)[[0.5]], "mask"),
        (lambda: eo.discover(MDP, 2)[0].act(np.zeros(2, int)), "state"),
        (lambda: eo.discover(MDP, 2).save(5), "path"),
        (lambda: eo.discover(MDP, 2).save("\ud800"), "cannot write"),
        (lambda: eo.load_options(5), "path"),
        (lambda: eo.diffusion_time(MDP, option_chance="often"), '"auto"'),
        (lambda: mean_interval([1.0, 2.0], confidence=1.0), "confidence"),
        (lambda: mean_interval("abc"), "samples"),
        (lambda: eo.Transitions.of(()), "parts"),
        (lambda: eo.collect(lambda: None, 5), "must return one"),
        (lambda: eo.explore(lambda: None, 5), "must return one"),
        (lambda: eo.explore("eigenoptions/IMaze-v0", 5, known=3), "known"),
        (lambda: eo.collect("eigenoptions/IMaze-v0", 5, features=[1]), "features"),
        (lambda: eo.Planner(LOG).act(np.zeros((20, 20)), [0, 0]), "finite"),
        (lambda: eo.Planner(LOG).act("here", [0, 0]), "finite"),
        (lambda: incidence(eo.Transitions.of(LOG), 5), "features"),
        (lambda: incidence(5, Raw()), "transitions"),
        (lambda: eo.collect(MDP, 9, n_envs=10**9), r"1\.\.9"),
        (lambda: eo.discover(MDP, 2, "random", rng=[ENDLESS]), "rng"),
        (lambda: eo.parallel.run_jobs(5, [1]), "function"),
        (lambda: eo.parallel.run_jobs(abs, 5), "jobs"),
        (lambda: eo.parallel.run_jobs(abs, [1], shared=5), "shared"),
        (lambda: write_studio(5), "folder"),
        (lambda: make_vector().reset(options=5), "options"),
        (
            lambda: eo.OptionsWrapper(gym.make("eigenoptions/IMaze-v0"), 17),
            "OptionSet",
        ),
    ],
)
def test_call_with_the_wrong_kind_says_what_is_needed(call, word):
    with pytest.raises((TypeError, ValueError, IndexError), match=word) as caught:
        call()
    assert "\n" not in str(caught.value)


class Careless(gym.Env):
    """An environment that returns one value as its reward."""

    def __init__(self, reward):
        self.observation_space = gym.spaces.Discrete(2)
        self.action_space = gym.spaces.Discrete(2)
        self.reward = reward

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return int(action), self.reward, False, False, {}


@pytest.mark.parametrize("reward", [None, "much", float("nan"), np.float32("nan")])
def test_reward_that_is_no_number_is_refused(reward):
    for act in (eo.collect, eo.explore):
        with pytest.raises(TypeError, match=r"reward.*correct its step") as caught:
            act(Careless(reward), 20)
        assert "\n" not in str(caught.value)
    for reward in (1, np.float32(1), np.array(1.0), np.inf):
        assert len(eo.explore(Careless(reward), 9).transitions) == 9


def test_name_of_an_environment_does_not_control_the_terminal():
    with pytest.raises(ValueError, match="no environment") as caught:
        eo.from_env("\x1b[31mred")
    assert "\x1b" not in str(caught.value)


def test_wrapper_refuses_options_of_another_environment() -> None:
    car = eo.discover("MountainCar-v0", 2, steps=2000)
    with pytest.raises(ValueError, match="another environment"):
        eo.OptionsWrapper(gym.make("CartPole-v1"), car)


def test_no_folder_for_compiled_code_is_no_obstacle(tmp_path: Path) -> None:
    source = Path(eo.__file__).parent
    shutil.copytree(
        source, tmp_path / "eigenoptions", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "eigenoptions" / "_kernels" / "__pycache__").write_text("in the way")
    env = {
        k: v
        for k, v in os.environ.items()
        if k not in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
    }
    env |= {
        "HOME": "/proc/nowhere",
        "PYTHONPATH": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }
    work = (
        "import eigenoptions as eo; "
        "print(eo.__file__, eo.collect(eo.maze('i-maze'), 9, rng=0))"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", work], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path))


def test_damaged_compiled_code_is_compiled_again(tmp_path: Path) -> None:
    work = (
        "import numpy as np; "
        "from eigenoptions._kernels.sweep import raise_arrival_values; "
        "raise_arrival_values("
        "np.zeros((1, 1), int), np.zeros((1, 1)), 0.5, np.zeros((1, 1)))"
    )
    command = [sys.executable, "-c", work]
    # An index that names a type which this version does not have.
    other_version = dumps(numba.__version__) + b"ceigenoptions\nNoSuchType\n."
    for kind, content in (
        ("nbi", b""),
        ("nbi", other_version),
        ("nbi", b"\x80\x04\x95"),
        ("nbc", b"\x80\x04"),
        ("nbc", b""),
    ):
        done = subprocess.run(
            command,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr
        (damaged,) = tmp_path.rglob(f"*.{kind}")
        assert damaged.read_bytes() != content
        damaged.write_bytes(content)


def make_line(n_states: int) -> eo.MDP:
    state = np.arange(n_states)
    left = np.maximum(state - 1, 0)
    right = np.minimum(state + 1, n_states - 1)
    return eo.MDP.from_successors(np.stack([left, right], axis=1), start=0)


def make_one_way_ring(n: int) -> eo.MDP:
    return eo.MDP.from_successors((np.arange(n)[:, None] + 1) % n)


def make_wheel(n_states: int) -> eo.MDP:
    """A ring whose first state has an edge to all others, as weights."""
    ring = np.arange(n_states)
    following = (ring + 1) % n_states
    row = np.concatenate([ring, np.zeros(n_states - 1, dtype=int)])
    column = np.concatenate([following, ring[1:]])
    half = coo_array((np.ones(len(row)), (row, column)), shape=(n_states, n_states))
    mdp = eo.MDP.from_successors(following[:, None])
    return replace(mdp, weights=half + half.T)


def make_wide_data(n_features: int) -> eo.Transitions:
    obs = np.eye(3, n_features)
    return eo.Transitions.of((obs[:-1], [0, 1], obs[1:]))


def discover_walls(line: eo.MDP) -> eo.OptionSet:
    """To the right end, from everywhere: 5 billion passages."""
    policy = np.ones((1, line.n_states), dtype=np.int8)
    policy[0, -1] = eo.TERMINATE
    return eo.OptionSet(line, policy)


def make_slippery_line(n_states: int) -> tuple[eo.MDP, eo.OptionSet]:
    """To the right end, where each step may fail."""
    state = np.arange(n_states)
    right = np.minimum(state + 1, n_states - 1)
    log = (np.tile(state, 2), np.zeros(2 * n_states, int), np.append(state, right))
    mdp = eo.MDP.from_transitions(log)
    policy = np.zeros((1, n_states), dtype=np.int8)
    policy[0, -1] = eo.TERMINATE
    return mdp, eo.OptionSet(mdp, policy)


def make_huge_matrix() -> coo_array:
    """One edge between nodes whose numbers are far apart."""
    n = 10**9
    return coo_array(([1.0], ([0], [n - 1])), shape=(n, n))


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda line: eo.hitting_times(line), "diffusion_estimate"),
        (lambda line: eo.discover(line), "GB"),
        (lambda line: eo.discover(line, 5_000, "random"), "GB"),
        (lambda line: eo.discover(line, 10**9, "covering"), "GB"),
        (lambda line: eo.spectrum(eo.graph(line)), "GB"),
        (lambda line: eo.spectrum(eo.graph(line), k=50_000), "GB"),
        (lambda line: eo.solve(line, [eo.Purpose(np.zeros(10**5))] * 20_000), "18.0"),
        (lambda line: eo.discover(line, 4, "successor-goals"), "4000"),
        (lambda line: eo.discover(line, 4, "neo"), "4000"),
        (lambda line: eo.discover(make_one_way_ring(3_000), 4, "neo"), "2,000"),
        (lambda line: eo.diffusion_time(line), "diffusion_estimate"),
        (lambda line: eo.q_learning(line, goal=9, runs=10**5, episodes=1), "160.0"),
        (lambda line: walk(line, 10**11), "GB"),
        (lambda line: eo.collect(line, 10**12), "GB"),
        (lambda line: eo.maze("open:100000x100000"), "cells"),
        (lambda line: eo.MDP.from_transitions(([0], [0], [10**12])), "rows"),
        (
            lambda line: Fourier((0.0,) * 30_000, (1.0,) * 30_000, 1, 1).frequencies,
            "GB",
        ),
        (
            lambda line: Fourier((0.0,) * 20, (1.0,) * 20, 3, 2)(np.ones((10**6, 20))),
            "GB",
        ),
        (lambda line: eo.discover(make_wheel(30_000), 2, "diffusion"), "GB"),
        (lambda line: eo.discover(make_wheel(30_000), 2, "bottleneck"), "GB"),
        (lambda line: feature_spectrum(make_wide_data(30_000), Raw(), 4), "GB"),
        (lambda line: mdp_with_options(line, discover_walls(line)), "GB"),
        (lambda line: mdp_with_options(*make_slippery_line(60_000)), "GB"),
        (lambda line: eo.from_graph(make_huge_matrix()), "GB"),
        (lambda line: eo.spectrum(make_huge_matrix(), 2), "GB"),
        (lambda line: eo.spectrum(np.broadcast_to(True, (20_000, 20_000)), 2), "GB"),
    ],
)
def test_what_does_not_fit_into_memory_is_refused_before_it_is_tried(call, word):
    line = make_line(100_000)
    with pytest.raises(ValueError, match=word) as caught:
        call(line)
    assert "\n" not in str(caught.value)


def test_a_hub_takes_no_more_memory_than_its_edges() -> None:
    """Not a table of all nodes times the neighbours of the hub, 20 GB."""
    edges = [(0, leaf) for leaf in range(1, 50_001)]
    star = eo.from_graph(edges)
    assert star.n_states < 52_000
    assert star.transition.nnz < 5e6
