"""One feature per cell of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from eigenoptions._ties import find_first_maximum
from eigenoptions._types import (
    FloatArray,
    IndexArray,
)
from eigenoptions._validation import (
    readonly,
)
from eigenoptions.samples.features.bounds import check_bounds
from eigenoptions.samples.features.feature_map import FeatureMap
from eigenoptions.samples.features.observations import (
    check_column_numbers,
    flatten_observations,
    select_columns,
)


@dataclass(frozen=True, eq=False, repr=False)
class Cells(FeatureMap):
    """One feature per cell of a grid: phi(s) is a unit vector. The result is sparse.

    Only cells in which there are data have a number. An observation in another cell
    belongs to the nearest of them. `discover` makes this map from recorded vectors.

    Parameters
    ----------
    low : tuple of float
        The corner where cells begin, in each of the columns.
    size : tuple of float
        Sides of the cells.
    columns : tuple of int
        Numbers of the columns of the observations that are used.
    arrays : dict
        ``"corners"``: integers ``(S, D)``, the place of each cell in the grid.

    Examples
    --------
    >>> corners = np.array([[0, 0], [1, 0], [1, 1]])
    >>> cells = Cells((0.0, 0.0), (0.5, 0.5), (0, 2), {"corners": corners})
    >>> cells.find_states([[0.7, 99.0, 0.1], [0.6, 99.0, 7.0]]).tolist()
    [1, 2]
    """

    low: tuple[float, ...]
    size: tuple[float, ...]
    columns: tuple[int, ...]
    arrays: dict[str, IndexArray]

    name: ClassVar[str] = "cells"

    def __post_init__(self) -> None:
        columns = check_column_numbers(self.columns)
        corners = readonly(self.arrays["corners"], np.int64)
        shape = (len(corners), len(columns))
        has_bounds = len(self.low) == len(self.size) == len(columns)
        if not has_bounds or corners.shape != shape or not len(corners):
            raise ValueError(
                f"low, size and corners must have {len(columns)} columns, got "
                f"{len(self.low)}, {len(self.size)} and {corners.shape}"
            )
        high = tuple(np.add(self.low, self.size).tolist())
        low, _ = check_bounds(self.low, high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "size", tuple(float(side) for side in self.size))
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "arrays", {"corners": corners})

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """Raise ValueError: cells are made from steps, not for a space."""
        raise ValueError(
            "cells are made from recorded steps: leave out features, and discover "
            "makes them"
        )

    @property
    def n_features(self) -> int:
        """Number of cells S."""
        return len(self.arrays["corners"])

    @cached_property
    def centers(self) -> FloatArray:
        """The middle of each cell ``(S, D)``, in the columns that are used."""
        return (self.arrays["corners"] + 0.5) * self._size + self._low

    @property
    def coords(self) -> IndexArray | None:
        """``(S, 2)`` row and column of each cell on a map of the first two columns.

        The first column goes to the right and the second one up. Cells that differ in
        other columns only have the same place. None for a single column.
        """
        corners: IndexArray = self.arrays["corners"]
        if corners.shape[1] < 2:
            return None
        return np.asarray(corners[:, [1, 0]] * [-1, 1], dtype=np.int64)

    @cached_property
    def _low(self) -> FloatArray:
        return np.array(self.low)

    @cached_property
    def _size(self) -> FloatArray:
        return np.array(self.size)

    def to_dict(self) -> dict[str, Any]:
        """The grid as plain JSON values; a file holds the corners beside it."""
        return {
            "map": self.name,
            "low": list(self.low),
            "size": list(self.size),
            "columns": list(self.columns),
        }

    def find_states(self, obs: ArrayLike) -> IndexArray:
        """The number ``(N,)`` of the cell that each observation belongs to."""
        rows = flatten_observations(obs)
        return self.number_points(select_columns(rows, self.columns))

    def number_points(self, points: FloatArray) -> IndexArray:
        """As `find_states`, of the columns ``(N, D)`` that are used."""
        places = np.floor((points - self._low) / self._size).tolist()
        states = np.empty(len(points), dtype=np.intp)
        for i, place in enumerate(places):
            state = self._numbers.get(tuple(place), -1)
            if state < 0:
                state = self._find_nearest(points[i])
            states[i] = state
        return states

    def __call__(self, obs: ArrayLike) -> csr_array:
        """Map observations ``(N, ...)`` to features ``(N, S)``."""
        states = self.find_states(obs)
        n = len(states)
        return csr_array(
            (np.ones(n), states, np.arange(n + 1)), shape=(n, self.n_features)
        )

    @cached_property
    def _numbers(self) -> dict[tuple[float, ...], int]:
        """The number of each cell by its place in the grid."""
        # As floats, which is what `floor` returns.
        places = self.arrays["corners"].astype(np.float64).tolist()
        return {tuple(place): number for number, place in enumerate(places)}

    def measure_distances(self, obs: ArrayLike) -> FloatArray:
        """How far ``(N,)`` each observation is from its cell, in sides of cells."""
        rows = select_columns(flatten_observations(obs), self.columns)
        middles = self.centers[self.find_states(obs)]
        # Within a cell, no coordinate is more than half a side off its middle.
        beyond = np.maximum(np.abs(rows - middles) / self._size - 0.5, 0.0)
        return np.asarray(np.sqrt(np.square(beyond).sum(axis=1)))

    def _find_nearest(self, point: FloatArray) -> int:
        """The first of the cells whose middle is nearest to a point, in cells."""
        distances = np.square((self.centers - point) / self._size).sum(axis=1)
        return int(find_first_maximum(-distances))

    def __repr__(self) -> str:
        return f"Cells({self.n_features} cells of {len(self.columns)} columns)"
