"""Graphs and their Laplacians: a survey, the matrices, residuals in double-double arithmetic, the canonical basis.

In double-double arithmetic (about 32 digits) a number is an unevaluated sum of two doubles. Sums and products are exact
by Knuth's and Dekker's transformations, so nothing here depends on extended precision of the platform or on fused
instructions.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numba import njit

# 2^27 + 1 splits a double into two halves of 26 bits.
_SPLIT = 134217729.0
# Relative distance below which two entries are of equal size, however exactly they are known, and its upper limit.
TIE, LARGEST_TIE = 1e-8, 5e-3
EPS = float(np.finfo(float).eps)


@njit(cache=True, nogil=True)
def survey(indptr, indices, weights):  # type: ignore[no-untyped-def]
    """Degrees, components and colours of a graph with sorted rows, and how far it is from symmetric.

    Returns
    -------
    degree, part, colour, n_parts, asymmetry
        ``(S,)`` sums of weights; ``(S,)`` components, numbered by their first states, and their number; ``(S,)`` 0 or
        1, different for all neighbours, or empty if the graph is not bipartite; the largest difference of two opposite
        weights, infinite where one of them is not stored (the components then count for nothing).
    """
    n = len(indptr) - 1
    degree, part, colour = np.zeros(n), np.full(n, -1, dtype=np.int32), np.zeros(n, dtype=np.int8)
    # The opposite weight of the next entry in each column: rows are sorted, so that they are met in order.
    opposite = indptr[:-1].copy()
    asymmetry = 0.0
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            degree[i] += weights[k]
            back = opposite[j]
            opposite[j] += 1
            if back < indptr[j + 1] and indices[back] == i:
                asymmetry = max(asymmetry, abs(weights[k] - weights[back]))
            else:
                asymmetry = np.inf
    queue = np.empty(n, dtype=np.int32)
    n_parts, bipartite = 0, True
    for first in range(n):
        if part[first] >= 0:
            continue
        part[first], queue[0], done, seen = n_parts, first, 0, 1
        while done < seen:
            i = queue[done]
            done += 1
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                if part[j] < 0:
                    part[j], colour[j], queue[seen] = n_parts, 1 - colour[i], j
                    seen += 1
                elif colour[j] == colour[i]:
                    bipartite = False
        n_parts += 1
    return degree, part, colour if bipartite else colour[:0], n_parts, asymmetry


@njit(cache=True, nogil=True)
def scaled(indptr, indices, weights, degree, left, right):  # type: ignore[no-untyped-def]
    """The arrays of the sparse matrix ``diag(left) (D - W) diag(right)`` for W with sorted rows."""
    n = len(degree)
    pointers = np.zeros_like(indptr)
    columns = np.empty(len(indices) + n, dtype=indices.dtype)
    data = np.empty(len(indices) + n)
    at = 0
    for i in range(n):
        begin, end = indptr[i], indptr[i + 1]
        # The diagonal entry, which W may have too, in its place among the sorted ones.
        middle = begin + np.searchsorted(indices[begin:end], i)
        loop = middle < end and indices[middle] == i
        for k in range(begin, end + 1):
            if k == middle:
                value, j = degree[i] - (weights[k] if loop else 0.0), i
                if value != 0.0:
                    columns[at], data[at] = j, value * (left[i] * right[j])
                    at += 1
            if k < end and not (loop and k == middle):
                j = indices[k]
                # One product, so that the matrix is symmetric to the last bit where both sides are equal.
                columns[at], data[at] = j, -weights[k] * (left[i] * right[j])
                at += 1
        pointers[i + 1] = at
    return data[:at].copy(), columns[:at].copy(), pointers


@njit(cache=True, nogil=True)
def eliminated(indptr, indices, weights, degree, keep):  # type: ignore[no-untyped-def]
    """The arrays of the sparse matrix ``I - B'B``: the normalized Laplacian without the states that are not kept.

    No two of the states to `keep` are neighbours, nor two of the others.
    """
    n, m = len(degree), len(keep)
    number = np.full(n, -1, dtype=np.int32)
    for a in range(m):
        number[keep[a]] = a
    room = m
    for j in range(n):
        if number[j] < 0:
            room += (indptr[j + 1] - indptr[j]) ** 2
    pointers = np.zeros(m + 1, dtype=np.int32)
    columns, data = np.empty(room, dtype=np.int32), np.empty(room)
    # Where the row in work has its entry of each column.
    place = np.full(m, -1, dtype=np.int64)
    at = 0
    for a in range(m):
        i, begin = keep[a], at
        columns[at], data[at], place[a] = a, 1.0, at
        at += 1
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            for h in range(indptr[j], indptr[j + 1]):
                c = number[indices[h]]
                if place[c] < begin:
                    columns[at], data[at], place[c] = c, 0.0, at
                    at += 1
                # Symmetric to the last bit: opposite entries sum the same products in the same order.
                data[place[c]] -= (weights[k] * weights[h]) / (
                    degree[j] * sqrt(degree[i] * degree[indices[h]])
                )
        pointers[a + 1] = at
    return data[:at].copy(), columns[:at].copy(), pointers


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


@njit(cache=True, nogil=True)
def canonical(rows, edges, error):  # type: ignore[no-untyped-def]
    """Replace orthonormal rows (m, n) by the canonical basis of each range between edges, in place.

    Returns ``(m,)`` bounds on the error of the entries, from the length of the `error` of each row.
    """
    m, n = rows.shape
    accuracy = np.empty(m)
    for c in range(len(edges) - 1):
        low, high = edges[c], edges[c + 1]
        if high - low > 1:
            _eigenspace(rows[low:high], sqrt(np.dot(error[low:high], error[low:high])), accuracy[low:high])
            continue
        row = rows[low]
        top = length = 0.0
        for i in range(n):
            top = max(top, abs(row[i]))
            length += row[i] * row[i]
        accuracy[low] = error[low] + 2 * EPS * top
        least = (1.0 - min(max(4.0 * accuracy[low] / top, TIE), LARGEST_TIE)) * top
        peak = 0
        while abs(row[peak]) < least:
            peak += 1
        length = sqrt(length) if row[peak] >= 0 else -sqrt(length)
        for i in range(n):
            row[i] /= length
    return accuracy


@njit(cache=True, nogil=True)
def _combine(weights, block):  # type: ignore[no-untyped-def]
    """Replace the rows (m, n) by ``weights @ block``, in a loop: numba compiles ``block[:] = ...`` for six seconds."""
    new = np.dot(weights, block)
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            block[i, j] = new[i, j]


@njit(cache=True, nogil=True)
def _eigenspace(block, error, accuracy):  # type: ignore[no-untyped-def]
    """Replace the rows (m, n) by the canonical basis of their span; fill in how exactly its entries are known.

    The coefficients of the new basis are the factor Q of the block's columns at the peaks, so an error of the columns
    grows by the norm of R^-1 (Stewart's bound for the QR factorisation).
    """
    m, n = block.shape
    # One step towards the nearest orthonormal rows.
    step = np.dot(block, block.T)
    for i in range(m):
        for j in range(m):
            step[i, j] = (1.5 if i == j else 0.0) - 0.5 * step[i, j]
    _combine(step, block)
    # For each state, the squared peak that a unit vector of this space can have there.
    size = np.zeros(n)
    for j in range(m):
        for i in range(n):
            size[i] += block[j, i] ** 2
    largest = 0.0
    for i in range(n):
        largest = max(largest, size[i])
    top = sqrt(largest)
    error += m * EPS * top
    # Row t of `inverse` is column t of R^-1.
    Q, inverse, known, total = np.zeros((m, m)), np.zeros((m, m)), error, 0.0
    for t in range(m):
        least = (1.0 - 2.0 * min(max(4.0 * known / sqrt(largest), TIE), LARGEST_TIE)) * largest
        peak = 0
        while size[peak] < least:
            peak += 1
        c, r = block[:, peak].copy(), np.zeros(t)
        for _ in range(2 if t else 0):
            h = np.dot(Q[:t], c)
            c, r = c - np.dot(h, Q[:t]), r + h
        length = sqrt(np.dot(c, c))
        c /= length
        for i in range(m):
            Q[t, i] = c[i]
        along = np.dot(c, block)
        largest = 1e-300
        for i in range(n):
            size[i] -= along[i] ** 2
            largest = max(largest, size[i])
        before = np.dot(r, inverse[:t])
        for i in range(t):
            inverse[t, i] = -before[i] / length
        inverse[t, t] = 1.0 / length
        total += np.dot(inverse[t], inverse[t])
        known = error * (1.0 + sqrt(2.0 * total) * top)
        accuracy[t] = min(known, 1.0)
    _combine(Q, block)
