"""Models of what actions move, fitted to logged steps.

Both are linear, and both are fitted to the steps that they explain: a step against a
wall, or one that jumps, does not count. Each begins with all steps and leaves out those
whose error is large *in units of a step*. A rule that keeps the better half of the
steps instead would keep those that never move, and fit nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eigenoptions._ties import find_first_maximum
from eigenoptions._types import BoolArray, FloatArray, IndexArray


@dataclass(frozen=True)
class Fit:
    """How well a model of actions explains the logged steps.

    Attributes
    ----------
    explained : float
        The share of all movement that the model explains: 1 minus the sum of its
        errors, divided by the sum of what it had to explain. Steps against walls count
        as errors.
    blocked : float
        The share of steps that went less than half as far as the model expects.
    step : tuple of float
        A large step in each coordinate.
    """

    explained: float
    blocked: float
    step: tuple[float, ...]

    def __str__(self) -> str:
        return (
            f"the model of actions explains {self.explained:.0%} of the movement; "
            f"{self.blocked:.0%} of the steps were blocked"
        )


def measure_fit(expected: FloatArray, change: FloatArray, step: FloatArray) -> Fit:
    """How well expected changes ``(N, d)`` explain those of the data."""
    # A jump is one step that was not explained, however far it led.
    scaled = np.clip(change / step, -1.0, 1.0)
    errors = np.clip(np.abs(change - expected) / step, 0.0, 1.0)
    # Movement is what differs from the typical change, which needs no action.
    total = float(np.abs(scaled - np.median(scaled, axis=0)).sum())
    explained = 0.0
    if total > 0.0:
        explained = 1.0 - float(errors.sum()) / total

    progress, is_aimed = measure_progress(expected, change, step)
    blocked = 0.0
    if is_aimed.any():
        blocked = float((progress[is_aimed] < 0.5).mean())
    return Fit(explained, blocked, tuple(step.tolist()))


def measure_progress(
    expected: FloatArray, change: FloatArray, step: FloatArray, least: float = 0.25
) -> tuple[FloatArray, BoolArray]:
    """The part ``(N,)`` of each expected change that happened, and where one was.

    An expected change of less than `least` large steps is none.
    """
    expected = expected / step
    squares = (expected**2).sum(axis=1)
    is_aimed = squares >= least**2
    # The change in the expected direction, relative to the expected one.
    products = (expected * change / step).sum(axis=1)
    progress = products / np.where(is_aimed, squares, 1.0)
    return progress, is_aimed


def drop_small_parts(
    expected: FloatArray, step: FloatArray, least: float = 0.1, share: float = 0.25
) -> FloatArray:
    """Expected changes ``(N, d)`` without components that are next to nothing.

    Those are less than a tenth of a large step, and a quarter of the largest component.
    The fit of actions along one axis is not exact: beside the border of a cell, one
    such step would count as a try of the diagonal, and tell nonsense about it.
    """
    scaled = np.abs(expected / step)
    largest = scaled.max(axis=1, keepdims=True)
    is_small = scaled < np.minimum(least, share * largest)
    return np.where(is_small, 0.0, expected)


def _fit_robustly(
    inputs: FloatArray, change: FloatArray, step: FloatArray
) -> FloatArray:
    """Weights ``(m, d)`` of the linear model of the steps that it explains."""
    kept = np.ones(len(inputs), dtype=np.bool_)
    weights: FloatArray = np.zeros((inputs.shape[1], change.shape[1]))
    # From all steps to those with an error of a quarter step, or of four times the
    # noise if that is more.
    for limit in (1.0, 0.7, 0.5, 0.35, *[0.25] * 16):
        previous = kept
        solution = np.linalg.lstsq(inputs[kept], change[kept], rcond=None)
        weights = np.asarray(solution[0], dtype=np.float64)
        errors = (np.abs(change - inputs @ weights) / step).max(axis=1)
        kept = errors <= max(limit, 4.0 * float(np.median(errors)))
        if limit == 0.25 and np.array_equal(kept, previous):
            break
    return weights


class Displacement:
    """``next_obs - obs = B action + b`` for actions that are vectors.

    Parameters
    ----------
    action : ndarray of shape (N, k)
        Actions.
    change : ndarray of shape (N, d)
        What they changed.
    step : ndarray of shape (d,)
        A large step.
    """

    def __init__(
        self, action: FloatArray, change: FloatArray, step: FloatArray
    ) -> None:
        # Steps at even distances: enough for so few weights.
        rows = np.linspace(0, len(action) - 1, min(len(action), 20_000)).astype(int)
        inputs = np.column_stack([action[rows], np.ones(len(rows))])
        weights = _fit_robustly(inputs, change[rows], step)
        self.B = weights[:-1].T
        self.b = weights[-1]
        self.inverse = np.linalg.pinv(self.B, rcond=1e-6)
        self.low = action.min(axis=0)
        self.high = action.max(axis=0)
        # For a single action, a list is faster than arrays.
        self._limits = list(zip(self.low.tolist(), self.high.tolist(), strict=True))
        # No action, as far as the limits allow it.
        self._rest = np.minimum(np.maximum(0.0, self.low), self.high)
        self._step = step
        self._rates = self._find_rates()

        # Actions are like those of the data: one of a few, or along one axis.
        self._choices = _find_choices(action[rows])
        n_components = np.count_nonzero(action[rows], axis=1)
        has_several = action.shape[1] > 1
        self.has_one_axis = has_several and bool((n_components <= 1).mean() > 0.99)

    def _find_rates(self) -> FloatArray:
        """Rates ``(2 k, d)``: their product with a displacement is how many steps.

        First the largest steps forth in each component of the action, then those back.
        Of the two, the one in the wrong direction is negative.
        """
        # A component that goes one way only counts as if it went back as far. One that
        # is always 0 is not to be divided by 0.
        largest = np.maximum(np.maximum(-self.low, self.high), 1e-300)
        forth = np.where(self.high > 0, self.high, largest)
        back = np.where(self.low < 0, self.low, -largest)
        return np.concatenate(
            [self.inverse / forth[:, None], self.inverse / back[:, None]]
        )

    def predict(self, action: FloatArray) -> FloatArray:
        """The displacement that the model expects of each action."""
        return np.asarray(action @ self.B.T + self.b)

    def count_steps(self, displacement: FloatArray) -> float:
        """The number of largest steps that lead as far."""
        return float(max(self._rates.dot(displacement).tolist()))

    def aim(
        self,
        point: FloatArray,
        target: FloatArray,
        border: FloatArray | None = None,
        near: float = 0.1,
    ) -> FloatArray:
        """The action that leads straight to a target.

        If that takes several steps, go first to the border, if there is one, until it
        is at most `near` largest steps away.
        """
        # What happens by itself, b, needs no action.
        displacement = target - point - self.b
        n_steps = self.count_steps(displacement)
        if n_steps > 1.0 and border is not None:
            # Where there is no border, its numbers are NaN, and this is False.
            is_before_border = self.count_steps(border - point) > near
            if is_before_border:
                return self.aim(point, border, near=near)

        if self._choices is not None:
            return self._choose(displacement)
        action = self.inverse.dot(displacement)
        if self.has_one_axis:
            return self.split(action, near)[0]
        # Of a way of several steps, this is the first.
        return self._limit(action / max(n_steps, 1.0))

    def _limit(self, action: FloatArray) -> FloatArray:
        """The action within the range of those of the data."""
        # Not np.clip, which takes longer for one action.
        return np.asarray(np.minimum(np.maximum(action, self.low), self.high))

    def _choose(self, displacement: FloatArray) -> FloatArray:
        """The one of few actions that leads nearest to a place."""
        assert self._choices is not None
        error = (self._choices @ self.B.T - displacement) / self._step
        return np.asarray(self._choices[find_first_maximum(-(error**2).sum(axis=1))])

    def find_parts(
        self, point: FloatArray, target: FloatArray, action: FloatArray
    ) -> list[FloatArray]:
        """The parts of a way to a target, where actions are along one axis.

        Elsewhere the given action is the only one.
        """
        if not self.has_one_axis or self._choices is not None:
            return [action]
        return self.split(self.inverse.dot(target - point - self.b))

    def split(self, action: FloatArray, near: float = 0.1) -> list[FloatArray]:
        """The components of an action as actions along one axis, the shortest first.

        To pass a border where others passed it, one has to stand in front of that
        place. So short corrections come before the long way through; those of less than
        `near` largest steps are left out.
        """
        components = action.tolist()
        n_steps = []
        for component, (low, high) in zip(components, self._limits, strict=True):
            largest = high if component > 0 else -low
            # A direction that no action of the data has counts as very long; a
            # component of 0 counts as 0 steps, not as 0 / 0.
            n_steps.append(abs(component) / max(largest, 1e-300))
        by_length = sorted(range(len(n_steps)), key=n_steps.__getitem__)
        longest = by_length[-1]

        parts = []
        for i in by_length:
            if n_steps[i] > near or i == longest:
                low, high = self._limits[i]
                part = self._rest.copy()
                part[i] = min(max(components[i], low), high)
                parts.append(part)
        return parts


def _find_choices(action: FloatArray, most: int = 32) -> FloatArray | None:
    """The different actions, if they are few."""
    # A glance at the first ones is enough where they are many.
    if len(np.unique(action[: 2 * most], axis=0)) > most:
        return None
    choices = np.unique(action, axis=0)
    return choices if len(choices) <= most else None


class ActionEffects:
    """``next_obs - obs = A_a obs + b_a`` for each of a few numbered actions.

    Turning and driving are of this kind where a heading is given as sine and cosine:
    a turn rotates them, and a drive adds a multiple of them to the position.

    Parameters
    ----------
    points : ndarray of shape (N, d)
        Points before each step.
    action : ndarray of int of shape (N,)
        Numbers of actions.
    change : ndarray of shape (N, d)
        What they changed.
    step : ndarray of shape (d,)
        A large step.
    n_actions : int
        Number of actions.
    """

    def __init__(
        self,
        points: FloatArray,
        action: IndexArray,
        change: FloatArray,
        step: FloatArray,
        n_actions: int,
    ) -> None:
        width = points.shape[1]
        self._middle = points.mean(axis=0)
        self._weights = np.zeros((n_actions, width + 1, width))
        for a in range(n_actions):
            rows = np.flatnonzero(action == a)
            if len(rows) == 0:
                continue
            inputs = self._make_inputs(points[rows])
            # With few steps of an action, its mean effect has to do.
            if len(rows) < 4 * (width + 1):
                inputs = inputs[:, -1:]
            weights = _fit_robustly(inputs, change[rows], step)
            self._weights[a, -len(weights) :] = weights

    def _make_inputs(self, points: FloatArray) -> FloatArray:
        return np.column_stack([points - self._middle, np.ones(len(points))])

    def predict(self, points: FloatArray, action: IndexArray) -> FloatArray:
        """The change that each action is expected to make at each point."""
        inputs = self._make_inputs(points)
        changes = np.empty_like(points)
        for a in np.unique(action):
            rows = action == a
            changes[rows] = inputs[rows] @ self._weights[a]
        return changes


def find_directions(expected: FloatArray, step: FloatArray) -> IndexArray:
    """``(N,)`` the number of the direction of each change.

    There are 3**d directions: each coordinate falls, stays or rises. The one in the
    middle is no direction. A coordinate belongs to the direction if it changes at least
    0.41 times as much as the one that changes most, so that a direction in the plane
    covers 45 degrees.
    """
    scaled = expected / step
    largest = np.abs(scaled).max(axis=1, keepdims=True)
    is_part = np.abs(scaled) > np.tan(np.pi / 8) * largest
    signs = np.where(is_part, np.sign(scaled), 0.0).astype(np.int64)
    digits = 3 ** np.arange(expected.shape[1])[::-1]
    return np.asarray((signs + 1) @ digits)
