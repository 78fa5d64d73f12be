"""Successor and default representations, and embeddings by commute time and diffusion."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions.spectra.representations import (
    MAX_DENSE_STATES,
    default_representation,
    learned_successor,
    successor_representation,
)
from tests.test_mdp import refused


def walk_matrix(W):
    W = W.toarray()
    return W / W.sum(axis=1)[:, None]


def weighted(seed, n=12):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1) + np.diag(np.ones(n - 1), 1)
    return csr_array(W + W.T)


@pytest.mark.parametrize("seed", range(3))
def test_the_successor_operator_is_the_inverse(seed):
    W = weighted(seed)
    psi = np.linalg.inv(np.eye(12) - 0.9 * walk_matrix(W))
    found = eo.spectrum(W, 5, operator="successor", gamma=0.9)
    assert_allclose(psi @ found.vectors, found.vectors * found.values, atol=1e-9)
    assert_allclose(found.values, np.sort(np.linalg.eigvals(psi).real)[::-1][:5])
    same = eo.spectrum(W, 5, operator="random-walk")
    np.testing.assert_array_equal(found.vectors, same.vectors)
    assert found.n_zero == 1


@pytest.mark.parametrize("seed", range(3))
def test_the_default_operator_is_the_inverse(seed):
    W = weighted(seed)
    rewards = -0.2 - np.random.default_rng(seed).random(12)
    Z = np.linalg.inv(np.diag(np.exp(-rewards / 0.8)) - walk_matrix(W))
    # The walk does not depend on the unit of the weights.
    found = eo.spectrum(W / 16, 4, operator="default", rewards=rewards, temperature=0.8)
    assert_allclose(Z @ found.vectors, found.vectors * found.values, atol=1e-9)
    assert_allclose(found.values, np.sort(np.linalg.eigvals(Z).real)[::-1][:4])
    assert (found.vectors[:, 0] > 0).all()  # Perron and Frobenius
    assert [p.label for p in eo.eigenpurposes(found)][:2] == ["e1+", "e1-"]


def test_equal_rewards_give_the_eigenvectors_of_the_successor_representation():
    """Tse et al. (2025), Theorem 3.1."""
    W = eo.graph(eo.maze("four-rooms"))
    default = eo.spectrum(W, 6, operator="default", rewards=-np.ones(104))
    successor = eo.spectrum(W, 6, operator="successor")
    assert_allclose(default.vectors, successor.vectors, atol=1e-9)


def test_options_of_the_successor_operator(four_rooms):
    options = eo.discover(four_rooms, 4, operator="successor")
    other = eo.discover(four_rooms, 4, operator="random-walk")
    np.testing.assert_array_equal(options.policy, other.policy)
    assert options.labels == ("e2+", "e2-", "e3+", "e3-")


def test_representations_are_the_inverses(four_rooms):
    P = csr_array(walk_matrix(eo.graph(four_rooms)))
    psi = successor_representation(P, 0.95)
    assert_allclose(psi, np.linalg.inv(np.eye(104) - 0.95 * P.toarray()), atol=1e-10)
    assert_allclose(psi.sum(axis=1), 20.0)
    rewards = np.linspace(-2.0, -1.0, 104)
    Z = default_representation(P, rewards, 1.3)
    assert_allclose(Z, np.linalg.inv(np.diag(np.exp(-rewards / 1.3)) - P.toarray()), atol=1e-12)


def test_temporal_differences_approach_the_representation():
    """A walk on a ring of five states: its learned representation comes close to the exact one."""
    rng = np.random.default_rng(0)
    walk = np.concatenate([[0], np.cumsum(rng.choice([-1, 1], 20_000))]) % 5
    exact = successor_representation(
        csr_array((np.eye(5)[[1, 2, 3, 4, 0]] + np.eye(5)[[4, 0, 1, 2, 3]]) / 2), 0.9
    )
    learned = learned_successor(walk[:-1], walk[1:], 5, gamma=0.9, alpha=0.01)
    assert np.abs(learned - exact).max() < 0.15
    assert_allclose(learned.sum(axis=1), 10.0, atol=0.3)


def test_commute_distances_are_times_there_and_back():
    W = weighted(3)
    P, n, degrees = walk_matrix(W), 12, np.asarray(W.sum(axis=1)).ravel()
    rows = eo.spectrum(W, operator="combinatorial").embedding("commute")
    square = ((rows[:, None] - rows[None]) ** 2).sum(axis=2) * degrees.sum()
    hitting = np.zeros((n, n))
    for goal in range(n):
        others = np.arange(n) != goal
        hitting[others, goal] = np.linalg.solve(np.eye(n - 1) - P[others][:, others], np.ones(n - 1))
    assert_allclose(square, hitting + hitting.T, atol=1e-9)
    assert (rows[:, 0] == 0).all()


def test_diffusion_distances_are_those_of_the_walk():
    W = weighted(4)
    P, degrees = walk_matrix(W), np.asarray(W.sum(axis=1)).ravel()
    rows = eo.spectrum(W, operator="normalized").embedding("diffusion", t=3) / np.sqrt(degrees)[:, None]
    after = np.linalg.matrix_power(P, 3)
    square = ((after[:, None] - after[None]) ** 2 / degrees).sum(axis=2)
    assert_allclose(((rows[:, None] - rows[None]) ** 2).sum(axis=2), square, atol=1e-9)


def test_what_is_refused(four_rooms):
    W = eo.graph(four_rooms)
    found = eo.spectrum(W, 3, operator="successor")
    refused(ValueError, lambda: found.embedding(), "eigenvalues of a Laplacian", "'successor'", "random-walk")
    plain = eo.spectrum(W, 3)
    refused(ValueError, lambda: plain.embedding("log"), "scale must be one of commute, diffusion, got 'log'")
    refused(ValueError, lambda: plain.embedding("diffusion", t=-1), "t must be a whole number from 0, got -1")
    refused(
        ValueError,
        lambda: eo.laplacian(W, "successor"),
        "the Laplacian must be one of normalized",
        "'successor'",
    )
    refused(
        ValueError, lambda: eo.spectrum(W, 3, "default"), "operator 'default' needs rewards: give rewards="
    )
    refused(ValueError, lambda: eo.spectrum(W, 3, "successor", gamma=1.0), "gamma must be in [0, 1), got 1.0")
    refused(
        TypeError, lambda: eo.spectrum(W, 3, gamma=0.9), "'normalized' has no setting 'gamma': it has none"
    )
    wrong = {"rewards": np.zeros(104)}
    refused(
        ValueError, lambda: eo.spectrum(W, 3, "default", **wrong), "must be negative", "subtract a constant"
    )
    wrong = {"rewards": [-1.0]}
    refused(
        ValueError, lambda: eo.spectrum(W, 3, "default", **wrong), "one number per state", "(104,)", "(1,)"
    )
    wrong = {"rewards": np.full(104, -1.0), "temperature": 1e-6}
    refused(
        ValueError, lambda: eo.spectrum(W, 3, "default", **wrong), "temperature 1e-06", "choose a temperature"
    )
    wrong = {"rewards": np.full(104, -1.0), "temperature": 0.0}
    refused(
        ValueError, lambda: eo.spectrum(W, 3, "default", **wrong), "temperature must be in (0, inf), got 0.0"
    )
    large = csr_array((MAX_DENSE_STATES + 1, MAX_DENSE_STATES + 1))
    refused(ValueError, lambda: successor_representation(large, 0.9), "the limit is 4000", 'method="eigen"')
