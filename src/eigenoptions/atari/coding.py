"""Potentials e . phi of many purposes over a game's memory, exact to the last bit (paper, Section 5.2).

A frame writes to a few of the 128 bytes, so the reward ``e . (phi(s') - phi(s))`` is a sum over the features of those
bytes alone. Directions are rounded to a grid so fine that it does not matter and so coarse that every such sum is
exact in double precision: the order of summation, and with it the number of states or options taken at once, cannot
turn a decision. That lets roll-outs be shared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions.atari.ram import CODES, Ram

__all__ = ["CODES", "Potentials", "Ram", "on_a_grid"]

Array = NDArray[np.float64]
Bytes = NDArray[np.uint8]


def on_a_grid(direction: ArrayLike, coding: Ram) -> Array:
    """Directions ``(n, d)``, each rounded to multiples of a power of two: sums of rewards are then exact.

    The step is at most 2^-51 of the sum of the absolute entries (2^-43 with code ``"bytes"``), far below the noise of
    an eigenvector.

    >>> e = on_a_grid([[0.1, 0.2, -0.3]], Ram("bytes", addresses=(0, 1, 2)))
    >>> float(e[0] @ [1.0, 1.0, 1.0]), bool(np.abs(e - [0.1, 0.2, -0.3]).max() < 1e-13)
    (0.0, True)
    """
    e = np.asarray(direction, dtype=np.float64)
    if e.ndim != 2 or e.shape[1] != coding.width or not np.isfinite(e).all():
        raise ValueError(
            f"direction must be finite numbers of shape (n, {coding.width}), as wide as the coding, "
            f"got shape {e.shape}"
        )
    _, power = np.frexp(np.abs(e).sum(axis=1, keepdims=True))  # the sum is below 2^power
    step = power - 52 + (8 if coding.code == "bytes" else 0)  # features are multiples of 1, or of 2^-8
    rounded: Array = np.ldexp(np.rint(np.ldexp(e, -step)), step)
    return rounded


class Potentials:
    """Differences of potentials of n purposes between states of memory.

    Parameters
    ----------
    direction
        ``(n, d)`` the vectors e; kept on a grid (`on_a_grid`).
    coding
        The map phi.

    Examples
    --------
    >>> here, there = np.zeros((1, 128), dtype=np.uint8), np.zeros((1, 2, 128), dtype=np.uint8)
    >>> there[0, :, 14] = 1, 2
    >>> e = np.zeros((2, 1024))
    >>> e[0, 8 * 14], e[1, 8 * 14 + 1] = 1.0, -1.0
    >>> Potentials(e, Ram()).gains(here, there, np.arange(2), [0, 2]).tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """

    def __init__(self, direction: ArrayLike, coding: Ram) -> None:
        self.coding = coding
        self.direction = on_a_grid(direction, coding)
        self._table = coding.table.astype(np.float64)
        used = np.flatnonzero(self.direction.any(axis=0))  # features that never changed have no weight
        self._weights = np.ascontiguousarray(self.direction[:, used])
        columns = np.arange(coding.width) if coding.columns is None else np.array(coding.columns)
        place = np.full(len(coding.watched) * coding.each, -1, dtype=np.intp)
        place[columns[used]] = np.arange(len(used))
        self._place = place.reshape(-1, coding.each)

    def __len__(self) -> int:
        """Number of purposes n."""
        return len(self.direction)

    def gains(self, here: Bytes, there: Bytes, purposes: NDArray[np.intp], bounds: ArrayLike) -> Array:
        """``(k, N)`` rewards ``e . (phi(there) - phi(here))``, each purpose between its own states.

        Parameters
        ----------
        here
            ``(U, 128)`` memory.
        there
            ``(U, N, 128)`` memory.
        purposes
            ``(k,)`` numbers of purposes, those at the same `here` side by side.
        bounds
            ``(U + 1,)`` where the purposes at each `here` begin, and k.
        """
        from eigenoptions._kernels.gains import gains

        found = np.empty((len(purposes), there.shape[1]))
        gains(
            here,
            there,
            self.coding.watched,
            self._table,
            self._place,
            self._weights,
            purposes,
            np.asarray(bounds, dtype=np.intp),
            found,
        )
        return found
