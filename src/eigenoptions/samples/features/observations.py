"""Batches of observations, as feature maps read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, prod
from typing import Any

import numpy as np

from eigenoptions._types import (
    FloatArray,
)
from eigenoptions._validation import (
    check_int,
)


def flatten_observations(obs: Any) -> FloatArray:
    """Flatten a batch of observations to floats ``(N, D)``, and check them.

    Of goal environments (Dict spaces) it takes the entry ``"observation"``.
    """
    if isinstance(obs, Mapping) and "observation" in obs:
        obs = obs["observation"]
    batch = np.asarray(obs)
    if batch.dtype.kind not in "biuf" or batch.ndim < 2:
        raise ValueError(
            "observations must be a batch (N, ...) of numbers, "
            f"got {batch.dtype} {batch.shape}: pass features="
        )

    n_dimensions = prod(batch.shape[1:])
    rows = batch.reshape(len(batch), n_dimensions).astype(np.float64)
    is_finite = np.isfinite(rows)
    if not is_finite.all():
        row, column = np.argwhere(~is_finite)[0]
        raise ValueError(
            f"observation {row} must be finite, "
            f"got {rows[row, column]} in dimension {column}"
        )
    return rows


def add_batch_axis(obs: Any) -> Any:
    """A batch of one observation, whose space may be a Dict or a Tuple."""
    if isinstance(obs, dict):
        return {name: np.asarray(part)[None] for name, part in obs.items()}
    if isinstance(obs, tuple):
        return tuple(np.asarray(part)[None] for part in obs)
    return np.asarray(obs)[None]


def check_column_numbers(
    columns: Sequence[int], n_columns: int | None = None
) -> tuple[int, ...]:
    """Check the numbers of columns of an observation."""
    highest = inf if n_columns is None else n_columns - 1
    checked = tuple(check_int("a column", number, 0, highest) for number in columns)
    if not checked or len(set(checked)) != len(checked):
        raise ValueError(f"columns must be different numbers, got {list(columns)}")
    return checked


def select_columns(rows: FloatArray, columns: tuple[int, ...] | None) -> FloatArray:
    """Some columns of observations ``(N, D)``."""
    if columns is None:
        return rows
    if rows.shape[1] <= max(columns):
        raise ValueError(
            f"observations must have at least {max(columns) + 1} columns, "
            f"got {rows.shape[1]}"
        )
    return rows[:, columns]
