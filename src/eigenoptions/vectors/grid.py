"""Cells of a grid, numbered where there are points."""

from __future__ import annotations

from math import floor
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from eigenoptions._types import FloatArray, IndexArray
from eigenoptions._validation import check_real

# Empty cells on each side of the data, so that no neighbour of a cell is at the other
# end of the next row.
_MARGIN = 2


class Grid:
    """Cells with equal sides, some of which have numbers.

    Parameters
    ----------
    low : ndarray of shape (d,)
        The corner of the cell whose integers are all 0.
    size : ndarray of shape (d,)
        Sides of the cells.
    corners : ndarray of int of shape (S, d)
        The cells that have numbers, as integers per coordinate.

    Attributes
    ----------
    number : dict
        The number of the cell of each corner.
    """

    def __init__(
        self, low: FloatArray, size: FloatArray, corners: NDArray[np.int64]
    ) -> None:
        self.low = low
        self.size = size
        self.corners = corners
        self.number = {tuple(corner): i for i, corner in enumerate(corners.tolist())}
        # As lists, which are faster than arrays for the one point of `corner`.
        self._bounds = low.tolist(), size.tolist()

        # In arrays, cells are found by one integer each, as digits make a number: the
        # last coordinate counts ones, the one before it rows of the last, and so on.
        self._origin = corners.min(axis=0) - _MARGIN
        self._n_cells = np.ptp(corners, axis=0) + (1 + 2 * _MARGIN)
        # Many coordinates have more cells than there are integers of 64 bits.
        self._has_keys = self._n_cells.prod(dtype=np.float64) <= 2**62
        if self._has_keys:
            lengths_from_last = self._n_cells[1:][::-1]
            self._strides = np.cumprod([1, *lengths_from_last])[::-1]
            keys = self._make_keys(corners)
            self._order = np.argsort(keys, kind="stable")
            self._sorted_keys = keys[self._order]

    @classmethod
    def over(cls, points: FloatArray, size: FloatArray) -> Self:
        """The grid of the cells that have points ``(N, d)``, in rising order."""
        # A little below the data: values that repeat, such as 0 and 1, do not lie on
        # a border, where rounding would decide about their cell.
        low = points.min(axis=0) - 1e-6 * size
        cells = np.asarray(np.floor((points - low) / size), dtype=np.int64)
        firsts = np.unique(number_rows(cells), return_index=True)[1]
        return cls(low, size, cells[firsts])

    @property
    def n_states(self) -> int:
        """Number of cells that have numbers."""
        return len(self.corners)

    @property
    def middles(self) -> FloatArray:
        """``(S, d)`` the middle of each cell."""
        return (self.corners + 0.5) * self.size + self.low

    def cell(self, points: FloatArray) -> NDArray[np.int64]:
        """Row of integers ``(d,)`` of the cell that each point lies in."""
        return np.asarray(np.floor((points - self.low) / self.size), dtype=np.int64)

    def corner(self, point: list[float]) -> tuple[int, ...]:
        """As `cell`, fast for one point."""
        columns = zip(point, *self._bounds, strict=True)
        return tuple([floor((x - low) / side) for x, low, side in columns])

    def find(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of cells; -1 for those without."""
        if not self._has_keys:
            rows = cells.reshape(-1, cells.shape[-1]).tolist()
            numbers = [self.number.get(tuple(row), -1) for row in rows]
            return np.array(numbers, dtype=np.int64).reshape(cells.shape[:-1])

        keys = self._make_keys(cells)
        position = np.searchsorted(self._sorted_keys, keys)
        # A key above all others has its position past the last.
        position = np.minimum(position, len(self._sorted_keys) - 1)
        is_known = (self._sorted_keys[position] == keys) & self._is_inside(cells)
        return np.where(is_known, self._order[position], -1)

    def _make_keys(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """One integer for each cell."""
        return np.asarray((cells - self._origin) @ self._strides)

    def _is_inside(self, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether cells lie in the box that keys are unique in."""
        places = cells - self._origin
        is_inside = (places >= 0) & (places < self._n_cells)
        return np.asarray(is_inside.all(axis=-1))


def number_rows(cells: NDArray[np.int64]) -> IndexArray:
    """``(N,)`` a number for each row of integers, which rises as sorted rows do.

    Rows are equal if and only if they have the same number.
    """
    numbers = np.zeros(len(cells), dtype=np.int64)
    for column in (cells - cells.min(axis=0)).T:
        # As few numbers as possible, so that no product of them overflows.
        digits = _shorten_numbers(column)
        numbers = _shorten_numbers(numbers * (int(digits.max()) + 1) + digits)
    return numbers


def _shorten_numbers(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers in the same order, without gaps if they are large."""
    if numbers.max() <= 2**30:
        return numbers
    return np.unique(numbers, return_inverse=True)[1]


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
