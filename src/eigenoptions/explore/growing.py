"""Arrays that grow while an agent acts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class GrowingArray:
    """An array to which rows are appended; its memory doubles when it is full.

    Parameters
    ----------
    dtype : data-type
        Type of the entries.
    width : int, default=None
        Number of columns. None: an array of one dimension.

    Examples
    --------
    >>> counts = GrowingArray(np.int64)
    >>> for number in range(3):
    ...     counts.append(number)
    >>> counts.values
    array([0, 1, 2])
    """

    def __init__(self, dtype: DTypeLike, width: int | None = None) -> None:
        shape = (64,) if width is None else (64, width)
        self._memory = np.zeros(shape, dtype=dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> NDArray[Any]:
        """The rows so far, as a view: what you write into it stays."""
        return self._memory[: self._length]

    def append(self, row: Any) -> None:
        """Append a row, or one number for all of its columns."""
        if self._length == len(self._memory):
            more = np.zeros((max(self._length, 64), *self._memory.shape[1:]))
            more = more.astype(self._memory.dtype)
            self._memory = np.concatenate([self._memory, more])
        self._memory[self._length] = row
        self._length += 1

    def extend(self, rows: NDArray[Any]) -> None:
        """Append several rows."""
        self._memory = np.concatenate([self.values, rows.astype(self._memory.dtype)])
        self._length += len(rows)

    def truncate(self, length: int) -> None:
        """Forget all rows but the first ones."""
        self._length = min(length, self._length)
