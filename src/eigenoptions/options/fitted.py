"""Policies for purposes in a feature space, learned from transitions: linear fitted Q iteration (paper, Section 5.2).

For a purpose e the reward is ``f(s') - f(s)`` with f = e . phi, and TERMINATE is worth 0, so
``q(s, a) = E[f(s') - f(s) + gamma v(s')]`` with ``v = max(0, max_a q)``. Whatever an option does, its return is at most
``max f - f(s)``: values are held to that, and the iteration cannot run away. The maximum over actions favours errors
upwards; so the batch is fitted in two parts, and an action is believed to be worth what both say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import issparse

from eigenoptions.features import Map, rows_of
from eigenoptions.mdp import Transitions
from eigenoptions.options import Purpose
from eigenoptions.options.linear import LinearOptionSet, linear_options

TAIL = 0.999  # quantile that counts as the largest: one outlier must not promise the world

Array = NDArray[np.float64]


def fit(
    transitions: Transitions,
    purposes: Sequence[Purpose],
    features: Map,
    *,
    n_actions: int | None = None,
    gamma: float = 0.99,
    basis: Map | None = None,
    iterations: int = 200,
    ridge: float = 1e-5,
    stop: float = 0.02,
    parts: int = 2,
    provenance: dict[str, Any] | None = None,
) -> LinearOptionSet:
    """Options of purposes in a feature space, from a batch of transitions.

    Parameters
    ----------
    transitions
        Samples under any policy that tries every action.
    purposes
        Directions in feature space.
    features
        The map phi.
    n_actions
        Number of actions; None: the largest in the batch, plus one. One that was never tried is never chosen.
    gamma
        Discount in [0, 1): how far an option looks over a valley.
    basis
        The map psi in which action values are linear; None: phi.
    iterations
        The most there are; it ends before, when values change by no more than a hundredth of `stop` on average.
    ridge
        Weight of the penalty on large weights, relative to the mean square of a feature.
    stop
        An option stops where no action value is more than this share of the range of f over the batch: fitted
        values are never exactly 0. The range leaves out one in a thousand at either end.
    parts
        Parts of the batch that are fitted separately; the smallest of their values counts on the way, their mean in
        the end.

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
    if not (isinstance(gamma, int | float | np.floating) and 0 <= gamma < 1):
        raise ValueError(f"gamma must be in [0, 1), got {gamma!r}")
    for name, value in (("ridge", ridge), ("stop", stop)):
        if not (isinstance(value, int | float | np.floating) and 0 <= value < np.inf):
            raise ValueError(f"{name} must be a number from 0, got {value!r}")
    for name, value in (("iterations", iterations), ("parts", parts)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be at least 1, got {value!r}")
    action, n_actions = checked_actions(transitions, n_actions)
    made = linear_options(list(purposes), features, n_actions)
    before, after = made.potential(transitions.obs), made.potential(transitions.next_obs)  # (m, N)
    low, top = np.quantile(np.concatenate([before, after], axis=1), [1 - TAIL, TAIL], axis=1)
    span = top - low
    psi = rows_of(basis or features, transitions.obs)
    psi_next = rows_of(basis or features, transitions.next_obs, psi.shape[1])
    part = np.arange(len(transitions)) % parts
    groups = [np.flatnonzero((part == p) & (action == a)) for p in range(parts) for a in range(n_actions)]
    regress = [_Regression(psi[rows], ridge) for rows in groups]
    gain = (after - before).T
    ended = np.asarray(transitions.terminated, dtype=np.bool_)
    room = (
        np.maximum(top[:, None] - after, 0.0).T * ~ended[:, None]
    )  # what can still be had after a step: (N, m)
    future, weights = np.zeros_like(gain), np.empty(0)
    for _ in range(int(iterations)):
        target = gain + gamma * future
        weights = np.stack([r.solve(target[rows]) for r, rows in zip(regress, groups, strict=True)], axis=1)
        q = np.asarray(psi_next @ weights.reshape(len(weights), -1))  # weights: (p, parts * A, m)
        best = q.reshape(-1, parts, n_actions, len(made)).min(axis=1).max(axis=1)
        moved, future = future, np.clip(best, 0.0, room)
        if gamma == 0 or (np.abs(future - moved).mean(axis=0) <= 0.01 * stop * span).all():
            break
    mean = weights.reshape(len(weights), parts, n_actions, len(made)).mean(axis=1)
    return replace(
        made,
        weights=np.ascontiguousarray(mean.transpose(2, 1, 0)),
        basis=basis,
        threshold=stop * span,
        provenance={"gamma": float(gamma), "learned": "fitted Q iteration", **(provenance or {})},
    )


def checked_actions(transitions: Transitions, n_actions: int | None) -> tuple[NDArray[np.int64], int]:
    """The actions of a batch, and their number."""
    action = np.asarray(transitions.action)
    if not len(action):
        raise ValueError("there are no transitions: collect some")
    if action.ndim != 1 or action.dtype.kind not in "iu":
        raise ValueError(
            f"actions must be whole numbers (N,), got {action.dtype} of shape {action.shape}: "
            "only Discrete(n) actions are supported"
        )
    count = int(action.max()) + 1 if n_actions is None else int(n_actions)
    if action.min() < 0 or action.max() >= count:
        raise ValueError(f"actions must be in 0..{count - 1}, got {action.min()}..{action.max()}")
    return action.astype(np.int64), count


class _Regression:
    """Ridge regression on fixed inputs ``(N, p)``, for many targets in turn."""

    def __init__(self, psi: Any, ridge: float) -> None:
        self.psi = psi
        A = psi.T @ psi
        A = A.toarray() if issparse(A) else np.asarray(A, dtype=np.float64)
        mean = np.trace(A) / len(A)
        A[np.diag_indices(len(A))] += ridge * mean + 1e-12 * (
            mean or 1.0
        )  # where nothing was seen, weights are 0
        self.factor = cho_factor(A, lower=True, overwrite_a=True)

    def solve(self, target: Array) -> Array:
        return np.asarray(cho_solve(self.factor, np.asarray(self.psi.T @ target), check_finite=False))
