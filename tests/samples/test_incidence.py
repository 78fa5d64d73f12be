"""The incidence matrix: Theorem 5.1, unique rows, singular directions, slow features.

Rows come in any batches and formats.
"""

from __future__ import annotations

import numpy as np
import pytest
from deeptime.decomposition import TICA
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions.deep.dataset import Dataset
from eigenoptions.deep.ritz import find_slow_functions
from eigenoptions.samples.features import Fourier, OneHot, Raw
from eigenoptions.samples.incidence import (
    Incidence,
    feature_spectrum,
    incidence,
    incidence_spectrum,
)
from tests import reference
from tests.tables import list_transitions


def make_batch(obs, next_obs):
    return eo.Transitions(
        obs, np.zeros(len(obs), dtype=int), next_obs, np.zeros(len(obs), dtype=bool)
    )


def test_incidence_of_every_transition_is_twice_the_laplacian(domain):
    """Theorem 5.1, and the singular vectors of T by the SVD itself."""
    T = incidence(list_transitions(domain), OneHot(domain.n_states))
    L = eo.laplacian(eo.graph(domain), "combinatorial").toarray()
    assert_array_equal((T.T @ T).toarray(), 2 * L)
    sp = incidence_spectrum(T)
    exact = eo.spectrum(eo.graph(domain), operator="combinatorial")
    assert sp.operator == "incidence"
    assert sp.n_zero == 1
    assert_allclose(sp.values, exact.values, atol=1e-12)
    assert_allclose(sp.vectors, exact.vectors, atol=1e-9)
    sigma = np.linalg.svd(T.toarray(), compute_uv=False)
    assert_allclose(
        np.sort(sigma**2 / 2)[-len(sp.values) + 1 :], sp.values[1:], atol=1e-10
    )


@pytest.mark.parametrize("kind", ["bits", "numbers", "sparse"])
def test_incidence_in_batches_is_the_papers_matrix(kind, rng):
    """Rows of features with many repeats, some of which change nothing."""
    if kind == "bits":
        few = rng.random((5, 70)) < 0.5
    else:
        few = rng.integers(-2, 3, (5, 70)).astype(float)
    states, next_states = rng.integers(5, size=(2, 200))

    def features(numbers):
        if kind == "sparse":
            return csr_array(few[numbers])
        return few[numbers]

    batches = []
    for low, high in ((0, 1), (1, 60), (60, 60), (60, 200)):
        batches.append(make_batch(states[low:high], next_states[low:high]))

    T = Incidence()
    n_new = 0
    for batch in batches:
        is_new = T.add(features(batch.obs), features(batch.next_obs))
        n_new += is_new.sum()
    assert n_new == len(T)
    assert n_new == T.rows.shape[0]
    assert abs(incidence(batches, features) - T.rows).nnz == 0

    # The paper's matrix has the same rows, in another order.
    expected = reference.incidence(few[states], few[next_states])
    expected = expected[expected.any(axis=1)]
    assert_array_equal(np.unique(T.rows.toarray(), axis=0), np.unique(expected, axis=0))


def test_incidence_rows_keep_the_order_of_transitions():
    x = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [4.0, 1.0], [4.0, -0.0]])
    assert_array_equal(
        incidence(make_batch(x[:-1], x[1:]), Raw()).toarray(),
        [[2.0, 0.0], [0.0, 1.0], [0.0, -1.0]],
    )


def test_incidence_spectrum_of_dependent_features_counts_zeros(rng):
    phi = rng.standard_normal((500, 4)) @ rng.standard_normal((4, 9))
    phi = np.column_stack([phi, np.ones(500)])
    T = csr_array(np.diff(phi, axis=0))
    sp = incidence_spectrum(T)
    assert len(sp.values) == 9
    assert sp.n_zero == 5

    # Differences along the eigenvectors: none for zeros, uncorrelated for the others.
    changes = np.diff(phi, axis=0) @ sp.vectors
    assert_allclose(changes[:, :5], 0, atol=1e-9)
    products = changes[:, 5:].T @ changes[:, 5:] / 2
    assert_allclose(products, np.diag(sp.values[5:]), atol=1e-8)
    assert (sp.vectors[9] == 0).all()
    first = incidence_spectrum(T, 7).vectors
    assert_allclose(first, sp.vectors[:, :7], rtol=0, atol=1e-9)
    assert incidence_spectrum(T, tolerance=0.9).n_zero == 8


