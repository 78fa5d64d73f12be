"""Trained features: against closed forms and tables, the same bytes, files, options, and what is refused."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.data import Transitions
from eigenoptions.deep import (
    Certificate,
    Dataset,
    Encoder,
    encoder,
    learn,
    recognition,
    ritz,
    training,
)
from eigenoptions.deep.encoder import _count_above_noise
from eigenoptions.features import features_from_dict, features_to_dict
from eigenoptions.mdp import maze
from eigenoptions.options.walks import walk

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
    """The same images with noise; what is seen after one transition is what is seen before the next."""
    clean, rng = walked(steps, pixels()), np.random.default_rng(0)
    before, after = (
        np.float32(x) / 255 + rng.normal(0, 0.05, x.shape).astype(np.float32)
        for x in (clean.obs, clean.next_obs)
    )
    same = (clean.next_obs[:-1] == clean.obs[1:]).all(axis=(1, 2))
    before[1:][same] = after[:-1][same]
    return Transitions(before, clean.action, after, clean.terminated)


def truth(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs of I - P of the uniform random walk in four rooms."""
    P = (
        ROOMS.transition.toarray()
        .reshape(ROOMS.n_states, 4, ROOMS.n_states)
        .mean(axis=1)
    )
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
    assert (
        abs(certificate.score - certificate.best_score) < 0.2 < certificate.score <= 4
    )
    assert "e5" in str(certificate)


def test_the_same_seed_gives_the_same_bytes() -> None:
    seen = walked(3000, XY)
    threads = torch.get_num_threads()
    one, two = (learn(seen, 4, seconds=0.05, rng=3) for _ in range(2))
    other = learn(seen, 4, seconds=0.05, rng=4)
    assert one.vectors.tobytes() == two.vectors.tobytes() != other.vectors.tobytes()
    assert one.features.recipe == two.features.recipe != other.features.recipe
    assert torch.get_num_threads() == threads


def test_interleaved_copies_are_the_same_trajectories() -> None:
    lanes = [walk(eo.MDP(ROOMS.transition), 400, rng=i) for i in range(3)]
    mixed = [
        np.stack([getattr(lane, part) for lane in lanes], axis=1).ravel()
        for part in ("obs", "next_obs")
    ]
    ends = np.zeros(1200, dtype=bool)
    data = Dataset.of(
        Transitions(XY[mixed[0]], np.zeros(1200, dtype=int), XY[mixed[1]], ends)
    )
    before, _ = data.all.pairs(5)
    assert len(before) >= 3 * 396
    numbers = [
        {tuple(x): i for i, x in enumerate(data.observations)}[tuple(x)]
        for x in XY[lanes[0].obs[:396]]
    ]
    assert before[:396].tolist() == numbers


def test_lagged_values_of_a_cycle_are_closed_forms() -> None:
    n = 12
    rng = np.random.default_rng(0)
    at = np.cumsum(rng.choice([-1, 0, 1], size=40_001)) % n
    angle = 2 * np.pi * np.arange(n) / n
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    seen = Transitions(
        circle[at[:-1]],
        np.zeros(40_000, dtype=int),
        circle[at[1:]],
        np.zeros(40_000, dtype=bool),
    )
    values = learn(seen, 3, steps=40).values
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
    # Nothing is left of the fastest functions five transitions later, so a shorter lag is used.
    assert found.certificate.lag < 5
    np.testing.assert_allclose(
        found.values, (1 - np.cos(np.pi * np.arange(6) / 6)) / 2, rtol=0.06
    )
    assert found.certificate.resolved.all()


def test_learn_from_pixels_finds_the_eigenspace() -> None:
    images = pixels()
    found = learn(walked(20_000, images), 5, steps=60)
    assert (
        agreement((found.features(images) @ found.vectors)[:, 1:], truth(5)[1][:, 1:])
        > 0.95
    )


