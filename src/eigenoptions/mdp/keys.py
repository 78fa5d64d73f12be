"""Observations as names of states."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from math import isnan
from typing import Any

import numpy as np


def make_hashable(obs: Any) -> Hashable:
    """Return an observation as a key of a dictionary, which JSON can write.

    Large arrays become a digest. Raise ValueError for nan, which equals no other.

    >>> make_hashable({"cell": np.array([1, 2]), "has_key": np.int64(0)})
    (('cell', (1, 2)), ('has_key', 0))
    """
    if isinstance(obs, dict):
        return tuple((name, make_hashable(obs[name])) for name in sorted(obs))
    if isinstance(obs, tuple | list):
        return tuple(make_hashable(part) for part in obs)
    if hasattr(obs, "__array__"):
        # NumPy's own, JAX's and others.
        obs = np.asarray(obs)
        if obs.dtype.kind == "f" and obs.size:
            _refuse_nan(obs.min())

    if isinstance(obs, np.ndarray) and obs.size > 64:
        # Integers of every width have one digest; other numbers count as they are.
        is_integer = obs.dtype.kind in "iub"
        numbers = obs.astype(np.int64).tobytes() if is_integer else obs.tobytes()
        return hashlib.blake2b(numbers, digest_size=16).hexdigest()
    if isinstance(obs, np.ndarray) and obs.ndim > 0:
        return tuple(obs.ravel().tolist())

    # Arrays without a dimension, and NumPy's numbers, as Python's own.
    if isinstance(obs, np.ndarray):
        number: Hashable = obs.item()
        return number
    if isinstance(obs, float):
        _refuse_nan(obs)
    return obs  # type: ignore[no-any-return]


def _refuse_nan(number: float) -> None:
    if isnan(number):
        raise ValueError(
            "an observation holds nan, which equals no other one, so that its state "
            "would never repeat: replace it (gymnasium.wrappers.TransformObservation), "
            "or give key=, a function key(env, obs)"
        )
