"""The columns of observations as coordinates in which cells make sense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._types import FloatArray
from eigenoptions.samples.features.observations import select_columns


class Coordinates:
    """Some columns of observations; an angle in radians becomes its sine and cosine.

    Then a heading of 359 degrees is beside one of 1 degree, and what turning and
    driving do is linear.

    Parameters
    ----------
    columns : sequence of int
        The columns to keep.
    is_angle : sequence of bool
        Which of these are angles.
    """

    def __init__(self, columns: Sequence[int], is_angle: Sequence[bool]) -> None:
        self.columns = tuple(columns)
        self.is_angle = tuple(is_angle)
        in_order = self.columns == tuple(range(len(self.columns)))
        self._keeps_order = in_order and not any(self.is_angle)

    def apply(self, obs: FloatArray) -> FloatArray:
        """Coordinates ``(N, d)`` of observations."""
        if self._keeps_order and obs.shape[1] == len(self.columns):
            return obs
        parts = []
        kept = select_columns(obs, self.columns)
        for column, is_angle in zip(kept.T, self.is_angle, strict=True):
            if is_angle:
                parts += [np.sin(column), np.cos(column)]
            else:
                parts.append(column)
        return np.stack(parts, axis=1)

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

    def spread(self, sides: ArrayLike, width: int) -> FloatArray:
        """One side per coordinate, from one number or one per kept column.

        There may also be one for each of the `width` columns of observations.
        """
        size = np.asarray(sides, dtype=np.float64)
        n_columns = len(self.columns)
        is_positive = bool((np.isfinite(size) & (size > 0)).all())
        if not is_positive or size.shape not in ((), (n_columns,), (width,)):
            raise ValueError(
                f"cell_size must be > 0, one number or {n_columns}, got {sides!r}"
            )
        if size.ndim and len(size) != n_columns:
            size = size[list(self.columns)]
        return self.repeat(np.broadcast_to(size, n_columns))

    def repeat(self, values: NDArray[Any]) -> NDArray[Any]:
        """One value per coordinate, from one per kept column."""
        return np.repeat(values, 1 + np.array(self.is_angle, dtype=np.intp))


def find_angles(
    obs: FloatArray, next_obs: FloatArray, columns: Sequence[int]
) -> tuple[bool, ...]:
    """Which of some columns are angles in radians that wrap round."""
    return tuple(_is_angle(obs[:, column], next_obs[:, column]) for column in columns)


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
