"""The successor and the default representation of a random walk, and their eigenvectors.

Successor representation (Dayan, 1993; Machado et al., 2018): ``(I - gamma P)^-1``, the expected discounted numbers of
visits. Default representation (Piray and Daw, 2021; Tse et al., 2025): ``(diag(exp(-r / temperature)) - P)^-1``, the
sum of ``exp(r(path) / temperature)`` over all paths, weighted by their probabilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_array, csr_array, diags_array, eye_array, issparse
from scipy.sparse.linalg import splu

from eigenoptions._validation import check_csr, check_float, check_int
from eigenoptions.spectra.canonical import canonical_basis

Array = NDArray[np.float64]


def successor_representation(P: csr_array, gamma: float) -> Array:
    """``(S, S)`` the expected discounted numbers of visits of a walk P, ``(I - gamma P)^-1``.

    >>> successor_representation(csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])), 0.5).round(3).tolist()
    [[1.333, 0.667], [0.667, 1.333]]
    """
    gamma = check_float("gamma", gamma, minimum=0, below=1)
    return _invert(eye_array(P.shape[0]) - gamma * _check_walk(P))


def default_representation(
    P: csr_array, rewards: ArrayLike, temperature: float
) -> Array:
    """``(S, S)`` the default representation of a walk P with negative rewards per state (Tse et al., Equation 3).

    >>> walk = csr_array(np.array([[0.5, 0.5], [0.5, 0.5]]))
    >>> default_representation(walk, [-1.0, -1.0], 1.0).round(3).tolist()
    [[0.475, 0.107], [0.107, 0.475]]
    """
    return _invert(
        diags_array(_step_costs(rewards, temperature, P.shape[0])) - _check_walk(P)
    )


def learn_representation(
    before: ArrayLike,
    after: ArrayLike,
    n_states: int,
    *,
    gamma: float = 0.99,
    alpha: float = 0.1,
    sweeps: int = 1,
    begin: Array | None = None,
) -> Array:
    """``(S, S)`` the successor representation of sampled transitions, learned by temporal differences.

    ``psi(s) += alpha (1_s + gamma psi(s') - psi(s))`` for each transition in order, `sweeps` times over all of them,
    beginning with `begin` or with zeros (Machado et al., 2018, Section 3).

    >>> learn_representation([0, 1] * 500, [1, 0] * 500, 2, gamma=0.5).round(3).tolist()
    [[1.333, 0.667], [0.667, 1.333]]
    """
    n, alpha = _check_size(n_states), check_float("alpha", alpha, above=0, maximum=1)
    pairs = np.stack([np.ravel(before), np.ravel(after)], axis=1)
    if not np.all(pairs.dtype.kind in "iu" and (pairs >= 0) & (pairs < n)):
        raise ValueError(
            f"before and after must be states in 0..{n - 1}, got {pairs[:3].tolist()}"
        )
    gamma = check_float("gamma", gamma, minimum=0, below=1)
    table = (
        np.zeros((n, n))
        if begin is None
        else np.array(begin, dtype=np.float64).reshape(n, n)
    )
    for s, s_next in pairs.tolist() * check_int("sweeps", sweeps):
        table[s] += alpha * (gamma * table[s_next] - table[s])
        table[s, s] += alpha
    return table


def smallest_eigenvectors(A: Any, k: int) -> tuple[Array, Array]:
    """The k smallest eigenvalues of a symmetric matrix, and vectors ``(n, k)`` in the canonical basis."""
    _check_size(A.shape[0])
    values, vectors = np.linalg.eigh(A.toarray() if issparse(A) else A)
    return values[:k], canonical_basis(values, vectors, float(np.abs(values).max()))[
        :, :k
    ]


def _invert(A: Any) -> Array:
    return splu(csc_array(A)).solve(np.eye(_check_size(A.shape[0])))  # type: ignore[no-any-return]


def _check_walk(P: Any) -> csr_array:
    P = check_csr("P", P, nonnegative=True)
    if P.shape[0] != P.shape[1] or P.sum(axis=1).max() > 1 + 1e-9:
        raise ValueError(
            f"P must be probabilities (S, S), at most 1 per row, got shape {P.shape}"
        )
    return P


def _check_size(n_states: int, maximum: int = 4_000) -> int:
    """Number of states of a representation, which is a dense array."""
    return check_int(
        "the number of states of a representation", n_states, maximum=maximum
    )


def _step_costs(rewards: ArrayLike, temperature: float, n_states: int) -> Array:
    """``(S,)`` exp(-rewards / temperature), which must be above 1."""
    r, temperature = (
        np.asarray(rewards, dtype=np.float64),
        check_float("temperature", temperature, above=0),
    )
    if r.shape != (n_states,) or not r.max() < 0:
        text = f"rewards must be negative, of shape ({n_states},), got shape {r.shape}, up to {r.max()}"
        raise ValueError(
            f"{text}: subtract a constant, for example rewards - rewards.max() - 1"
        )
    if not 1e-12 < -r.max() / temperature <= -r.min() / temperature < 700:
        raise ValueError(
            f"temperature {temperature} does not fit rewards from {r.min()} to {r.max()}"
        )
    return np.exp(-r / temperature)
