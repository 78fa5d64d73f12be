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
    """``S (D - W) S x - value x``, rounded, for each row x of X + Y (b, n), with the diagonal S = high + low."""
    b, n = X.shape
    R = np.empty((b, n))
    P, Q = np.empty(n), np.empty(n)
    for c in range(b):
        x, y, value = X[c], Y[c], values[c]
        for i in range(n):
            p, e = _product(x[i], high[i])
            P[i], Q[i] = p, e + (x[i] * low[i] + y[i] * high[i])
        for i in range(n):
            total, rest = _product(degree[i], P[i])
            rest += degree[i] * Q[i]
            for k in range(indptr[i], indptr[i + 1]):
                w, j = weights[k], indices[k]
                if w == 1.0:
                    total, f = _sum(total, -P[j])
                    rest += f - Q[j]
                else:
                    p, e = _product(w, P[j])
                    total, f = _sum(total, -p)
                    rest += f - (e + w * Q[j])
            p, e = _product(total, high[i])
            q, f = _product(value, x[i])
            t, g = _sum(p, -q)
            small = (e - f) + (total * low[i] + rest * high[i]) - value * y[i]
            R[c, i] = t + (g + small)
    return R
