"""Residuals of a graph's Laplacian in double-double arithmetic (about 32 digits), the same on every machine.

A number is an unevaluated sum of two doubles. Sums and products are exact by Knuth's and Dekker's transformations,
so nothing here depends on extended precision of the platform or on fused instructions.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# 2^27 + 1 splits a double into two halves of 26 bits.
_SPLIT = 134217729.0


@njit(inline="always")
def _product(a, b):  # type: ignore[no-untyped-def]
    """``a b`` as the rounded product and its error."""
    p = a * b
    t = _SPLIT * a
    ah = t - (t - a)
    al = a - ah
    t = _SPLIT * b
    bh = t - (t - b)
    bl = b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


@njit(inline="always")
def _sum(a, b):  # type: ignore[no-untyped-def]
    """``a + b`` as the rounded sum and its error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit(cache=True, nogil=True)
def inverse_root(degree):  # type: ignore[no-untyped-def]
    """``degree^-1/2`` as two doubles, by one Newton step from the rounded one; 1 where the degree is 0."""
    high, low = np.ones(len(degree)), np.zeros(len(degree))
    for i in range(len(degree)):
        if degree[i] > 0:
            h = 1.0 / np.sqrt(degree[i])
            p, e = _product(h, h)
            q, f = _product(degree[i], p)
            high[i], low[i] = h, 0.5 * h * ((1.0 - q) - (f + degree[i] * e))
    return high, low


@njit(cache=True, nogil=True)
def residual(indptr, indices, weights, degree, high, low, X, Y, values):  # type: ignore[no-untyped-def]
    """``S (D - W) S (X + Y) - (X + Y) values``, rounded, for columns (n, b) and the diagonal S = high + low."""
    n, b = X.shape
    P, Q, R = np.empty((n, b)), np.empty((n, b)), np.empty((n, b))
    for i in range(n):
        for c in range(b):
            p, e = _product(X[i, c], high[i])
            P[i, c], Q[i, c] = p, e + (X[i, c] * low[i] + Y[i, c] * high[i])
    total, rest = np.empty(b), np.empty(b)
    for i in range(n):
        for c in range(b):
            p, e = _product(degree[i], P[i, c])
            total[c], rest[c] = p, e + degree[i] * Q[i, c]
        for k in range(indptr[i], indptr[i + 1]):
            w, j = weights[k], indices[k]
            if w == 1.0:
                for c in range(b):
                    t, f = _sum(total[c], -P[j, c])
                    total[c] = t
                    rest[c] += f - Q[j, c]
            else:
                for c in range(b):
                    p, e = _product(w, P[j, c])
                    t, f = _sum(total[c], -p)
                    total[c] = t
                    rest[c] += f - (e + w * Q[j, c])
        for c in range(b):
            p, e = _product(total[c], high[i])
            q, f = _product(values[c], X[i, c])
            t, g = _sum(p, -q)
            small = (e - f) + (total[c] * low[i] + rest[c] * high[i]) - values[c] * Y[i, c]
            R[i, c] = t + (g + small)
    return R