def test_feature_spectrum_solves_the_generalised_eigenproblem(rng):
    x = np.clip(np.cumsum(rng.normal(size=(400, 2)) * 0.1, axis=0), 0, 1)
    features = Fourier((0.0, 0.0), (1.0, 1.0), order=2)
    batches = [make_batch(x[:200], x[1:201]), make_batch(x[200:-1], x[201:])]
    phi = features(x)
    T = np.unique(np.diff(phi, axis=0), axis=0)
    M = np.cov(phi[:-1].T, bias=True)
    slow = feature_spectrum(batches, features)
    assert slow.features is features
    V = slow.vectors
    assert_allclose(V.T @ M @ V, np.eye(8), atol=1e-8)
    assert_allclose(T.T @ T @ V, 2 * M @ V * slow.values, atol=1e-6)

    plain = feature_spectrum(batches, features, 3, whiten=False)
    V = plain.vectors
    assert_allclose(V.T @ V, np.eye(3), atol=1e-12)
    assert_allclose(T.T @ T @ V, 2 * V * plain.values, atol=1e-8)


def test_feature_spectrum_leaves_flat_directions_out(rng):
    phi = rng.standard_normal((300, 4)) * [1.0, 1.0, 1e-2, 1e-4]
    T = csr_array(np.diff(phi, axis=0))
    covariance = np.cov(phi.T)
    assert incidence_spectrum(T, covariance=covariance).vectors.shape == (4, 3)
    fewer = incidence_spectrum(T, covariance=covariance, min_variance=1e-3)
    assert fewer.vectors.shape == (4, 2)


def test_spectrum_of_features_and_ritz_values_are_those_of_tica(rng):
    """Slow features by another library, one lag apart.

    A value is 1 - autocorrelation, and the same axes are cut.
    """
    x = np.zeros((3000, 3))
    for t in range(1, 3000):
        x[t] = [0.97, 0.8, 0.5] * x[t - 1] + rng.normal(size=3)
    # The fourth feature is faint and counts, the last one is flat.
    phi = np.column_stack([x, 0.01 * np.tanh(x[:, 0]), 1e-6 * rng.normal(size=3000)])
    phi /= np.sqrt(np.linalg.eigvalsh(np.cov(phi.T))[-1])
    expected = 1.0 - TICA(lagtime=1).fit_fetch(phi).singular_values
    assert len(expected) == 4
    before = phi[:-1]
    after = phi[1:]
    both = np.concatenate([before, after])
    sp = incidence_spectrum(
        csr_array(after - before), covariance=np.cov(both.T, bias=True)
    )
    assert_allclose(sp.values / 2999, expected, rtol=1e-9)
    data = Dataset.of(make_batch(before, after))
    rows = np.ones((len(data.observations), 6))
    rows[data.before, 1:] = before
    rows[data.after, 1:] = after
    solution = find_slow_functions(data.all, rows.__getitem__, 5, 1)
    assert_allclose(solution.values[1:], expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: incidence([], Raw()), "batch"),
        (lambda: incidence(make_batch(np.eye(2), np.eye(2) * np.nan), Raw()), "finite"),
        (lambda: incidence(make_batch(np.eye(2), np.eye(2)), np.ravel), "features"),
        (lambda: incidence_spectrum(csr_array((3, 2))), "changed"),
        (lambda: incidence_spectrum(csr_array(np.eye(2)), 3), "1..2"),
        (
            lambda: incidence_spectrum(
                csr_array(np.eye(2)), covariance=np.zeros((2, 2))
            ),
            "k must",
        ),
    ],
)
def test_incidence_of_bad_input_raises(call, word):
    with pytest.raises(ValueError, match=word):
        call()


def test_rounding_errors_make_no_difference_new() -> None:
    """Steps against a wall and equal steps are so, too, up to a millionth."""
    rng = np.random.default_rng(0)
    phi = rng.integers(0, 8, (400, 3)) * np.array([0.1, 25.0, 1e-9])
    phi_next = phi.copy()
    phi_next[::2] += np.array([0.1, 0.0, 1e-9])
    exact = Incidence()
    exact.add(phi, phi_next)
    assert len(exact) == 1

    noisy = Incidence()
    for noise in rng.uniform(-1e-13, 1e-13, (5, *phi.shape)):
        noisy.add(phi * (1 + noise), phi_next * (1 - noise))
    assert len(noisy) == 1
    np.testing.assert_allclose(noisy.rows.toarray(), exact.rows.toarray(), atol=1e-10)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_differences_are_compared_in_units_of_their_feature(unit: float) -> None:
    """A step of a thousandth of the largest feature is no rounding error."""
    phi = unit * np.array([[0.0], [1.0], [1.0]])
    phi_next = phi + unit * np.array([[0.001], [0.002], [0.001 + 1e-9]])
    T = Incidence()
    assert T.add(phi, phi_next).tolist() == [True, True, False]
