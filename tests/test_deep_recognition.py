"""Observations that repeat up to noise are numbered where they can be told apart, and only there."""

from __future__ import annotations

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.deep import learn, recognition
from eigenoptions.mdp import Transitions
from eigenoptions.options.walks import walk

pytest.importorskip("torch")

N, D = 1000, 12


def shown(noise: float, rng: np.random.Generator, n: int = N, n_classes: int = 20) -> tuple[np.ndarray, ...]:
    """Noisy observations of things that are ten units apart or more, and what each of them shows."""
    of = np.append(np.arange(n_classes), rng.integers(n_classes, size=n - n_classes))
    things = 10 * np.stack([np.arange(n_classes), *np.zeros((D - 1, n_classes))], axis=1)
    return (things[of] + noise * rng.standard_normal((n, D))).astype(np.float32), of


def numbered(x: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """Classes of observations that follow each other in time."""
    return recognition.classes(x, np.arange(len(x) - 1), np.arange(1, len(x)), rng)


@pytest.mark.parametrize("seed", range(3))
def test_classes_are_what_is_shown(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, of = shown(0.5, rng)
    found = numbered(x, rng)
    assert found is not None
    assert len({*zip(of.tolist(), found.tolist(), strict=True)}) == len(np.unique(found)) == 20


def test_what_the_sample_does_not_contain_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "SAMPLE", 200)
    x, of = shown(0.5, np.random.default_rng(0), n=1000)
    # One more thing, which is seen three times: a sample of a fifth often misses it.
    x[-3:, 0], x[-3:, 1] = 0.0, x[-3:, 1] + 30
    of[-3:] = 20
    last = []
    for seed in range(5):
        found = numbered(x, np.random.default_rng(seed))
        assert found is not None
        assert len({*zip(of.tolist(), found.tolist(), strict=True)}) == len(np.unique(found)) == 21
        last.append(found[-1] == 20)
    assert any(last)


def test_states_that_are_not_discrete_or_too_noisy_are_not_numbered() -> None:
    rng = np.random.default_rng(0)
    continuous = rng.random((N, 2)).astype(np.float32)
    assert numbered(continuous, rng) is None
    noise_only = rng.standard_normal((N, D)).astype(np.float32)
    assert numbered(noise_only, rng) is None
    for noise in (3.0, 6.0):
        assert numbered(shown(noise, rng)[0], rng) is None


def test_a_slow_change_within_classes_is_not_noise() -> None:
    rng = np.random.default_rng(0)
    x, _ = shown(0.5, rng)
    assert numbered(x, rng) is not None
    x[:, 5] += np.sin(np.arange(N) / 100)
    assert numbered(x, rng) is None


def test_noisy_images_are_learned_as_if_they_repeated(caplog: pytest.LogCaptureFixture) -> None:
    rooms = eo.maze("four-rooms")
    n, S = 16_000, rooms.n_states
    taken = walk(eo.MDP(rooms.transition), n, rng=0, max_episode_steps=50)
    clean = np.zeros((S, 13, 13), dtype=np.float32)
    clean[np.arange(S), *rooms.coords.T] = 1.0
    noise = np.random.default_rng(0).normal(0, 0.05, (2, n, 13, 13)).astype(np.float32)
    before, after = clean[taken.obs] + noise[0], clean[taken.next_obs] + noise[1]
    # What is seen after one transition is what is seen before the next.
    inside = np.flatnonzero(np.arange(n) % 50)
    before[inside] = after[inside - 1]
    with caplog.at_level("INFO", "eigenoptions"):
        found = learn(Transitions(before, taken.action, after, taken.terminated), 5, steps=200)
    assert f"are {S} that repeat up to noise" in caplog.text
    assert found.certificate.repeating
    P = rooms.transition.toarray().reshape(S, 4, S).mean(axis=1)
    values, vectors = np.linalg.eigh(np.eye(S) - P)
    np.testing.assert_allclose(found.values, values[:5], atol=1e-12, rtol=0.02)
    f = found.features(clean) @ found.vectors[:, 1:]
    q = np.linalg.qr(f - f.mean(axis=0))[0]
    assert np.linalg.norm(q.T @ vectors[:, 1:5]) ** 2 / 4 > 0.995
