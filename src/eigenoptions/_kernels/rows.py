"""A set of rows, exact by content (paper, Section 5.1).

Row i of the set is ``store[ends[i]:ends[i + 1]]``, words of 64 bits. ``table`` (m, 2) is an open hash table: the number
of a row (-1 where empty) and its hash, beside each other in memory, so that one access reads both. The hash only
selects where to search: rows are equal when all of their words are. Mixing is a bijection of one word, so where every
row has one word (pairs of states), equal hashes are equal rows, and the rows themselves need not be read.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from eigenoptions._kernels.walking import GOLDEN, mix

_32 = np.uint64(32)


@njit(cache=True, nogil=True)
def _place(row, h, single, table, ends, store):  # type: ignore[no-untyped-def]
    """Find where a row is in the table, or where it would go."""
    mask = np.uint64(len(table) - 1)
    at = h & mask
    while table[at, 0] >= 0:
        if np.uint64(table[at, 1]) == h:
            if single:
                return at
            low = ends[table[at, 0]]
            if ends[table[at, 0] + 1] - low == len(row):
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
def insert(indptr, words, begin, slots, single, table, ends, store, count):  # type: ignore[no-untyped-def]
    """Put rows ``words[indptr[i]:indptr[i + 1]]`` into a set of `count` rows, from row `begin` on.

    ``slots`` (N,) receives the number of each row in the set; `single`: these and all rows of the set have one
    word. Stops before a row for which there is no room. Returns the next row and the new count.
    """
    for i in range(begin, len(indptr) - 1):
        row = words[indptr[i] : indptr[i + 1]]
        h = GOLDEN
        for w in row:
            h = mix(h ^ w)
        at = _place(row, h, single, table, ends, store)
        if table[at, 0] < 0:
            top = ends[count] + len(row)
            if count + 1 >= len(ends) or top > len(store) or 3 * (count + 1) > 2 * len(table):
                return i, count
            for k in range(len(row)):
                store[ends[count] + k] = row[k]
            table[at, 0], table[at, 1] = count, np.int64(h)
            count += 1
            ends[count] = top
        slots[i] = table[at, 0]
    return len(indptr) - 1, count


@njit(cache=True, nogil=True)
def insert_pairs(before, after, begin, table, ends, store, count):  # type: ignore[no-untyped-def]
    """Put transitions between different states into a set of rows of one word, ``before << 32 | after``.

    As `insert`, for one-hot states: nothing is written but what is new.
    """
    mask = np.uint64(len(table) - 1)
    room = min(len(ends) - 1, len(store), 2 * len(table) // 3)
    for i in range(begin, len(before)):
        if before[i] == after[i]:
            continue
        word = (np.uint64(before[i]) << _32) | np.uint64(after[i])
        h = mix(GOLDEN ^ word)
        at = h & mask
        while table[at, 0] >= 0 and np.uint64(table[at, 1]) != h:
            at = (at + np.uint64(1)) & mask
        if table[at, 0] < 0:
            if count >= room:
                return i, count
            store[count] = word
            table[at, 0], table[at, 1] = count, np.int64(h)
            count += 1
            ends[count] = count
    return len(before), count


@njit(cache=True, nogil=True)
def refill(old, table):  # type: ignore[no-untyped-def]
    """Enter what a table holds into a larger, empty one: all rows are different, so only hashes are read."""
    mask = np.uint64(len(table) - 1)
    for i in range(len(old)):
        if old[i, 0] >= 0:
            at = np.uint64(old[i, 1]) & mask
            while table[at, 0] >= 0:
                at = (at + np.uint64(1)) & mask
            table[at, 0], table[at, 1] = old[i, 0], old[i, 1]
