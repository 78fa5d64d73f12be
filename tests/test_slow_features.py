"""Eigenpurposes of features are slow feature analysis without variance normalisation (docs/sfa.md), as identities."""

from __future__ import annotations

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.spectra.gram import Gram

ROOM = eo.maze("....\n.##.\n.#..\n....")
N = ROOM.n_states
L = eo.laplacian(eo.graph(ROOM), "combinatorial").toarray()
# The walk of every action once in every state.
BEFORE = np.repeat(np.arange(N), ROOM.n_actions)
AFTER = np.asarray(ROOM.successors).ravel()


def stream(phi: np.ndarray) -> tuple[Gram, np.ndarray]:
    """Differences of features ``(S, d)`` in every move, and the covariance of the features."""
    gram = Gram(phi.shape[1], dedupe=False)
    gram.add(phi[BEFORE], phi[AFTER])
    return gram, np.cov(phi.T, bias=True)


def features(d: int, scale: float = 1.0) -> np.ndarray:
    """Random features, whose directions have sizes from 1 down to `scale`."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, d)) @ np.diag(np.geomspace(1.0, scale, d))


def unit(f: np.ndarray) -> np.ndarray:
    f = f - f.mean(axis=0)
    return f / np.linalg.norm(f, axis=0)


def test_both_minimise_the_same_sum_of_squared_differences() -> None:
    phi = features(5)
    gram, _ = stream(phi)
    np.testing.assert_allclose(gram.matrix / 2, phi.T @ L @ phi, atol=1e-12)
    e = np.arange(5.0)
    f = phi @ e
    assert e @ gram.matrix @ e == pytest.approx(((f[AFTER] - f[BEFORE]) ** 2).sum())


def test_with_one_feature_per_state_they_are_the_same() -> None:
    gram, covariance = stream(np.eye(N))
    plain, slow = gram.spectrum(), gram.spectrum(metric=covariance)
    # Lengths differ: variance 1 instead of length 1. The constant function has no variance.
    np.testing.assert_allclose(slow.values, N * plain.values[1:], rtol=1e-9)
    np.testing.assert_allclose(unit(slow.vectors), plain.vectors[:, 1:], atol=1e-7)


def test_with_variance_one_complete_features_give_proto_value_functions() -> None:
    phi = features(N)
    gram, covariance = stream(phi)
    exact = eo.spectrum(eo.graph(ROOM), operator="combinatorial")
    slow = gram.spectrum(metric=covariance)
    np.testing.assert_allclose(slow.values / N, exact.values[1:], rtol=1e-7)
    cosine = np.abs((unit(phi @ slow.vectors) * exact.vectors[:, 1:]).sum(axis=0))
    # Repeated eigenvalues have no vectors of their own.
    single = np.abs(np.diff(exact.values[1:], prepend=-1)) > 1e-6
    single &= np.append(single[1:], True)
    assert single.sum() > 3
    np.testing.assert_allclose(cosine[single], 1.0, atol=1e-6)
    plain = unit(phi @ gram.spectrum().vectors)
    assert np.abs((plain[:, :3] * exact.vectors[:, 1:4]).sum(axis=0)).max() < 0.9


def test_more_features_lower_the_values_towards_the_true_ones() -> None:
    exact = eo.spectrum(eo.graph(ROOM), operator="combinatorial").values
    last = np.full(3, np.inf)
    for d in (4, 6, 9, N):
        gram, covariance = stream(features(N)[:, :d])
        now = gram.spectrum(3, metric=covariance).values / N
        assert (now <= last + 1e-9).all()
        assert (now >= exact[1:4] - 1e-9).all()
        last = now


def test_without_it_the_first_value_belongs_to_the_smallest_features() -> None:
    phi = features(6, scale=1e-3)
    gram, covariance = stream(phi)
    smallest = np.linalg.eigvalsh(N * covariance)[0]
    assert gram.spectrum().values[0] <= smallest * np.linalg.eigvalsh(L)[-1]
    # With variance 1 the scale of features plays no part.
    other = features(6, scale=0.1)
    values = [g.spectrum(metric=c).values for g, c in (stream(features(6)), stream(other))]
    np.testing.assert_allclose(*values, rtol=1e-6)
