"""The columns of observations as coordinates in which cells make sense."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._types import FloatArray
from eigenoptions._validation import show_value


class Coordinates:
    """Some columns of observations; an angle in radians becomes its sine and cosine.

    Then a heading of 359 degrees is beside one of 1 degree, and what turning and
    driving do is linear.

    Parameters
    ----------
    obs, next_obs : ndarray of shape (N, d)
        Observations before and after each step.
    columns : sequence of int
        The columns to keep.
    has_angles : bool, default=True
        Whether to look for angles.

    Attributes
    ----------
    columns : ndarray of int
        The columns that are kept.
    is_angle : ndarray of bool
        Which of these are angles.
    width : int
        The number of columns of an observation.
    """

    def __init__(
        self,
        obs: FloatArray,
        next_obs: FloatArray,
        columns: Sequence[int],
        has_angles: bool = True,
    ) -> None:
        self.width = obs.shape[1]
        self.columns = np.array(columns, dtype=np.intp)
        self.is_angle = np.zeros(len(self.columns), dtype=np.bool_)
        if has_angles:
            for i, j in enumerate(self.columns):
                self.is_angle[i] = _is_angle(obs[:, j], next_obs[:, j])
        self._is_identity = len(self.columns) == self.width and not self.is_angle.any()

    def apply(self, obs: FloatArray) -> FloatArray:
        """Coordinates ``(N, d)`` of observations."""
        if self._is_identity:
            return obs
        parts = []
        for column, is_angle in zip(obs[:, self.columns].T, self.is_angle, strict=True):
            if is_angle:
                parts += [np.sin(column), np.cos(column)]
            else:
                parts.append(column)
        return np.stack(parts, axis=1)

    def read(self, obs: Any) -> FloatArray:
        """Coordinates ``(d,)`` of one observation."""
        try:
            point = np.asarray(obs, dtype=np.float64)
        except (TypeError, ValueError):
            # The shape is refused below.
            point = np.empty(0)
        if point.shape != (self.width,) or not all(map(isfinite, point.tolist())):
            raise ValueError(
                f"an observation must be {self.width} finite numbers, got "
                f"{show_value(obs)}"
            )
        if self._is_identity:
            return point
        return np.asarray(self.apply(point[None])[0])

    def invert(self, points: FloatArray) -> FloatArray:
        """The columns ``(N, columns)`` that coordinates came from."""
        parts = []
        position = 0
        for is_angle in self.is_angle:
            column = points[:, position]
            position += 1
            if is_angle:
                column = np.arctan2(column, points[:, position])
                position += 1
            parts.append(column)
        return np.stack(parts, axis=1)

    def spread(self, sides: ArrayLike) -> FloatArray:
        """One side per coordinate, from one number or one per kept column."""
        size = np.asarray(sides, dtype=np.float64)
        n_columns = len(self.columns)
        is_positive = bool((np.isfinite(size) & (size > 0)).all())
        if not is_positive or size.shape not in ((), (n_columns,), (self.width,)):
            raise ValueError(
                f"cell_size must be > 0, one number or {n_columns}, got {sides!r}"
            )
        if size.shape == (self.width,):
            size = size[self.columns]
        size = np.broadcast_to(size, n_columns)
        return self.repeat(size)

    def repeat(self, values: NDArray[Any]) -> NDArray[Any]:
        """One value per coordinate, from one per kept column."""
        return np.repeat(values, 1 + self.is_angle)


def _is_angle(before: FloatArray, after: FloatArray, slack: float = 0.01) -> bool:
    """Whether a column is an angle in radians that wraps round."""
    low = min(before.min(), after.min())
    high = max(before.max(), after.max())
    full_turn = 2.0 * np.pi
    fits_signed = low >= -np.pi - slack and high <= np.pi + slack
    fits_positive = low >= -slack and high <= full_turn + slack
    # Nothing but a wrap changes by more than half a turn, and it is nearly a turn.
    wraps = np.abs(after - before) > np.pi
    return bool((fits_signed or fits_positive) and wraps.any())
