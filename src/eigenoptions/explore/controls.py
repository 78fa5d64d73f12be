"""Controls: the actions of an environment as numbers, and what a model reads of them.

Of a box of actions there are its middle, its edges and its corners: in up to two
columns all combinations of least, middle and greatest, with more columns only one of
them is not in the middle.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, Space

from eigenoptions._types import FloatArray


class Controls:
    """The actions that a walk chooses from.

    Parameters
    ----------
    space : gymnasium.Space
        The actions, ``Discrete(n)`` or a ``Box`` that has bounds.
    name : str, default="the environment"
        Id of the environment.

    Attributes
    ----------
    vectors : ndarray of shape (A, k)
        What a model reads of each: a column for each numbered action, or the columns of
        the box, from -1 to 1.
    given : list
        The actions as the environment takes them.

    Examples
    --------
    >>> Controls(Box(-2.0, 2.0, (1,))).vectors.ravel().tolist()
    [-1.0, 0.0, 1.0]
    """

    def __init__(self, space: Space[Any], name: str = "the environment") -> None:
        self.is_box = isinstance(space, Box)
        self.space = space
        if isinstance(space, Discrete):
            self.vectors: FloatArray = np.eye(int(space.n))
            self.given: list[Any] = list(range(int(space.n)))
            return
        if not isinstance(space, Box):
            raise ValueError(
                f"{name} has actions {space}: explore takes Discrete or Box actions"
            )
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            raise ValueError(
                f"{name} has actions without bounds, {space}: give it some "
                "(gymnasium.wrappers.RescaleAction)"
            )
        self._low = space.low.astype(np.float64).ravel()
        self._half = np.maximum(space.high.ravel() - self._low, 1e-12) / 2
        self.vectors = _list_directions(len(self._low))
        self._shape = space.shape
        self._dtype = space.dtype
        self.given = list(self.write(self.vectors))

    def __len__(self) -> int:
        return len(self.given)

    def read(self, action: Any) -> tuple[FloatArray, int]:
        """What a model reads of any action, and the number of the nearest one."""
        if not self.is_box:
            number = int(action)
            return self.vectors[number], number
        row = np.asarray(action, dtype=np.float64).ravel()
        vector = np.clip((row - self._low) / self._half - 1.0, -1.0, 1.0)
        far = ((self.vectors - vector) ** 2).sum(axis=1)
        return vector, int(np.argmin(far.round(9)))

    def write(self, controls: FloatArray) -> Any:
        """The actions of a box that a model reads as some rows."""
        rows = self._low + (controls + 1.0) * self._half
        return rows.reshape(len(rows), *self._shape).astype(self._dtype)


def _list_directions(n_columns: int) -> FloatArray:
    """The middle, edges and corners of a box as rows of -1, 0 and 1."""
    if n_columns <= 2:
        return np.array(list(product((-1.0, 0.0, 1.0), repeat=n_columns)))
    edges = np.eye(n_columns)
    return np.concatenate([np.zeros((1, n_columns)), edges, -edges])
