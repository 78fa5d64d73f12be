"""Differences of features as 64-bit words, and a set of them that is exact by content (paper, Section 5.2).

"We define two vectors t and t' to be identical if and only if t - t' = 0." One-hot states need one word per row,
bits two bits per feature, numbers one word per feature, and sparse rows two words per entry. Rows of zeros are left
out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

# Kinds of features.
STATES, BITS, NUMBERS, SPARSE = "states", "bits", "numbers", "sparse features"
# Rows converted to floats at a time; sums of so many bits are exact in single precision.
ROWS_PER_BLOCK = 4096

Words = NDArray[np.uint64]
_32, _LOW = np.uint64(32), np.uint64(2**32 - 1)


def difference(kind: str, phi: Any, phi_next: Any) -> Any:
    """``(N, d)`` rows phi(s') - phi(s): float32 for bits, which is exact and fast, csr for sparse features.

    >>> difference(BITS, np.array([[True, False]]), np.array([[False, False]])).tolist()
    [[-1.0, 0.0]]
    """
    if kind == BITS:
        return phi_next.astype(np.float32) - phi.astype(np.float32)
    if kind == NUMBERS:
        # Adding 0.0 turns -0.0, which is the same number, into 0.0.
        return phi_next.astype(np.float64) - phi.astype(np.float64) + 0.0
    D = csr_array(csr_array(phi_next, dtype=np.float64) - csr_array(phi, dtype=np.float64))
    D.sum_duplicates()
    D.eliminate_zeros()
    return D


def encode(kind: str, phi: Any, phi_next: Any) -> tuple[NDArray[np.int64], Words]:
    """Rows that are not zero as words: row i is ``words[indptr[i]:indptr[i + 1]]``.

    >>> indptr, words = encode(STATES, np.array([3, 5]), np.array([4, 5]))
    >>> indptr.tolist(), divmod(int(words[0]), 2**32)
    ([0, 1], (3, 4))
    """
    if kind == STATES:
        moved = phi != phi_next
        words = (phi[moved].astype(np.uint64) << _32) | phi_next[moved].astype(np.uint64)
        return np.arange(len(words) + 1), words
    if kind == SPARSE:
        D = difference(kind, phi, phi_next)
        words = np.empty((D.nnz, 2), dtype=np.uint64)
        words[:, 0], words[:, 1] = D.indices, D.data.view(np.uint64)
        return 2 * np.unique(D.indptr.astype(np.int64)), words.ravel()
    if kind == BITS:
        rows = np.concatenate([_packed(phi_next & ~phi), _packed(phi & ~phi_next)], axis=1)
    else:
        rows = difference(kind, phi, phi_next).view(np.uint64)
    rows = rows[rows.any(axis=1)]
    return np.arange(len(rows) + 1) * rows.shape[1], rows.ravel()


def decode(kind: str, indptr: NDArray[np.int64], words: Words, d: int) -> Any:
    """The rows ``(N, d)`` that `encode` packed.

    >>> decode(STATES, *encode(STATES, np.array([0]), np.array([2])), 3).toarray().tolist()
    [[-1.0, 0.0, 1.0]]
    """
    n = len(indptr) - 1
    if kind == STATES:
        columns = np.stack(states_of(words), axis=1).ravel()
        return csr_array((np.tile([-1.0, 1.0], n), columns, 2 * np.arange(n + 1)), shape=(n, d))
    if kind == SPARSE:
        pairs = words.reshape(-1, 2)
        data = np.ascontiguousarray(pairs[:, 1]).view(np.float64)
        return csr_array((data, pairs[:, 0].astype(np.int64), indptr // 2), shape=(n, d))
    rows = words.reshape(n, -1)
    if kind == NUMBERS:
        return rows.view(np.float64)
    up, down = (_unpacked(half, d) for half in np.split(rows, 2, axis=1))
    return up.astype(np.float32) - down.astype(np.float32)


def checked_rows(
    kind: str, indptr: NDArray[Any], words: NDArray[Any], d: int
) -> tuple[NDArray[np.int64], Words]:
    """Rows of d features as `encode` packs them, from a file; ValueError where no features give such rows.

    >>> checked_rows(STATES, np.array([0, 1]), np.array([5], dtype=np.uint64), 3)
    Traceback (most recent call last):
    ValueError: states must be in 0..2, got 5
    """
    if words.ndim != 1 or words.dtype != np.uint64 or indptr.ndim != 1 or indptr.dtype != np.int64:
        raise ValueError(f"rows must be words of 64 bits, got {words.dtype} and {indptr.dtype}")
    size = np.diff(indptr)
    if not len(indptr) or indptr[0] or indptr[-1] != len(words) or size.min(initial=1) < 1:
        raise ValueError(f"the ends of rows must increase from 0 to {len(words)}")
    wide = {STATES: 1, BITS: 2 * -(-d // 64), NUMBERS: d}.get(kind)
    if (wide is not None and (size != wide).any()) or (wide is None and (size % 2).any()):
        raise ValueError(
            f"rows of {d} {kind} must have {wide or 'pairs of'} words, got {size.min()}..{size.max()}"
        )
    numbers, columns = words[:0], words[:0]
    if kind == STATES:
        columns = np.concatenate([words >> _32, words & _LOW])
    elif kind == SPARSE:
        columns, numbers = words[::2], np.ascontiguousarray(words[1::2])
        inside = np.delete(np.diff(columns.astype(np.float64)), (indptr[1:-1] // 2) - 1)
        if inside.min(initial=1) <= 0:
            raise ValueError("the columns of a row must increase")
    elif kind == NUMBERS:
        numbers = words
    if columns.max(initial=0) >= d:
        raise ValueError(
            f"{'states' if kind == STATES else 'columns'} must be in 0..{d - 1}, got {columns.max()}"
        )
    if not np.isfinite(numbers.view(np.float64)).all():
        raise ValueError("differences of features must be finite")
    return indptr, words


def states_of(words: Words) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The states before and after, of rows of one-hot states.

    >>> [side.tolist() for side in states_of(encode(STATES, np.array([3, 5]), np.array([4, 6]))[1])]
    [[3, 5], [4, 6]]
    """
    return (words >> _32).astype(np.int64), (words & _LOW).astype(np.int64)


def moving(rows: Any) -> int:
    """How many of the rows ``(N, d)`` are not zero.

    >>> moving(np.eye(3)[[0, 0, 1]] - np.eye(3)[0])
    1
    """
    return int((np.diff(rows.indptr) > 0).sum() if issparse(rows) else rows.any(axis=1).sum())


class UniqueRows:
    """A growing set of rows of words, exact by content, numbered in order of arrival.

    >>> rows = UniqueRows()
    >>> rows.insert(np.arange(4), np.array([7, 9, 7], dtype=np.uint64)).tolist(), rows.count
    ([0, 1, 0], 2)
    """

    def __init__(self) -> None:
        self.count = 0
        # Whether every row has one word.
        self._single = True
        self._table = np.full((64, 2), -1, dtype=np.int64)
        self._ends = np.zeros(33, dtype=np.int64)
        self._store = np.zeros(64, dtype=np.uint64)

    def __getstate__(self) -> dict[str, Any]:
        """The rows, without spare capacity. The hash table is built again when it is needed."""
        return {
            "count": self.count,
            "_single": self._single,
            "_ends": self.indptr.copy(),
            "_store": self.words.copy(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _table=np.empty((0, 2), dtype=np.int64))

    @property
    def indptr(self) -> NDArray[np.int64]:
        """``(count + 1,)`` where each row begins and ends."""
        return self._ends[: self.count + 1]

    @property
    def words(self) -> Words:
        """The rows, one after the other."""
        return self._store[: self._ends[self.count]]

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        return self._table.nbytes + self._ends.nbytes + self._store.nbytes

    def insert(self, indptr: NDArray[np.int64], words: Words) -> NDArray[np.int64]:
        """Add rows; returns the number of each in the set."""
        from eigenoptions._kernels.rows import insert

        self._settle()
        self._single &= bool((np.diff(indptr) == 1).all())
        slots = np.empty(len(indptr) - 1, dtype=np.int64)
        begin = 0
        while True:
            begin, self.count = insert(
                indptr, words, begin, slots, self._single, self._table, self._ends, self._store, self.count
            )
            if begin == len(slots):
                return slots
            self._grow(int(indptr[begin + 1] - indptr[begin]))

    def insert_pairs(self, before: NDArray[np.int64], after: NDArray[np.int64]) -> None:
        """Add transitions between states, as `encode` packs them, to a set that holds nothing else.

        >>> rows = UniqueRows()
        >>> rows.insert_pairs(np.array([0, 1, 1, 0]), np.array([1, 1, 2, 1]))
        >>> [divmod(int(word), 2**32) for word in rows.words]
        [(0, 1), (1, 2)]
        """
        from eigenoptions._kernels.rows import insert_pairs

        self._settle()
        begin = 0
        while True:
            begin, self.count = insert_pairs(
                before, after, begin, self._table, self._ends, self._store, self.count
            )
            if begin == len(before):
                return
            self._grow(1)

    def _settle(self) -> None:
        """Build the hash table of a copied or unpickled set."""
        if not len(self._table):
            rows = UniqueRows()
            while 3 * (self.count + 1) > 2 * len(rows._table):
                rows._table = np.full((2 * len(rows._table), 2), -1, dtype=np.int64)
            rows._ends, rows._store = np.zeros_like(self._ends, shape=self.count + 2), self._store.copy()
            rows.insert(self.indptr, self.words)
            self.__dict__.update(rows.__dict__)

    def _grow(self, row: int) -> None:
        """Make room for one more row of so many words; what is full doubles."""
        from eigenoptions._kernels.rows import refill

        short = int(self._ends[self.count]) + row - len(self._store)
        if short > 0:
            more = np.zeros(max(short, len(self._store)), dtype=np.uint64)
            self._store = np.concatenate([self._store, more])
        if self.count + 1 >= len(self._ends):
            self._ends = np.concatenate([self._ends, np.zeros_like(self._ends)])
        if 3 * (self.count + 1) > 2 * len(self._table):
            old, self._table = self._table, np.full((2 * len(self._table), 2), -1, dtype=np.int64)
            refill(old, self._table)

    def take(self, chosen: NDArray[np.intp]) -> tuple[NDArray[np.int64], Words]:
        """Some rows, as `insert` takes them."""
        low = self._ends[chosen]
        size = self._ends[chosen + 1] - low
        indptr = np.concatenate([[0], np.cumsum(size)])
        return indptr, self._store[np.repeat(low - indptr[:-1], size) + np.arange(indptr[-1])]

    def blocks(self, kind: str, d: int) -> Iterator[Any]:
        """The rows as differences again, in an order that depends on their content alone."""
        size = np.diff(self.indptr)
        wide = int(size.max(initial=0)) + 1
        padded = np.zeros((self.count, wide), dtype=np.uint64)
        padded[:, 0] = size
        padded[:, 1:][np.arange(wide - 1) < size[:, None]] = self.words
        order = np.argsort(padded.view(f"V{8 * wide}").ravel(), kind="stable")
        del padded
        for low in range(0, self.count, ROWS_PER_BLOCK):
            yield decode(kind, *self.take(order[low : low + ROWS_PER_BLOCK]), d)


def _packed(bits: NDArray[np.bool_]) -> Words:
    """``(N, d)`` bits in whole words."""
    packed = np.packbits(bits, axis=1, bitorder="little")
    wide = np.zeros((len(bits), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    wide[:, : packed.shape[1]] = packed
    return wide.view(np.uint64)


def _unpacked(words: Words, d: int) -> NDArray[np.uint8]:
    return np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, count=d, bitorder="little")
