"""Options of features, fitted to a batch of transitions (paper, Section 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import issparse

from eigenoptions._text import describe
from eigenoptions._types import FeatureFunction
from eigenoptions._validation import check_float, check_int
from eigenoptions.data import Transitions
from eigenoptions.features import compute_features
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.records import Purpose

Array = NDArray[np.float64]


def fit(
    transitions: Transitions,
    purposes: Sequence[Purpose],
    features: FeatureFunction,
    *,
    n_actions: int | None = None,
    gamma: float = 0.99,
    basis: FeatureFunction | None = None,
    iterations: int = 200,
    ridge: float = 1e-5,
    stop: float = 0.02,
    parts: int = 2,
    provenance: dict[str, Any] | None = None,
) -> LinearOptionSet:
    """Options of purposes in a feature space, from a batch of transitions: linear fitted Q iteration (Section 5.2).

    For a purpose e the reward is ``f(s') - f(s)`` with f = e . phi, and TERMINATE is worth 0, so
    ``q(s, a) = E[f(s') - f(s) + gamma v(s')]`` with ``v = max(0, max_a q)``. Whatever an option does, its return is at
    most ``max f - f(s)``: values are limited to that, so the iteration cannot diverge. The maximum over actions favours
    errors upwards; so the batch is fitted in parts, and the smallest value of an action counts.

    Parameters
    ----------
    transitions : Transitions
        Samples under any policy that tries every action.
    purposes : sequence of Purpose
        Vectors e in feature space.
    features : callable
        The map phi.
    n_actions : int, default=None
        None: the largest action in the batch, plus one. An action that was never tried is never chosen.
    gamma : float, default=0.99
        Discount in [0, 1); larger values let an option pass through lower potential.
    basis : callable, default=None
        The map psi in which action values are linear; None: phi.
    iterations : int, default=200
        Most iterations; it ends earlier when values change by no more than a hundredth of `stop` on average.
    ridge : float, default=1e-5
        Weight of the penalty on large weights, relative to the mean square of a feature.
    stop : float, default=0.02
        An option terminates where no action value exceeds this share of the range of f over the batch (without one in
        a thousand at either end).
    parts : int, default=2
        Number of parts of the batch that are fitted separately; the result has their mean weights.
    provenance : dict, default=None
        Entries to record in the set beside gamma.

    Examples
    --------
    A walk on the numbers 0 to 9, action 1 adds one, action 0 takes one away; the purpose is to be large.

    >>> from eigenoptions.features import Tiles
    >>> x = np.repeat(np.arange(10.0), 2)
    >>> action = np.tile([0, 1], 10)
    >>> after = np.clip(x + 2 * action - 1, 0, 9)
    >>> walk = Transitions(x[:, None], action, after[:, None], np.zeros(20, dtype=bool))
    >>> grid = Tiles((0,), (9,), tiles=9, tilings=1)
    >>> options = fit(walk, [Purpose([1.0], "up")], np.asarray, basis=grid, parts=1)
    >>> options.actions(np.arange(10.0)[:, None]).tolist()
    [[1, 1, 1, 1, 1, 1, 1, 1, 1, -1]]
    """
    ridge, stop = (
        check_float("ridge", ridge, minimum=0),
        check_float("stop", stop, minimum=0),
    )
    iterations, parts = check_int("iterations", iterations), check_int("parts", parts)
    gamma = check_float("gamma", gamma, minimum=0, below=1)
    action = np.asarray(transitions.action)
    n_actions = int(action.max(initial=0)) + 1 if n_actions is None else n_actions
    is_discrete = action.ndim == 1 and action.dtype.kind in "iu" and len(action) > 0
    if not is_discrete or action.min() < 0 or action.max() >= n_actions:
        limits = f"integers (N,) in 0..{n_actions - 1}"
        raise ValueError(
            f"actions must be {limits}, got {describe(action)}: see Transitions.of"
        )
    options = LinearOptionSet(tuple(purposes), features, n_actions)
    batches, d = (transitions.obs, transitions.next_obs), options.directions.shape[1]
    phi, phi_next = (compute_features(features, obs, d) for obs in batches)
    before, after = (np.asarray(f @ options.directions.T) for f in (phi, phi_next))
    low, high = np.quantile(np.concatenate([before, after]), [0.001, 0.999], axis=0)
    threshold = stop * (high - low)

    # One regression per part of the batch and action.
    if basis is not None:
        phi = compute_features(basis, batches[0])
        phi_next = compute_features(basis, batches[1], phi.shape[1])
    group = np.arange(len(transitions)) % parts * n_actions + action
    members = [np.flatnonzero(group == g) for g in range(parts * n_actions)]
    solvers = [prepare_ridge_regression(phi[rows], ridge) for rows in members]

    weights: Any = None
    gain = after - before
    # Most that can still be gained after a transition, (N, m).
    limit = (
        np.maximum(high - after, 0.0)
        * ~np.asarray(transitions.terminated, dtype=np.bool_)[:, None]
    )
    future = np.zeros_like(gain)
    for _ in range(iterations):
        target = gain + gamma * future
        weights = [
            solve(target[rows]) for solve, rows in zip(solvers, members, strict=True)
        ]
        weights = np.stack(weights, axis=1)  # (p, parts * A, m)
        q = np.asarray(phi_next @ weights.reshape(len(weights), -1))
        best = q.reshape(-1, parts, n_actions, len(options)).min(axis=1).max(axis=1)
        last, future = future, np.clip(best, 0.0, limit)
        if gamma == 0 or (np.abs(future - last).mean(axis=0) <= 0.01 * threshold).all():
            break
    mean = weights.reshape(len(weights), parts, n_actions, len(options)).mean(axis=1)
    return replace(
        options,
        weights=np.ascontiguousarray(mean.transpose(2, 1, 0)),
        basis=basis,
        threshold=threshold,
        provenance={
            "gamma": gamma,
            "learned": "fitted Q iteration",
            **(provenance or {}),
        },
    )


def prepare_ridge_regression(psi: Any, ridge: float) -> Callable[[Array], Array]:
    """Ridge regression on fixed inputs ``(N, p)``: a function from targets to weights."""
    system = psi.T @ psi
    system = (
        system.toarray() if issparse(system) else np.asarray(system, dtype=np.float64)
    )
    mean = np.trace(system) / len(system)
    # The second term gives weight 0 to features that were never seen.
    system[np.diag_indices(len(system))] += ridge * mean + 1e-12 * (mean or 1.0)
    factor = cho_factor(system, lower=True, overwrite_a=True)
    return lambda target: np.asarray(
        cho_solve(factor, np.asarray(psi.T @ target), check_finite=False)
    )
