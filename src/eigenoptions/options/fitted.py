"""Policies for purposes in a feature space, learned from transitions: linear fitted Q iteration (paper, Section 5.2).

For a purpose e the reward is ``f(s') - f(s)`` with f = e . phi, and TERMINATE is worth 0, so
``q(s, a) = E[f(s') - f(s) + gamma v(s')]`` with ``v = max(0, max_a q)``. Whatever an option does, its return is at most
``max f - f(s)``: values are limited to that, so the iteration cannot diverge. The maximum over actions favours errors
upwards; so the batch is fitted in two parts, and the smaller of the two values of an action counts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array, issparse

from eigenoptions._validation import check_float, check_int
from eigenoptions.features import Map, compute_features
from eigenoptions.mdp import Transitions
from eigenoptions.options import Purpose
from eigenoptions.options.linear import LinearOptionSet

# Quantile that stands for the largest value of a potential, so that a single outlier does not raise all values.
TOP_QUANTILE = 0.999
# Memory of the factors from which a fit is announced in the log.
ANNOUNCED_GIGABYTES = 1.0
log = logging.getLogger("eigenoptions")

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FitSettings:
    """Settings of fitted Q iteration.

    Attributes
    ----------
    iterations
        Most iterations; it ends earlier when values change by no more than a hundredth of `stop` on average.
    ridge
        Weight of the penalty on large weights, relative to the mean square of a feature.
    stop
        An option stops where no action value exceeds this share of the range of f over the batch, without one in a
        thousand at either end: fitted values are never exactly 0.
    parts
        Number of parts of the batch that are fitted separately: the smallest value counts, in the result their mean.

    Examples
    --------
    >>> FitSettings(ridge=1e-3)
    FitSettings(iterations=200, ridge=0.001, stop=0.02, parts=2)
    """

    iterations: int = 200
    ridge: float = 1e-5
    stop: float = 0.02
    parts: int = 2

    def __post_init__(self) -> None:
        for name in ("ridge", "stop"):
            check_float(name, getattr(self, name), minimum=0)
        for name in ("iterations", "parts"):
            check_int(name, getattr(self, name))


def fit(
    transitions: Transitions,
    purposes: Sequence[Purpose],
    features: Map,
    *,
    n_actions: int | None = None,
    gamma: float = 0.99,
    basis: Map | None = None,
    provenance: dict[str, Any] | None = None,
    **settings: Any,
) -> LinearOptionSet:
    """Options of purposes in a feature space, from a batch of transitions.

    Parameters
    ----------
    transitions
        Samples under any policy that tries every action.
    purposes, features
        Directions in feature space, and the map phi.
    n_actions
        Number of actions; None: the largest in the batch, plus one. An action that was never tried is never chosen.
    gamma
        Discount in [0, 1): the larger, the farther an option looks ahead.
    basis
        The map psi in which action values are linear; None: phi.
    provenance
        Entries to record in the set beside gamma.
    settings
        `iterations`, `ridge`, `stop` and `parts`; see `FitSettings`.

    Examples
    --------
    A walk on the numbers 0 to 9, action 1 adds one, action 0 takes one away; the purpose is to be large.

    >>> from eigenoptions.features import Tiles
    >>> x = np.repeat(np.arange(10.0), 2)
    >>> action = np.tile([0, 1], 10)
    >>> after = np.clip(x + 2 * action - 1, 0, 9)
    >>> walk = Transitions(x[:, None], action, after[:, None], np.zeros(20, dtype=bool))
    >>> grid = Tiles((0,), (9,), tiles=9, tilings=1)
    >>> options = fit(walk, [Purpose(np.array([1.0]), "up")], np.asarray, basis=grid, parts=1)
    >>> options.actions(np.arange(10.0)[:, None]).tolist()
    [[1, 1, 1, 1, 1, 1, 1, 1, 1, -1]]
    """
    how = FitSettings(**settings)
    gamma = check_float("gamma", gamma, minimum=0, below=1)
    action, n_actions = checked_actions(transitions, n_actions)
    made = LinearOptionSet(tuple(purposes), features, n_actions)
    ended = np.asarray(transitions.terminated, dtype=np.bool_)
    # Where states are numbered, each of them and each distinct transition is computed once.
    (obs, here), (next_obs, there) = _places(transitions.obs), _places(transitions.next_obs)
    # Potentials before and after each transition, (m, N).
    before, after = made.potential(obs)[:, here], made.potential(next_obs)[:, there]
    edge = [1 - TOP_QUANTILE, TOP_QUANTILE]
    low, top = np.quantile(np.concatenate([before, after], axis=1), edge, axis=1)
    threshold = how.stop * (top - low)
    group = np.arange(len(transitions)) % how.parts * n_actions + action
    kept, count = _distinct(transitions, group)
    group, here, there = group[kept], here[kept], there[kept]
    psi = compute_features(basis or features, obs)
    psi_next = compute_features(basis or features, next_obs, psi.shape[1])
    groups = [np.flatnonzero(group == g) for g in range(how.parts * n_actions)]
    _announce(groups, psi.shape[1])
    regress = [
        _regression(psi[here[rows]], how.ridge, None if count is None else count[rows]) for rows in groups
    ]
    gain = (after - before).T[kept]
    # Most that can still be gained after a transition, (N, m).
    limit = (np.maximum(top[:, None] - after, 0.0).T * ~ended[:, None])[kept]
    future, weights = np.zeros_like(gain), np.empty(0)
    for _ in range(how.iterations):
        target = gain + gamma * future
        weights = np.stack([r(target[rows]) for r, rows in zip(regress, groups, strict=True)], axis=1)
        # Weights have shape (p, parts * A, m).
        q = np.asarray(psi_next @ weights.reshape(len(weights), -1))
        best = q.reshape(-1, how.parts, n_actions, len(made)).min(axis=1).max(axis=1)
        last, future = future, np.clip(best[there], 0.0, limit)
        if gamma == 0 or (np.abs(future - last).mean(axis=0) <= 0.01 * threshold).all():
            break
    mean = weights.reshape(len(weights), how.parts, n_actions, len(made)).mean(axis=1)
    return replace(
        made,
        weights=np.ascontiguousarray(mean.transpose(2, 1, 0)),
        basis=basis,
        threshold=threshold,
        provenance={"gamma": gamma, "learned": "fitted Q iteration", **(provenance or {})},
    )


def checked_actions(transitions: Transitions, n_actions: int | None) -> tuple[NDArray[np.int64], int]:
    """The actions of a batch as whole numbers, and their number A."""
    action = np.asarray(transitions.action)
    if not len(action):
        raise ValueError("there are no transitions: collect some")
    if action.ndim != 1 or action.dtype.kind not in "iu":
        given = f"{action.dtype} of shape {action.shape}"
        raise ValueError(
            f"actions must be whole numbers (N,), got {given}: only Discrete(n) is supported; Transitions.of reads "
            "(N, 1), and gymnasium.wrappers.DiscretizeAction makes continuous actions whole"
        )
    count = int(action.max()) + 1 if n_actions is None else int(n_actions)
    if action.min() < 0 or action.max() >= count:
        raise ValueError(f"actions must be in 0..{count - 1}, got {action.min()}..{action.max()}")
    return action.astype(np.int64), count


def _places(obs: Any) -> tuple[Any, NDArray[np.intp]]:
    """Distinct numbers of states and the place ``(N,)`` of each among them; other observations as they are."""
    if not _numbered(obs):
        return obs, np.arange(len(obs))
    distinct, place = np.unique(obs, return_inverse=True)
    return distinct, place


def _distinct(transitions: Transitions, group: NDArray[np.int64]) -> tuple[NDArray[np.intp], Array | None]:
    """Rows of transitions that differ within their group, and how often each occurs; None: once."""
    if not (_numbered(transitions.obs) and _numbered(transitions.next_obs)):
        return np.arange(len(transitions)), None
    columns = np.stack([group, transitions.obs, transitions.next_obs, transitions.terminated], axis=1)
    _, first, count = np.unique(columns, axis=0, return_index=True, return_counts=True)
    return first, count.astype(np.float64)


def _numbered(obs: Any) -> bool:
    return isinstance(obs, np.ndarray) and obs.ndim == 1 and obs.dtype.kind in "iu"


def _regression(psi: Any, ridge: float, count: Array | None = None) -> Callable[[Array], Array]:
    """Ridge regression on fixed inputs ``(N, p)``: a function from targets to weights.

    Row i counts `count[i]` times, once if None. With fewer samples than features the ``(N, N)`` system is solved, which
    has the same solution: ``(A'A + c)^-1 A' = A' (AA' + c)^-1``.
    """
    few = psi.shape[0] < psi.shape[1]
    root = None if count is None else np.sqrt(count)[:, None]
    if root is not None:
        psi = csr_array(psi.multiply(root)) if issparse(psi) else psi * root
    A = psi @ psi.T if few else psi.T @ psi
    A = A.toarray() if issparse(A) else np.asarray(A, dtype=np.float64)
    mean = np.trace(A) / psi.shape[1]
    # The second term gives weight 0 to features that were never seen.
    A[np.diag_indices(len(A))] += ridge * mean + 1e-12 * (mean or 1.0)
    factor = cho_factor(A, lower=True, overwrite_a=True)

    def weights(target: Array) -> Array:
        target = target if root is None else target * root
        if few:
            return np.asarray(psi.T @ cho_solve(factor, target, check_finite=False))
        return np.asarray(cho_solve(factor, np.asarray(psi.T @ target), check_finite=False))

    return weights


def _announce(groups: Sequence[NDArray[np.intp]], p: int) -> None:
    """Log beforehand what a large regression will take: its factors are all in memory at once."""
    sizes = [min(len(rows), p) for rows in groups]
    gigabytes = 8e-9 * sum(n * n for n in sizes)
    if gigabytes > ANNOUNCED_GIGABYTES:
        # A Cholesky factor of order n takes n^3 / 3 multiplications and additions.
        work = 2e-9 * sum(n**3 for n in sizes) / 3
        log.warning(
            "fitting %d features takes %.1f GB and about %.0f s at 10 GFLOP/s for the factors; fewer features or "
            "transitions take less",
            p,
            gigabytes,
            work / 10,
        )
