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

from eigenoptions._validation import check_csr, check_float, check_int, check_real
from eigenoptions.mdp import MDP
from eigenoptions.spectra.canonical import canonical_basis

# States up to which a representation is held as a dense array.
MAX_DENSE_STATES = 4_000

Array = NDArray[np.float64]


def uniform_walk(mdp: MDP) -> csr_array:
    """``(S, S)`` moves when every action is equally likely; a blocked move stays.

    >>> import eigenoptions as eo
    >>> uniform_walk(eo.maze("..")).toarray().tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    table = mdp.transition.tocoo()
    share = (table.data / mdp.n_actions, (table.row // mdp.n_actions, table.col))
    return csr_array(share, shape=(mdp.n_states, mdp.n_states))


def successor_representation(P: csr_array, gamma: float) -> Array:
    """``(S, S)`` the expected discounted number of visits, ``(I - gamma P)^-1``.

    >>> successor_representation(csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])), 0.5).round(3).tolist()
    [[1.333, 0.667], [0.667, 1.333]]
    """
    gamma, moves = check_float("gamma", gamma, minimum=0, below=1), _walk(P)
    return _inverse(eye_array(moves.shape[0]) - gamma * moves)


def learned_successor(
    before: ArrayLike,
    after: ArrayLike,
    n_states: int,
    *,
    gamma: float = 0.99,
    alpha: float = 0.1,
    sweeps: int = 1,
    begin: Array | None = None,
) -> Array:
    """``(S, S)`` the successor representation, learned by temporal differences (Machado et al., 2018, Section 3).

    ``psi(s) += alpha (1_s + gamma psi(s') - psi(s))`` for each transition in order, `sweeps` times over all of them,
    beginning with `begin` or with zeros.

    >>> learned_successor([0, 1] * 500, [1, 0] * 500, 2, gamma=0.5).round(3).tolist()
    [[1.333, 0.667], [0.667, 1.333]]
    """
    gamma, n = (
        check_float("gamma", gamma, minimum=0, below=1),
        check_int("n_states", n_states, maximum=MAX_DENSE_STATES),
    )
    pairs, alpha, psi = _td(before, after, n, alpha, np.zeros((n, n)) if begin is None else begin)
    for s, s_next in pairs * check_int("sweeps", sweeps):
        psi[s] += alpha * (gamma * psi[s_next] - psi[s])
        psi[s, s] += alpha
    return psi


def learned_default(
    before: ArrayLike,
    after: ArrayLike,
    rewards: ArrayLike,
    *,
    temperature: float = 1.3,
    alpha: float = 0.1,
    sweeps: int = 1,
    begin: Array | None = None,
) -> Array:
    """``(S, S)`` the default representation, learned by temporal differences (Tse et al., 2025, Section 3).

    ``Z(s) += alpha (exp(r(s) / temperature) (1_s + Z(s')) - Z(s))``, once over the transitions from the last to the
    first, then in order, `sweeps` times in all, beginning with `begin` or with the identity.

    >>> learned_default([0, 1] * 500, [1, 0] * 500, [-1.0, -1.0], temperature=1.0).round(3).tolist()
    [[0.425, 0.157], [0.157, 0.425]]
    """
    n = check_int("number of rewards", np.size(rewards), maximum=MAX_DENSE_STATES)
    weight = 1.0 / weights_of(rewards, temperature, n)
    pairs, alpha, Z = _td(before, after, n, alpha, np.eye(n) if begin is None else begin)
    for s, s_next in pairs[::-1] + pairs * (check_int("sweeps", sweeps) - 1):
        Z[s] += alpha * (weight[s] * Z[s_next] - Z[s])
        Z[s, s] += alpha * weight[s]
    return Z


def _td(
    before: ArrayLike, after: ArrayLike, n: int, alpha: float, begin: Array
) -> tuple[list[tuple[int, int]], float, Array]:
    """Checked pairs of states, step size, and a copy of the representation to begin with."""
    first, then = (np.asarray(states).ravel() for states in (before, after))
    for states in (first, then):
        if len(states) and not (states.dtype.kind in "iu" and 0 <= states.min() <= states.max() < n):
            raise ValueError(f"before and after must be states in 0..{n - 1}, got {states[:5]}")
    if len(first) != len(then):
        raise ValueError(f"before and after must have one length, got {len(first)} and {len(then)}")
    table = np.array(check_real("begin", begin), dtype=np.float64)
    if table.shape != (n, n):
        raise ValueError(f"begin must have shape ({n}, {n}), got {table.shape}")
    pairs = list(zip(first.tolist(), then.tolist(), strict=True))
    return pairs, check_float("alpha", alpha, above=0, maximum=1), table


def default_representation(P: csr_array, rewards: ArrayLike, temperature: float) -> Array:
    """``(S, S)`` the default representation, ``(diag(exp(-rewards / temperature)) - P)^-1`` (Tse et al., Equation 3).

    >>> walk = csr_array(np.array([[0.5, 0.5], [0.5, 0.5]]))
    >>> default_representation(walk, [-1.0, -1.0], 1.0).round(3).tolist()
    [[0.475, 0.107], [0.107, 0.475]]
    """
    moves = _walk(P)
    return _inverse(diags_array(weights_of(rewards, temperature, moves.shape[0])) - moves)


def weights_of(rewards: ArrayLike, temperature: float, n_states: int) -> Array:
    """``(S,)`` exp(-rewards / temperature), after a check that every reward is negative."""
    temperature = check_float("temperature", temperature, above=0)
    r = np.asarray(rewards, dtype=np.float64)
    if r.shape != (n_states,):
        raise ValueError(f"rewards must be one number per state, of shape ({n_states},), got {r.shape}")
    if not (np.isfinite(r).all() and r.max() < 0):
        raise ValueError(
            f"rewards must be negative, so that every step costs something, got up to {r.max()}: subtract a constant, "
            "for example rewards - rewards.max() - 1"
        )
    with np.errstate(over="ignore"):
        weights: Array = np.exp(-r / temperature)
    if not np.isfinite(weights).all() or weights.min() <= 1.0:
        raise ValueError(
            f"exp(-reward / temperature) must be a number above 1, but rewards go from {r.min()} to {r.max()} at "
            f"temperature {temperature}: choose a temperature between them"
        )
    return weights


def smallest_eigenvectors(A: Any, k: int) -> tuple[Array, Array]:
    """The k smallest eigenvalues of a symmetric matrix and their vectors ``(n, k)`` in the canonical basis.

    >>> smallest_eigenvectors(np.diag([3.0, 1.0, 2.0]), 2)[0].tolist()
    [1.0, 2.0]
    """
    _small_enough(A)
    values, vectors = np.linalg.eigh(A.toarray() if issparse(A) else A)
    return values[:k], canonical_basis(values, vectors, float(np.abs(values).max()))[:, :k]


def _walk(P: Any) -> csr_array:
    """A random walk as csr: probabilities, at most 1 per row."""
    moves = csr_array(check_csr("P", P) if issparse(P) else check_real("P", P), dtype=np.float64)
    if moves.ndim != 2 or moves.shape[0] != moves.shape[1] or moves.shape[0] == 0:
        raise ValueError(f"P must have shape (S, S) with at least one state, got {moves.shape}")
    _small_enough(moves)
    most = float(moves.sum(axis=1).max())
    if not (np.isfinite(moves.data).all() and (moves.data >= 0).all() and most <= 1.0 + 1e-9):
        raise ValueError(f"P must be probabilities, at most 1 per row, got a row that sums to {most:.6g}")
    return moves


def _small_enough(P: Any) -> int:
    n = int(P.shape[0])
    if n > MAX_DENSE_STATES:
        raise ValueError(
            f"a representation of {n} states cannot be held: the limit is {MAX_DENSE_STATES}; "
            'use method="eigen", which needs no dense array'
        )
    return n


def _inverse(A: Any) -> Array:
    from scipy.sparse.linalg import splu

    found: Array = splu(csc_array(A)).solve(np.eye(A.shape[0]))
    return found
