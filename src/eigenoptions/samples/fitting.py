"""Options of features, fitted to a batch of transitions (paper, Section 5.2)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import issparse

from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._text import describe
from eigenoptions._types import (
    BoolArray,
    FeatureFunction,
    FeatureMatrix,
    FloatArray,
    IndexArray,
    Progress,
)
from eigenoptions._validation import check_float, check_int
from eigenoptions.options.records import Purpose
from eigenoptions.samples import Transitions
from eigenoptions.samples.features import compute_features
from eigenoptions.samples.linear import LinearOptionSet

logger = logging.getLogger("eigenoptions")


@shows_progress
def fit(
    transitions: Transitions,
    purposes: Sequence[Purpose],
    features: FeatureFunction,
    *,
    n_actions: int | None = None,
    gamma: float = 0.99,
    basis: FeatureFunction | None = None,
    iterations: int = 1000,
    ridge: float = 1e-5,
    stop: float = 0.02,
    parts: int = 2,
    provenance: dict[str, Any] | None = None,
    progress: ProgressArgument = None,
) -> LinearOptionSet:
    """Fit options in a feature space to a batch of transitions (Section 5.2).

    The method is linear fitted Q iteration. For a purpose e the reward is
    ``f(s') - f(s)`` with ``f = e . phi``, and TERMINATE is worth 0. So
    ``q(s, a) = E[f(s') - f(s) + gamma v(s')]`` with ``v = max(0, max_a q)``. Whatever
    an option does, its return is at most ``max f - f(s)``, so values are limited to
    that. The maximum over actions favours errors upwards. So the batch is fitted in
    parts, and the smallest value of an action counts.

    A regression is no contraction: iterated, it may go round in circles for ever, and
    then rounding errors decide about the result. So values begin at 0, they only rise,
    and they rise by thousandths of the range of f. As they are limited, the iteration
    comes to a fixed point, which errors below a thousandth do not change. It ends when
    values rise by no more than 0.0002 of the range on average.

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
    iterations : int, default=1000
        Largest number of iterations. A warning says if values still rise then.
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
    progress : bool or callable, default=None
        True for a progress bar, False for none; None: in a terminal, after two seconds.
        A function is called as ``progress(done, total)`` with numbers of options whose
        values have settled.

    Returns
    -------
    LinearOptionSet
        One learned option per purpose.

    Examples
    --------
    A walk on the numbers 0 to 9. Action 1 adds one, action 0 takes one away, and the
    purpose is to be large.

    >>> from eigenoptions.samples.features import Tiles
    >>> x = np.repeat(np.arange(10.0), 2)
    >>> action = np.tile([0, 1], 10)
    >>> after = np.clip(x + 2 * action - 1, 0, 9)
    >>> walk = Transitions(x[:, None], action, after[:, None], np.zeros(20, dtype=bool))
    >>> grid = Tiles((0,), (9,), tiles=9, tilings=1)
    >>> options = fit(walk, [Purpose([1.0], "up")], np.asarray, basis=grid, parts=1)
    >>> options.actions(np.arange(10.0)[:, None]).tolist()
    [[1, 1, 1, 1, 1, 1, 1, 1, 1, -1]]
    """
    progress = check_progress(progress)
    ridge = check_float("ridge", ridge, minimum=0)
    stop = check_float("stop", stop, minimum=0)
    iterations = check_int("iterations", iterations)
    parts = check_int("parts", parts)
    gamma = check_float("gamma", gamma, minimum=0, below=1)
    n_actions = _check_actions(transitions.action, n_actions)

    options = LinearOptionSet(tuple(purposes), features, n_actions)
    n_features = options.directions.shape[1]
    phi = compute_features(features, transitions.obs, n_features)
    phi_next = compute_features(features, transitions.next_obs, n_features)
    before = np.asarray(phi @ options.directions.T)
    after = np.asarray(phi_next @ options.directions.T)
    low, high = np.quantile(np.concatenate([before, after]), [0.001, 0.999], axis=0)
    extent = high - low

    if basis is not None:
        phi = compute_features(basis, transitions.obs)
        phi_next = compute_features(basis, transitions.next_obs, phi.shape[1])
    regressions = _prepare_regressions(
        phi, phi_next, np.asarray(transitions.action), n_actions, parts, ridge
    )

    gain = after - before
    # The most that can still be gained after a transition, (N, m).
    is_last = np.asarray(transitions.terminated, dtype=np.bool_)
    limit = np.maximum(high - after, 0.0) * ~is_last[:, None]
    future, has_settled = _raise_values(
        regressions, gain, limit, gamma, extent / 1000, iterations, progress
    )
    _warn_of_unsettled(options.purposes, has_settled, iterations, ridge)

    weights = regressions.solve(gain + gamma * future)
    mean = weights.mean(axis=1)  # (p, A, m)
    return replace(
        options,
        weights=np.ascontiguousarray(mean.transpose(2, 1, 0)),
        basis=basis,
        threshold=stop * extent,
        gamma=gamma,
        provenance={
            "gamma": gamma,
            "learned": "fitted Q iteration",
            **(provenance or {}),
        },
    )


def _warn_of_unsettled(
    purposes: Sequence[Purpose],
    has_settled: BoolArray,
    iterations: int,
    ridge: float,
) -> None:
    """Warn of the options whose values still rise."""
    unsettled = [purposes[i].label for i in np.flatnonzero(~has_settled).tolist()]
    if unsettled:
        logger.warning(
            "the values of %d of %d options (%s) still rise after %d iterations: give "
            "iterations=%d, or a larger ridge= than %g",
            len(unsettled),
            len(purposes),
            ", ".join(unsettled[:3]),
            iterations,
            4 * iterations,
            ridge,
        )


def _check_actions(action: Any, n_actions: int | None) -> int:
    """Return the number of actions, or raise ValueError.

    If `n_actions` is None, it is 1 more than the highest action.
    """
    action = np.asarray(action)
    if n_actions is None:
        n_actions = int(action.max(initial=0)) + 1
    has_numbers = action.ndim == 1 and action.dtype.kind in "iu" and len(action) > 0
    # The order matters: no actions have no smallest one.
    if not has_numbers or action.min() < 0 or action.max() >= n_actions:
        raise ValueError(
            f"actions must be integers (N,) in 0..{n_actions - 1}, "
            f"got {describe(action)}: see Transitions.of"
        )
    return n_actions


@dataclass(frozen=True, eq=False)
class _Regressions:
    """One regression for each part of the batch and each action.

    Attributes
    ----------
    phi_next : array or csr_array of shape (N, p)
        Features after each transition.
    members : list of arrays
        Rows of the batch of each regression: part after part, action after action.
    solvers : list of callables
        From targets to weights, for each regression.
    n_actions : int
        Number of actions A.
    """

    phi_next: FeatureMatrix
    members: list[IndexArray]
    solvers: list[Callable[[FloatArray], FloatArray]]
    n_actions: int

    def solve(self, target: FloatArray) -> FloatArray:
        """Return the weights ``(p, parts, A, m)`` that fit targets ``(N, m)``."""
        solutions = []
        for find_weights, rows in zip(self.solvers, self.members, strict=True):
            solutions.append(find_weights(target[rows]))

        # One row per feature. Regressions come part after part, action after action.
        weights = np.stack(solutions, axis=1)
        n_features = len(weights)
        n_parts = len(self.members) // self.n_actions
        return weights.reshape(n_features, n_parts, self.n_actions, -1)

    def predict_best(self, weights: FloatArray) -> FloatArray:
        """Return the value ``(N, m)`` of the best action after each transition.

        The value of an action is the smallest of all parts.
        """
        flat = weights.reshape(len(weights), -1)
        if issparse(self.phi_next):
            columns = np.asarray(self.phi_next @ flat).T
        else:
            # A row for each weight: NumPy reduces long rows faster than short ones.
            columns = flat.T @ self.phi_next.T
        q = columns.reshape(*weights.shape[1:], -1)
        best: FloatArray = q.min(axis=0).max(axis=0)
        return best.T


def _prepare_regressions(
    phi: FeatureMatrix,
    phi_next: FeatureMatrix,
    action: IndexArray,
    n_actions: int,
    parts: int,
    ridge: float,
) -> _Regressions:
    """Return the regressions of a batch, whose rows go to the parts in turn."""
    part = np.arange(len(action)) % parts
    regression = part * n_actions + action
    members = [np.flatnonzero(regression == i) for i in range(parts * n_actions)]
    solvers = [prepare_ridge_regression(phi[rows], ridge) for rows in members]
    return _Regressions(phi_next, members, solvers, n_actions)


def _raise_values(
    regressions: _Regressions,
    gain: FloatArray,
    limit: FloatArray,
    gamma: float,
    unit: FloatArray,
    iterations: int,
    progress: Progress | None = None,
) -> tuple[FloatArray, BoolArray]:
    """Raise the values after each transition to a fixed point.

    Parameters
    ----------
    regressions : _Regressions
        The regressions.
    gain, limit : array of shape (N, m)
        Reward of each transition, and the largest value after it.
    gamma : float
        Discount factor.
    unit : array of shape (m,)
        Values are rounded to multiples of it, so that small rises end.
    iterations : int
        Largest number of iterations.
    progress : callable, default=None
        Called as ``progress(done, total)`` after each iteration.

    Returns
    -------
    future : array of shape (N, m)
        The values.
    has_settled : array of bool of shape (m,)
        Whether those of each purpose rise by no more than 0.2 units on average.
    """
    future = np.zeros_like(gain)
    has_settled = np.zeros(gain.shape[1], dtype=np.bool_)
    # A flat function has no range, and no values.
    unit = np.where(unit > 0, unit, 1.0)
    for _ in range(iterations):
        # Purposes have nothing to do with each other: those that have settled rest.
        rising = np.flatnonzero(~has_settled)
        if not len(rising):
            break
        old = future[:, rising]
        target = gain[:, rising] + gamma * old
        best = regressions.predict_best(regressions.solve(target))
        rounded = np.round(best / unit[rising]) * unit[rising]
        # Values never fall.
        new = np.clip(rounded, old, limit[:, rising])
        future[:, rising] = new

        # Some transitions may creep on, by a unit now and then.
        mean_rise = ((new - old) / unit[rising]).mean(axis=0)
        has_settled[rising] = mean_rise <= 0.2
        if gamma == 0:
            # The target does not depend on values.
            has_settled[:] = True
        if progress is not None:
            progress(int(has_settled.sum()), len(has_settled))
    return future, has_settled


def prepare_ridge_regression(
    psi: FeatureMatrix, ridge: float
) -> Callable[[FloatArray], FloatArray]:
    """Return a function from targets to weights, for inputs ``(N, p)``, also sparse."""
    # A product of booleans is a boolean, and one of bytes overflows.
    inputs = psi
    if psi.dtype.kind != "f":
        inputs = psi.astype(np.float64)
    system: Any = inputs.T @ inputs
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
