"""Trained features: against closed forms and tables, and what is refused."""

from __future__ import annotations

import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.deep import (
    Certificate,
    Clusters,
    Dataset,
    clusters,
    encoder,
    learn,
    training,
)
from eigenoptions.deep.certificate import find_resolved
from eigenoptions.deep.components import count_above_noise
from eigenoptions.deep.from_frames import _make_table
from eigenoptions.deep.grouping import group_observations
from eigenoptions.deep.implied import compute_implied_values, compute_long_lag_values
from eigenoptions.deep.moments import (
    combine_features,
    compute_moments,
    tabulate_features,
)
from eigenoptions.deep.ritz import find_slow_functions, remove_noise
from eigenoptions.deep.scores import compute_held_out_score
from eigenoptions.mdp import maze
from eigenoptions.samples import Transitions
from eigenoptions.samples.features import features_from_dict, features_to_dict
from eigenoptions.samples.linear import LinearOptionSet
from eigenoptions.samples.walking import walk

torch = pytest.importorskip("torch")

ROOMS = maze("four-rooms")
XY = ROOMS.coords.astype(float)


def pixels(side: int = 13) -> np.ndarray:
    """``(104, 13, 13)`` one image per state of four rooms: its cell is bright."""
    images = np.zeros((ROOMS.n_states, side, side), dtype=np.uint8)
    images[np.arange(ROOMS.n_states), ROOMS.coords[:, 0], ROOMS.coords[:, 1]] = 255
    return images


def walked(steps: int, observations: np.ndarray, rng: int = 0) -> Transitions:
    free = eo.MDP(ROOMS.transition, coords=ROOMS.coords)
    taken = walk(free, steps, rng=rng, max_episode_steps=50)
    return Transitions(
        observations[taken.obs],
        taken.action,
        observations[taken.next_obs],
        taken.terminated,
    )


def walked_with_noise(steps: int) -> Transitions:
    """The same images with noise, which is new in each observation."""
    clean = walked(steps, pixels())
    rng = np.random.default_rng(0)

    def add_noise(images: np.ndarray) -> np.ndarray:
        noise = rng.normal(0, 0.05, images.shape).astype(np.float32)
        return np.float32(images) / 255 + noise

    before = add_noise(clean.obs)
    after = add_noise(clean.next_obs)
    # What is seen after one transition is what is seen before the next.
    same = (clean.next_obs[:-1] == clean.obs[1:]).all(axis=(1, 2))
    before[1:][same] = after[:-1][same]
    return Transitions(before, clean.action, after, clean.terminated)


def link_up(x: np.ndarray) -> Transitions:
    """Transitions of one trajectory with the observations x ``(N + 1, ...)``."""
    n = len(x) - 1
    return Transitions(x[:-1], np.zeros(n, dtype=int), x[1:], np.zeros(n, dtype=bool))


def add_constant(data: Dataset) -> Any:
    """Features by number of the observation: 1 and the observation itself."""

    def features(numbers: Any) -> Any:
        return np.column_stack([np.ones(len(numbers)), data.observations[numbers]])

    return features


