"""Options in a feature space: look-ahead in copies, learned values, files, and the wrapper that takes them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import scipy.linalg
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions.discovery.online import cycle
from eigenoptions.envs import OptionsWrapper, collect
from eigenoptions.features import Fourier, OneHot, Raw, Tiles
from eigenoptions.mdp import Transitions
from eigenoptions.options import TERMINATE, Purpose, eigenpurposes
from eigenoptions.options.fitted import _regression, fit
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.lookahead import Clones
from eigenoptions.options.solver import solve
from eigenoptions.options.storage import load_options
from eigenoptions.spectra.incidence import incidence_spectrum

CONTROL = ["MountainCar-v0", "CartPole-v1", "Acrobot-v1"]


class Unique:
    """One-hot features of a batch of single state numbers."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __call__(self, obs: Any) -> np.ndarray:
        return np.eye(self.n)[np.asarray(obs).ravel()]


def every_transition(mdp: eo.MDP) -> Transitions:
    s = np.repeat(np.arange(mdp.n_states), mdp.n_actions)
    a = np.tile(np.arange(mdp.n_actions), mdp.n_states)
    return Transitions(s, a, mdp.successors.ravel(), np.zeros(len(s), dtype=bool))


def test_look_ahead_is_the_exact_option_with_gamma_zero(domain: eo.MDP) -> None:
    purposes = eigenpurposes(eo.spectrum(eo.graph(domain), 4))
    exact = solve(domain, purposes, gamma=0.0)
    env = gym.make("eigenoptions/Maze-v0", maze=domain)
    ahead = LinearOptionSet(purposes, Unique(domain.n_states), 4).look_ahead(env)
    assert "look-ahead" in repr(ahead)
    for state in range(0, domain.n_states, 7):
        obs, _ = env.reset(options={"start": state})
        assert ahead.choices(obs).tolist() == exact.policy[:, state].tolist()
        assert env.unwrapped.state == state, "looking ahead moves nothing"


