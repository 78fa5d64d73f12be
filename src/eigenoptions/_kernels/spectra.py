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
# Vectors advanced together.
LANES = 16
# Relative distance below which two entries are of equal size, however exactly they are known, and its upper limit.
TIE, LARGEST_TIE = 1e-8, 5e-3
EPS = float(np.finfo(float).eps)
# Distance below which neighbouring eigenvalues are one repeated eigenvalue: relative, and in units of the norm.
SAME_RELATIVE, SAME_ABSOLUTE = 1e-9, 1e-13
# Length of a vector's error within the span of the vectors found at which the refinement ends, and its passes.
TARGET_INSIDE, MAX_CORRECTIONS = 2e-15, 4


@njit(cache=True, nogil=True)
def survey(indptr, indices, weights):  # type: ignore[no-untyped-def]
    """Degrees, components and colours of a graph, whether its arrays are in order, and how far it is from symmetric.

    Returns
    -------
    degree, part, colour, n_parts, asymmetry, good
        ``(S,)`` sums of weights; ``(S,)`` components, numbered by their first states, and their number; ``(S,)`` 0 or
        1, different for all neighbours, or empty if the graph is not bipartite; the largest difference of two opposite
        weights, infinite where one of them is not stored (the components then count for nothing). Not good: indices
        are not inside the graph, sorted and different, weights or their sums are not positive and finite, and nothing
        else counts.
    """
    n = len(indptr) - 1
    degree, part, colour = np.zeros(n), np.full(n, -1, dtype=np.int32), np.zeros(n, dtype=np.int8)
    good, asymmetry = indptr[0] == 0 and indptr[n] == len(indices) and len(indices) == len(weights), 0.0
    for i in range(n):
        good = good and indptr[i] <= indptr[i + 1] <= len(indices)
        last = -1
        for k in range(indptr[i], indptr[i + 1] if good else indptr[i]):
            good = good and last < indices[k] < n and 0.0 < weights[k] < np.inf
            last = indices[k]
            degree[i] += weights[k]
        good = good and degree[i] < np.inf
    if not good:
        return degree, part, colour, 0, asymmetry, good
    # The opposite weight of the next entry in each column: rows are sorted, so that they are met in order.
    opposite = indptr[:-1].copy()
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
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
    return degree, part, colour if bipartite else colour[:0], n_parts, asymmetry, good


@njit(cache=True, nogil=True)
def scaled(indptr, indices, weights, degree, left, right):  # type: ignore[no-untyped-def]
    """The arrays of the sparse matrix ``diag(left) (D - W) diag(right)`` for W with sorted rows; with its diagonal."""
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
                columns[at], data[at] = i, (degree[i] - (weights[k] if loop else 0.0)) * (left[i] * right[i])
                at += 1
            if k < end and not (loop and k == middle):
                j = indices[k]
                # One product, so that the matrix is symmetric to the last bit where both sides are equal.
                columns[at], data[at] = j, -weights[k] * (left[i] * right[j])
                at += 1
        pointers[i + 1] = at
    return data[:at].copy(), columns[:at].copy(), pointers


@njit(cache=True, nogil=True)
def eliminated(indptr, indices, weights, root, keep):  # type: ignore[no-untyped-def]
    """The arrays of the sparse matrix ``I - B'B``: the normalized Laplacian without the states that are not kept.

    `root` is ``D^-1/2``. No two of the states to `keep` are neighbours, nor two of the others.
    """
    n, m = len(root), len(keep)
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
            one = weights[k] * (root[j] * root[i])
            for h in range(indptr[j], indptr[j + 1]):
                c = number[indices[h]]
                if place[c] < begin:
                    columns[at], data[at], place[c] = c, 0.0, at
                    at += 1
                # Symmetric to the last bit: opposite entries sum the same products in the same order.
                data[place[c]] -= one * (weights[h] * (root[j] * root[indices[h]]))
        pointers[a + 1] = at
    return data[:at].copy(), columns[:at].copy(), pointers


