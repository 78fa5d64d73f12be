"""Options in a feature space: learned values, look-ahead in copies, files.

Also further termination, and what runs the options.
"""

from __future__ import annotations

import threading
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions.envs import MazeEnv, OptionsWrapper
from eigenoptions.options import TERMINATE, Purpose, eigenpurposes
from eigenoptions.options.solver import solve
from eigenoptions.samples import Transitions
from eigenoptions.samples.collection import collect, run_options
from eigenoptions.samples.features import Fourier, OneHot, Raw, Tiles
from eigenoptions.samples.fitting import fit, prepare_ridge_regression
from eigenoptions.samples.incidence import feature_spectrum
from eigenoptions.samples.linear import LinearOptionSet
from tests.tables import list_transitions

CONTROL = ["MountainCar-v0", "CartPole-v1", "Acrobot-v1"]
UP = [Purpose([1.0], "up")]


def one_hot(n: int) -> Any:
    """One-hot features of a batch of state numbers."""
    return lambda obs: np.eye(n)[np.asarray(obs).ravel()]


@pytest.fixture
def options() -> LinearOptionSet:
    """Four options with random weights."""
    rng = np.random.default_rng(0)
    values = zip(("e1+", "e1-", "e2+", "e2-"), (0.1, 0.1, np.nan, 0.2), strict=True)
    purposes = [
        Purpose(rng.standard_normal(9), name, eigenvalue=value)
        for name, value in values
    ]
    phi = Fourier((0.0, 0.0), (1.0, 1.0), order=2)
    weights = rng.standard_normal((4, 3, 9))
    return LinearOptionSet(
        purposes, phi, 3, weights, threshold=np.full(4, 0.1), provenance={"gamma": 0.9}
    )


# Fitting


@pytest.mark.parametrize("shape", [(5, 30), (30, 5), (12, 12)])
def test_ridge_regression_solves_the_normal_equations(shape):
    rng = np.random.default_rng(0)
    psi = rng.normal(size=shape)
    target = rng.normal(size=(shape[0], 2))
    penalty = (1e-3 + 1e-12) * (psi**2).sum() / shape[1]
    exact = np.linalg.solve(psi.T @ psi + penalty * np.eye(shape[1]), psi.T @ target)
    for inputs in (psi, csr_array(psi)):
        weights = prepare_ridge_regression(inputs, 1e-3)(target)
        np.testing.assert_allclose(weights, exact, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8])
def test_ridge_regression_takes_bits_and_bytes_as_numbers(dtype):
    rng = np.random.default_rng(0)
    psi = rng.integers(0, 255, size=(20, 8)).astype(dtype)
    target = rng.normal(size=(20, 2))
    exact = prepare_ridge_regression(psi.astype(np.float64), 1e-3)(target)
    for inputs in (psi, csr_array(psi)):
        weights = prepare_ridge_regression(inputs, 1e-3)(target)
        np.testing.assert_allclose(weights, exact, rtol=1e-8, atol=1e-10)


def test_fit_on_one_hot_features_finds_the_exact_policies(domain):
    """With all transitions and a feature per state, it is value iteration."""
    purposes = eigenpurposes(eo.spectrum(eo.graph(domain), 4))
    learned = fit(
        list_transitions(domain),
        purposes,
        OneHot(domain.n_states),
        n_actions=4,
        gamma=0.9,
        iterations=2000,
        ridge=0.0,
        stop=1e-9,
        parts=1,
    )
    exact = solve(domain, purposes, gamma=0.9)
    states = np.arange(domain.n_states)
    values = learned.values(states).max(axis=2).clip(0)
    # The top of f is cut at one in a thousand.
    np.testing.assert_allclose(values, exact.value, atol=2e-3)
    # What differs are ties, which fitted values break by rounding.
    assert (learned.actions(states) == exact.policy).mean() > 0.95


def test_fit_never_chooses_an_untried_action():
    x = np.linspace(0, 1, 50)[:, None]
    batch = Transitions(x[:-1], np.ones(49, dtype=int), x[1:], np.zeros(49, dtype=bool))
    up = fit(batch, UP, Raw(), n_actions=3, gamma=0.5)
    assert set(up.actions(x).ravel().tolist()) <= {1, TERMINATE}


