"""Cells of a grid over logged vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._types import FloatArray
from eigenoptions._validation import check_real

# Empty cells on each side of the data, so that no neighbour of a cell is at the other
# end of the next row.
_MARGIN = 2


class Grid:
    """Cells with equal sides, numbered where there are points.

    Parameters
    ----------
    points : ndarray of shape (N, d)
        All points of the data.
    size : ndarray of shape (d,)
        Sides of the cells.

    Attributes
    ----------
    low : ndarray of shape (d,)
        The corner where cells begin.
    keys : ndarray of shape (S,), optional
        One integer for each cell that has points, in rising order; None where there
        are too many cells for that.
    corners : ndarray of int of shape (S, d)
        The cells as integers per coordinate.
    number : dict
        The number of the cell of each corner.
    """

    def __init__(self, points: FloatArray, size: FloatArray) -> None:
        self.size = size
        # A little below the data: values that repeat, such as 0 and 1, do not lie on
        # a border, where rounding would decide about their cell.
        self.low = points.min(axis=0) - 1e-6 * size

        # The lowest point is in cell 0 of each coordinate.
        highest_cell = np.floor((points.max(axis=0) - self.low) / size)
        n_cells = highest_cell + (1 + 2 * _MARGIN)
        self.keys: NDArray[np.int64] | None = None
        self.corners: NDArray[np.int64]
        if n_cells.prod() <= 2**62:
            self._number_by_keys(self.cell(points), n_cells.astype(np.int64))
        else:
            # Many coordinates have more cells than there are integers of 64 bits.
            self.corners = np.unique(self.cell(points), axis=0)

        self.number = {
            tuple(corner): number for number, corner in enumerate(self.corners.tolist())
        }
        # As lists, which are faster than arrays for the one point of `corner`.
        self._bounds = self.low.tolist(), size.tolist()

    def _number_by_keys(
        self, cells: NDArray[np.int64], n_cells: NDArray[np.int64]
    ) -> None:
        """Set `keys` and `corners`: each cell has one integer, as digits make a number.

        The last coordinate counts ones, the one before it counts rows of the last, and
        so on.
        """
        self._n_cells = n_cells
        lengths_from_last = n_cells[1:][::-1]
        self._strides = np.cumprod([1, *lengths_from_last])[::-1]
        self.keys = np.unique(self._key(cells))

        # And back: the digits of each key are the cell that it stands for.
        digits = self.keys[:, None] // self._strides % n_cells
        self.corners = digits - _MARGIN

    @property
    def n_states(self) -> int:
        """Number of cells that have points."""
        return len(self.corners)

    @property
    def coords(self) -> NDArray[np.int64] | None:
        """``(S, 2)`` rows and columns of a map of two coordinates; None for others.

        The first coordinate goes to the right and the second one up.
        """
        if self.corners.shape[1] != 2:
            return None
        rows_and_columns = self.corners[:, ::-1] * [-1, 1]
        return np.asarray(rows_and_columns - rows_and_columns.min(axis=0))

    def cell(self, points: FloatArray) -> NDArray[np.int64]:
        """Row of integers ``(d,)`` of the cell that each point lies in."""
        return np.asarray(np.floor((points - self.low) / self.size), dtype=np.int64)

    def corner(self, point: list[float]) -> tuple[int, ...]:
        """As `cell`, fast for one point."""
        columns = zip(point, *self._bounds, strict=True)
        return tuple([int((x - low) // side) for x, low, side in columns])

    def find(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of cells; -1 where there are no points."""
        if self.keys is None:
            rows = cells.reshape(-1, cells.shape[-1]).tolist()
            numbers = [self.number.get(tuple(row), -1) for row in rows]
            return np.array(numbers, dtype=np.int64).reshape(cells.shape[:-1])

        key = self._key(cells)
        position = np.searchsorted(self.keys, key)
        # A key above all others has its position past the last.
        number = np.minimum(position, len(self.keys) - 1)
        is_known = (self.keys[number] == key) & self._is_inside(cells)
        return np.where(is_known, number, -1)

    def _key(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """One integer for each cell."""
        return np.asarray((cells + _MARGIN) @ self._strides)

    def _is_inside(self, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether cells lie in the box that keys are unique in."""
        is_inside = (cells >= -_MARGIN) & (cells < self._n_cells - _MARGIN)
        return np.asarray(is_inside.all(axis=-1))


def mean_rows(points: FloatArray, number: NDArray[np.int64], n: int) -> FloatArray:
    """``(n, d)`` mean of the points with each number below n; 0 without any."""
    sums = [np.bincount(number, column, minlength=n) for column in points.T]
    n_points = np.bincount(number, minlength=n)
    return np.stack(sums, axis=1) / np.maximum(n_points, 1)[:, None]


def check_vectors(name: str, array: Any, width: int | None = None) -> FloatArray:
    """Rows of finite floats, of a given width where there is one."""
    vectors = np.asarray(check_real(name, array), dtype=np.float64)
    has_width = vectors.ndim == 2 and width in (None, vectors.shape[1])
    if not has_width:
        expected = "d" if width is None else str(width)
        raise ValueError(
            f"{name} must have shape (N, {expected}), got {vectors.shape}: flatten each"
        )
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise ValueError(
            f"{name} must be finite, got {vectors[bad[0]]} in row {bad[0]}: "
            "leave it out"
        )
    return vectors