@pytest.mark.parametrize("shape", [(5, 30), (30, 5), (12, 12)])
def test_regression_with_few_and_many_features(shape: tuple[int, int]) -> None:
    """Both forms are the ridge regression of the definition."""
    rng = np.random.default_rng(0)
    psi, target = rng.normal(size=shape), rng.normal(size=(shape[0], 2))
    penalty = (1e-3 + 1e-12) * (psi**2).sum() / shape[1]
    exact = np.linalg.solve(psi.T @ psi + penalty * np.eye(shape[1]), psi.T @ target)
    np.testing.assert_allclose(_regression(psi, 1e-3)(target), exact, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("shape", [(5, 30), (30, 5)])
def test_regression_counts_rows(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    psi, target = rng.normal(size=shape), rng.normal(size=(shape[0], 2))
    count = rng.integers(1, 5, shape[0])
    repeated = np.repeat(np.arange(shape[0]), count)
    expected = _regression(psi[repeated], 1e-3)(target[repeated])
    for given in (psi, scipy.sparse.csr_array(psi)):
        np.testing.assert_allclose(_regression(given, 1e-3, count)(target), expected, rtol=1e-8, atol=1e-10)


def test_numbered_transitions_are_computed_once_and_counted() -> None:
    """The same options as from the features of each transition."""
    rng = np.random.default_rng(0)
    states, after = rng.integers(6, size=(2, 300))
    action, ended = rng.integers(2, size=300), rng.random(300) < 0.1
    table, up = rng.normal(size=(6, 4)), [Purpose(np.arange(4.0), "up")]
    numbered = fit(Transitions(states, action, after, ended), up, table.__getitem__)
    spread = fit(Transitions(table[states], action, table[after], ended), up, Raw())
    np.testing.assert_allclose(numbered.weights, spread.weights, rtol=1e-3)
    np.testing.assert_allclose(numbered.threshold, spread.threshold)


@pytest.mark.parametrize("shape", [(5, 30), (30, 5)])
def test_regression_factors_the_smaller_system(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = []

    def cho_factor(A: np.ndarray, **how: bool) -> tuple[np.ndarray, bool]:
        orders.append(len(A))
        return scipy.linalg.cho_factor(A, **how)

    monkeypatch.setattr("eigenoptions.options.fitted.cho_factor", cho_factor)
    _regression(np.random.default_rng(0).normal(size=shape), 1e-3)
    assert orders == [5]


def test_a_large_fit_is_announced(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eigenoptions.options.fitted.ANNOUNCED_GIGABYTES", 0.0)
    x = np.random.default_rng(0).random((40, 3))
    batch = Transitions(x, np.arange(40) % 2, x[::-1], np.zeros(40, dtype=bool))
    fit(batch, [Purpose(np.ones(3), "up")], Raw())
    assert "fitting 3 features takes 0.0 GB" in caplog.text


def test_fitted_values_on_one_hot_features_are_the_exact_policies(domain: eo.MDP) -> None:
    """With every transition and a feature a state, fitted Q iteration is value iteration."""
    purposes = eigenpurposes(eo.spectrum(eo.graph(domain), 4))
    how = {"gamma": 0.9, "ridge": 0.0, "stop": 1e-9, "parts": 1, "iterations": 2000}
    learned = fit(every_transition(domain), purposes, OneHot(domain.n_states), n_actions=4, **how)
    exact = solve(domain, purposes, gamma=0.9)
    found = learned.actions(np.arange(domain.n_states))
    values = learned.values(np.arange(domain.n_states)).max(axis=2).clip(0)
    np.testing.assert_allclose(values, exact.value, atol=2e-3)  # the top of f is cut at one in a thousand
    assert ((found < 0) == (exact.policy < 0)).mean() > 0.97
    assert (
        found == exact.policy
    ).mean() > 0.95  # what is left are ties, which fitted values break by rounding


def test_an_untried_action_is_never_chosen() -> None:
    x = np.linspace(0, 1, 50)[:, None]
    batch = Transitions(x[:-1], np.ones(49, dtype=int), x[1:], np.zeros(49, dtype=bool))
    up = fit(batch, [Purpose(np.array([1.0]), "up")], Raw(), n_actions=3, gamma=0.5)
    assert set(up.actions(x).ravel().tolist()) <= {1, TERMINATE}


def test_ends_of_episodes_are_worth_nothing_more() -> None:
    x = np.array([[0.0], [1.0], [2.0]] * 4)
    batch = Transitions(x, np.zeros(12, dtype=int), x + 1, np.tile([False, False, True], 4))
    purpose = [Purpose(np.array([1.0]), "up")]
    phi = Tiles((0.0,), (3.0,), tiles=3, tilings=1)
    q = fit(batch, purpose, Raw(), basis=phi, gamma=0.5, ridge=0.0, parts=1).values([[0.0], [1.0], [2.0]])
    np.testing.assert_allclose(q.ravel(), [1.75, 1.5, 1.0], atol=1e-6)


@pytest.mark.parametrize("name", CONTROL)
def test_options_of_control_problems_climb_their_potential(name: str) -> None:
    options = eo.discover(name, n_options=2, steps=4000, features="fourier", order=2, gamma=0.95)
    env = gym.make(name)
    rises = []
    for option in options:
        for seed in range(4):
            obs = start = env.reset(seed=seed)[0]
            for _ in range(100):
                action = option.act(obs)
                if action == TERMINATE:
                    break
                obs, _, over, _, _ = env.step(action)
                if over:
                    break
            rises.append(option.reward(start, obs))
    assert np.mean(rises) > 0.1
    again = eo.discover(name, n_options=2, steps=4000, features="fourier", order=2, gamma=0.95)
    assert again.weights.tobytes() == options.weights.tobytes(), "the same seed gives the same bytes"


@pytest.mark.parametrize("name", CONTROL)
def test_look_ahead_works_in_control_problems_also_while_they_are_drawn(name: str) -> None:
    env = gym.make(name, render_mode="rgb_array")
    options = eo.discover(env, n_options=2, steps=500, features="fourier", order=2, policy="look-ahead")
    obs, _ = env.reset(seed=0)
    env.render()
    before = np.array(env.unwrapped.state)
    choice = options[0].act(obs)
    assert choice in range(-1, env.action_space.n)
    assert np.array_equal(before, env.unwrapped.state)
    if choice >= 0:
        twin = gym.make(name)
        gains = []
        for action in range(env.action_space.n):
            twin.reset(seed=0)
            gains.append(options[0].reward(obs, twin.step(action)[0]))
        assert choice == int(np.argmax(gains))
        assert max(gains) > 0


@pytest.mark.parametrize("how", ["learned", "look-ahead"])
def test_the_wrapper_takes_them(how: str) -> None:
    env = gym.make("MountainCar-v0")
    options = eo.discover("MountainCar-v0", n_options=4, steps=3000, features="fourier", policy=how)
    options = options if how == "learned" else options.look_ahead(env)
    for mode in ("call-and-return", "step"):
        wrapped = OptionsWrapper(env, options, mode=mode)
        obs, info = wrapped.reset(seed=3)
        seen = obs["observation"] if mode == "step" else obs
        assert info["action_mask"].tolist() == [1, 1, 1, *(int(o.may_start(seen)) for o in options)]
        choice = int(np.flatnonzero(info["action_mask"])[-1])
        _, _, _, _, info = wrapped.step(choice)
        assert info["option"] == choice - 3
        assert info["duration"] >= 1


def test_they_explore_through_collect() -> None:
    options = eo.discover("MountainCar-v0", n_options=4, steps=3000, features="fourier")
    with_options = collect("MountainCar-v0", 3000, policy=options, option_chance=0.2, rng=1)
    without = collect("MountainCar-v0", 3000, rng=1)
    assert np.ptp(with_options.obs[:, 0]) > 1.2 * np.ptp(without.obs[:, 0])


def test_index_slice_join_and_files(tmp_path: Path) -> None:
    phi = Fourier((0.0, 0.0), (1.0, 1.0), order=2)
    rng = np.random.default_rng(0)
    options = LinearOptionSet(
        [
            Purpose(rng.standard_normal(9), name, eigenvalue=value)
            for name, value in zip(("e1+", "e1-", "e2+", "e2-"), (0.1, 0.1, np.nan, 0.2), strict=True)
        ],
        phi,
        3,
        rng.standard_normal((4, 3, 9)),
        threshold=np.full(4, 0.1),
        provenance={"gamma": 0.9},
    )
    x = rng.random((20, 2))
    actions = options.actions(x)
    assert len(options) == 4
    assert [o.label for o in options] == list(options.labels)
    assert options[-1].label == "e2-"
    assert options[1:3].actions(x).tolist() == actions[1:3].tolist()
    assert (options[:1] + options[[3]]).actions(x).tolist() == actions[[0, 3]].tolist()
    assert options[np.array([True, False, False, True])].labels == ("e1+", "e2-")
    for i, option in enumerate(options):
        assert [option.act(row) for row in x] == actions[i].tolist()
        assert option.eigenvalue == options.eigenvalues[i] or np.isnan(option.eigenvalue)
    file, twice = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    options.save(file)
    again = load_options(file)
    again.save(twice)
    assert file.read_bytes() == twice.read_bytes()
    assert again.features == phi
    assert again.actions(x).tolist() == actions.tolist()
    assert (again.labels, again.provenance) == (options.labels, options.provenance)
    assert load_options(file, only=[1, 2]).labels == ("e1-", "e2+")
    assert eo.load_options(file).actions(x).tolist() == actions.tolist()
    other = LinearOptionSet([Purpose(np.zeros(9))], Raw(), 3)
    with pytest.raises(ValueError, match="different feature spaces"):
        _ = options + other


def test_functions_of_ones_own_are_asked_for(tmp_path: Path) -> None:
    LinearOptionSet([Purpose(np.ones(2))], np.asarray, 2, np.ones((1, 2, 2))).save(tmp_path / "own.safetensors")
    with pytest.raises(ValueError, match=r"the features are the function .*asarray.* pass features="):
        load_options(tmp_path / "own.safetensors")
    own = load_options(tmp_path / "own.safetensors", features=np.asarray)
    assert own[0].act(np.array([1.0, 1.0])) == 0


def test_choices_compute_an_observation_once_for_all_options() -> None:
    calls = []

    def phi(obs: Any) -> np.ndarray:
        calls.append(1)
        return np.asarray(obs)

    options = LinearOptionSet([Purpose(e) for e in np.eye(5)], phi, 2, np.ones((5, 2, 5)))
    obs = np.ones(5)
    assert options.choices(obs).tolist() == [0] * 5
    assert len(calls) == 1
    obs[:] = -1.0
    assert options.choices(obs).tolist() == [TERMINATE] * 5
    assert len(calls) == 2
    assert [option.act(obs) for option in options] == [TERMINATE] * 5


class Locked(gym.Env[Any, Any]):
    """An environment with a part that cannot be copied."""

    observation_space = gym.spaces.Box(-9.0, 9.0, (1,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.x = 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.x = 0.0
        return np.array([self.x]), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        self.x += 2 * action - 1
        return np.array([self.x]), 0.0, False, False, {}


def test_an_environment_that_cannot_be_cloned() -> None:
    env = Locked()
    options = LinearOptionSet([Purpose(np.array([1.0]), "up")], Raw(), 2)
    with pytest.raises(
        ValueError, match=r"Locked cannot be cloned \(TypeError: .*\): pass save= and restore= that keep"
    ):
        options.look_ahead(env)
    ahead = options.look_ahead(env, save=lambda base: base.x, restore=lambda base, x: setattr(base, "x", x))
    obs, _ = env.reset()
    assert ahead[0].act(obs) == 1
    assert env.x == 0.0


class Shared(Locked):
    """An environment whose copies share a counter: a copy that looks right and is not."""

    def __init__(self) -> None:
        self.box = type("Box", (), {"x": 0.0, "__deepcopy__": lambda self, memo: self})()

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        self.box.x += 2 * action - 1
        return np.array([self.box.x]), 0.0, False, False, {}


def test_copies_that_do_not_carry_the_whole_state_are_noticed() -> None:
    env = Shared()
    ahead = LinearOptionSet([Purpose(np.array([1.0]), "up")], Raw(), 2).look_ahead(env)
    with pytest.raises(ValueError, match=r"cannot be cloned \(action 0 led two copies to different places"):
        ahead[0].act(np.array([0.0]))


class Slippery(Locked):
    """Action 1 goes up by 1 or down by 3 with equal chances; action 0 stays."""

    def __init__(self) -> None:
        self.x = 0.0

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        self.x += action * (1.0 if self.np_random.random() < 0.5 else -3.0)
        return np.array([self.x]), 0.0, False, False, {}


def test_with_samples_the_mean_counts_and_not_the_throw_to_come() -> None:
    env = Slippery()
    options = LinearOptionSet([Purpose(np.array([1.0]), "up")], Raw(), 2)
    sly, fair = options.look_ahead(env), options.look_ahead(env, samples=40)
    sly_acts, fair_acts = set(), set()
    for seed in range(10):
        obs, _ = env.reset(seed=seed)
        state = env.np_random.bit_generator.state
        sly_acts.add(sly[0].act(obs))
        fair_acts.add(fair[0].act(obs.copy()))
        assert env.np_random.bit_generator.state == state, "the environment's generator is not used"
    assert sly_acts == {1, TERMINATE}, "one copy draws the numbers that the environment will draw"
    assert fair_acts == {TERMINATE}, "on average going up leads down"


def test_linear_eigenpurposes_of_bits_are_the_papers() -> None:
    """r = e . (phi(s') - phi(s)), for e an eigenvector of T'T, in the features themselves."""
    rng = np.random.default_rng(1)
    bits = np.logical_xor.accumulate(rng.random((300, 12)) < 0.1, axis=0)
    purposes = eigenpurposes(incidence_spectrum(csr_array(np.diff(bits.astype(float), axis=0))))
    option = LinearOptionSet(purposes, lambda obs: np.asarray(obs), 2)[0]
    change = bits[5].astype(float) - bits[4]
    assert option.reward(bits[4], bits[5]) == pytest.approx(purposes[0].potential @ change)


def test_dict_observations_with_a_feature_map() -> None:
    class Room(gym.Env[Any, Any]):
        observation_space = gym.spaces.Dict(
            {"x": gym.spaces.Box(0.0, 9.0, (1,), np.float64), "n": gym.spaces.Discrete(2)}
        )
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
            super().reset(seed=seed)
            self.x = 4.0
            return self.obs(), {}

        def obs(self) -> dict:
            return {"x": np.array([self.x]), "n": 0}

        def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
            self.x = float(np.clip(self.x + 2 * action - 1, 0, 9))
            return self.obs(), 0.0, False, False, {}

    with pytest.raises(ValueError, match=r"observations of Room are Dict.*pass features="):
        eo.discover(Room, n_options=2, steps=200)

    def phi(obs: Any) -> np.ndarray:
        return Fourier((0.0,), (9.0,), order=2)(obs["x"])

    options = eo.discover(Room, n_options=2, steps=400, features=phi)
    assert {option.act(Room().reset()[0]) for option in options} == {0, 1}, "one way each"
    ahead = eo.discover(Room(), n_options=2, steps=400, features=phi, policy="look-ahead")
    env = ahead.model.env
    assert {option.act(env.reset()[0]) for option in ahead} == {0, 1}
    *_, last = cycle(Room, features=phi, n_options=2, steps=100, rounds=3)
    assert last.options.features is phi


def test_bad_input_is_refused() -> None:
    x = np.zeros((4, 2))
    batch = Transitions(x, np.zeros(4, dtype=int), x, np.zeros(4, dtype=bool))
    floats = Transitions(x, np.zeros((4, 1)), x, np.zeros(4, dtype=bool))
    nan = Transitions(x * np.nan, np.zeros(4, dtype=int), x, np.zeros(4, dtype=bool))
    up = [Purpose(np.ones(2), "up")]
    options = LinearOptionSet(up, Raw(), 3)
    car = gym.make("MountainCar-v0")
    for call, complaint in (
        (lambda: fit(batch, up, Raw(), gamma=1.0), r"gamma must be in \[0, 1\), got 1.0"),
        (lambda: fit(batch, up, Raw(), ridge=-1), r"ridge must be in \[0, inf\), got -1"),
        (lambda: fit(batch, up, Raw(), parts=0), "parts"),
        (lambda: fit(batch, [], Raw()), "purposes"),
        (
            lambda: fit(floats, up, Raw()),
            r"actions must be whole numbers \(N,\), got float64 .*only Discrete",
        ),
        (lambda: fit(batch, up, Raw(), n_actions=0), r"actions must be in 0..-1, got 0..0"),
        (lambda: fit(nan, up, Raw()), "observation 0 has nan in dimension 0"),
        (lambda: fit(batch, [Purpose(np.ones(3))], Raw()), "there must be 3 features, got 2"),
        (lambda: options[0].act(x[0]), "bind them to an environment with look_ahead"),
        (lambda: options.values(x), "options that look ahead have no values"),
        (lambda: options.look_ahead("MountainCar-v0"), "needs the environment itself, got str"),
        (lambda: options.look_ahead(gym.make("CartPole-v1")), r"choose among 3 actions, .*Discrete\(2\)"),
        (
            lambda: options.look_ahead(gym.make("Pendulum-v1")),
            "choose among 3 actions, not those of Box",
        ),
        (lambda: options.look_ahead(car, samples=0), "samples"),
        (lambda: options.look_ahead(car, save=lambda base: 0), "save and restore go together, got only save"),
        (lambda: Clones(car, 3, 1, None, lambda b, s: 0, np.random.default_rng()), "got only restore"),
        (lambda: LinearOptionSet([], Raw(), 2), "purposes"),
        (lambda: LinearOptionSet([Purpose([np.nan])], Raw(), 2), "must be finite"),
        (
            lambda: LinearOptionSet(up, Raw(), 2, np.ones((1, 3, 2))),
            r"must have shape \(1, 2, p\)",
        ),
    ):
        with pytest.raises(ValueError, match=complaint):
            call()
    with pytest.raises(IndexError):
        _ = options[1]
