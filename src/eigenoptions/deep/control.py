"""What the agent controls: the parts of an observation that say which action was taken (inverse dynamics).

A clock, drifting clouds or other movers change slowly, so the slowest functions of an image are theirs; but they say
nothing about the action. With a linear model of the next observation for each action, ``y = M_a x`` plus an error, the
action given both observations follows by Bayes' rule. What this inverse model needs is found in closed form: the pixels
that actions influence, and among their components the directions of linear discriminant analysis. Features are
functions of these alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

# Most transitions from which directions are found.
MAX_TRANSITIONS = 20_000
# Weight of the penalty of the regressions, and smallest error of a model, as shares of the mean variance.
RIDGE, LEAST_ERROR = 1e-4, 1e-2
# Ratios of an effect to the error count that exceed the largest one by chance by this factor, and this many standard
# deviations of a ratio by chance.
ABOVE_CHANCE, DEVIATIONS = 1.5, 4.0

Array = NDArray[np.float64]
Pairs = tuple[NDArray[Any], NDArray[np.int64], NDArray[Any]]


def directions(before: Any, action: NDArray[np.int64], after: Any) -> Array:
    """Directions ``(D, r)`` of observations in which the next one depends on the action, each of variance 1.

    Parameters
    ----------
    before, after
        ``(N, D)`` observations before and after each transition, in the order of time.
    action
        ``(N,)`` the actions.

    Raises
    ------
    ValueError
        Where no direction depends on the action by more than chance.

    Examples
    --------
    The first number follows the action, the second one is a slow clock.

    >>> rng = np.random.default_rng(0)
    >>> x = np.stack([rng.normal(size=2000), np.sin(np.arange(2000) / 100)], axis=1)
    >>> action = rng.integers(2, size=2000)
    >>> y = np.stack([x[:, 0] + action, np.sin(np.arange(1, 2001) / 100)], axis=1)
    >>> abs(directions(x, action, y).round(1)).tolist()
    [[1.0], [0.0]]
    """
    x = np.asarray(before, dtype=np.float64)
    d = x.shape[1]
    K, _ = _effect_covariance(x, action, np.asarray(after, dtype=np.float64) - x)
    C = np.cov(x.T, bias=True).reshape(d, d)
    # The metric is the variance, not the error of the model, which is small in slow directions.
    ratio, u = eigh(K, C + LEAST_ERROR * np.trace(C) / d * np.eye(d))
    u = u[:, ratio > _by_chance(ratio, x, action)]
    _check_found(u.shape[1])
    size, axes = np.linalg.eigh(u.T @ C @ u)
    kept = size > 1e-9 * size[-1]
    U = np.asarray(u @ axes[:, kept] / np.sqrt(size[kept]))
    return np.asarray(U * np.sign(U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])]))


def influenced(state: Any, action: NDArray[np.int64], change: Any) -> NDArray[np.bool_]:
    """``(P,)`` whether changes ``(N, P)`` depend on the action, given a linear model of the state ``(N, D)``.

    >>> rng = np.random.default_rng(0)
    >>> action = rng.integers(2, size=2000)
    >>> change = np.stack([action + rng.normal(size=2000), rng.normal(size=2000)], axis=1)
    >>> influenced(rng.normal(size=(2000, 3)), action, change).tolist()
    [True, False]
    """
    K, error = _effect_covariance(np.asarray(state, dtype=np.float64), action, change, diagonal=True)
    variance = (error**2).mean(axis=0)
    # A number that never changes has no error.
    ratio = K / np.maximum(variance, LEAST_ERROR * variance.mean() + 1e-300)
    found = ratio > _by_chance(ratio, np.asarray(state), action)
    _check_found(int(found.sum()))
    return np.asarray(found)


def _effect_covariance(
    x: Array, action: NDArray[np.int64], change: Any, *, diagonal: bool = False
) -> tuple[Array, Array]:
    """Covariance ``(P, P)``, or its diagonal, of what actions add to a common linear model of a change, and its errors.

    The effects are estimated twice, from the first and from the second half of the transitions, so that chance has mean
    zero in their product.
    """
    n = len(x)
    x = np.column_stack([np.ones(n), x - x.mean(axis=0)])
    error = np.asarray(change, dtype=np.float64)
    error = error - x @ _regression(x, error)
    p = error.shape[1]
    K = np.zeros(p if diagonal else (p, p))
    early = np.arange(n) < n // 2
    for a in np.unique(action):
        halves = [np.flatnonzero((action == a) & part) for part in (early, ~early)]
        if min(map(len, halves)):
            one, two = (_regression(x[rows], error[rows]) for rows in halves)
            moved = sum(x[rows].T @ x[rows] for rows in halves) @ two
            K += (one * moved).sum(axis=0) / n if diagonal else one.T @ moved / n
    return (K if diagonal else 0.5 * (K + K.T)), error


def _by_chance(ratio: Array, x: Array, action: NDArray[np.int64]) -> float:
    """A ratio that is hardly exceeded by chance: such ratios have both signs, so the negative ones show their size."""
    parameters = (x.shape[1] + 1) * len(np.unique(action))
    return float(max(-ABOVE_CHANCE * ratio.min(), DEVIATIONS * 2 * np.sqrt(parameters) / len(x)))


def _check_found(n: int) -> None:
    if not n:
        raise ValueError(
            "the actions of the transitions say nothing about the observations after them: use control=False, or more "
            "transitions"
        )


def _regression(x: Array, y: Array) -> Array:
    A = x.T @ x
    A[np.diag_indices(len(A))] += RIDGE * np.trace(A) / len(A)
    return np.asarray(np.linalg.solve(A, x.T @ y))
