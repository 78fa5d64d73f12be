"""Options of features, fitted to a batch of transitions (paper, Section 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import issparse

from eigenoptions._text import describe
from eigenoptions._types import FeatureFunction, FloatArray
from eigenoptions._validation import check_float, check_int
from eigenoptions.data import Transitions
from eigenoptions.features import compute_features
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.records import Purpose


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
    """Fit options in a feature space to a batch of transitions (Section 5.2).

    The method is linear fitted Q iteration. For a purpose e the reward is
    ``f(s') - f(s)`` with ``f = e . phi``, and TERMINATE is worth 0. So
    ``q(s, a) = E[f(s') - f(s) + gamma v(s')]`` with ``v = max(0, max_a q)``. Whatever
    an option does, its return is at most ``max f - f(s)``. Values are limited to that,
    so the iteration cannot diverge. The maximum over actions favours errors upwards. So
    the batch is fitted in parts, and the smallest value of an action counts.

    Parameters
    ----------
    transitions : Transitions
        Samples under any policy that tries every action.
    purposes : sequence of Purpose
        Vectors e in feature space.
    features : callable
        The map phi.
    n_actions : int, default=None
        Number of actions. None: the largest action in the batch, plus one. An action
        that was never tried is never chosen.
    gamma : float, default=0.99
        Discount factor in [0, 1). The larger it is, the farther an option goes through
        lower potential to reach a higher one.
    basis : callable, default=None
        The map psi in which action values are linear. None: phi.
    iterations : int, default=200
        Largest number of iterations. It ends earlier if values change by no more than a
        hundredth of `stop` on average.
    ridge : float, default=1e-5
        Weight of the penalty on large weights, relative to the mean square of a
        feature.
    stop : float, default=0.02
        An option terminates where no action value exceeds this share of the range of f
        over the batch (without one in a thousand at either end).
    parts : int, default=2
        Number of parts of the batch that are fitted separately. The result has their
        mean weights.
    provenance : dict, default=None
        Entries to record in the set beside gamma.

    Returns
    -------
    LinearOptionSet
        One learned option per purpose.

    Examples
    --------
    A walk on the numbers 0 to 9. Action 1 adds one, action 0 takes one away, and the
    purpose is to be large.

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
    ridge = check_float("ridge", ridge, minimum=0)
    stop = check_float("stop", stop, minimum=0)
    iterations = check_int("iterations", iterations)
    parts = check_int("parts", parts)
    gamma = check_float("gamma", gamma, minimum=0, below=1)
    action = np.asarray(transitions.action)
    if n_actions is None:
        n_actions = int(action.max(initial=0)) + 1
    is_discrete = action.ndim == 1 and action.dtype.kind in "iu" and len(action) > 0
    if not is_discrete or action.min() < 0 or action.max() >= n_actions:
        raise ValueError(
            f"actions must be integers (N,) in 0..{n_actions - 1}, "
            f"got {describe(action)}: see Transitions.of"
        )

    options = LinearOptionSet(tuple(purposes), features, n_actions)
    n_features = options.directions.shape[1]
    phi = compute_features(features, transitions.obs, n_features)
    phi_next = compute_features(features, transitions.next_obs, n_features)
    before = np.asarray(phi @ options.directions.T)
    after = np.asarray(phi_next @ options.directions.T)
    low, high = np.quantile(np.concatenate([before, after]), [0.001, 0.999], axis=0)
    threshold = stop * (high - low)

    # One regression per part of the batch and action.
    if basis is not None:
        phi = compute_features(basis, transitions.obs)
        phi_next = compute_features(basis, transitions.next_obs, phi.shape[1])
    group = np.arange(len(transitions)) % parts * n_actions + action
    members = [np.flatnonzero(group == g) for g in range(parts * n_actions)]
    solvers = [prepare_ridge_regression(phi[rows], ridge) for rows in members]

    gain = after - before
    # The most that can still be gained after a transition, (N, m).
    is_last = np.asarray(transitions.terminated, dtype=np.bool_)
    limit = np.maximum(high - after, 0.0) * ~is_last[:, None]

    future = np.zeros_like(gain)
    for _ in range(iterations):
        target = gain + gamma * future
        solutions = [
            solve(target[rows]) for solve, rows in zip(solvers, members, strict=True)
        ]
        weights = np.stack(solutions, axis=1)  # (p, parts * A, m)
        q = np.asarray(phi_next @ weights.reshape(len(weights), -1))
        best = q.reshape(-1, parts, n_actions, len(options)).min(axis=1).max(axis=1)
        last = future
        future = np.clip(best, 0.0, limit)
        change = np.abs(future - last).mean(axis=0)
        if gamma == 0 or (change <= 0.01 * threshold).all():
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


def prepare_ridge_regression(
    psi: Any, ridge: float
) -> Callable[[FloatArray], FloatArray]:
    """Return a function from targets to weights, for inputs ``(N, p)``, also sparse."""
    # A product of booleans is a boolean, and one of bytes overflows.
    inputs = psi if psi.dtype.kind == "f" else psi.astype(np.float64)
    system = inputs.T @ inputs
    if issparse(system):
        system = system.toarray()
    system = np.asarray(system, dtype=np.float64)
    mean = np.trace(system) / len(system)
    # The second term gives weight 0 to features that were never seen.
    system[np.diag_indices(len(system))] += ridge * mean + 1e-12 * (mean or 1.0)
    factor = cho_factor(system, lower=True, overwrite_a=True)

    def solve(target: FloatArray) -> FloatArray:
        moments = np.asarray(psi.T @ target)
        return np.asarray(cho_solve(factor, moments, check_finite=False))

    return solve
