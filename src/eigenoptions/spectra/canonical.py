"""The canonical basis: one orthonormal basis per eigenspace, whatever solver, seed or machine found the space.

In the space of one (possibly repeated) eigenvalue, the first vector is the one with the largest single entry that a
unit vector of that space can have, positive there; the next likewise in what is left. Of equal entries the state with
the lowest number counts, and entries are equal when they differ by less than the space is known to.
"""

from __future__ import annotations

from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

# Distance below which neighbouring eigenvalues are one repeated eigenvalue: relative, and in units of the norm.
SAME_RELATIVE, SAME_ABSOLUTE = 1e-9, 1e-13
# Error of an eigenvector by LAPACK, in units of the operator's norm over the gap, where nothing better is known.
LAPACK_ERROR = 1e-14
# Relative distance below which two entries are of equal size, however exactly they are known, and its upper limit.
TIE, LARGEST_TIE = 1e-8, 5e-3
ENTRIES_PER_BLOCK = 2_000_000

Array = NDArray[np.float64]
EPS = float(np.finfo(float).eps)


def clusters(values: Array, norm: float = 1.0) -> list[tuple[int, int]]:
    """Ranges ``(low, high)`` of equal neighbours in ascending eigenvalues of an operator of this norm.

    >>> clusters(np.array([0.5, 1.0, 1.0 + 1e-14, 2.0]))
    [(0, 1), (1, 3), (3, 4)]
    """
    cuts = np.flatnonzero(np.diff(values) > SAME_RELATIVE * np.abs(values[1:]) + SAME_ABSOLUTE * norm) + 1
    edges = [0, *cuts.tolist(), len(values)]
    return [(a, b) for a, b in pairwise(edges) if b > a]


def gaps(values: Array, norm: float = 1.0) -> Array:
    """Distance of each eigenvalue's cluster to the next cluster, infinite where there is none.

    >>> gaps(np.array([0.5, 1.0, 1.0, 3.0])).tolist()
    [0.5, 0.5, 0.5, 2.0]
    """
    out = np.empty(len(values))
    for low, high in clusters(values, norm):
        below = values[low] - values[low - 1] if low > 0 else np.inf
        above = values[high] - values[high - 1] if high < len(values) else np.inf
        out[low:high] = min(below, above)
    return out


def canonical_basis(
    values: Array, vectors: Array, norm: float = 1.0, error: Array | None = None
) -> tuple[Array, Array]:
    """Replace orthonormal eigenvectors by the canonical basis of each eigenspace, in place.

    Parameters
    ----------
    values
        ``(M,)`` ascending eigenvalues; may go on after the last vector.
    vectors
        ``(n, m)`` eigenvectors as columns, whole eigenspaces.
    norm
        Of the operator.
    error
        ``(m,)`` length of the error of each vector. None: what LAPACK leaves.

    Returns
    -------
    vectors, accuracy
        The basis, and ``(m,)`` bounds on the error of its entries.

    Examples
    --------
    >>> tilted = np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> canonical_basis(np.array([1.0, 1.0]), tilted)[0].round(12) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """
    n, m = vectors.shape
    if error is None:
        error = np.minimum(LAPACK_ERROR * norm / gaps(values, norm)[:m], 1.0)
    accuracy = np.empty(m)
    single = []
    for low, high in clusters(values[:m], norm):
        if high - low == 1:
            single.append(low)
        else:
            basis, bound = _eigenspace(vectors[:, low:high], float(np.linalg.norm(error[low:high])))
            vectors[:, low:high], accuracy[low:high] = basis, bound
    width = max(1, ENTRIES_PER_BLOCK // n)
    for columns in (single[at : at + width] for at in range(0, len(single), width)):
        size = np.abs(vectors[:, columns])
        top = size.max(axis=0)
        accuracy[columns] = error[columns] + 2 * EPS * top
        peak = np.argmax(size >= (1.0 - _tie(accuracy[columns] / top)) * top, axis=0)
        length = np.linalg.norm(size, axis=0)
        vectors[:, columns] /= np.where(vectors[peak, columns] < 0, -length, length)
    return vectors, accuracy


def _tie(relative_error: Array) -> Array:
    """Relative distance below which entries count as equal."""
    return np.clip(4.0 * relative_error, TIE, LARGEST_TIE)


def _eigenspace(block: Array, error: float) -> tuple[Array, Array]:
    """Canonical basis of the span of the columns ``(n, m)``, and how exactly its entries are known.

    The coefficients of the new basis are the factor Q of the block's rows at the peaks, so an error of the rows grows
    by the norm of R^-1 (Stewart's bound for the QR factorisation).
    """
    m = block.shape[1]
    # One step towards the nearest orthonormal columns.
    block = block @ (1.5 * np.eye(m) - 0.5 * (block.T @ block))
    # For each state, the squared peak that a unit vector of this space can have there.
    size = np.einsum("ij,ij->i", block, block)
    largest = float(size.max())
    top = sqrt(largest)
    error += m * EPS * top
    Q, inverse, accuracy = np.zeros((m, m)), np.zeros((m, m)), [error]
    for t in range(m):
        tie = min(max(4.0 * accuracy[-1] / sqrt(largest), TIE), LARGEST_TIE)
        c = block[(size >= (1.0 - 2.0 * tie) * largest).argmax()]
        r = np.zeros(t)
        for _ in range(2 if t else 0):
            h = Q[:t] @ c
            c, r = c - h @ Q[:t], r + h
        length = sqrt(c @ c)
        Q[t] = c / length
        size -= (block @ Q[t]) ** 2
        largest = max(float(size.max()), 1e-300)
        inverse[:t, t], inverse[t, t] = -(inverse[:t, :t] @ r) / length, 1.0 / length
        accuracy.append(error * (1.0 + sqrt(2.0 * np.vdot(inverse, inverse)) * top))
    return block @ Q.T, np.minimum(accuracy[1:], 1.0)
