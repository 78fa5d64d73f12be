"""`VectorReader`: observations as rows of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Space, Tuple
from numpy.typing import NDArray

from eigenoptions._types import FloatArray

# More columns are a picture, or too many to be used as they are.
MOST_COLUMNS = 50


class VectorReader:
    """How observations become rows of numbers.

    Boxes, and numbers of `Discrete`, in a `Dict` or `Tuple` stand one after another. Of
    a goal environment it takes the entry ``"observation"``.

    Parameters
    ----------
    form : list
        What `describe_space` returns: plain, so that a file holds it.
    name : str
        Id of the environment.

    Examples
    --------
    >>> reader = VectorReader(describe_space(Box(-1.0, 1.0, (2,))), "robot")
    >>> reader.width, reader.read([0.0, 1.0]).tolist()
    (2, [0.0, 1.0])
    """

    def __init__(self, form: list[Any], name: str) -> None:
        self.form = form
        self.name = name
        self.is_nested = form[0] != "box"
        self.width = _count_columns(form)

    def read(self, obs: Any) -> FloatArray:
        """The row of an observation; ValueError unless it is finite."""
        parts = list(_list_parts(self.form, obs))
        row: FloatArray = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if not np.isfinite(row).all():
            raise ValueError(
                f"observations of {self.name} must be finite, got {row.round(3)}: "
                "correct the environment, or clip them (gymnasium.wrappers."
                "TransformObservation)"
            )
        return row

    def write(self, rows: FloatArray) -> NDArray[Any]:
        """Observations of rows; those of a `Dict` or `Tuple` stay rows."""
        if self.is_nested:
            return rows
        _, shape, dtype = self.form
        return rows.reshape(len(rows), *shape).astype(dtype)


def describe_space(space: Space[Any]) -> list[Any]:
    """Describe a space of numbers in plain lists; TypeError if it is none."""
    if isinstance(space, Dict):
        if "observation" in space.spaces:
            return ["dict", {"observation": describe_space(space["observation"])}]
        parts = {name: describe_space(part) for name, part in space.spaces.items()}
        return ["dict", parts]
    if isinstance(space, Tuple):
        return ["tuple", [describe_space(part) for part in space.spaces]]
    if isinstance(space, Discrete):
        return ["number"]
    if isinstance(space, Box):
        return ["box", list(space.shape), str(space.dtype)]
    raise TypeError(f"{space} is no space of numbers")


def reads_vectors(space: Space[Any]) -> bool:
    """Whether observations of a space are vectors of real numbers, or have some."""
    try:
        form = describe_space(space)
    except TypeError:
        return False
    return 1 <= _count_columns(form) <= MOST_COLUMNS and _has_floats(form)


def _has_floats(form: list[Any]) -> bool:
    if form[0] == "box":
        return bool(form[2].startswith("float"))
    return any(map(_has_floats, _list_forms(form)))


def _list_forms(form: list[Any]) -> list[Any]:
    """The forms of the parts of a Dict or Tuple."""
    if form[0] == "dict":
        return list(form[1].values())
    return list(form[1]) if form[0] == "tuple" else []


def _count_columns(form: list[Any]) -> int:
    if form[0] == "number":
        return 1
    if form[0] == "box":
        return prod(form[1])
    return sum(map(_count_columns, _list_forms(form)))


def _list_parts(form: list[Any], obs: Any) -> Iterator[FloatArray]:
    """The numbers of an observation, part by part."""
    if form[0] == "dict":
        for name, part in form[1].items():
            yield from _list_parts(part, obs[name])
    elif form[0] == "tuple":
        for part, value in zip(form[1], obs, strict=True):
            yield from _list_parts(part, value)
    else:
        yield np.array(obs, dtype=np.float64).ravel()
