"""The successor and the default representation of a random walk.

The successor representation (Dayan, 1993; Machado et al., 2018) is
``(I - gamma P)^-1``: the expected discounted numbers of visits of a random walk P.

The default representation (Piray and Daw, 2021; Tse et al., 2025) is
``(diag(exp(-r / temperature)) - P)^-1``: the sum of ``exp(r(path) / temperature)`` over
all paths, weighted by their probabilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csc_array, csr_array, diags_array, eye_array, issparse
from scipy.sparse.linalg import splu

from eigenoptions._types import FloatArray, IntegerArray
from eigenoptions._validation import check_csr, check_float, check_int
from eigenoptions.spectra.canonical import compute_canonical_basis


def successor_representation(P: csr_array, gamma: float) -> FloatArray:
    """Compute the successor representation ``(I - gamma P)^-1`` of a random walk.

    Parameters
    ----------
    P : csr_array (S, S)
        Transition probabilities; a row may sum to less than 1.
    gamma : float in [0, 1)
        The discount.

    Returns
    -------
    array (S, S)
        The expected discounted number of visits to each state (column) of walks from
        each state (row).

    Examples
    --------
    >>> swap = csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> successor_representation(swap, 0.5).round(3).tolist()
    [[1.333, 0.667], [0.667, 1.333]]
    """
    gamma = check_float("gamma", gamma, minimum=0, below=1)
    P = _check_probabilities(P)
    return _invert(eye_array(P.shape[0]) - gamma * P)


def default_representation(
    P: csr_array, rewards: ArrayLike, temperature: float
) -> FloatArray:
    """Compute the default representation of a random walk (Tse et al., Equation 3).

    Parameters
    ----------
    P : csr_array (S, S)
        Transition probabilities; a row may sum to less than 1.
    rewards : array_like (S,)
        The reward of each state, which must be negative.
    temperature : float
        How much rewards count: the less, the higher it is.

    Returns
    -------
    array (S, S)
        The representation: one row per start, one column per state.

    Examples
    --------
    >>> walk = csr_array(np.array([[0.5, 0.5], [0.5, 0.5]]))
    >>> default_representation(walk, [-1.0, -1.0], 1.0).round(3).tolist()
    [[0.475, 0.107], [0.107, 0.475]]
    """
    P = _check_probabilities(P)
    costs = _compute_step_costs(rewards, temperature, P.shape[0])
    return _invert(diags_array(costs) - P)


def learn_representation(
    before: ArrayLike,
    after: ArrayLike,
    n_states: int,
    *,
    gamma: float = 0.99,
    alpha: float = 0.1,
    sweeps: int = 1,
    begin: FloatArray | None = None,
) -> FloatArray:
    """Learn the successor representation from transitions, by temporal differences.

    For each transition in order, ``psi(s) += alpha (1_s + gamma psi(s') - psi(s))``
    (Machado et al., 2018, Section 3).

    Parameters
    ----------
    before, after : array_like (N,)
        The states before and after each transition.
    n_states : int
        Number of states.
    gamma : float in [0, 1), default=0.99
        The discount.
    alpha : float in (0, 1], default=0.1
        The step size.
    sweeps : int, default=1
        How many times to go over all transitions.
    begin : array (S, S) or None, default=None
        The representation to begin with; None for zeros.

    Returns
    -------
    array (S, S)
        The representation: one row per start, one column per state.

    Examples
    --------
    >>> before = [0, 1] * 500
    >>> after = [1, 0] * 500
    >>> learn_representation(before, after, 2, gamma=0.5).round(3).tolist()
    [[1.333, 0.667], [0.667, 1.333]]
    """
    n_states = _check_size(n_states)
    alpha = check_float("alpha", alpha, above=0, maximum=1)
    transitions = _pair_states(before, after, n_states).tolist()
    gamma = check_float("gamma", gamma, minimum=0, below=1)
    sweeps = check_int("sweeps", sweeps)
    if begin is None:
        psi = np.zeros((n_states, n_states))
    else:
        psi = np.array(begin, dtype=np.float64).reshape(n_states, n_states)

    for _ in range(sweeps):
        for state, next_state in transitions:
            psi[state] += alpha * (gamma * psi[next_state] - psi[state])
            psi[state, state] += alpha
    return psi


def compute_smallest_eigenvectors(A: Any, k: int) -> tuple[FloatArray, FloatArray]:
    """Compute the k smallest eigenvalues of a symmetric matrix, and their vectors.

    Parameters
    ----------
    A : array or sparse array (n, n)
        A symmetric matrix.
    k : int
        Number of eigenvalues.

    Returns
    -------
    values : array (k,)
        The eigenvalues in ascending order.
    vectors : array (n, k)
        The first columns of the canonical basis.
    """
    _check_size(A.shape[0])
    dense = A.toarray() if issparse(A) else A
    values, vectors = np.linalg.eigh(dense)
    norm = float(np.abs(values).max())
    # The basis of all vectors, so that no eigenspace is cut.
    basis = compute_canonical_basis(values, vectors, norm)
    return values[:k], basis[:, :k]


def _invert(A: csr_array) -> FloatArray:
    """The inverse ``(S, S)`` of a sparse matrix, as a dense array."""
    identity = np.eye(_check_size(A.shape[0]))
    inverse: FloatArray = splu(csc_array(A)).solve(identity)
    return inverse


def _check_probabilities(P: Any) -> csr_array:
    """Transition probabilities as a csr array."""
    P = check_csr("P", P, nonnegative=True)
    if P.shape[0] != P.shape[1] or P.sum(axis=1).max() > 1 + 1e-9:
        raise ValueError(
            f"P must be probabilities (S, S), at most 1 per row, got shape {P.shape}"
        )
    return P


def _check_size(n_states: int, maximum: int = 4_000) -> int:
    """The number of states of a representation, which is a dense array."""
    return check_int(
        "the number of states of a representation", n_states, maximum=maximum
    )


def _pair_states(before: ArrayLike, after: ArrayLike, n_states: int) -> IntegerArray:
    """Pairs ``(N, 2)`` of the states before and after each transition.

    Raises ValueError unless there is at least one, and all of them are states.
    """
    states_before = np.ravel(before)
    states_after = np.ravel(after)
    if len(states_before) != len(states_after) or not len(states_before):
        raise ValueError(
            "before and after must have the same length, at least 1, "
            f"got {len(states_before)} and {len(states_after)}"
        )

    pairs = np.stack([states_before, states_after], axis=1)
    if pairs.dtype.kind not in "iu":
        raise ValueError(f"before and after must be integers, got {pairs.dtype}")

    is_wrong = ((pairs < 0) | (pairs >= n_states)).any(axis=1)
    if is_wrong.any():
        raise ValueError(
            f"before and after must be states in 0..{n_states - 1}, "
            f"got the pair {pairs[is_wrong][0].tolist()}"
        )
    return pairs


def _compute_step_costs(
    rewards: ArrayLike, temperature: float, n_states: int
) -> FloatArray:
    """``exp(-rewards / temperature)`` ``(S,)``, which must be above 1."""
    rewards = np.asarray(rewards, dtype=np.float64)
    temperature = check_float("temperature", temperature, above=0)
    highest = rewards.max()
    if rewards.shape != (n_states,) or not highest < 0:
        raise ValueError(
            f"rewards must be negative, of shape ({n_states},), "
            f"got shape {rewards.shape}, up to {highest}: "
            "subtract a constant, for example rewards - rewards.max() - 1"
        )

    # With smaller exponents the matrix is singular to rounding; larger ones overflow.
    lowest = rewards.min()
    if -highest / temperature <= 1e-12 or -lowest / temperature >= 700:
        raise ValueError(
            f"temperature {temperature} does not fit rewards from {lowest} to {highest}"
        )
    return np.exp(-rewards / temperature)
