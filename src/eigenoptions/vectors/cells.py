"""One feature per cell of a grid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._ties import find_first_maximum
from eigenoptions._types import FloatArray, IndexArray
from eigenoptions._validation import readonly
from eigenoptions.samples.features.bounds import check_bounds
from eigenoptions.samples.features.observations import (
    check_column_numbers,
    flatten_observations,
)
from eigenoptions.samples.features.states import StateMap
from eigenoptions.vectors.coordinates import Coordinates
from eigenoptions.vectors.grid import Grid


@dataclass(frozen=True, eq=False, repr=False)
class Cells(StateMap):
    """One feature per cell of a grid: phi(s) is a unit vector. The result is sparse.

    Only cells in which there are data have a number. An observation in another cell
    belongs to the nearest of them. `VectorModel` makes this map from recorded vectors.

    Parameters
    ----------
    low : tuple of float
        The corner where cells begin, in each coordinate.
    size : tuple of float
        Sides of the cells.
    columns : tuple of int
        Numbers of the columns of the observations that are used. Each of them is a
        coordinate, and an angle is two: its sine and its cosine.
    arrays : dict
        ``"corners"``: integers ``(S, d)``, the place of each cell in the grid; and
        ``"examples"`` ``(S, D)``, an observation in each cell, if they are known.
    angles : tuple of bool, default=()
        Which of the columns are angles in radians; empty if none is.
    step : tuple of float, default=()
        A large step in each coordinate; empty if it is not known.

    Examples
    --------
    >>> corners = np.array([[0, 0], [1, 0], [1, 1]])
    >>> cells = Cells((0.0, 0.0), (0.5, 0.5), (0, 2), {"corners": corners})
    >>> cells.find_states([[0.7, 99.0, 0.1], [0.6, 99.0, 7.0]]).tolist()
    [1, 2]

    Where an environment has vectors, cells are states for `explore`:

    >>> cells.key(None, np.array([0.7, 99.0, 0.1]))
    (1, 0)
    """

    low: tuple[float, ...]
    size: tuple[float, ...]
    columns: tuple[int, ...]
    arrays: dict[str, NDArray[Any]]
    angles: tuple[bool, ...] = ()
    step: tuple[float, ...] = ()

    name: ClassVar[str] = "cells"

    def __post_init__(self) -> None:
        columns = check_column_numbers(self.columns)
        angles = tuple(map(bool, self.angles)) or (False,) * len(columns)
        n_coordinates = len(columns) + sum(angles)
        corners = readonly(self.arrays["corners"], np.int64)
        shape = (len(corners), n_coordinates)
        has_bounds = len(self.low) == len(self.size) == n_coordinates
        # The step is empty where it is not known.
        has_steps = len(self.step) in (0, n_coordinates)
        has_corners = corners.shape == shape and len(corners) > 0
        if not (has_bounds and has_steps and has_corners):
            raise ValueError(
                f"low, size, step and corners must have {n_coordinates} columns, got "
                f"{len(self.low)}, {len(self.size)}, {len(self.step)} and "
                f"{corners.shape}"
            )
        arrays = {"corners": corners}
        if "examples" in self.arrays:
            examples = readonly(self.arrays["examples"], np.float64)
            if examples.ndim != 2 or len(examples) != len(corners):
                raise ValueError(
                    f"examples must be {len(corners)} rows, got {examples.shape}"
                )
            arrays["examples"] = examples

        high = tuple(np.add(self.low, self.size).tolist())
        low, _ = check_bounds(self.low, high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "size", tuple(map(float, self.size)))
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "arrays", arrays)
        object.__setattr__(self, "angles", angles)
        object.__setattr__(self, "step", tuple(map(float, self.step)))

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """Raise ValueError: cells are made from steps, not for a space."""
        raise ValueError(
            "cells are made from recorded steps: leave out features, and discover "
            "makes them"
        )

    def take(self, states: IndexArray) -> Self:
        """Some of the cells, numbered in the order of `states`."""
        return replace(
            self, arrays={name: array[states] for name, array in self.arrays.items()}
        )

    def to_dict(self) -> dict[str, Any]:
        """The grid as plain JSON values; a file holds the arrays beside it."""
        return {
            "map": self.name,
            "low": list(self.low),
            "size": list(self.size),
            "columns": list(self.columns),
            "angles": list(self.angles),
            "step": list(self.step),
        }

    # What the cells are

    @property
    def n_features(self) -> int:
        """Number of cells S."""
        return len(self.arrays["corners"])

    @property
    def examples(self) -> FloatArray:
        """``(S, D)`` an observation in each cell, with all columns."""
        if "examples" not in self.arrays:
            raise ValueError("these cells have no examples: make them from a log")
        return self.arrays["examples"]

    @cached_property
    def centers(self) -> FloatArray:
        """The middle of each cell ``(S, columns)``, in the columns that are used."""
        return self.coordinates.invert(self.grid.middles)

    @property
    def coords(self) -> IndexArray | None:
        """``(S, 2)`` row and column of each cell on a map of the first two coordinates.

        The first one goes to the right and the second one up. Cells that differ in
        others only have the same place. None for a single coordinate.
        """
        corners: IndexArray = self.arrays["corners"]
        if corners.shape[1] < 2:
            return None
        return np.asarray(corners[:, [1, 0]] * [-1, 1], dtype=np.int64)

    @cached_property
    def coordinates(self) -> Coordinates:
        """How observations are read."""
        return Coordinates(self.columns, self.angles)

    @cached_property
    def grid(self) -> Grid:
        """The places of the cells."""
        return Grid(np.array(self.low), np.array(self.size), self.arrays["corners"])

    # Where observations belong

    def find_states(self, obs: ArrayLike) -> IndexArray:
        """The number ``(N,)`` of the cell that each observation belongs to."""
        return self.number_points(self.coordinates.apply(flatten_observations(obs)))

    def number_points(self, points: FloatArray) -> IndexArray:
        """As `find_states`, of coordinates ``(N, d)``."""
        places = self.grid.cell(points).tolist()
        states = np.empty(len(points), dtype=np.intp)
        for i, place in enumerate(places):
            state = self.grid.number.get(tuple(place), -1)
            if state < 0:
                state = self.find_nearest(points[i])
            states[i] = state
        return states

    def find_nearest(self, point: FloatArray) -> int:
        """The first of the cells whose middle is nearest to a point, in cells."""
        distances = np.square((self._middles - point) / self.grid.size).sum(axis=1)
        return int(find_first_maximum(-distances))

    def measure_distances(self, obs: ArrayLike) -> FloatArray:
        """How far ``(N,)`` each observation is from its cell, in sides of cells."""
        points = self.coordinates.apply(flatten_observations(obs))
        offsets = points - self._middles[self.number_points(points)]
        # Within a cell, no coordinate is more than half a side off its middle.
        beyond = np.maximum(np.abs(offsets) / self.grid.size - 0.5, 0.0)
        return np.asarray(np.sqrt(np.square(beyond).sum(axis=1)))

    def key(self, env: Any, obs: ArrayLike) -> tuple[int, ...]:
        """The place of one observation in the grid, also where there are no data.

        ``explore(env, key=cells.key)`` takes cells for states.
        """
        rows = flatten_observations(np.asarray(obs)[None])
        return self.grid.corner(self.coordinates.apply(rows)[0].tolist())

    @cached_property
    def _middles(self) -> FloatArray:
        """``(S, d)`` the middle of each cell, in coordinates."""
        return self.grid.middles

    def __repr__(self) -> str:
        return f"Cells({self.n_features} cells of {len(self.columns)} columns)"
