"""Cells of a grid over logged vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._types import FloatArray
from eigenoptions._validation import check_real


class Grid:
    """Cells with equal sides, numbered where the data are."""

    def __init__(
        self, obs: FloatArray, next_obs: FloatArray, size: ArrayLike | None
    ) -> None:
        change = np.quantile(np.abs(next_obs - obs), 0.9, axis=0)
        sides = np.asarray(
            np.where(change > 0, 5.0 * change, 1.0) if size is None else size,
            np.float64,
        )
        if not (np.isfinite(sides) & (sides > 0)).all() or sides.shape not in (
            (),
            change.shape,
        ):
            raise ValueError(
                f"cell_size must be > 0, one number or {len(change)}, got {size!r}"
            )
        self.size: FloatArray = np.broadcast_to(sides, change.shape)
        self.low = np.minimum(obs.min(axis=0), next_obs.min(axis=0))
        high = np.maximum(obs.max(axis=0), next_obs.max(axis=0))
        # Two empty cells on each side, so that no neighbour of a cell is at the other
        # end of the next row.
        self.shape = np.floor((high - self.low) / self.size) + 5
        if self.shape.prod() > 2**62:
            raise ValueError(
                f"cell_size {sides.tolist()} gives more than 2**62 cells: give a "
                "larger one"
            )
        self.strides = np.cumprod([1, *self.shape[:0:-1].astype(np.int64)])[::-1]
        self.keys = np.unique(
            np.concatenate([self.key(self.cell(obs)), self.key(self.cell(next_obs))])
        )
        self.corners = (
            self.keys[:, None] // self.strides % self.shape.astype(np.int64) - 2
        )
        self.number = {
            tuple(corner): i for i, corner in enumerate(self.corners.tolist())
        }
        # A map has rows and columns: the second coordinate rises, the first goes to the
        # right.
        plane = self.corners[:, ::-1] * [-1, 1] if len(change) == 2 else None
        self.coords = None if plane is None else plane - plane.min(axis=0)
        self._bounds = self.low.tolist(), self.size.tolist()

    def cell(self, points: FloatArray) -> NDArray[np.int64]:
        """Row of integers ``(d,)`` of the cell that each point lies in."""
        return np.asarray(np.floor((points - self.low) / self.size), dtype=np.int64)

    def corner(self, point: FloatArray) -> tuple[int, ...]:
        """As `cell`, fast for one point."""
        columns = zip(point.tolist(), *self._bounds, strict=True)
        return tuple(int((x - low) // side) for x, low, side in columns)

    def key(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """One integer for each cell."""
        return np.asarray((cells + 2) @ self.strides)

    def find(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of cells; -1 where there are no data."""
        key = self.key(cells)
        number = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        return np.where(self.keys[number] == key, number, -1)


def mean_rows(points: FloatArray, number: NDArray[np.int64], n: int) -> FloatArray:
    """Mean of the points with each number below n."""
    count = np.maximum(np.bincount(number, minlength=n), 1)
    return np.stack(
        [np.bincount(number, column, minlength=n) / count for column in points.T],
        axis=1,
    )


def check_vectors(name: str, array: Any, width: int | None = None) -> FloatArray:
    """Rows of finite floats, of a given width where there is one."""
    vectors = np.asarray(check_real(name, array), dtype=np.float64)
    if vectors.ndim != 2 or width not in (None, vectors.shape[1]):
        raise ValueError(
            f"{name} must have shape (N, {width or 'd'}), got {vectors.shape}: "
            "flatten each"
        )
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise ValueError(
            f"{name} must be finite, got {vectors[bad[0]]} in row {bad[0]}: "
            "leave it out"
        )
    return vectors
