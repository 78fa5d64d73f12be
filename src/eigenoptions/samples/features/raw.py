"""Observations as they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from eigenoptions._types import (
    FloatArray,
)
from eigenoptions.samples.features.bounds import (
    check_bounds,
    find_bounds,
    scale_to_unit,
)
from eigenoptions.samples.features.feature_map import FeatureMap
from eigenoptions.samples.features.observations import (
    check_column_numbers,
    flatten_observations,
    select_columns,
)


@dataclass(frozen=True)
class Raw(FeatureMap):
    """The observation itself, flattened.

    Parameters
    ----------
    low, high : tuple of float, optional
        Ends of each dimension, which are scaled to 0 and 1. What lies outside is
        clipped. By default observations are not scaled.
    columns : tuple of int, optional
        Numbers of the columns that are used; `low` and `high` are theirs. By default
        all are used.

    Examples
    --------
    >>> Raw((0.0, -1.0), (10.0, 1.0))(np.array([[5.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """

    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    columns: tuple[int, ...] | None = None

    name: ClassVar[str] = "raw"
    max_features: ClassVar[int] = 1 << 16

    def __post_init__(self) -> None:
        if self.columns is not None:
            object.__setattr__(self, "columns", check_column_numbers(self.columns))
        if self.low is not None or self.high is not None:
            low, high = check_bounds(self.low, self.high)
            object.__setattr__(self, "low", low)
            object.__setattr__(self, "high", high)

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """Scaled if the space is a Box, or if there is only `obs`; else as they are."""
        if space is not None and not hasattr(space, "low"):
            return cls(**settings)
        low, high = find_bounds(space, obs, settings.get("columns"))
        return cls(low, high, **settings)

    @property
    def n_features(self) -> int | None:
        """Number of features d; None if there are no bounds, which show it."""
        return None if self.low is None else len(self.low)

    def __call__(self, obs: ArrayLike) -> FloatArray:
        """Map observations ``(N, ...)`` to features ``(N, D)``."""
        rows = select_columns(flatten_observations(obs), self.columns)
        if self.low is None:
            return rows
        self._check_size(len(self.low))
        low, extent = self._low_and_extent
        return scale_to_unit(rows, low, extent)

    def _check_size(self, n_features: int) -> None:
        """Raise ValueError if there are too many features."""
        if n_features > self.max_features:
            raise ValueError(
                f"{n_features} features are more than {self.max_features}: "
                "pass features=, a function of observations that makes fewer"
            )

    @cached_property
    def _low_and_extent(self) -> tuple[FloatArray, FloatArray]:
        """The arrays `low` and ``high - low`` ``(D,)``."""
        low = np.array(self.low)
        return low, np.array(self.high) - low