def test_fit_expects_nothing_after_the_end_of_an_episode():
    x = np.array([[0.0], [1.0], [2.0]] * 4)
    batch = Transitions(
        x, np.zeros(12, dtype=int), x + 1, np.tile([False, False, True], 4)
    )
    phi = Tiles((0.0,), (3.0,), tiles=3, tilings=1)
    options = fit(batch, UP, Raw(), basis=phi, gamma=0.5, ridge=0.0, parts=1)
    q = options.values([[0.0], [1.0], [2.0]])
    # Values rise by thousandths of the range.
    np.testing.assert_allclose(q.ravel(), [1.75, 1.5, 1.0], atol=3e-3)


def test_fit_with_wrong_arguments_is_refused():
    x = np.zeros((4, 1))
    action = np.zeros(4, dtype=int)
    terminated = np.zeros(4, dtype=bool)
    batch = Transitions(x, action, x, terminated)
    for arguments, word in (
        ({"gamma": 1.0}, "gamma"),
        ({"ridge": -1}, "ridge"),
        ({"parts": 0}, "parts"),
        ({"purposes": []}, "purposes"),
        ({"purposes": [Purpose(np.ones(3))]}, "features"),
        ({"n_actions": 0}, "actions"),
        ({"transitions": Transitions(x, np.zeros((4, 2)), x, terminated)}, "actions"),
        ({"transitions": Transitions(x * np.nan, action, x, terminated)}, "nan"),
    ):
        with pytest.raises(ValueError, match=word):
            fit(
                **{"transitions": batch, "purposes": UP, "features": Raw(), **arguments}
            )


@pytest.mark.parametrize("name", CONTROL)
def test_learned_options_climb_their_potential_in_control_problems(name):
    settings = {
        "n_options": 2,
        "steps": 4000,
        "features": eo.Fitted("fourier", order=2),
        "gamma": 0.95,
    }
    options = eo.discover(name, **settings)
    env = gym.make(name)
    gains = []
    for option in options:
        for seed in range(4):
            obs = start = env.reset(seed=seed)[0]
            for _ in range(100):
                action = option.act(obs)
                if action == TERMINATE:
                    break
                obs, _, terminated, _, _ = env.step(action)
                if terminated:
                    break
            gains.append(option.reward(start, obs))
    assert np.mean(gains) > 0.1
    assert eo.discover(name, **settings).weights.tobytes() == options.weights.tobytes()


# Sets


def test_linear_set_is_selected_as_a_sequence(options):
    x = np.random.default_rng(1).random((20, 2))
    actions = options.actions(x)
    assert options.labels == ("e1+", "e1-", "e2+", "e2-")
    assert tuple(option.label for option in options) == options.labels
    assert options[1:3].actions(x).tolist() == actions[1:3].tolist()
    assert options[np.array([True, False, False, True])].labels == ("e1+", "e2-")
    for i, option in enumerate(options):
        assert [option.act(obs) for obs in x] == actions[i].tolist()
        assert option.potential(x[0]) == pytest.approx(options.potential(x)[i, 0])
        np.testing.assert_equal(option.eigenvalue, options.eigenvalues[i])
    with pytest.raises(IndexError):
        options[4]


def test_linear_set_survives_a_file(options, tmp_path):
    path = tmp_path / "a.safetensors"
    twice = tmp_path / "b.safetensors"
    options.save(path)
    loaded = eo.load_options(path)
    loaded.save(twice)
    assert path.read_bytes() == twice.read_bytes()
    x = np.random.default_rng(1).random((20, 2))
    assert loaded.actions(x).tolist() == options.actions(x).tolist()
    assert loaded.labels == options.labels
    assert loaded.provenance == options.provenance
    assert loaded.features == options.features
    np.testing.assert_array_equal(loaded.directions, options.directions)
    assert eo.load_options(path, only=[1, 2]).labels == ("e1-", "e2+")


