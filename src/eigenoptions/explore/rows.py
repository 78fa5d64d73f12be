"""`VectorReader`: observations as rows of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Space, Tuple
from numpy.typing import NDArray

from eigenoptions._types import FloatArray
from eigenoptions.envs.sources import env_name

# More columns are a picture, or too many to be used as they are.
MOST_COLUMNS = 50


class VectorReader:
    """How observations of an environment become rows of numbers.

    Boxes, and numbers of `Discrete`, in a `Dict` or `Tuple` stand one after another. Of
    a goal environment it takes the entry ``"observation"``.

    Parameters
    ----------
    env : gymnasium.Env
        The environment.

    Examples
    --------
    >>> reader = VectorReader(gym.make("CartPole-v1"))
    >>> reader.width, reader.read([0.0, 1.0, 2.0, 3.0]).tolist()
    (4, [0.0, 1.0, 2.0, 3.0])
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.name = env_name(env)
        self._space: Space[Any] = env.observation_space
        self.is_nested = not isinstance(self._space, Box)
        self.width = sum(_count_columns(self._space))

    def write(self, rows: FloatArray) -> NDArray[Any]:
        """Observations of rows; those of a `Dict` or `Tuple` stay rows."""
        if self.is_nested:
            return rows
        shape = self._space.shape or ()
        return rows.reshape(len(rows), *shape).astype(self._space.dtype)

    def read(self, obs: Any) -> FloatArray:
        """The row of an observation; ValueError unless it is finite."""
        if self.is_nested:
            parts = list(_list_parts(self._space, obs))
            row = np.concatenate(parts)
        else:
            row = np.array(obs, dtype=np.float64).ravel()
        if not np.isfinite(row).all():
            raise ValueError(
                f"observations of {self.name} must be finite, got {row.round(3)}: "
                "correct the environment, or clip them (gymnasium.wrappers."
                "TransformObservation)"
            )
        return row


def reads_vectors(space: Space[Any]) -> bool:
    """Whether observations of a space are vectors of real numbers, or have some."""
    try:
        n_columns = sum(_count_columns(space))
    except TypeError:
        return False
    return 1 <= n_columns <= MOST_COLUMNS and _has_floats(space)


def _has_floats(space: Space[Any]) -> bool:
    return any(
        isinstance(part, Box) and part.dtype.kind == "f" for part in _list_spaces(space)
    )


def _list_spaces(space: Space[Any]) -> Iterator[Space[Any]]:
    """The spaces that hold numbers, in a fixed order."""
    if isinstance(space, Dict):
        if "observation" in space.spaces:
            yield from _list_spaces(space["observation"])
            return
        for part in space.spaces.values():
            yield from _list_spaces(part)
    elif isinstance(space, Tuple):
        for part in space.spaces:
            yield from _list_spaces(part)
    elif isinstance(space, Box | Discrete):
        yield space
    else:
        raise TypeError(f"{space} is no space of numbers")


def _count_columns(space: Space[Any]) -> Iterator[int]:
    for part in _list_spaces(space):
        yield int(np.prod(part.shape or (1,)))


def _list_parts(space: Space[Any], obs: Any) -> Iterator[FloatArray]:
    """The numbers of an observation, in the order of `_list_spaces`."""
    if isinstance(space, Dict):
        if "observation" in space.spaces:
            yield from _list_parts(space["observation"], obs["observation"])
            return
        for name, part in space.spaces.items():
            yield from _list_parts(part, obs[name])
    elif isinstance(space, Tuple):
        for part, value in zip(space.spaces, obs, strict=True):
            yield from _list_parts(part, value)
    else:
        yield np.array(obs, dtype=np.float64).ravel()
