"""Sparse factor ``L D L'`` of a symmetric matrix, without exchanges of rows (Davis, ACM Algorithm 849, 2005).

Row k of L follows from the rows before it: its pattern is the part of the elimination tree that is reached from the
entries of the matrix left of the diagonal. By Sylvester's law D has as many negative entries as the matrix has negative
eigenvalues.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def factor(indptr, indices, data, order, shift):  # type: ignore[no-untyped-def]
    """Factor of a symmetric sparse matrix plus `shift` times I, with its rows and columns in this order.

    Returns
    -------
    begin, row, entry, pivot
        Columns of L below its diagonal of ones, and the diagonal of D. Where a pivot is 0, nothing after it counts.
    """
    n = len(order)
    place, parent, seen, path = (
        np.empty(n, np.int32),
        np.full(n, -1, np.int32),
        np.full(n, -1, np.int32),
        order.copy(),
    )
    for k in range(n):
        place[order[k]] = k
    # The elimination tree, and the lengths of the columns.
    begin = np.zeros(n + 1, dtype=np.int64)
    for k in range(n):
        seen[k] = k
        for p in range(indptr[order[k]], indptr[order[k] + 1]):
            i = place[indices[p]]
            while i < k and seen[i] != k:
                if parent[i] < 0:
                    parent[i] = k
                begin[i + 1] += 1
                seen[i] = k
                i = parent[i]
    for k in range(n):
        begin[k + 1] += begin[k]
        seen[k] = -1
    row, entry = np.empty(begin[n], np.int32), np.empty(begin[n])
    end, pivot, y = begin[:n].copy(), np.empty(n), np.zeros(n)
    for k in range(n):
        top = n
        seen[k] = k
        for p in range(indptr[order[k]], indptr[order[k] + 1]):
            i, depth = place[indices[p]], 0
            if i > k:
                continue
            y[i] = data[p]
            while seen[i] != k:
                path[depth] = i
                depth += 1
                seen[i] = k
                i = parent[i]
            # Columns in the order in which they are needed.
            while depth > 0:
                depth -= 1
                top -= 1
                path[top] = path[depth]
        pivot[k], y[k] = y[k] + shift, 0.0
        for i in path[top:]:
            now, y[i] = y[i], 0.0
            for p in range(begin[i], end[i]):
                y[row[p]] -= entry[p] * now
            row[end[i]], entry[end[i]] = k, now / pivot[i]
            pivot[k] -= now * entry[end[i]]
            end[i] += 1
    return begin, row, entry, pivot


@njit(cache=True, nogil=True, error_model="numpy")
def solve(begin, row, entry, pivot, order, B):  # type: ignore[no-untyped-def]
    """Solutions ``(b, n)`` for the rows of B by a `factor`."""
    n = len(order)
    X, x = np.empty_like(B), np.empty(n)
    for c in range(len(B)):
        for i in range(n):
            x[i] = B[c, order[i]]
        for i in range(n):
            now = x[i]
            for p in range(begin[i], begin[i + 1]):
                x[row[p]] -= entry[p] * now
        for i in range(n - 1, -1, -1):
            now = x[i] / pivot[i]
            for p in range(begin[i], begin[i + 1]):
                now -= entry[p] * x[row[p]]
            x[i] = now
            X[c, order[i]] = now
    return X
