"""A set of rows, exact by content (paper, Section 5.1).

Row i of the set is ``store[ends[i]:ends[i + 1]]``, words of 64 bits. ``table`` is an open hash table of row numbers, -1
where empty. The hash only says where to look: rows are the same when all of their words are.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from eigenoptions._kernels.learning import GOLDEN, mix


@njit(cache=True, nogil=True)
def _place(row, table, ends, store):  # type: ignore[no-untyped-def]
    """Find where a row is in the table, or where it would go."""
    h = GOLDEN
    for w in row:
        h = mix(h ^ w)
    mask = np.uint64(len(table) - 1)
    at = h & mask
    while table[at] >= 0:
        low = ends[table[at]]
        if ends[table[at] + 1] - low == len(row):
            same = True
            for j in range(len(row)):
                if store[low + j] != row[j]:
                    same = False
                    break
            if same:
                return at
        at = (at + np.uint64(1)) & mask
    return at


@njit(cache=True, nogil=True)
def insert(indptr, words, begin, slots, table, ends, store, count):  # type: ignore[no-untyped-def]
    """Put rows ``words[indptr[i]:indptr[i + 1]]`` into a set of `count` rows, from row `begin` on.

    ``slots`` (N,) receives the number of each row in the set. Where there is no room for a row the work stops before
    it. Returns the next row and the new count.
    """
    for i in range(begin, len(indptr) - 1):
        row = words[indptr[i] : indptr[i + 1]]
        at = _place(row, table, ends, store)
        if table[at] < 0:
            top = ends[count] + len(row)
            if count + 1 >= len(ends) or top > len(store) or 2 * (count + 1) > len(table):
                return i, count
            store[ends[count] : top] = row
            table[at] = count
            count += 1
            ends[count] = top
        slots[i] = table[at]
    return len(indptr) - 1, count


@njit(cache=True, nogil=True)
def refill(table, ends, store, count):  # type: ignore[no-untyped-def]
    """Enter the rows of a set into an empty table."""
    for i in range(count):
        table[_place(store[ends[i] : ends[i + 1]], table, ends, store)] = i