def test_noise_that_is_not_repeated_is_not_memorised() -> None:
    found = learn(walked_with_noise(8_000), 5, steps=60, recognise=False)
    assert not found.certificate.repeating
    # One component less than states: those of the noise are left out.
    assert found.features.arrays["components"].shape == (169, 103)
    f = found.features(np.float32(pixels()) / 255) @ found.vectors
    assert agreement(f[:, 1:], truth(5)[1][:, 1:]) > 0.9


@pytest.mark.parametrize("kind", ["vectors", "images", "long vectors"])
def test_one_wrong_observation_changes_nothing(kind: str) -> None:
    """One value of a million in 6,000 transitions: the spectrum is that of the others."""
    images = np.float64(pixels()) / 255
    observations = {
        "vectors": XY,
        "images": images,
        "long vectors": images.reshape(104, -1),
    }[kind]
    seen = walked(6_000, observations)
    wrong = seen.obs.copy()
    wrong[3_000].flat[0] = 1e6
    found = learn(
        Transitions(wrong, seen.action, seen.next_obs, seen.terminated), 4, steps=60
    )
    np.testing.assert_allclose(found.values, truth(4)[0], rtol=0.05, atol=1e-12)


def test_the_certificate_sees_poor_functions_at_any_lag() -> None:
    """Row and column are mixtures of eigenfunctions, whose fast parts have decayed at long lags only."""
    data = Dataset.of(walked(20_000, XY))
    features = ritz.tabulate_features(
        lambda n: np.column_stack([np.ones(len(n)), data.observations[n]]), 104
    )
    for lag in (1, 5):
        solution = ritz.solve(data.all, features, 3, lag)
        functions = ritz.tabulate_features(
            lambda n, v=solution.vectors: features(n) @ v, 104
        )
        implied = ritz.compute_implied_values(data.all, functions, lag)
        long_lag = ritz.compute_long_lag_values(data.all, functions, implied, lag)
        assert not ritz.find_resolved(solution.values, long_lag)[1:].any()


def test_covariances_in_time_are_those_of_numpy() -> None:
    """Far from a mean of zero, where observations never repeat."""
    x = np.random.default_rng(0).normal(5, 1, (401, 3)).cumsum(axis=0) / 10
    zero = np.zeros(400, dtype=int)
    data = Dataset.of(Transitions(x[:-1], zero, x[1:], zero > 0))
    x = data.observations.astype(float)
    mean, C, R = ritz.compute_moments(data.all, x.__getitem__, 3)
    f, g = x[:-3], x[3:]
    centre = (f + g).mean(axis=0) / 2
    np.testing.assert_allclose(mean, centre)
    f, g = f - centre, g - centre
    np.testing.assert_allclose(C, (f.T @ f + g.T @ g) / (2 * len(f)), rtol=1e-6)
    np.testing.assert_allclose(R, (f.T @ g + g.T @ f) / (2 * len(f)), rtol=1e-6)
    # Squared autocorrelations of the three functions in the span, which are all there are.
    want = np.trace(np.linalg.matrix_power(np.linalg.solve(C, R), 2))
    np.testing.assert_allclose(
        ritz.compute_held_score(*[np.concatenate([f, g])] * 2, 3), want, rtol=1e-5
    )

    def features(numbers: Any) -> Any:
        return np.column_stack([np.ones(len(numbers)), x[numbers]])

    assert len(ritz.solve(data.all, features, 4, 1).values) == 4
    with pytest.raises(ValueError, match="at most 4,"):
        ritz.solve(data.all, features, 5, 1)


def test_types_of_floats_may_be_mixed() -> None:
    seen = walked(600, XY + 0.1)
    half = [slice(300), slice(300, 600)]
    batches = [
        Transitions(
            seen.obs[p].astype(t),
            seen.action[p],
            seen.next_obs[p].astype(t),
            seen.terminated[p],
        )
        for p, t in zip(half, (np.float64, np.float32), strict=True)
    ]
    assert len(Dataset.of(batches).observations) == len(Dataset.of(seen).observations)
    with pytest.raises(ValueError, match="no transitions"):
        Dataset.of(Transitions(*(getattr(seen, name)[:0] for name in vars(seen))))
    with pytest.raises(ValueError, match="type"):
        Dataset.of([seen, walked(10, pixels())])
    # A lag longer than any trajectory is as long as the data allow.
    assert learn(seen, 3, steps=1, lag=10**6).certificate.lag < 100