def test_function_as_features_must_be_passed_to_load(tmp_path):
    purposes = [Purpose(np.ones(2))]
    options = LinearOptionSet(purposes, np.asarray, 2, np.ones((1, 2, 2)))
    options.save(tmp_path / "own")
    with pytest.raises(ValueError, match="features="):
        eo.load_options(tmp_path / "own")
    own = eo.load_options(tmp_path / "own", features=np.asarray)
    assert own[0].act(np.array([1.0, 1.0])) == 0


def test_choices_compute_the_features_once_for_all_options():
    calls = []

    def phi(obs: Any) -> np.ndarray:
        calls.append(1)
        return np.asarray(obs)

    options = LinearOptionSet(
        [Purpose(e) for e in np.eye(5)], phi, 2, np.ones((5, 2, 5))
    )
    assert options.choices(np.ones(5)).tolist() == [0] * 5
    assert len(calls) == 1
    assert options.choices(-np.ones(5)).tolist() == [TERMINATE] * 5


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"purposes": []}, "purposes"),
        ({"purposes": [Purpose(None)]}, "purposes"),
        ({"purposes": [Purpose([np.nan])]}, "finite"),
        ({"n_actions": 0}, "n_actions"),
        ({"weights": np.ones((1, 3, 1))}, "weights"),
        ({"threshold": np.ones(2)}, "threshold"),
        ({"patience": 0}, "patience"),
        ({"stop_chance": 1.0}, "stop_chance"),
    ],
)
def test_linear_set_with_wrong_fields_is_refused(fields, word):
    with pytest.raises(ValueError, match=word):
        LinearOptionSet(**{"purposes": UP, "features": Raw(), "n_actions": 2, **fields})


@pytest.mark.parametrize("noise", [0.0, 1e-15, -1e-15])
def test_learned_options_take_the_first_of_equal_actions(noise):
    """Values that differ in their last bits only are equal on every machine."""
    weights = np.array([[[0.5], [1.0], [1.0 + noise]]])
    options = LinearOptionSet(UP, Raw(), 3, weights)
    assert options.actions([[2.0], [-2.0]]).tolist() == [[1, TERMINATE]]


# Look-ahead


def test_look_ahead_is_the_exact_option_with_gamma_zero(domain):
    purposes = eigenpurposes(eo.spectrum(eo.graph(domain), 4))
    exact = solve(domain, purposes, gamma=0.0)
    env = gym.make("eigenoptions/Maze-v0", maze=domain)
    options = LinearOptionSet(purposes, one_hot(domain.n_states), 4).look_ahead(env)
    assert "look-ahead" in repr(options)
    for state in range(0, domain.n_states, 7):
        obs, _ = env.reset(options={"start": state})
        assert options.choices(obs).tolist() == exact.policy[:, state].tolist()
        assert env.unwrapped.state == state


@pytest.mark.parametrize("name", CONTROL)
def test_look_ahead_works_while_the_environment_is_rendered(name):
    env = gym.make(name, render_mode="rgb_array")
    waves = eo.Fitted("fourier", order=2, policy="look-ahead")
    options = eo.discover(env, n_options=2, steps=500, features=waves)
    obs, _ = env.reset(seed=0)
    env.render()
    before = np.array(env.unwrapped.state)
    chosen = options[0].act(obs)
    assert np.array_equal(before, env.unwrapped.state)

    twin = gym.make(name)
    gains = []
    for action in range(env.action_space.n):
        twin.reset(seed=0)
        gains.append(options[0].reward(obs, twin.step(action)[0]))
    best = int(np.argmax(gains)) if max(gains) > 0 else TERMINATE
    assert chosen == best


