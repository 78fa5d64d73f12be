"""The canonical basis: one orthonormal basis per eigenspace.

A solver returns some basis of an eigenspace, which depends on the seed and on the
machine. The canonical basis depends on the space alone. Its first vector is the one
with the largest single entry that a unit vector of the space can have, positive there.
The next vector is found likewise in what is left of the space. Of equal entries, that
of the state with the lowest number counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions._ties import find_first_maximum
from eigenoptions._types import FloatArray, IndexArray


def find_cluster_bounds(values: FloatArray, norm: float = 1.0) -> IndexArray:
    """Find the clusters of equal values in ascending eigenvalues.

    Parameters
    ----------
    values : array (m,)
        Eigenvalues in ascending order.
    norm : float, default=1.0
        Norm of the operator. Its rounding errors make equal values differ.

    Returns
    -------
    array (n_clusters + 1,)
        Cluster c is ``values[bounds[c] : bounds[c + 1]]``.

    Examples
    --------
    >>> find_cluster_bounds(np.array([1.0, 2.0, 2.0 + 1e-15, 3.0])).tolist()
    [0, 1, 3, 4]
    """
    if not len(values):
        return np.zeros(1, dtype=np.intp)
    tolerance = 1e-9 * np.abs(values[1:]) + 1e-13 * norm
    beginnings = np.flatnonzero(np.diff(values) > tolerance) + 1
    return np.concatenate([[0], beginnings, [len(values)]]).astype(np.intp)


def compute_canonical_basis(
    values: FloatArray,
    vectors: FloatArray,
    norm: float = 1.0,
    *,
    relative_error: float = 1e-14,
) -> FloatArray:
    """Compute the canonical basis of eigenspaces.

    Parameters
    ----------
    values : array (m,)
        Eigenvalues in ascending order.
    vectors : array (n, m)
        Orthonormal eigenvectors. They span whole eigenspaces, in any basis.
    norm : float, default=1.0
        Norm of the operator.
    relative_error : float, default=1e-14
        The vectors are exact for an operator that differs by this much of the norm. The
        error of an eigenspace is that difference over the gap to the next eigenvalue.
        Entries that differ by less are equal: the error does not decide between them.

    Returns
    -------
    array (n, m)
        The canonical basis of each eigenspace.

    Examples
    --------
    >>> rotated = np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> compute_canonical_basis(np.array([1.0, 1.0]), rotated).round(12) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """
    bounds = find_cluster_bounds(values, norm)
    sizes = np.diff(bounds)

    # The error of each eigenspace, by the smaller of the gaps below and above it.
    gaps = np.concatenate([[np.inf], np.diff(values), [np.inf]])
    nearest_gaps = np.minimum(gaps[bounds[:-1]], gaps[bounds[1:]])
    errors = np.sqrt(sizes) * relative_error * norm / nearest_gaps

    # A simple eigenvalue leaves only the sign to choose. Most are simple: all columns
    # get their sign at once, and those of repeated eigenvalues are overwritten.
    basis = _choose_signs(vectors, np.repeat(errors, sizes))
    for c in np.flatnonzero(sizes > 1):
        cluster = slice(bounds[c], bounds[c + 1])
        basis[:, cluster] = _choose_basis(vectors[:, cluster], errors[c])
    return basis


def _choose_signs(vectors: FloatArray, errors: FloatArray) -> FloatArray:
    """Unit vectors ``(n, m)`` whose largest entries are positive."""
    # One step of Newton's method for the inverse root makes the columns unit vectors to
    # rounding.
    squared_lengths = np.einsum("ij,ij->j", vectors, vectors)
    unit_vectors = vectors * (1.5 - 0.5 * squared_lengths)

    peaks = _find_peaks(unit_vectors**2, errors)
    signs = np.sign(unit_vectors[peaks, np.arange(len(errors))])
    signed: FloatArray = unit_vectors * signs
    return signed


def _choose_basis(space: FloatArray, error: float) -> FloatArray:
    """The canonical basis ``(n, size)`` of one eigenspace, which any basis spans."""
    size = space.shape[1]
    # One step of Newton's method towards the nearest orthonormal columns.
    space = space @ (1.5 * np.eye(size) - 0.5 * space.T @ space)

    # Of all unit vectors of the space, the one with the largest entry in state s is row
    # s over its length, in the coordinates of the space. That entry is the length.
    squared_entries = (space**2).sum(axis=1)
    rotation = np.zeros((size, size))
    for t in range(size):
        chosen = rotation[:, :t]
        direction = space[_find_peaks(squared_entries, error)]
        # Gram-Schmidt against the directions chosen before, twice because of rounding.
        for _ in range(2):
            direction = direction - chosen @ (direction @ chosen)
        rotation[:, t] = direction / np.linalg.norm(direction)

        # What is left of the space has no part along this direction.
        squared_entries -= (space @ rotation[:, t]) ** 2
    basis: FloatArray = space @ rotation
    return basis


def _find_peaks(squares: FloatArray, errors: float | FloatArray) -> Any:
    """The first state of each column whose squared entry is the largest.

    Entries that differ by a few of their errors are equal; at least those that differ
    by 1e-8, and never those that differ by 1%.
    """
    largest = squares.max(axis=0)
    # A square is off by twice the error of its entry; 8 leaves a margin.
    relative_tolerance = np.clip(8.0 * errors / np.sqrt(largest), 2e-8, 1e-2)
    return find_first_maximum(
        squares, relative_tolerance * largest, axis=0, maximum=largest
    )