@pytest.mark.parametrize("rank", [0, 5, 60])
def test_components_above_white_noise_are_counted(rank: int) -> None:
    rng = np.random.default_rng(0)
    n, d = 1000, 200
    x = rng.standard_normal((n, rank)) @ rng.standard_normal(
        (rank, d)
    ) + rng.standard_normal((n, d))
    for y in (x, x[:100]):
        size = np.linalg.eigvalsh(y @ y.T if len(y) < d else y.T @ y)[::-1] / len(y)
        assert _count_above_noise(size, *y.shape) == min(rank, len(y))


def test_slow_values_are_taken_at_long_lags() -> None:
    rng = np.random.default_rng(0)
    n = 40_000
    slow, fast = rng.random((2, n + 1)) < [[0.005], [0.1]]
    x = (
        (np.cumsum(slow) % 2 - 0.5)
        + 0.3 * (np.cumsum(fast) % 2 - 0.5)
        + 0.1 * rng.standard_normal(n + 1)
    )
    zero = np.zeros(n, dtype=int)
    data = Dataset.of(Transitions(x[:-1, None], zero, x[1:, None], zero > 0))

    def functions(numbers: Any) -> Any:
        return np.column_stack([np.ones(len(numbers)), data.observations[numbers]])

    want = 2 * slow.mean()
    implied = ritz.compute_implied_values(data.all, functions, 2)
    settled = ritz.compute_long_lag_values(data.all, functions, implied, 2)
    assert implied[1] > 1.5 * want
    np.testing.assert_allclose(settled, [0, want], rtol=0.1)


