"""Which actions fail from which very place, by the nearest logged steps."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from eigenoptions._types import BoolArray, FloatArray
from eigenoptions.vectors.grid import Grid


class Failures:
    """Logged steps near those that failed.

    A cell of the table may reach from a free place to one at a wall. Here a step is
    compared with the logged steps that are nearest to it, in place and in what they
    aimed at.

    Parameters
    ----------
    points : ndarray of shape (N, d)
        Points before each step, in units of a step.
    aims : ndarray of shape (N, m)
        What each step aimed at, in such units that 1 is a large difference.
    has_failed : ndarray of bool of shape (N,)
        Whether each step failed.
    n_nearest : int, default=5
        How many logged steps are asked.
    near : float, default=1.0
        How near they have to be.
    """

    def __init__(
        self,
        points: FloatArray,
        aims: FloatArray,
        has_failed: BoolArray,
        n_nearest: int = 5,
        near: float = 1.0,
    ) -> None:
        # The tree answers sooner if it need not make this itself.
        self._ranks = np.arange(1, n_nearest + 1)
        self._near = near
        self._places: Grid | None = None
        self._risky: frozenset[tuple[int, ...]] = frozenset()
        if not has_failed.any():
            return

        # Most places are free, and there nobody has to be asked.
        places = Grid.over(points, np.full(points.shape[1], 0.5))
        around = np.unique(places.cell(points[has_failed]), axis=0)
        for axis in np.eye(points.shape[1], dtype=np.int64):
            around = np.concatenate([around - axis, around, around + axis])
        around = np.unique(around, axis=0)
        self._places = places
        self._risky = frozenset(map(tuple, around.tolist()))

        is_risky = np.isin(places.find(places.cell(points)), places.find(around))
        self._tree = cKDTree(np.column_stack([points, aims])[is_risky])
        # A list is faster to look up.
        self._has_failed: list[bool] = has_failed[is_risky].tolist()

    def is_near(self, point: FloatArray) -> bool:
        """Whether any step failed near a point."""
        if self._places is None:
            return False
        return self._places.corner(point.tolist()) in self._risky

    def measure(self, point: FloatArray, aims: FloatArray) -> list[float]:
        """The share of the nearest logged steps that failed, for each of some aims."""
        # The same point before each of the aims.
        queries = np.empty((len(aims), len(point) + aims.shape[1]))
        queries[:, : len(point)] = point
        queries[:, len(point) :] = aims
        _, nearest = self._tree.query(
            queries, k=self._ranks, distance_upper_bound=self._near
        )

        n_steps = len(self._has_failed)
        shares = []
        for rows in nearest.tolist():
            # Where fewer steps are near, the tree fills up with one past the last.
            has_failed = [self._has_failed[row] for row in rows if row < n_steps]
            # Where no step is near, nothing is known to fail: 0 of 1.
            shares.append(sum(has_failed) / max(len(has_failed), 1))
        return shares
