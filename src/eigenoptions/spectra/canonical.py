"""The canonical basis: one orthonormal basis per eigenspace, whatever solver, seed or machine found the space."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._ties import find_first_maximum

Array = NDArray[np.float64]


def cluster_bounds(values: Array, norm: float = 1.0) -> NDArray[np.intp]:
    """Where clusters of equal values begin in ascending eigenvalues, given the norm, and where they end."""
    inner = (
        np.flatnonzero(np.diff(values) > 1e-9 * np.abs(values[1:]) + 1e-13 * norm) + 1
    )
    return np.concatenate([[0], inner, [len(values)] * bool(len(values))]).astype(
        np.intp
    )


def canonical_basis(
    values: Array, vectors: Array, norm: float = 1.0, *, relative_error: float = 1e-14
) -> Array:
    """Canonical basis ``(n, m)`` of whole eigenspaces in ascending order; its rule: the notes of `spectrum`.

    `relative_error` is that of an eigenspace in units of the norm over the gap to the next eigenvalue.
    Entries that differ by less than it are equal, so that the error does not decide between them.

    >>> rotated = np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> canonical_basis(np.array([1.0, 1.0]), rotated).round(12) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """
    bounds = cluster_bounds(values, norm)
    sizes, gaps = np.diff(bounds), np.concatenate([[np.inf], np.diff(values), [np.inf]])
    errors = (
        np.sqrt(sizes)
        * relative_error
        * norm
        / np.minimum(gaps[bounds[:-1]], gaps[bounds[1:]])
    )
    # A simple eigenvalue leaves the sign only. (One step towards unit columns.)
    basis: Array = vectors * (1.5 - 0.5 * np.einsum("ij,ij->j", vectors, vectors))
    peaks = _find_peaks(basis**2, np.repeat(errors, sizes))
    basis *= np.sign(basis[peaks, np.arange(len(values))])
    for c in np.flatnonzero(sizes > 1).tolist():
        cluster, size = slice(bounds[c], bounds[c + 1]), int(sizes[c])
        space = vectors[:, cluster]
        # One step towards the nearest orthonormal columns.
        space = space @ (1.5 * np.eye(size) - 0.5 * space.T @ space)
        # For each state, the squared largest entry that a unit vector of what is left can have there.
        reach = (space**2).sum(axis=1)
        rotation = np.zeros((size, size))
        for t in range(size):
            direction = space[_find_peaks(reach, errors[c])]
            # Gram-Schmidt, twice against rounding.
            for _ in range(2):
                direction = direction - rotation[:, :t] @ (direction @ rotation[:, :t])
            rotation[:, t] = direction / np.linalg.norm(direction)
            reach -= (space @ rotation[:, t]) ** 2
        basis[:, cluster] = space @ rotation
    return basis


def _find_peaks(squares: Array, error: Any) -> Any:
    """The first state of each column whose squared entry is the largest but for the error of entries."""
    largest = squares.max(axis=0)
    tie = np.clip(8.0 * error / np.sqrt(largest), 2e-8, 1e-2)
    return find_first_maximum(squares, tie * largest, axis=0, maximum=largest)