def test_values_without_noise_are_those_of_the_chain() -> None:
    rng = np.random.default_rng(0)
    # Two states, exchanged with probability 0.1: the eigenvalue is 0.2. Half of the variance of x is new noise.
    x = (
        np.cumsum(rng.random(40_001) < 0.1) % 2 * 2.0
        - 1.0
        + rng.standard_normal(40_001)
    )[:, None]
    n = np.zeros(40_000, dtype=int)
    data = Dataset.of(Transitions(x[:-1], n, x[1:], n > 0))
    features = ritz.tabulate_features(
        lambda n: np.column_stack([np.ones(len(n)), data.observations[n]]),
        len(data.observations),
    )
    noisy = ritz.solve(data.all, features, 2, 2)
    np.testing.assert_allclose(noisy.values[1], 1 - np.sqrt(0.64 / 2), rtol=0.05)
    clean = ritz.remove_noise(noisy, data.all, features, 2)
    np.testing.assert_allclose(clean.values[1], 0.2, rtol=0.1)
    # The functions are those of the signal, of variance about 0.8 times 1 in the metric at lag 1.
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
    assert not np.array_equal(
        learn(seen, 3, found.features, steps=10).features(XY), before
    )
    assert np.array_equal(found.features(XY), before)
    with pytest.raises(ValueError, match="must return"):
        learn(seen, 3, torch.nn.Unflatten(1, (2, 1)), steps=1)
    dropped = learn(
        seen, 3, torch.nn.Sequential(own, torch.nn.Dropout(0.5)), steps=1
    ).features
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
        (XY * 1e-300, {}, "nothing"),
        (np.zeros((104, 8, 8), dtype=np.uint8), {}, "nothing"),
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
    steps, rng = np.arange(100.0).repeat(2).reshape(100, 2), np.random.default_rng(0)
    data = Dataset.of(
        Transitions(steps, np.zeros(100, int), steps + 1, np.arange(100) % 50 == 49)
    )
    before, after = (
        data.observations[numbers, 0] for numbers in data.all.draw(20_000, 0.0, rng)
    )
    np.testing.assert_array_equal(after, before + 1)
    before, after = (
        data.observations[numbers, 0] for numbers in data.all.draw(20_000, 0.75, rng)
    )
    early = before % 50 < 20
    assert (after - before)[early].mean() == pytest.approx(4.0, abs=0.1)
    assert (before // 50 == (after - 1) // 50).all()


def test_changes_are_measured_where_something_changes() -> None:
    obs = np.array([[0.0, 5.0, 1.0], [2.0, 5.0, 1.0], [2.0, 5.0, 4.0], [8.0, 5.0, 4.0]])
    data = Dataset.of(
        Transitions(obs[:-1], np.zeros(3, int), obs[1:], np.zeros(3, bool))
    )
    np.testing.assert_array_equal(training._estimate_steps(data), [4.0, 1.0, 3.0])


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
    monkeypatch.setattr(encoder, "BLOCK", 8)
    np.testing.assert_allclose(found.features(XY), whole, atol=1e-5)


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
        self.images, self.state = pixels(), 0

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
    assert skills.patience == 8
    images = pixels()
    f, actions = skills.potential(images), skills.actions(images)
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
    assert isinstance(same.features, Encoder)
    assert same.actions(images).tolist() == skills.actions(images).tolist()
    assert features_to_dict(same.features) == features_to_dict(skills.features)
    assert (
        features_from_dict(features_to_dict(skills.features), skills.features)
        is skills.features
    )
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
    assert (
        agreement((more.features(XY) @ more.vectors)[:, 1:], truth(5)[1][:, 1:]) > 0.9
    )
    with pytest.raises(ValueError, match="observations"):
        found.features(pixels())


def test_stacked_frames_become_channels() -> None:
    frames = np.stack([pixels()] * 2, axis=1)[..., None]
    found = learn(walked(3_000, frames), 3, steps=2)
    assert found.features(frames).shape == (104, found.features.n_features)


def test_a_table_of_transitions_counts_every_action_once_and_sums_to_one() -> None:
    """Action 0 of state 0 was taken twice, with two results: each counts a half."""
    at, then, action = (
        np.array([0, 0, 0, 1]),
        np.array([1, 2, 1, 0]),
        np.array([0, 0, 1, 0]),
    )
    eye = np.eye(3)
    data = Dataset.of(Transitions(eye[at], action, eye[then], np.ones(4, dtype=bool)))
    numbers, weights = data.all.table
    order = np.argsort([int(data.observations[i].argmax()) for i in numbers])
    expected = np.array([[0, 1.5 + 1, 0.5], [1.5 + 1, 0, 0], [0.5, 0, 0]]) / 6
    np.testing.assert_allclose(weights.toarray()[np.ix_(order, order)], expected)


# Options where the best action depends on more than slow functions
@pytest.fixture(scope="module")
def turning_room() -> tuple[np.ndarray, np.ndarray, Transitions]:
    """Successors ``(S, 3)``, images and a walk of an agent that turns or goes forward in a room of 12 x 12 cells."""
    side, ahead = 12, np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
    cell, heading = np.divmod(np.arange(4 * side**2), 4)
    place = np.stack(np.divmod(cell, side), axis=1)
    forward = (np.clip(place + ahead[heading], 0, side - 1) @ [side, 1]) * 4 + heading
    successors = np.stack(
        [4 * cell + (heading - 1) % 4, 4 * cell + (heading + 1) % 4, forward], axis=1
    )
    images = np.zeros((len(cell), 3 * side, 3 * side), dtype=np.uint8)
    centre = 3 * place + 1
    images[np.arange(len(cell)), *centre.T] = images[
        np.arange(len(cell)), *(centre + ahead[heading]).T
    ] = 255
    rng = np.random.default_rng(0)
    action, at = rng.integers(3, size=20_000), [0]
    for a in action:
        at.append(int(successors[at[-1], a]))
    return (
        successors,
        images,
        Transitions(
            images[at[:-1]], action, images[at[1:]], np.zeros(20_000, dtype=bool)
        ),
    )


@pytest.mark.slow
def test_options_turn_before_they_go(turning_room: Any) -> None:
    """An agent that looks in one of four directions: which turn is right is no slow function, but it is learned."""
    successors, images, seen = turning_room
    found = learn(seen, 3, steps=60)
    options = eo.discover(seen, 4, features="deep", training_steps=60, n_actions=3)
    assert (
        options.directions.shape[1]
        == options.features.n_features
        == found.features.n_features
    )
    f, actions = options.potential(images), options.actions(images)
    np.testing.assert_allclose(
        f[::2], (found.features(images) @ found.vectors[:, 1:]).T, atol=1e-9
    )
    for option in range(len(options)):
        state = np.arange(len(images))
        for _ in range(80):
            moves = successors[state, np.maximum(actions[option, state], 0)]
            state = np.where(actions[option, state] >= 0, moves, state)
        # With values in the last layer only it was at most 0.45.
        assert (f[option, state] - f[option]).sum() > 0.7 * (
            f[option].max() - f[option]
        ).sum()


# Recognition of noisy observations
N, D = 1000, 12


def shown(
    noise: float, rng: np.random.Generator, n: int = N, n_classes: int = 20
) -> tuple[np.ndarray, ...]:
    """Noisy observations of things that are ten units apart or more, and what each of them shows."""
    of = np.append(np.arange(n_classes), rng.integers(n_classes, size=n - n_classes))
    things = 10 * np.stack(
        [np.arange(n_classes), *np.zeros((D - 1, n_classes))], axis=1
    )
    return (things[of] + noise * rng.standard_normal((n, D))).astype(np.float32), of


def number_classes(
    x: np.ndarray, rng: np.random.Generator, sample: int = 2048
) -> np.ndarray | None:
    """Classes of observations that follow each other in time."""
    return recognition.find_classes(
        x, np.arange(len(x) - 1), np.arange(1, len(x)), rng, sample
    )


@pytest.mark.parametrize("seed", range(3))
def test_classes_are_what_is_shown(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, of = shown(0.5, rng)
    found = number_classes(x, rng)
    assert found is not None
    assert (
        len({*zip(of.tolist(), found.tolist(), strict=True)})
        == len(np.unique(found))
        == 20
    )


def test_what_the_sample_does_not_contain_is_found() -> None:
    x, of = shown(0.5, np.random.default_rng(0), n=1000)
    # One more thing, which is seen three times: a sample of a fifth often misses it.
    x[-3:, 0], x[-3:, 1] = 0.0, x[-3:, 1] + 30
    of[-3:] = 20
    last = []
    for seed in range(5):
        found = number_classes(x, np.random.default_rng(seed), sample=200)
        assert found is not None
        assert (
            len({*zip(of.tolist(), found.tolist(), strict=True)})
            == len(np.unique(found))
            == 21
        )
        last.append(found[-1] == 20)
    assert any(last)


def test_states_that_are_not_discrete_or_too_noisy_are_not_numbered() -> None:
    rng = np.random.default_rng(0)
    continuous = rng.random((N, 2)).astype(np.float32)
    assert number_classes(continuous, rng) is None
    noise_only = rng.standard_normal((N, D)).astype(np.float32)
    assert number_classes(noise_only, rng) is None
    for noise in (3.0, 6.0):
        assert number_classes(shown(noise, rng)[0], rng) is None


def test_a_slow_change_within_classes_is_not_noise() -> None:
    rng = np.random.default_rng(0)
    x, _ = shown(0.5, rng)
    assert number_classes(x, rng) is not None
    x[:, 5] += np.sin(np.arange(N) / 100)
    assert number_classes(x, rng) is None


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
