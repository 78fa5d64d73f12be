"""Eigenpurposes of features are slow feature analysis without variance normalisation (docs/sfa.md), as identities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions.spectra.incidence import incidence_spectrum

ROOM = eo.maze("....\n.##.\n.#..\n....")
N = ROOM.n_states
L = eo.laplacian(eo.graph(ROOM), "combinatorial").toarray()
# The walk of every action once in every state.
BEFORE = np.repeat(np.arange(N), ROOM.n_actions)
AFTER = np.asarray(ROOM.successors).ravel()


def differences(phi: np.ndarray) -> tuple[csr_array, np.ndarray]:
    """Differences of features ``(S, d)`` in every move, and the covariance of the features."""
    return csr_array(phi[AFTER] - phi[BEFORE]), np.cov(phi.T, bias=True)


def features(d: int, scale: float = 1.0) -> np.ndarray:
    """Random features, whose directions have sizes from 1 down to `scale`."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, d)) @ np.diag(np.geomspace(1.0, scale, d))


def unit(f: np.ndarray) -> np.ndarray:
    f = f - f.mean(axis=0)
    return f / np.linalg.norm(f, axis=0)


def test_both_minimise_the_same_sum_of_squared_differences() -> None:
    phi = features(5)
    T, _ = differences(phi)
    np.testing.assert_allclose((T.T @ T).toarray() / 2, phi.T @ L @ phi, atol=1e-12)
    e = np.arange(5.0)
    f = phi @ e
    assert e @ (T.T @ T) @ e == pytest.approx(((f[AFTER] - f[BEFORE]) ** 2).sum())


def test_with_one_feature_per_state_they_are_the_same() -> None:
    T, covariance = differences(np.eye(N))
    plain, slow = incidence_spectrum(T), incidence_spectrum(T, covariance=covariance)
    # Lengths differ: variance 1 instead of length 1. The constant function has no variance.
    np.testing.assert_allclose(slow.values, N * plain.values[1:], rtol=1e-9)
    np.testing.assert_allclose(unit(slow.vectors), plain.vectors[:, 1:], atol=1e-7)


def test_with_variance_one_complete_features_give_proto_value_functions() -> None:
    phi = features(N)
    T, covariance = differences(phi)
    exact = eo.spectrum(eo.graph(ROOM), operator="combinatorial")
    slow = incidence_spectrum(T, covariance=covariance)
    np.testing.assert_allclose(slow.values / N, exact.values[1:], rtol=1e-7)
    cosine = np.abs((unit(phi @ slow.vectors) * exact.vectors[:, 1:]).sum(axis=0))
    # Repeated eigenvalues have no vectors of their own.
    single = np.abs(np.diff(exact.values[1:], prepend=-1)) > 1e-6
    single &= np.append(single[1:], True)
    assert single.sum() > 3
    np.testing.assert_allclose(cosine[single], 1.0, atol=1e-6)
    plain = unit(phi @ incidence_spectrum(T).vectors)
    assert np.abs((plain[:, :3] * exact.vectors[:, 1:4]).sum(axis=0)).max() < 0.9


def test_more_features_lower_the_values_towards_the_true_ones() -> None:
    exact = eo.spectrum(eo.graph(ROOM), operator="combinatorial").values
    last = np.full(3, np.inf)
    for d in (4, 6, 9, N):
        T, covariance = differences(features(N)[:, :d])
        now = incidence_spectrum(T, 3, covariance=covariance).values / N
        assert (now <= last + 1e-9).all()
        assert (now >= exact[1:4] - 1e-9).all()
        last = now


def test_without_it_the_first_value_belongs_to_the_smallest_features() -> None:
    phi = features(6, scale=1e-3)
    T, covariance = differences(phi)
    smallest = np.linalg.eigvalsh(N * covariance)[0]
    assert incidence_spectrum(T).values[0] <= smallest * np.linalg.eigvalsh(L)[-1]
    # With variance 1 the scale of features plays no part.
    other = features(6, scale=0.1)
    pairs = differences(features(6)), differences(other)
    values = [incidence_spectrum(T, covariance=c).values for T, c in pairs]
    np.testing.assert_allclose(*values, rtol=1e-6)
