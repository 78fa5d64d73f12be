"""The successor and the default representation, and their eigenvectors.

The first is also learned.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions.mdp.chains import uniform_walk
from eigenoptions.spectra.representations import (
    compute_smallest_eigenvectors,
    default_representation,
    learn_representation,
    successor_representation,
)

RING = csr_array((np.roll(np.eye(5), 1, axis=1) + np.roll(np.eye(5), -1, axis=1)) / 2)


def test_representations_are_inverses(four_rooms):
    P = uniform_walk(four_rooms)
    psi = successor_representation(P, 0.95)
    assert_allclose(psi, np.linalg.inv(np.eye(104) - 0.95 * P.toarray()), atol=1e-10)
    assert_allclose(psi.sum(axis=1), 20.0)
    rewards = np.linspace(-2.0, -1.0, 104)
    Z = default_representation(P, rewards, 1.3)
    assert_allclose(
        Z, np.linalg.inv(np.diag(np.exp(-rewards / 1.3)) - P.toarray()), atol=1e-12
    )


def test_default_representation_of_equal_rewards_has_eigenvectors_of_the_laplacian(
    four_rooms,
):
    """Tse et al. (2025), Theorem 3.1.

    The uniform walk of a maze is ``I - L / 4`` of the combinatorial Laplacian.
    """
    Z = default_representation(uniform_walk(four_rooms), -np.ones(104), 1.3)
    _, vectors = compute_smallest_eigenvectors(-Z, 6)
    expected = eo.spectrum(eo.graph(four_rooms), 6, operator="combinatorial").vectors
    assert_allclose(vectors, expected, atol=1e-9)


def test_smallest_eigenvectors_never_cut_an_eigenspace():
    values, vectors = compute_smallest_eigenvectors(
        csr_array(np.diag([2.0, 1.0, 1.0, 1.0])), 2
    )
    assert_allclose(values, [1.0, 1.0])
    assert_allclose(vectors, np.eye(4)[:, 1:3], atol=1e-12)


def test_learned_representation_approaches_the_exact_one():
    rng = np.random.default_rng(0)
    walk = np.concatenate([[0], np.cumsum(rng.choice([-1, 1], 20_000))]) % 5
    exact = successor_representation(RING, 0.9)
    learned = learn_representation(walk[:-1], walk[1:], 5, gamma=0.9, alpha=0.01)
    assert np.abs(learned - exact).max() < 0.15


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: successor_representation(RING, 1.0), "gamma"),
        (lambda: successor_representation(2 * RING, 0.9), "probabilities"),
        (lambda: successor_representation(csr_array((4_001, 4_001)), 0.9), "states"),
        (lambda: default_representation(RING, np.zeros(5), 1.3), "negative"),
        (lambda: default_representation(RING, [-1.0], 1.3), "shape"),
        (lambda: default_representation(RING, -np.ones(5), 1e-6), "temperature"),
        (lambda: learn_representation([0, 5], [1, 2], 5), "states"),
        (lambda: learn_representation([0], [1, 2], 5), "length"),
        (lambda: learn_representation([0], [1], 5, alpha=2.0), "alpha"),
        (lambda: learn_representation([0], [1], 5, gamma=-0.5), "gamma"),
    ],
)
def test_representations_of_bad_input_raise(call, word):
    with pytest.raises(ValueError, match=word):
        call()
