"""Bounds of observations, to which maps scale them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eigenoptions._types import (
    FloatArray,
)
from eigenoptions.samples.features.observations import (
    check_column_numbers,
    flatten_observations,
)

# A dimension counts as bounded if neither end is larger: spaces write 3e38 for none.
_MAX_BOUND = 1e6


def find_bounds(
    space: Any = None,
    obs: ArrayLike | None = None,
    columns: Sequence[int] | None = None,
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Find the ends of each dimension of observations.

    Parameters
    ----------
    space : gymnasium.spaces.Box, optional
        The space of the observations.
    obs : array (N, ...), optional
        Observations. They give the ends of dimensions that the space does not bound; of
        all dimensions if there is no space.
    columns : sequence of int, optional
        Numbers of the columns whose ends are returned. By default all.

    Returns
    -------
    low, high : tuple of float
        The ends. A dimension that never changes has an extent of 1.
    """
    rows = None if obs is None else flatten_observations(obs)
    if space is not None:
        if not hasattr(space, "low"):
            raise ValueError(
                f"these features need Box observations, these are {space}: "
                "pass a function"
            )
        low = np.array(space.low, dtype=np.float64).ravel()
        high = np.array(space.high, dtype=np.float64).ravel()
    elif rows is not None:
        low = np.full(rows.shape[1], -np.inf)
        high = np.full(rows.shape[1], np.inf)
    else:
        raise ValueError(
            "these features need bounds: give a space, or observations that show them"
        )

    is_bounded = np.maximum(np.abs(low), np.abs(high)) <= _MAX_BOUND
    if not is_bounded.all():
        if rows is None or rows.shape[1:] != low.shape or len(rows) == 0:
            raise ValueError(
                f"dimension {is_bounded.argmin()} of {len(low)} of the observations "
                "has no bounds: give low and high, or observations that show them"
            )
        low = np.where(is_bounded, low, rows.min(axis=0))
        high = np.where(is_bounded, high, rows.max(axis=0))

    # A dimension that never changes has no extent, and cannot be scaled.
    high = np.where(high > low, high, low + 1.0)
    if columns is not None:
        chosen = list(check_column_numbers(columns, len(low)))
        low = low[chosen]
        high = high[chosen]
    return (
        tuple(_shorten(end) for end in low.tolist()),
        tuple(_shorten(end) for end in high.tolist()),
    )


def _shorten(x: float) -> float:
    """Leave out digits that come from float32: -0.07, not -0.07000000029802322."""
    short = f"{x:.7g}"
    if np.float32(short) == np.float32(x):
        return float(short)
    return x


def check_bounds(low: Any, high: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Check that each dimension has a finite low end below a finite high end."""
    lows = np.asarray(low, dtype=np.float64)
    highs = np.asarray(high, dtype=np.float64)
    is_vector = lows.ndim == 1 and lows.size > 0 and lows.shape == highs.shape
    is_finite = np.isfinite(lows).all() and np.isfinite(highs).all()
    if not is_vector or not is_finite or not (lows < highs).all():
        raise ValueError(f"low must be below high, both finite, got {low} and {high}")
    return tuple(lows.tolist()), tuple(highs.tolist())


def scale_to_unit(rows: FloatArray, low: FloatArray, extent: FloatArray) -> FloatArray:
    """Scale and clip observations ``(N, D)`` to [0, 1]."""
    if rows.shape[1] != len(low):
        raise ValueError(
            f"observations must have {len(low)} dimensions, got {rows.shape[1]}"
        )
    x = (rows - low) / extent
    # Not np.clip, which takes longer than all features of a single observation.
    return np.minimum(np.maximum(x, 0.0), 1.0)