@njit(cache=True, nogil=True)
def lifted(indptr, indices, weights, root, keep, gone, rows, values):  # type: ignore[no-untyped-def]
    """Unit eigenvectors ``(B y / (1 - value), y)`` of the normalized Laplacian for unit rows y; see `eliminated`."""
    X = np.empty((len(rows), len(root)))
    for first in range(0, len(rows), LANES):
        x, value = rows[first : first + LANES].T.copy(), values[first : first + LANES]
        y, total = np.empty((len(root), len(value))), np.empty(len(value))
        for a in range(len(keep)):
            i = keep[a]
            for c in range(len(value)):
                X[first + c, i] = sqrt(0.5) * x[a, c]
                y[i, c] = root[i] * (sqrt(0.5) * x[a, c])
        for i in gone:
            for c in range(len(value)):
                total[c] = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                for c in range(len(value)):
                    total[c] += weights[k] * y[j, c]
            for c in range(len(value)):
                X[first + c, i] = root[i] * total[c] / (1.0 - value[c])
    return X


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


@njit(inline="always")
def _add(weight, p, q, total, rest):  # type: ignore[no-untyped-def]
    """Add ``weight (p + q)`` to ``total + rest`` in all lanes: plain loops, of which the compiler makes vectors."""
    if abs(weight) == 1.0:
        for j in range(len(total)):
            s, e = _sum(total[j], weight * p[j])
            rest[j] += e + weight * q[j]
            total[j] = s
    else:
        for j in range(len(total)):
            t, e = _product(weight, p[j])
            s, f = _sum(total[j], t)
            rest[j] += f + (e + weight * q[j])
            total[j] = s


@njit(cache=True, nogil=True)
def project(rows, part, unit):  # type: ignore[no-untyped-def]
    """Remove the null space from each row (b, n), in place: `unit` within each `part` of the states."""
    inside, rest = np.empty((2, part.max() + 1))
    for x in rows:
        inside[:] = rest[:] = 0.0
        for i in range(len(x)):
            # Sums of many terms, in twice the precision.
            s, e = _sum(inside[part[i]], unit[i] * x[i])
            inside[part[i]] = s
            rest[part[i]] += e
        inside += rest
        for i in range(len(x)):
            x[i] -= inside[part[i]] * unit[i]


@njit(cache=True, nogil=True)
def residual(graph, X, Y, values):  # type: ignore[no-untyped-def]
    """``S (D - W) S x - value x``, rounded, for each row x of X + Y (b, m), outside the null space.

    `graph` is ``indptr, indices, weights, degree, high, low, keep, gone, part, unit``: W and D; the diagonal
    S = high + low; the states of which rows consist, and those that are eliminated, where ``(D - W) S x`` is zero; the
    component of each state to keep, and the entries of the null vectors.
    """
    indptr, indices, weights, degree, high, low, keep, gone, part, unit = graph
    R = np.empty_like(X)
    for first in range(0, len(X), LANES):
        x, y = X[first : first + LANES].T.copy(), Y[first : first + LANES].T.copy()
        value = values[first : first + LANES]
        P, Q = np.empty((2, len(degree), len(value)))
        total, rest = np.empty((2, len(value)))
        for a in range(len(keep)):
            i = keep[a]
            for j in range(len(value)):
                p, e = _product(x[a, j], high[i])
                Q[i, j] = e + (x[a, j] * low[i] + y[a, j] * high[i])
                P[i, j] = p
        for i in gone:
            total[:] = rest[:] = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                _add(weights[k], P[indices[k]], Q[indices[k]], total, rest)
            for j in range(len(value)):
                t = total[j] / degree[i]
                p, e = _product(t, degree[i])
                Q[i, j] = (((total[j] - p) - e) + rest[j]) / degree[i]
                P[i, j] = t
        for a in range(len(keep)):
            i = keep[a]
            total[:] = rest[:] = 0.0
            _add(degree[i], P[i], Q[i], total, rest)
            for k in range(indptr[i], indptr[i + 1]):
                _add(-weights[k], P[indices[k]], Q[indices[k]], total, rest)
            for j in range(len(value)):
                p, e = _product(total[j], high[i])
                q, f = _product(value[j], x[a, j])
                t, g = _sum(p, -q)
                small = (e - f) + (total[j] * low[i] + rest[j] * high[i]) - value[j] * y[a, j]
                R[first + j, a] = t + (g + small)
    project(R, part, unit)
    return R


