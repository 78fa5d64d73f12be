"""The canonical basis: one orthonormal basis per eigenspace, whatever solver, seed or machine found the space."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def cluster_bounds(values: Array, norm: float = 1.0) -> NDArray[np.intp]:
    """Where clusters of equal values begin in ascending eigenvalues, given the norm, and where they end."""
    inner = np.flatnonzero(np.diff(values) > 1e-9 * np.abs(values[1:]) + 1e-13 * norm) + 1
    return np.concatenate([[0], inner, [len(values)] * bool(len(values))]).astype(np.intp)


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
    basis, gaps = np.empty_like(vectors), np.concatenate([[np.inf], np.diff(values), [np.inf]])
    for low, high in pairwise(cluster_bounds(values, norm).tolist()):
        space = vectors[:, low:high]
        # One step towards the nearest orthonormal columns.
        space = space @ (1.5 * np.eye(high - low) - 0.5 * space.T @ space)
        error = np.sqrt(high - low) * relative_error * norm / min(gaps[low], gaps[high])
        # For each state, the squared largest entry that a unit vector of what is left can have there.
        reach = (space**2).sum(axis=1)
        rotation = np.zeros((high - low, high - low))
        for t in range(high - low):
            largest = reach.max()
            tie = min(max(8.0 * error / np.sqrt(largest), 2e-8), 1e-2)
            peak = int(np.argmax(reach >= (1.0 - tie) * largest))
            direction = space[peak]
            # Gram-Schmidt, twice against rounding.
            for _ in range(2 if t else 0):
                direction = direction - rotation[:, :t] @ (direction @ rotation[:, :t])
            rotation[:, t] = direction / np.linalg.norm(direction)
            reach -= (space @ rotation[:, t]) ** 2
        basis[:, low:high] = space @ rotation
    return basis
