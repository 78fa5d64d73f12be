"""Cosines of observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import comb
from typing import Any, ClassVar

import numpy as np

from eigenoptions._types import (
    FloatArray,
)
from eigenoptions._validation import (
    check_memory,
)
from eigenoptions.samples.features.bounded import BoundedMap


@dataclass(frozen=True)
class Fourier(BoundedMap):
    """Cosines ``cos(pi c . x)`` of the observation x (Konidaris et al., 2011).

    The vectors c hold integers up to `order`.

    Parameters
    ----------
    low, high : tuple of float
        Ends of each dimension, which are scaled to 0 and 1.
    order : int, default=3
        Largest entry of c.
    coupled : int, default=2
        Largest number of entries of c that are not zero. With 2, order n and D
        dimensions there are ``1 + D n + D (D - 1) / 2 n^2`` features instead of ``(n +
        1)^D``.

    Examples
    --------
    >>> waves = Fourier((0.0, 0.0), (1.0, 1.0), order=2)
    >>> waves(np.array([[0.0, 1.0]])).round(12).tolist()
    [[1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0]]
    """

    order: int = 3
    coupled: int = 2

    name: ClassVar[str] = "fourier"
    defaults: ClassVar[Sequence[Mapping[str, Any]]] = (
        {"coupled": 2, "order": 3},
        {"coupled": 2, "order": 2},
        {"coupled": 2, "order": 1},
        {"coupled": 1, "order": 3},
        {"coupled": 1, "order": 2},
        {"coupled": 1, "order": 1},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_positive("order", "coupled")

    @property
    def n_features(self) -> int:
        """Number of features d."""
        n_dimensions = len(self.low)
        # With k entries that are not zero: which they are, times their values.
        return sum(
            comb(n_dimensions, k) * self.order**k for k in range(self.coupled + 1)
        )

    @cached_property
    def frequencies(self) -> FloatArray:
        """The vectors c ``(d, D)``, in lexicographic order."""
        n_dimensions = len(self.low)
        # A number takes 40 bytes while the vectors are sorted as tuples.
        check_memory(
            f"{self.n_features:,} waves in {n_dimensions:,} dimensions",
            40 * self.n_features * n_dimensions,
            "give fewer dimensions, or train features of them (deep.learn)",
        )
        vectors = []
        for n_nonzero in range(min(self.coupled, n_dimensions) + 1):
            for places in combinations(range(n_dimensions), n_nonzero):
                for values in product(range(1, self.order + 1), repeat=n_nonzero):
                    vector = np.zeros(n_dimensions)
                    vector[list(places)] = values
                    vectors.append(tuple(vector))
        return np.array(sorted(vectors))

    def _map(self, x: FloatArray) -> FloatArray:
        # The angles, and the waves.
        check_memory(
            f"{len(self.frequencies):,} waves of {len(x):,} observations",
            16 * len(self.frequencies) * len(x),
            "give fewer transitions, or a lower order",
        )
        return np.asarray(np.cos(np.pi * x.dot(self.frequencies.T)))