@njit(cache=True, nogil=True)
def refine(graph, rows, values, label, floor, width):  # type: ignore[no-untyped-def]
    """Correct the first eigenpairs by all rows with another label, from their residuals, in place.

    To first order a vector's part along another one is wrong by its residual there over the distance of the
    eigenvalues. Most vectors need one correction; those with larger errors are kept as unevaluated sums of two doubles
    and corrected again. `floor` are the errors that residuals leave, `width` is the number of rows in work at a time.

    Returns
    -------
    error, largest
        Bounds on the lengths of the vectors' errors within the span of the rows; the largest entry of a residual.
    """
    n, count, part, unit = rows.shape[1], len(floor), graph[-2], graph[-1]
    error, active, largest = np.zeros(count), np.arange(count), 0.0
    low = np.zeros((0, n))
    for attempt in range(MAX_CORRECTIONS):
        old, rest, left = values.copy(), np.empty((len(active), n)), np.empty(len(active), dtype=active.dtype)
        again = 0
        for at in range(0, len(active), width):
            mine = active[at : at + width]
            X = rows[mine]
            Y = low[at : at + width] if attempt else np.zeros(X.shape)
            R = residual(graph, X, Y, old[mine])
            largest = max(largest, np.abs(R).max())
            E, size = np.dot(R, rows.T), np.zeros(len(mine))
            for i, me in enumerate(mine):
                values[me] += E[i, me]
                for j in range(len(rows)):
                    E[i, j] = E[i, j] / (values[me] - old[j]) if label[j] != label[me] else 0.0
                    size[i] += E[i, j] ** 2
            size, step, Z = np.sqrt(size), np.dot(E, rows), X.copy()
            project(Z, part, unit)
            for i, me in enumerate(mine):
                # Terms of second order, of which the largest is by the worst of the other vectors.
                error[me] = floor[me] + size[i] * max(4.0 * size.max(), 4.0 * EPS)
                for j in range(n):
                    moved = (step[i, j] + Y[i, j]) + (Z[i, j] - X[i, j])
                    rows[me, j] = X[i, j] + moved
                    rest[again, j] = moved - (rows[me, j] - X[i, j])
                if error[me] > max(TARGET_INSIDE, 2.0 * floor[me]):
                    left[again] = me
                    again += 1
        active, low = left[:again], rest[:again]
        if again == 0:
            break
    return error, largest


@njit(cache=True, nogil=True)
def shifted(data, indices, indptr, part, unit, shift):  # type: ignore[no-untyped-def]
    """The sparse matrix as a dense one, with the eigenvalue zero of the null space raised by a `shift`."""
    n = len(part)
    A = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if part[i] == part[j]:
                A[i, j] = shift * (unit[i] * unit[j])
        for k in range(indptr[i], indptr[i + 1]):
            A[i, indices[k]] += data[k]
    return A


@njit(cache=True, nogil=True)
def edges(values, norm):  # type: ignore[no-untyped-def]
    """Where clusters of equal neighbours begin in ascending eigenvalues of an operator of this norm, and their end."""
    found, m = np.zeros(len(values) + 1, dtype=np.intp), 1
    for i in range(1, len(values)):
        if values[i] - values[i - 1] > SAME_RELATIVE * abs(values[i]) + SAME_ABSOLUTE * norm:
            found[m] = i
            m += 1
    found[m] = len(values)
    return found[: m + 1]


@njit(cache=True, nogil=True)
def residual_lengths(data, indices, indptr, scale, rows, values):  # type: ignore[no-untyped-def]
    """``(b,)`` lengths of ``A x - value x`` for rows x, where A is ``diag(scale) matrix diag(1 / scale)``."""
    squares = np.zeros(len(rows))
    for first in range(0, len(rows), LANES):
        x, value = rows[first : first + LANES].T.copy(), values[first : first + LANES]
        square, total = squares[first : first + LANES], np.empty(len(value))
        for i in range(len(scale)):
            for c in range(len(value)):
                total[c] = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                weight = data[k] * (scale[i] / scale[j])
                for c in range(len(value)):
                    total[c] += weight * x[j, c]
            for c in range(len(value)):
                square[c] += (total[c] - value[c] * x[i, c]) ** 2
    return np.sqrt(squares)


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
