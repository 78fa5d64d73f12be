"""Sparse L D L' of a symmetric matrix, its solves for a few right-hand sides, and the signs of D (the inertia).

Up-looking elimination along the elimination tree (Davis, *Algorithm 849*): the factor of a maze is so sparse
(2 to 10 entries a column in a good order) that supernodes do not pay. No pivoting: the caller's matrices are
diagonally dominant, or shifted into a spectral gap where only the signs are wanted.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def symbolic(indptr, indices):  # type: ignore[no-untyped-def]
    """Elimination tree and column starts of the factor, for a symmetric csr matrix in its final order."""
    n = len(indptr) - 1
    parent = np.full(n, -1, dtype=np.int32)
    flag = np.empty(n, dtype=np.int32)
    count = np.zeros(n + 1, dtype=np.int64)
    for k in range(n):
        flag[k] = k
        for p in range(indptr[k], indptr[k + 1]):
            i = indices[p]
            if i < k:
                while flag[i] != k:
                    if parent[i] < 0:
                        parent[i] = k
                    count[i + 1] += 1
                    flag[i] = k
                    i = parent[i]
    return parent, np.cumsum(count)


@njit(cache=True, nogil=True)
def factor(indptr, indices, data, shift, parent, start):  # type: ignore[no-untyped-def]
    """Factor ``A + shift I = L D L'``: row numbers and entries of L by columns, and D. D is cut off at a zero pivot."""
    n = len(indptr) - 1
    rows = np.empty(start[n], dtype=np.int32)
    entries = np.empty(start[n])
    D = np.empty(n)
    fill = start[:-1].copy()
    y = np.zeros(n)
    flag = np.empty(n, dtype=np.int32)
    pattern = np.empty(n, dtype=np.int32)
    for k in range(n):
        top = n
        flag[k] = k
        for p in range(indptr[k], indptr[k + 1]):
            i = indices[p]
            if i <= k:
                y[i] += data[p]
                depth = 0
                while flag[i] != k:
                    pattern[depth] = i
                    depth += 1
                    flag[i] = k
                    i = parent[i]
                while depth > 0:
                    depth -= 1
                    top -= 1
                    pattern[top] = pattern[depth]
        d = y[k] + shift
        y[k] = 0.0
        while top < n:
            i = pattern[top]
            top += 1
            yi = y[i]
            y[i] = 0.0
            for p in range(start[i], fill[i]):
                y[rows[p]] -= entries[p] * yi
            ratio = yi / D[i]
            d -= ratio * yi
            rows[fill[i]] = k
            entries[fill[i]] = ratio
            fill[i] += 1
        if d == 0.0:
            return rows, entries, D[:k]
        D[k] = d
    return rows, entries, D


@njit(cache=True, nogil=True)
def backsolve(start, rows, entries, D, X):  # type: ignore[no-untyped-def]
    """Solve ``L D L' X = B`` in place for X (n, b), all columns together."""
    n, b = X.shape
    for j in range(n):
        for p in range(start[j], start[j + 1]):
            r = rows[p]
            l = entries[p]  # noqa: E741
            for c in range(b):
                X[r, c] -= l * X[j, c]
    for j in range(n - 1, -1, -1):
        d = 1.0 / D[j]
        for c in range(b):
            X[j, c] *= d
        for p in range(start[j], start[j + 1]):
            r = rows[p]
            l = entries[p]  # noqa: E741
            for c in range(b):
                X[j, c] -= l * X[r, c]
