"""Maps of observations that lie between bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from eigenoptions._types import (
    FloatArray,
)
from eigenoptions._validation import (
    check_int,
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
class BoundedMap(FeatureMap):
    """Base class of maps of observations that lie between bounds.

    Parameters
    ----------
    low, high : tuple of float
        Ends of each dimension. What lies outside is clipped.
    columns : tuple of int, optional
        Numbers of the columns of the observations that are used, one for each end. By
        default all are used.

    Attributes
    ----------
    defaults : sequence of dict
        Settings that `for_space` tries one after the other, until there are few
        features.
    max_features : int
        Largest number of features.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    _: KW_ONLY
    columns: tuple[int, ...] | None = None

    defaults: ClassVar[Sequence[Mapping[str, Any]]] = ({},)
    max_features: ClassVar[int] = 1 << 16

    def __post_init__(self) -> None:
        low, high = check_bounds(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if self.columns is not None:
            columns = check_column_numbers(self.columns)
            if len(columns) != len(low):
                raise ValueError(
                    f"low and high must have one entry for each of {len(columns)} "
                    f"columns, got {len(low)}"
                )
            object.__setattr__(self, "columns", columns)

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """Make the map with the bounds of a Box, or with those of `obs`.

        It has the first of the `defaults` with at most 2,048 features.
        """
        low, high = find_bounds(space, obs, settings.get("columns"))
        for default in cls.defaults:
            features = cls(low, high, **{**default, **settings})
            if features.n_features <= 2048:
                break
        return features

    @property
    def n_features(self) -> int:
        """Number of features d."""
        raise NotImplementedError

    def __call__(self, obs: ArrayLike) -> Any:
        """Map observations ``(N, ...)`` to features ``(N, d)``."""
        rows = select_columns(flatten_observations(obs), self.columns)
        self._check_size()
        low, extent = self._low_and_extent
        return self._map(scale_to_unit(rows, low, extent))

    def _check_size(self) -> None:
        """Raise ValueError if there are too many features.

        Not when the map is made: `for_space` makes several and keeps one.
        """
        if self.n_features > self.max_features:
            settings = " or ".join(self.defaults[-1])
            raise ValueError(
                f"{self.n_features} features are more than {self.max_features}: "
                f"set a smaller {settings}"
            )

    @cached_property
    def _low_and_extent(self) -> tuple[FloatArray, FloatArray]:
        """The arrays `low` and ``high - low`` ``(D,)``."""
        low = np.array(self.low)
        return low, np.array(self.high) - low

    def _map(self, x: FloatArray) -> Any:
        """Features of observations ``(N, D)`` that are scaled to [0, 1]."""
        raise NotImplementedError

    def _check_positive(self, *names: str) -> None:
        """Check fields that must be positive integers."""
        for name in names:
            number = check_int(name, getattr(self, name))
            object.__setattr__(self, name, number)
