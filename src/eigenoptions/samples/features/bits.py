"""Bits of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from eigenoptions._types import (
    BoolArray,
)
from eigenoptions.samples.features.feature_map import FeatureMap


@dataclass(frozen=True)
class Bits(FeatureMap):
    """Bits of bytes, the lowest first. The result is boolean.

    Of Atari's memory they are the paper's 1,024 features (Section 5.2).

    Examples
    --------
    >>> Bits()(np.array([[5, 128]], dtype=np.uint8)).astype(int).tolist()
    [[1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]]
    """

    name: ClassVar[str] = "bits"

    def __call__(self, obs: ArrayLike) -> BoolArray:
        """Map bytes ``(N, ...)`` to bits ``(N, d)``; booleans are bits already."""
        batch = np.asarray(obs)
        if batch.ndim < 2 or batch.dtype not in (np.uint8, np.bool_):
            raise ValueError(
                "bits need bytes (uint8) of shape (N, ...), "
                f"got {batch.dtype} {batch.shape}"
            )
        flat = batch.reshape(len(batch), -1)
        if flat.dtype == np.bool_:
            return flat
        return np.unpackbits(flat, axis=1, bitorder="little").view(np.bool_)
