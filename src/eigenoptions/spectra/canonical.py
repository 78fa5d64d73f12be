"""The canonical basis: one orthonormal basis per eigenspace, whatever solver, seed or machine found the space.

In the space of one (possibly repeated) eigenvalue, the first vector is the one with the largest single entry that a
unit vector of that space can have, positive there; the next likewise in what is left. Of equal entries the state with
the lowest number counts, and entries are equal when they differ by less than the space is known to.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

# Error of an eigenvector by LAPACK, in units of the operator's norm over the gap, where nothing better is known.
LAPACK_ERROR = 1e-14

Array = NDArray[np.float64]
EPS = float(np.finfo(float).eps)


def edges(values: Array, norm: float = 1.0) -> NDArray[np.intp]:
    """Where clusters of equal neighbours begin in ascending eigenvalues of an operator of this norm, and their end.

    >>> edges(np.array([0.5, 1.0, 1.0 + 1e-14, 2.0])).tolist()
    [0, 1, 3, 4]
    """
    from eigenoptions._kernels import spectra as kernels

    found: NDArray[np.intp] = kernels.edges(values, norm)
    return found if len(values) else found[:1]


def clusters(values: Array, norm: float = 1.0) -> list[tuple[int, int]]:
    """Ranges ``(low, high)`` of equal neighbours in ascending eigenvalues of an operator of this norm.

    >>> clusters(np.array([0.5, 1.0, 1.0 + 1e-14, 2.0]))
    [(0, 1), (1, 3), (3, 4)]
    """
    return list(pairwise(edges(values, norm).tolist()))


def gaps(values: Array, ends: NDArray[np.intp]) -> Array:
    """Distance of each eigenvalue's cluster to the next cluster, infinite where there is none; `ends` as by `edges`.

    >>> gaps(np.array([0.5, 1.0, 1.0, 3.0]), np.array([0, 1, 3, 4])).tolist()
    [0.5, 0.5, 0.5, 2.0]
    """
    between = np.full(len(ends), np.inf)
    between[1:-1] = values[ends[1:-1]] - values[ends[1:-1] - 1]
    return np.repeat(np.minimum(between[:-1], between[1:]), ends[1:] - ends[:-1])


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
    from eigenoptions._kernels.spectra import canonical

    m = vectors.shape[1]
    if error is None:
        error = np.minimum(LAPACK_ERROR * norm / gaps(values, edges(values, norm))[:m], 1.0)
    rows = np.ascontiguousarray(vectors.T)
    accuracy = canonical(rows, edges(values[:m], norm), error)
    if not np.may_share_memory(rows, vectors):
        vectors[:] = rows.T
    return vectors, accuracy