def truth(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs of I - P of the uniform random walk in four rooms."""
    table = ROOMS.transition.toarray().reshape(ROOMS.n_states, 4, ROOMS.n_states)
    P = table.mean(axis=1)
    values, vectors = np.linalg.eigh(np.eye(len(P)) - P)
    return values[:k], vectors[:, :k]


def agreement(functions: np.ndarray, vectors: np.ndarray) -> float:
    """Share of the true eigenspace that the span of the functions contains."""
    q = np.linalg.qr(functions - functions.mean(axis=0))[0]
    return float(np.linalg.norm(q.T @ vectors) ** 2 / vectors.shape[1])


@pytest.fixture(scope="module")
def found() -> Any:
    return learn(walked(60_000, XY), 5, steps=100)


def test_the_spectrum_is_that_of_the_walk(found: Any) -> None:
    values, vectors = truth(5)
    f = found.features(XY) @ found.vectors
    np.testing.assert_allclose(f[:, 0], 1.0)
    assert agreement(f[:, 1:], vectors[:, 1:]) > 0.98
    np.testing.assert_allclose(found.values[1:], values[1:], rtol=0.15)
    assert found.values[0] == 0
    assert found.n_zero == 1
    # The canonical sign: the largest entry on the sample is positive.
    assert (f[np.abs(f).argmax(axis=0), np.arange(5)] > 0).all()
    assert [p.label for p in eo.eigenpurposes(found)[:2]] == ["e2+", "e2-"]


def test_the_certificate_agrees_with_a_resolved_spectrum(found: Any) -> None:
    certificate = found.certificate
    assert certificate.resolved[:4].all()
    assert certificate.repeating
    assert 0.2 < certificate.score <= 4
    assert abs(certificate.score - certificate.best_score) < 0.2
    assert "e5" in str(certificate)


def test_the_same_seed_gives_the_same_bytes() -> None:
    seen = walked(3000, XY)
    threads = torch.get_num_threads()
    one = learn(seen, 4, seconds=0.05, rng=3)
    two = learn(seen, 4, seconds=0.05, rng=3)
    other = learn(seen, 4, seconds=0.05, rng=4)
    assert one.vectors.tobytes() == two.vectors.tobytes() != other.vectors.tobytes()
    assert one.features.recipe == two.features.recipe != other.features.recipe
    assert torch.get_num_threads() == threads


def test_interleaved_copies_are_the_same_trajectories() -> None:
    lanes = [walk(eo.MDP(ROOMS.transition), 400, rng=i) for i in range(3)]
    obs = np.stack([lane.obs for lane in lanes], axis=1).ravel()
    next_obs = np.stack([lane.next_obs for lane in lanes], axis=1).ravel()
    action = np.zeros(1200, dtype=int)
    terminated = np.zeros(1200, dtype=bool)
    data = Dataset.of(Transitions(XY[obs], action, XY[next_obs], terminated))

    before, _ = data.all.list_pairs(5)
    assert len(before) >= 3 * 396
    np.testing.assert_array_equal(
        data.observations[before[:396]], XY[lanes[0].obs[:396]]
    )


def test_lagged_values_of_a_cycle_are_closed_forms() -> None:
    n = 12
    rng = np.random.default_rng(0)
    at = np.cumsum(rng.choice([-1, 0, 1], size=40_001)) % n
    angle = 2 * np.pi * np.arange(n) / n
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    values = learn(link_up(circle[at]), 3, steps=40).values
    want = 2 / 3 * (1 - np.cos(2 * np.pi / n))
    np.testing.assert_allclose(values, [0, want, want], rtol=0.1)


def test_all_values_of_a_corridor_are_closed_forms() -> None:
    corridor = maze("......")
    free = eo.MDP(corridor.transition, coords=corridor.coords)
    taken = walk(free, 40_000, rng=0, max_episode_steps=50)
    cells = corridor.coords.astype(float)
    seen = Transitions(
        cells[taken.obs], taken.action, cells[taken.next_obs], taken.terminated
    )
    found = learn(seen, 6, steps=60)
    # Nothing is left of the fastest functions five transitions later, so a shorter lag
    # is used.
    assert found.certificate.lag < 5
    want = (1 - np.cos(np.pi * np.arange(6) / 6)) / 2
    np.testing.assert_allclose(found.values, want, rtol=0.06)
    assert found.certificate.resolved.all()


def test_learn_from_pixels_finds_the_eigenspace() -> None:
    images = pixels()
    found = learn(walked(20_000, images), 5, steps=60)
    f = found.features(images) @ found.vectors
    assert agreement(f[:, 1:], truth(5)[1][:, 1:]) > 0.95


def test_noise_that_is_not_repeated_is_not_memorised() -> None:
    found = learn(walked_with_noise(8_000), 5, steps=60, recognise=False)
    assert not found.certificate.repeating
    # One component less than states: those of the noise are left out.
    assert found.features.arrays["components"].shape == (169, 103)
    f = found.features(np.float32(pixels()) / 255) @ found.vectors
    assert agreement(f[:, 1:], truth(5)[1][:, 1:]) > 0.9


@pytest.mark.parametrize("kind", ["vectors", "images", "long vectors"])
def test_one_wrong_observation_changes_nothing(kind: str) -> None:
    """One value of a million in 6,000 transitions: the others make the spectrum."""
    images = np.float64(pixels()) / 255
    observations = {
        "vectors": XY,
        "images": images,
        "long vectors": images.reshape(104, -1),
    }[kind]
    seen = walked(6_000, observations)
    wrong = seen.obs.copy()
    wrong[3_000].flat[0] = 1e6
    damaged = Transitions(wrong, seen.action, seen.next_obs, seen.terminated)
    found = learn(damaged, 4, steps=60)
    np.testing.assert_allclose(found.values, truth(4)[0], rtol=0.05, atol=1e-12)


def test_the_certificate_sees_poor_functions_at_any_lag() -> None:
    """Row and column are mixtures of fast and slow eigenfunctions.

    Their fast parts have decayed at long lags only.
    """
    data = Dataset.of(walked(20_000, XY))
    features = tabulate_features(add_constant(data), 104)
    for lag in (1, 5):
        solution = find_slow_functions(data.all, features, 3, lag)
        functions = combine_features(features, solution.vectors)
        implied = compute_implied_values(data.all, functions, lag)
        long_lag = compute_long_lag_values(data.all, functions, implied, lag)
        assert not find_resolved(solution.values, long_lag)[1:].any()


def test_covariances_in_time_are_those_of_numpy() -> None:
    """Far from a mean of zero, where observations never repeat."""
    x = np.random.default_rng(0).normal(5, 1, (401, 3)).cumsum(axis=0) / 10
    data = Dataset.of(link_up(x))
    x = data.observations.astype(float)
    mean, C, R = compute_moments(data.all, x.__getitem__, 3)
    f = x[:-3]
    g = x[3:]
    centre = (f + g).mean(axis=0) / 2
    np.testing.assert_allclose(mean, centre)
    f = f - centre
    g = g - centre
    np.testing.assert_allclose(C, (f.T @ f + g.T @ g) / (2 * len(f)), rtol=1e-6)
    np.testing.assert_allclose(R, (f.T @ g + g.T @ f) / (2 * len(f)), rtol=1e-6)
    # Squared autocorrelations of the three functions in the span: all there are.
    want = np.trace(np.linalg.matrix_power(np.linalg.solve(C, R), 2))
    outputs = np.concatenate([f, g])
    score = compute_held_out_score(outputs, outputs, 3)
    np.testing.assert_allclose(score, want, rtol=1e-5)

    features = add_constant(data)
    assert len(find_slow_functions(data.all, features, 4, 1).values) == 4
    with pytest.raises(ValueError, match="at most 4,"):
        find_slow_functions(data.all, features, 5, 1)


def test_columns_are_left_out_of_training_and_not_of_observations(caplog):
    """A battery; the warning names the argument that leaves it out."""
    seen = walked(2_000, XY)
    battery = 1.0 - np.arange(2_000) % 50 / 50.0
    obs = np.column_stack([seen.obs, battery])
    next_obs = np.column_stack([seen.next_obs, battery - 0.02])
    log = Transitions(obs, seen.action, next_obs, seen.terminated)
    learn(log, 2, steps=2)
    assert "columns=[0, 1]" in caplog.text

    caplog.clear()
    some = learn(log, 3, columns=[0, 1], steps=5)
    alone = learn(seen, 3, steps=5)
    assert "drifting" not in caplog.text
    features = some.features
    np.testing.assert_allclose(
        features(obs[:9]), alone.features(seen.obs[:9]), rtol=0, atol=1e-4
    )
    record = {**features_to_dict(features), "arrays": features.arrays}
    again = features_from_dict(record)
    np.testing.assert_array_equal(again(obs[:9]), features(obs[:9]))
    with pytest.raises(ValueError, match="columns"):
        features(seen.obs[:9])


@pytest.mark.parametrize("policy", ["clusters", "learned"])
def test_options_of_trained_features_leave_columns_out(policy, caplog):
    seen = walked(2_000, XY)
    battery = 1.0 - np.arange(2_000) % 50 / 50.0
    seven = np.full(2_000, 7.0)
    obs = np.column_stack([seen.obs, battery, seven])
    next_obs = np.column_stack([seen.next_obs, battery - 0.02, seven])
    log = Transitions(obs, seen.action, next_obs, seen.terminated)
    settings = {"features": eo.Trained(steps=5, policy=policy)}

    eo.discover(log, 2, **settings)
    assert "column 3 is left out, being constant" in caplog.text
    assert "% of e" in caplog.text
    assert "columns=[0, 1]" in caplog.text

    caplog.clear()
    some = eo.discover(log, 2, columns=[0, 1], **settings)
    alone = eo.discover(seen, 2, **settings)
    assert "drifting" not in caplog.text
    np.testing.assert_array_equal(some.actions(obs), alone.actions(seen.obs))
    assert some.exploration is not None
    assert some.exploration == alone.exploration

    frames = np.zeros((60, 8, 8, 3), dtype=np.uint8)
    frames[::2] = 255
    with pytest.raises(ValueError, match="columns are those of vectors"):
        eo.discover((frames, np.arange(60) % 2, frames[::-1]), columns=[0], **settings)


def test_data_sets_are_made_of_whatever_transitions_are_made_of():
    seen = walked(200, XY)
    rows = (seen.obs, seen.action, seen.next_obs, seen.terminated)
    steps = list(zip(*rows[:3], strict=True))
    expected = Dataset.of(seen)
    for data in (rows, steps, [seen], iter([seen])):
        found = Dataset.of(data)
        np.testing.assert_array_equal(found.after, expected.after)
        np.testing.assert_array_equal(found.observations, expected.observations)


def test_types_of_floats_may_be_mixed() -> None:
    seen = walked(600, XY + 0.1)

    def take(part: slice, kind: Any) -> Transitions:
        obs = seen.obs[part].astype(kind)
        next_obs = seen.next_obs[part].astype(kind)
        return Transitions(obs, seen.action[part], next_obs, seen.terminated[part])

    batches = [take(slice(300), np.float64), take(slice(300, 600), np.float32)]
    assert len(Dataset.of(batches).observations) == len(Dataset.of(seen).observations)
    with pytest.raises(ValueError, match="no transitions"):
        Dataset.of(seen[:0])
    with pytest.raises(ValueError, match="type"):
        Dataset.of([seen, walked(10, pixels())])
    # A lag longer than any trajectory is as long as the data allow.
    assert learn(seen, 3, steps=1, lag=10**6).certificate.lag < 100


@pytest.mark.parametrize("rank", [0, 5, 60])
def test_components_above_white_noise_are_counted(rank: int) -> None:
    rng = np.random.default_rng(0)
    n = 1000
    d = 200
    signal = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    x = signal + rng.standard_normal((n, d))
    for sample in (x, x[:100]):
        n_samples = len(sample)
        singular_values = np.linalg.svd(sample, compute_uv=False)
        variances = singular_values**2 / n_samples
        assert count_above_noise(variances, n_samples, d) == min(rank, n_samples)


def test_transitions_that_do_not_follow_each_other_are_learned() -> None:
    """As in a shuffled replay buffer: no pair is two transitions apart."""
    rng = np.random.default_rng(0)
    x = rng.random((3_000, 2))
    y = x + rng.normal(0, 0.05, x.shape)
    action = np.zeros(3_000, dtype=int)
    found = learn(Transitions(x, action, y, action > 0), 3, steps=5)
    assert found.certificate.lag == 1
    assert (found.values[1:] > 0).all()


def test_slow_values_are_taken_at_long_lags() -> None:
    rng = np.random.default_rng(0)
    n = 40_000
    # Two signals that change their sign, one rarely and one often, and noise.
    flips_slow, flips_fast = rng.random((2, n + 1)) < [[0.005], [0.1]]
    slow = np.cumsum(flips_slow) % 2 - 0.5
    fast = np.cumsum(flips_fast) % 2 - 0.5
    x = slow + 0.3 * fast + 0.1 * rng.standard_normal(n + 1)
    data = Dataset.of(link_up(x[:, None]))
    functions = add_constant(data)

    want = 2 * flips_slow.mean()
    implied = compute_implied_values(data.all, functions, 2)
    settled = compute_long_lag_values(data.all, functions, implied, 2)
    assert implied[1] > 1.5 * want
    np.testing.assert_allclose(settled, [0, want], rtol=0.1)


def test_values_without_noise_are_those_of_the_chain() -> None:
    rng = np.random.default_rng(0)
    # Two states, exchanged with probability 0.1: the eigenvalue is 0.2. Half of the
    # variance of x is new noise.
    state = np.cumsum(rng.random(40_001) < 0.1) % 2
    x = 2.0 * state - 1.0 + rng.standard_normal(40_001)
    data = Dataset.of(link_up(x[:, None]))
    features = tabulate_features(add_constant(data), len(data.observations))
    noisy = find_slow_functions(data.all, features, 2, 2)
    np.testing.assert_allclose(noisy.values[1], 1 - np.sqrt(0.64 / 2), rtol=0.05)
    clean = remove_noise(noisy, data.all, features, 2)
    np.testing.assert_allclose(clean.values[1], 0.2, rtol=0.1)
    # The functions are those of the signal, of variance about 0.8 times 1 in the metric
    # at lag 1.
    np.testing.assert_allclose(clean.vectors[1, 1] ** 2, 1 / 0.8, rtol=0.1)


def test_an_own_module_and_what_it_must_not_do() -> None:
    seen = walked(3_000, XY)
    torch.manual_seed(0)
    own = torch.nn.Sequential(
        torch.nn.Linear(2, 32),
        torch.nn.Tanh(),
        torch.nn.Linear(32, 24),
        torch.nn.Tanh(),
    )
    found = learn(seen, 3, own, steps=10)
    before = found.features(XY)
    assert before.shape == (104, 25)
    more = learn(seen, 3, found.features, steps=10)
    assert not np.array_equal(more.features(XY), before)
    assert np.array_equal(found.features(XY), before)
    with pytest.raises(ValueError, match="must return"):
        learn(seen, 3, torch.nn.Unflatten(1, (2, 1)), steps=1)
    with_dropout = torch.nn.Sequential(own, torch.nn.Dropout(0.5))
    dropped = learn(seen, 3, with_dropout, steps=1).features
    assert np.array_equal(dropped(XY), dropped(XY))
    with torch.no_grad():
        own[0].weight[0, 0] = np.nan
    with pytest.raises(ValueError, match="finite"):
        learn(seen, 3, own, steps=1)


@pytest.mark.parametrize(
    ("observations", "settings", "word"),
    [
        (np.where(np.arange(104)[:, None] == 3, np.nan, XY), {}, "finite"),
        (XY * 1e39, {}, "finite"),
        (XY * 1e-300, {}, "none"),
        (np.zeros((104, 8, 8), dtype=np.uint8), {}, "none"),
        (np.arange(104), {}, "table"),
        (XY, {"encoder": "transformer"}, "encoder"),
        (pixels(), {"encoder": "mlp"}, "vectors"),
        (XY, {"k": 1}, "k must"),
        (XY, {"rate": -1.0}, "rate"),
        (XY, {"n": 300}, "512"),
    ],
)
def test_learn_bad_input_raises(
    observations: Any, settings: dict[str, Any], word: str
) -> None:
    settings = {"k": 3, "steps": 1, "n": 600, **settings}
    seen = walked(settings.pop("n"), observations)
    with pytest.raises(ValueError, match=word):
        learn(seen, **settings)


def test_pairs_are_drawn_at_geometric_distances_within_trajectories() -> None:
    rng = np.random.default_rng(0)
    time = np.arange(100.0).repeat(2).reshape(100, 2)
    action = np.zeros(100, dtype=int)
    is_end = np.arange(100) % 50 == 49
    data = Dataset.of(Transitions(time, action, time + 1, is_end))

    def draw_times(discount: float) -> tuple[np.ndarray, np.ndarray]:
        before, after = data.all.draw_pairs(20_000, discount, rng)
        return data.observations[before, 0], data.observations[after, 0]

    before, after = draw_times(0.0)
    np.testing.assert_array_equal(after, before + 1)
    before, after = draw_times(0.75)
    early = before % 50 < 20
    assert (after - before)[early].mean() == pytest.approx(4.0, abs=0.1)
    assert (before // 50 == (after - 1) // 50).all()


def test_changes_are_measured_where_something_changes() -> None:
    obs = np.array([[0.0, 5.0, 1.0], [2.0, 5.0, 1.0], [2.0, 5.0, 4.0], [8.0, 5.0, 4.0]])
    data = Dataset.of(link_up(obs))
    np.testing.assert_array_equal(training._estimate_step_sizes(data), [4.0, 1.0, 3.0])


def test_the_rate_falls_linearly(monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []

    class Recorded(training.Adam):
        def step(self, rate: float, *betas: float) -> None:
            rates.append(rate)
            super().step(rate, *betas)

    monkeypatch.setattr(training, "Adam", Recorded)
    learn(walked(3_000, XY), 3, steps=4)
    np.testing.assert_allclose(np.array(rates) / rates[0], [1.0, 0.75, 0.5, 0.25])


def test_observations_are_encoded_in_blocks(
    found: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = found.features(XY)
    monkeypatch.setattr(encoder, "_BLOCK_ROWS", 8)
    in_blocks = found.features(XY)
    np.testing.assert_allclose(in_blocks, whole, atol=1e-5)


def test_an_interrupted_training_returns_the_best_so_far(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def stop(done: int, total: int) -> None:
        if done == 12:
            raise KeyboardInterrupt

    with caplog.at_level(logging.WARNING, "eigenoptions"):
        found = learn(walked(3_000, XY), 3, steps=100, progress=stop)
    assert "interrupted" in caplog.text
    assert len(found.values) == 3


def test_few_observations_have_few_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half as many as there are observations, unless more options are asked for."""
    learned_numbers = []

    def learn_and_count(data: Dataset, k: int, **settings: Any) -> Any:
        learned_numbers.append(k)
        return learn(data, k, **settings)

    monkeypatch.setattr("eigenoptions.deep.learn", learn_and_count)
    ring = eo.MDP.from_successors([[(i - 1) % 12, (i + 1) % 12] for i in range(12)])
    steps = eo.collect(ring, 1_000)
    flags = np.eye(12, dtype=np.float32)
    data = (flags[steps.obs], steps.action, flags[steps.next_obs])
    for n_options in (2, 14):
        eo.discover(data, n_options, features="deep", training_steps=2, n_actions=2)
    assert learned_numbers == [6, 8]


def test_unresolved_functions_are_named() -> None:
    certificate = Certificate(
        1.0, 1.0, np.array([0, 0.5]), np.array([0, 0.1]), 5, False
    )
    assert certificate.resolved.tolist() == [True, False]
    assert "not resolved" in str(certificate)


class Camera(gym.Env[Any, Any]):
    """Four rooms, of which the observation is an image."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(0, 255, (13, 13), np.uint8)
        self.action_space = gym.spaces.Discrete(4)
        self.images = pixels()
        self.state = 0

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = int(self.np_random.integers(ROOMS.n_states))
        return self.images[self.state], {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.state = int(ROOMS.successors[self.state, action])
        return self.images[self.state], 0.0, False, False, {}


@pytest.fixture(scope="module")
def skills() -> Any:
    how = {
        "features": "deep",
        "steps": 6000,
        "max_episode_steps": 50,
        "training_steps": 60,
    }
    return eo.discover(Camera, 4, **how)


def test_options_from_pixels_climb_their_potentials(skills: Any) -> None:
    assert skills.labels == ("e2+", "e2-", "e3+", "e3-")
    assert len(skills.provenance["certificate"]["resolved"]) == 3
    images = pixels()
    f = skills.potential(images)
    actions = skills.actions(images)
    for option in range(4):
        state = np.arange(ROOMS.n_states)
        for _ in range(60):
            moves = ROOMS.successors[state, np.maximum(actions[option, state], 0)]
            state = np.where(actions[option, state] >= 0, moves, state)
        assert f[option, state].mean() > f[option].mean() + 0.5 * f[option].std()


def test_the_wrapper_and_the_walk_use_them(skills: Any) -> None:
    env = eo.OptionsWrapper(Camera(), skills)
    env.reset(seed=0)
    mask = env.action_masks()
    info = env.step(int(4 + np.flatnonzero(mask[4:])[0]))[4]
    assert info["duration"] >= 1
    assert len(eo.collect(Camera, 50, policy=skills, option_chance=0.2)) == 50


def test_options_files_hold_the_encoder_and_are_read_without_torch(
    skills: Any, tmp_path: Path
) -> None:
    file = tmp_path / "skills.safetensors"
    skills.save(file)
    same = eo.load_options(file)
    images = pixels()
    assert isinstance(same.features, Clusters)
    assert same.exploration == skills.exploration
    assert same.actions(images).tolist() == skills.actions(images).tolist()
    assert features_to_dict(same.features) == features_to_dict(skills.features)
    record = features_to_dict(skills.features)
    assert features_from_dict(record, skills.features) is skills.features
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import eigenoptions as eo, numpy as np\n"
        f"options = eo.load_options({str(file)!r}); print(options.labels[0])\n"
        "try: options.actions(np.zeros((1, 13, 13), np.uint8))\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[0] == "e2+"
    assert "pip install 'eigenoptions[deep]'" in done.stdout


def test_an_encoder_is_trained_further(found: Any) -> None:
    more = learn(walked(3_000, XY), 5, found.features, steps=5)
    assert more.features.recipe["digest"] != found.features.recipe["digest"]
    f = more.features(XY) @ more.vectors
    assert agreement(f[:, 1:], truth(5)[1][:, 1:]) > 0.9
    with pytest.raises(ValueError, match="observations"):
        found.features(pixels())


def test_stacked_frames_become_channels() -> None:
    frames = np.stack([pixels()] * 2, axis=1)[..., None]
    found = learn(walked(3_000, frames), 3, steps=2)
    assert found.features(frames).shape == (104, found.features.n_features)


def test_a_table_of_transitions_counts_every_action_once_and_sums_to_one() -> None:
    """Action 0 of state 0 was taken twice, with two results: each counts a half."""
    at = np.array([0, 0, 0, 1])
    then = np.array([1, 2, 1, 0])
    action = np.array([0, 0, 1, 0])
    eye = np.eye(3)
    data = Dataset.of(Transitions(eye[at], action, eye[then], np.ones(4, dtype=bool)))
    numbers, weights = data.all.table
    order = np.argsort([int(data.observations[i].argmax()) for i in numbers])
    expected = np.array([[0, 1.5 + 1, 0.5], [1.5 + 1, 0, 0], [0.5, 0, 0]]) / 6
    np.testing.assert_allclose(weights.toarray()[np.ix_(order, order)], expected)


# Options where the best action depends on more than slow functions
@pytest.fixture(scope="module")
def turning_room() -> tuple[np.ndarray, np.ndarray, Transitions]:
    """An agent that turns or goes forward in a room of 12 x 12 cells.

    Successors ``(S, 3)``, images ``(S, 36, 36)`` and a random walk.
    """
    side = 12
    ahead = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
    cell, heading = np.divmod(np.arange(4 * side**2), 4)
    place = np.stack(np.divmod(cell, side), axis=1)

    turn_left = 4 * cell + (heading - 1) % 4
    turn_right = 4 * cell + (heading + 1) % 4
    next_place = np.clip(place + ahead[heading], 0, side - 1)
    forward = 4 * (next_place @ [side, 1]) + heading
    successors = np.stack([turn_left, turn_right, forward], axis=1)

    # Two bright pixels: the agent, and the one in front of it.
    states = np.arange(len(cell))
    images = np.zeros((len(cell), 3 * side, 3 * side), dtype=np.uint8)
    agent = 3 * place + 1
    front = agent + ahead[heading]
    images[states, *agent.T] = 255
    images[states, *front.T] = 255

    action = np.random.default_rng(0).integers(3, size=20_000)
    at = [0]
    for a in action:
        at.append(int(successors[at[-1], a]))
    terminated = np.zeros(20_000, dtype=bool)
    seen = Transitions(images[at[:-1]], action, images[at[1:]], terminated)
    return successors, images, seen


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["clusters", "learned"])
def test_options_turn_before_they_go(policy: str, turning_room: Any) -> None:
    """Which turn is right is no slow function of what is seen, but it is learned."""
    successors, images, seen = turning_room
    trained = eo.Trained(steps=60, policy=policy)
    options = eo.discover(seen, 4, features=trained, n_actions=3)
    assert options.directions.shape[1] == options.features.n_features
    f = options.potential(images)
    actions = options.actions(images)
    for option in range(len(options)):
        state = np.arange(len(images))
        for _ in range(80):
            moves = successors[state, np.maximum(actions[option, state], 0)]
            state = np.where(actions[option, state] >= 0, moves, state)
        # With values in the last layer only it was at most 0.45.
        climbed = (f[option, state] - f[option]).sum()
        most = (f[option].max() - f[option]).sum()
        assert climbed > 0.7 * most


# Noisy observations that show the same state
N = 1000
D = 12


def shown(
    noise: float, rng: np.random.Generator, n: int = N, n_things: int = 20
) -> tuple[np.ndarray, ...]:
    """Noisy observations of things ten units apart or more, and what each shows."""
    of = np.append(np.arange(n_things), rng.integers(n_things, size=n - n_things))
    things = np.zeros((n_things, D))
    things[:, 0] = 10 * np.arange(n_things)
    x = things[of] + noise * rng.standard_normal((n, D))
    return x.astype(np.float32), of


def group(
    x: np.ndarray, rng: np.random.Generator, max_sample: int = 2048
) -> np.ndarray | None:
    """Groups of observations that follow each other in time."""
    before = np.arange(len(x) - 1)
    return group_observations(x, before, before + 1, rng, max_sample)


def assert_one_to_one(groups: np.ndarray, of: np.ndarray, n_things: int) -> None:
    """Every group is one thing, and every thing is one group."""
    pairs = set(zip(of.tolist(), groups.tolist(), strict=True))
    assert len(pairs) == n_things
    assert len(np.unique(groups)) == n_things


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_what_is_shown(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, of = shown(0.5, rng)
    groups = group(x, rng)
    assert groups is not None
    assert_one_to_one(groups, of, 20)


def test_what_the_sample_does_not_contain_is_found() -> None:
    x, of = shown(0.5, np.random.default_rng(0), n=1000)
    # One more thing, which is seen three times: a sample of a fifth often misses it.
    x[-3:, 0] = 0.0
    x[-3:, 1] += 30
    of[-3:] = 20
    was_missed = []
    for seed in range(5):
        groups = group(x, np.random.default_rng(seed), max_sample=200)
        assert groups is not None
        assert_one_to_one(groups, of, 21)
        was_missed.append(groups[-1] == 20)
    assert any(was_missed)


def test_states_that_are_not_discrete_or_too_noisy_are_not_numbered() -> None:
    rng = np.random.default_rng(0)
    continuous = rng.random((N, 2)).astype(np.float32)
    assert group(continuous, rng) is None
    noise_only = rng.standard_normal((N, D)).astype(np.float32)
    assert group(noise_only, rng) is None
    for noise in (3.0, 6.0):
        assert group(shown(noise, rng)[0], rng) is None


def test_a_slow_change_within_groups_is_not_noise() -> None:
    rng = np.random.default_rng(0)
    x, _ = shown(0.5, rng)
    assert group(x, rng) is not None
    x[:, 5] += np.sin(np.arange(N) / 100)
    assert group(x, rng) is None


def test_noisy_images_are_learned_as_if_they_repeated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("INFO", "eigenoptions"):
        found = learn(walked_with_noise(16_000), 5, steps=200)
    assert "show 104 states" in caplog.text
    assert found.certificate.repeating
    values, vectors = truth(5)
    np.testing.assert_allclose(found.values, values, atol=1e-12, rtol=0.02)
    f = found.features(np.float32(pixels()) / 255) @ found.vectors[:, 1:]
    assert agreement(f, vectors[:, 1:]) > 0.995


# Clusters of trained features
def test_centres_are_spread_over_rare_places_too() -> None:
    """A thousand places in a corner, and one far away: both have a centre."""
    rng = np.random.default_rng(0)
    places = np.concatenate([rng.random((1000, 2)), [[50.0, 50.0]]])
    rows, radius = clusters._spread_centres(places, 0.5, 100)
    assert 1000 in rows
    distances = np.linalg.norm(places[:, None] - places[rows], axis=2)
    assert distances.min(axis=1).max() == pytest.approx(radius)
    assert radius <= 0.5
    few, coarse = clusters._spread_centres(places, 0.5, 3)
    assert len(few) == 3
    assert coarse > radius


def test_centres_do_not_depend_on_rounding() -> None:
    """On a symmetric grid many places are equally far away: the first one is taken."""
    places = np.stack(np.divmod(np.arange(64.0), 8), axis=1)
    rows, _ = clusters._spread_centres(places, 0.0, 20)
    for seed in range(3):
        noise = 1e-13 * np.random.default_rng(seed).standard_normal(places.shape)
        again, _ = clusters._spread_centres(places + noise, 0.0, 20)
        assert again.tolist() == rows.tolist()
        nearest = clusters.find_nearest(places + noise, places[rows])
        assert nearest.tolist() == clusters.find_nearest(places, places[rows]).tolist()


def test_a_cluster_that_is_never_left_is_none_of_its_own() -> None:
    """A walk along four numbers and back, whose last one is new and is never left."""
    x = np.array([0, 1, 2, 3, 2, 1, 0, 1, 9])
    steps = link_up(np.eye(10)[x])
    data = Dataset.of(steps)
    states = np.array([int(row.argmax()) for row in data.observations])
    assert clusters._find_lasting(data, states, 10).tolist() == [0, 1, 2, 3]
    ended = replace(data, terminated=np.arange(8) == 7)
    assert clusters._find_lasting(ended, states, 10).tolist() == [0, 1, 2, 3, 9]


def test_clusters_of_frames_are_their_states(skills: Any) -> None:
    """Frames that repeat are clusters of their own, known again one by one."""
    images = pixels()
    states = skills.features.find_states(images)
    assert len(np.unique(states)) == ROOMS.n_states
    one_by_one = [int(skills.features.find_states(image[None])[0]) for image in images]
    assert one_by_one == states.tolist()
    np.testing.assert_array_equal(skills.features(images).indices, states)
    assert skills.features.measure_distances(images).max() == 0.0
    functions = skills.features.compute_functions(images)
    np.testing.assert_allclose(skills.potential(images)[0], functions[:, 1], atol=1e-4)
    assert skills.exploration.option_chance > 0.01
    with pytest.raises(ValueError, match="discover"):
        Clusters.for_space()


def test_options_of_clusters_end_by_themselves(skills: Any) -> None:
    env = eo.OptionsWrapper(Camera(), skills)
    env.reset(seed=0)
    for _ in range(30):
        available = np.flatnonzero(env.action_masks())
        info = env.step(int(available[-1]))[4]
        assert info["duration"] < 40
        assert "option_truncated" not in info


def test_options_of_frames_are_drawn_as_strips(skills: Any) -> None:
    images = pixels()
    figure = eo.plots.plot_options(skills, images)
    assert [ax.get_title().split()[0] for ax in figure.axes] == list(skills.labels)
    # Four frames, with a gap of two pixels between them.
    strip = figure.axes[0].images[0].get_array()
    n_pixels = images.shape[1]
    assert strip.shape == (n_pixels, 4 * n_pixels + 6, 3)

    # The last one is where the option ends, the first one is far below.
    potential = skills.potential(images)[0]
    ends = skills.actions(images)[0] < 0
    highest = potential == potential[ends].max()
    np.testing.assert_array_equal(strip[:, -n_pixels:, 0], images[highest][0])
    lowest = images[potential.argmin()]
    np.testing.assert_array_equal(strip[:, :n_pixels, 0], lowest)

    # Without observations, each cluster is a point.
    of_clusters = eo.plots.plot_options(skills)
    points = of_clusters.axes[0].collections[0].get_offsets()
    assert len(points) == skills.features.n_features
    with pytest.raises(ValueError, match="frames"):
        eo.plots.plot_options(skills, images[..., None].repeat(5, axis=-1))


def test_options_of_vectors_are_drawn_over_two_columns() -> None:
    xy = np.random.default_rng(0).random((300, 2))
    purposes = [eo.Purpose([1.0, 0.0], "right")]
    weights = [[[1.0, 0.0], [0.0, 0.0]]]
    options = LinearOptionSet(purposes, np.asarray, 2, weights=weights)
    figure = eo.plots.plot_options(options, xy, over=(1, 0))
    points = figure.axes[0].collections[0]
    np.testing.assert_allclose(points.get_offsets(), xy[:, ::-1])
    np.testing.assert_allclose(points.get_array(), xy[:, 0])


def test_a_certificate_without_pairs_trusts_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rng = np.random.default_rng(0)
    x = rng.random((3_000, 2))
    y = x + rng.normal(0, 0.05, x.shape)
    action = np.zeros(3_000, dtype=int)
    found = learn(Transitions(x, action, y, action > 0), 3, steps=2)
    assert found.certificate.resolved.tolist() == [True, False, False]
    assert "order of time" in caplog.text


def test_an_unresolved_function_names_the_argument(
    caplog: pytest.LogCaptureFixture,
) -> None:
    drifting = np.cumsum(np.random.default_rng(0).normal(size=(2_001, 2)), axis=0)
    learn(link_up(drifting), 10, steps=1)
    assert "seconds=" in caplog.text


def test_discovery_names_unresolved_functions_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    drifting = np.cumsum(np.random.default_rng(0).normal(size=(2_001, 2)), axis=0)
    eo.discover(link_up(drifting), 4, features="deep", training_steps=1)
    assert sum("resolved" in record.message for record in caplog.records) == 1


def test_a_table_of_clusters_leads_to_an_end_where_others_go_on() -> None:
    places = np.eye(3)
    before = np.array([0, 1, 2])
    after = np.array([1, 2, 1])
    ended = np.array([False, False, True])
    data = Dataset.of(
        Transitions(places[before], np.zeros(3, int), places[after], ended)
    )
    clusters = data.observations.argmax(axis=1)
    mdp = _make_table(data, clusters, 3, 1)
    assert mdp.n_additional == 1
    assert mdp.successors.ravel().tolist() == [1, 2, 3, 3]