class Line(gym.Env[Any, Any]):
    """Action 1 adds one, action 0 takes one away; the lock cannot be copied."""

    observation_space = gym.spaces.Box(-9.0, 9.0, (1,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.x = 0.0

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.x = 0.0
        return np.array([self.x]), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        self.x += 2 * action - 1
        return np.array([self.x]), 0.0, False, False, {}


class SharedLine(Line):
    """Its copies share the position."""

    def __init__(self) -> None:
        self.box = type(
            "Box", (), {"x": 0.0, "__deepcopy__": lambda self, memo: self}
        )()

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        self.box.x += 2 * action - 1
        return np.array([self.box.x]), 0.0, False, False, {}


def test_look_ahead_with_save_and_restore_needs_no_copy():
    env = Line()
    options = LinearOptionSet(UP, Raw(), 2)
    with pytest.raises(ValueError, match="cannot be cloned"):
        options.look_ahead(env)
    ahead = options.look_ahead(
        env, save=lambda base: base.x, restore=lambda base, x: setattr(base, "x", x)
    )
    assert ahead[0].act(env.reset()[0]) == 1
    assert env.x == 0.0


def test_look_ahead_notices_copies_without_the_whole_state():
    ahead = LinearOptionSet(UP, Raw(), 2).look_ahead(SharedLine())
    with pytest.raises(ValueError, match="cannot be cloned"):
        ahead[0].act(np.array([0.0]))


def test_look_ahead_with_wrong_arguments_is_refused():
    options = LinearOptionSet([Purpose(np.ones(2))], Raw(), 3)
    car = gym.make("MountainCar-v0")
    for call, word in (
        (lambda: options[0].act(np.zeros(2)), "look_ahead"),
        (lambda: options.values(np.zeros((1, 2))), "look ahead"),
        (lambda: options.look_ahead("MountainCar-v0"), "environment"),
        (lambda: options.look_ahead(gym.make("CartPole-v1")), "3 actions"),
        (lambda: options.look_ahead(gym.make("Pendulum-v1")), "3 actions"),
        (lambda: options.look_ahead(car, save=lambda base: 0), "save and restore"),
    ):
        with pytest.raises(ValueError, match=word):
            call()


# Further termination

LENGTH = 7


def make_stubborn(**conditions: Any) -> LinearOptionSet:
    """One learned option that goes right for ever, also at the wall of a corridor."""
    weights = np.zeros((1, 4, LENGTH))
    weights[0, 1] = 1.0
    options = LinearOptionSet(
        [Purpose(np.arange(LENGTH))], OneHot(LENGTH), 4, weights=weights
    )
    return options.with_termination(**conditions)


def make_corridor(options: LinearOptionSet, **settings: Any) -> OptionsWrapper:
    return OptionsWrapper(MazeEnv("S......"), options, max_duration=100, **settings)


@pytest.mark.parametrize("patience", [1, 3, 8])
def test_patience_counts_the_steps_without_a_rise(patience):
    env = make_corridor(make_stubborn(patience=patience))
    env.reset(seed=0)
    obs, *_, info = env.step(4)
    assert obs == LENGTH - 1
    assert info["duration"] == LENGTH - 1 + patience

    # A new execution has its patience again.
    *_, info = env.step(4)
    assert info["duration"] == patience


def test_patience_holds_one_step_at_a_time_too():
    env = make_corridor(make_stubborn(patience=3), mode="step")
    env.reset(seed=0)
    steps = [env.step(4)[0]["option"] for _ in range(LENGTH - 1 + 3)]
    assert steps == [1] * (LENGTH - 1 + 2) + [0]


def test_stop_chance_makes_durations_geometric():
    env = make_corridor(make_stubborn(stop_chance=0.25))
    env.reset(seed=0)
    durations = [env.step(4)[4]["duration"] for _ in range(1000)]
    counts = np.bincount(durations, minlength=5)[1:5]
    expected = 1000 * 0.25 * 0.75 ** np.arange(4)
    assert (np.abs(counts - expected) < 2.5 * np.sqrt(expected)).all()


def test_paths_and_collections_honour_patience():
    patient = make_stubborn(patience=2)
    stubborn = make_stubborn()
    ((path,),) = run_options(MazeEnv("S......"), patient, runs=1, warm_up=0)
    assert path.tolist() == [*range(LENGTH), LENGTH - 1, LENGTH - 1]
    ((path,),) = run_options(
        MazeEnv("S......"), stubborn, runs=1, warm_up=0, max_steps=40
    )
    assert len(path) == 41
    stuck = collect(lambda: MazeEnv("S......"), 400, policy=stubborn, option_chance=0.5)
    free = collect(lambda: MazeEnv("S......"), 400, policy=patient, option_chance=0.5)
    assert (stuck.action[50:] == 1).all()
    assert set(free.action[50:].tolist()) == {0, 1, 2, 3}


def test_termination_is_kept_in_files_selections_and_look_ahead(tmp_path):
    options = make_stubborn(patience=5, stop_chance=0.125)
    options.save(tmp_path / "skills")
    loaded = eo.load_options(tmp_path / "skills")
    for these in (
        loaded,
        loaded[0],
        options[:1],
        options.look_ahead(MazeEnv("S......")),
    ):
        assert these.patience == 5
        assert these.stop_chance == 0.125
    # `act` itself has no memory.
    assert options[0].act(LENGTH - 1) == 1


# What runs them


@pytest.mark.parametrize("policy", ["learned", "look-ahead"])
@pytest.mark.parametrize("mode", ["call-and-return", "step"])
def test_wrapper_takes_linear_options(policy, mode):
    env = gym.make("MountainCar-v0")
    waves = eo.Fitted("fourier", policy=policy)
    options = eo.discover("MountainCar-v0", n_options=4, steps=3000, features=waves)
    if policy == "look-ahead":
        options = options.look_ahead(env)
    wrapped = OptionsWrapper(env, options, mode=mode)
    obs, info = wrapped.reset(seed=3)
    if mode == "step":
        obs = obs["observation"]
    available = [int(option.act(obs) >= 0) for option in options]
    assert info["action_mask"].tolist() == [1, 1, 1, *available]
    choice = int(np.flatnonzero(info["action_mask"])[-1])
    _, _, _, _, info = wrapped.step(choice)
    assert info["option"] == choice - 3
    assert info["duration"] >= 1


def test_collection_with_linear_options_goes_farther():
    options = eo.discover("MountainCar-v0", n_options=4, steps=3000, features="fourier")
    with_options = collect(
        "MountainCar-v0", 3000, policy=options, option_chance=0.2, rng=1
    )
    without = collect("MountainCar-v0", 3000, rng=1)
    assert np.ptp(with_options.obs[:, 0]) > 1.2 * np.ptp(without.obs[:, 0])


def test_dict_observations_need_a_feature_map():
    class Room(gym.Env[Any, Any]):
        observation_space = gym.spaces.Dict(
            {
                "x": gym.spaces.Box(0.0, 9.0, (1,), np.float64),
                "n": gym.spaces.Discrete(2),
            }
        )
        action_space = gym.spaces.Discrete(2)

        def reset(
            self, *, seed: int | None = None, options: Any = None
        ) -> tuple[Any, dict]:
            super().reset(seed=seed)
            self.x = 4.0
            return {"x": np.array([self.x]), "n": 0}, {}

        def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
            self.x = float(np.clip(self.x + 2 * action - 1, 0, 9))
            return {"x": np.array([self.x]), "n": 0}, 0.0, False, False, {}

    def phi(obs: Any) -> np.ndarray:
        return Fourier((0.0,), (9.0,), order=2)(obs["x"])

    with pytest.raises(ValueError, match="features="):
        eo.discover(Room, n_options=2, steps=200)
    options = eo.discover(Room, n_options=2, steps=400, features=phi)
    assert options.features is phi
    assert {option.act(Room().reset()[0]) for option in options} == {0, 1}
    env = Room()
    look_ahead = eo.Fitted(phi, policy="look-ahead")
    ahead = eo.discover(env, n_options=2, steps=400, features=look_ahead)
    assert {option.act(env.reset()[0]) for option in ahead} == {0, 1}


def test_a_few_directions_are_the_first_of_all():
    """The smallest eigenvalues alone are found in another way than all of them."""
    rng = np.random.default_rng(0)
    obs = rng.uniform(size=(2_000, 2))
    change = 0.05 * rng.standard_normal((2_000, 2))
    zeros = np.zeros(2_000, dtype=int)
    steps = Transitions(obs, zeros, (obs + change).clip(0, 1), zeros.astype(bool))
    phi = Fourier((0, 0), (1, 1), order=7)
    some = feature_spectrum(steps, phi, 5)
    every = feature_spectrum(steps, phi)
    np.testing.assert_allclose(some.values, every.values[:5], rtol=1e-6)
    np.testing.assert_allclose(some.vectors, every.vectors[:, :5], atol=1e-6)
