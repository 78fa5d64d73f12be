"""The smallest eigenpairs of a graph's symmetric Laplacian, complete and accurate to rounding.

Small graphs are diagonalised densely. Large ones are solved by Lanczos iteration (ARPACK) on the inverse, with a sparse
factor (SuperLU); an inertia count proves that no eigenvalue is missing. Either solver leaves errors of rounding over
the gap between eigenvalues, which differ between machines. A correction from residuals in twice the precision removes
them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import ArpackError, LinearOperator, SuperLU, eigsh, splu

from eigenoptions._types import Progress
from eigenoptions.spectra.canonical import cluster_bounds
from eigenoptions.spectra.laplacian import GraphLaplacian

# States up to which the dense solver is faster, and up to which its arrays fit into memory.
MIN_SPARSE_STATES, MAX_DENSE_STATES = 300, 20_000

Array = NDArray[np.float64]


def smallest_eigenpairs(
    laplacian: GraphLaplacian,
    k: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> tuple[Array, Array]:
    """At least the k smallest non-zero eigenvalues, and their vectors ``(n, m)`` in any basis: whole eigenspaces."""
    n = len(laplacian.mass)
    eigenpairs = (
        None if n < MIN_SPARSE_STATES else _solve_sparse(laplacian, k, rng, progress)
    )
    if eigenpairs is None and n > MAX_DENSE_STATES:
        reason = f"{k} eigenvectors need the dense solver, whose limit is {MAX_DENSE_STATES} states, got {n}"
        raise ValueError(
            f"{reason}: ask for fewer, or narrow the range of weights and degrees"
        )
    return _correct(laplacian, *(eigenpairs or _solve_dense(laplacian, k)))


def _solve_dense(laplacian: GraphLaplacian, k: int) -> tuple[Array, Array, int]:
    """All non-zero eigenvalues, their vectors, and at which number the eigenspace of the k-th ends."""
    # The eigenvalue zero of the null space is moved above all others.
    A, component = laplacian.symmetric.toarray(), laplacian.component
    shift = 4.0 * laplacian.norm * laplacian.null_vector
    A += np.where(
        component[:, None] == component, np.outer(shift, laplacian.null_vector), 0.0
    )
    values, vectors = eigh(A, overwrite_a=True, check_finite=False, driver="evd")
    values = values[: len(values) - laplacian.n_zero]
    bounds = cluster_bounds(values, laplacian.norm)
    return values, vectors[:, : len(values)], int(bounds[np.searchsorted(bounds, k)])


def _solve_sparse(
    laplacian: GraphLaplacian,
    k: int,
    rng: np.random.Generator,
    progress: Progress | None,
) -> tuple[Array, Array, int] | None:
    """As `_solve_dense`, for somewhat more than k eigenvalues; None where the iteration does not serve."""
    L, n, n_zero = laplacian.symmetric, len(laplacian.mass), laplacian.n_zero
    # A shift below the smallest non-zero eigenvalue of any unweighted graph of this size (a path).
    factor = _factorize(L, laplacian.norm * max(0.1 / n**2, 1e-13))
    n_products = 0

    def multiply_inverse(x: Array) -> Array:
        nonlocal n_products
        n_products += 1
        if progress is not None:
            progress(n_products, max(25 + int(2.5 * k), n_products + 1))
        # Before the solution too: the factor is nearly singular along the null space.
        return laplacian.remove_null_space(
            factor.solve(laplacian.remove_null_space(x.ravel()))
        )

    inverse = LinearOperator((n, n), multiply_inverse, dtype=np.float64)
    # Two more than asked for, to see where an eigenspace ends.
    n_wanted = k + 2
    while 3 * n_wanted < n - n_zero:
        start, ncv = (
            multiply_inverse(rng.standard_normal(n)),
            max(n_wanted + 20, 3 * n_wanted // 2),
        )
        try:
            _, vectors = eigsh(
                inverse, n_wanted, which="LA", v0=start, ncv=ncv, maxiter=100
            )
        except ArpackError:
            # The Krylov space has few dimensions (a star), or one eigenvalue hides the others (a very weak link).
            return None
        vectors = np.apply_along_axis(laplacian.remove_null_space, 0, vectors)
        projected = vectors.T @ (L @ vectors)
        values, rotation = eigh((projected + projected.T) / 2)
        vectors = vectors @ rotation
        # The eigenspace of the k-th value must be followed by a gap, below which the inertia counts no other value.
        bounds = cluster_bounds(values, laplacian.norm)
        end = int(bounds[np.searchsorted(bounds, k)])
        if (
            end < n_wanted
            and _count_below(L, values[end - 1], values[end]) == n_zero + end
        ):
            return values, vectors, end
        n_wanted *= 2
    return None


def _factorize(L: csr_array, shift: float) -> SuperLU:
    """Factor of ``L + shift`` with pivots on the diagonal."""
    settings = {
        "permc_spec": "MMD_AT_PLUS_A",
        "diag_pivot_thresh": 0.0,
        "options": {"SymmetricMode": True},
    }
    return splu((L + shift * eye_array(L.shape[0])).tocsc(), **settings)


def _count_below(L: csr_array, low: float, high: float) -> int | None:
    """Number of eigenvalues of L below the gap between two of them, by Sylvester's law: the signs of the pivots.

    They count only where no rows were exchanged and no pivot is close to zero, which makes the next one huge: else
    another point of the gap is tried.
    """
    for fraction in (0.5, 0.4, 0.6):
        try:
            factor = _factorize(L, -(low + fraction * (high - low)))
        except RuntimeError:
            # A pivot is exactly zero.
            continue
        pivots = factor.U.diagonal()
        if (factor.perm_r == factor.perm_c).all() and 1e-14 * np.abs(
            pivots
        ).max() <= high - low:
            return int((pivots < 0).sum())
    return None


def _correct(
    laplacian: GraphLaplacian,
    values: Array,
    vectors: Array,
    count: int,
    *,
    block_entries: int = 1 << 22,
) -> tuple[Array, Array]:
    """The first `count` eigenpairs, corrected by all of them, in place.

    To first order the part of a vector along another eigenvector is wrong by its residual there over the difference of
    the eigenvalues. The error that is left is quadratic, so that one pass is enough but for nearly equal eigenvalues.
    Vectors are those of ``(D - W) v = value mass v``, which has no rounded coefficients. Blocks of columns bound the
    memory for intermediate results.
    """
    bounds = cluster_bounds(values, laplacian.norm)
    cluster = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    width = max(1, block_entries // len(vectors))
    A, entries = laplacian.difference, _leading_bits(laplacian.difference.data)
    A_high, A_low = (
        csr_array((x, A.indices, A.indptr), A.shape)
        for x in (entries, A.data - entries)
    )
    root = np.sqrt(laplacian.mass)[:, None]
    vectors /= root
    for _ in range(4):
        largest = 0.0
        for low in range(0, count, width):
            block = slice(low, min(low + width, count))
            X = np.ascontiguousarray(vectors[:, block])
            # The residual to about 24 digits of its terms. The product of leading bits is exact.
            X_high = _leading_bits(X)
            rest = A_high @ (X - X_high) + A_low @ X
            weighted, weighted_error = _multiply_exactly(X, laplacian.mass[:, None])
            target, target_error = _multiply_exactly(weighted, values[block])
            residual, error = _subtract_exactly(A_high @ X_high, target)
            residual += error + (rest - (target_error + weighted_error * values[block]))
            parts = vectors.T @ residual
            values[block] += parts[block].diagonal()
            gaps = np.where(
                cluster[:, None] != cluster[block],
                values[block] - values[:, None],
                np.inf,
            )
            parts /= gaps
            vectors[:, block] += vectors @ parts
            largest = max(largest, float(np.abs(parts).max()))
        if largest < 1e-8:
            break
    vectors *= root
    return values[:count], vectors[:, :count]


def _leading_bits(x: Array) -> Array:
    """`x` rounded to 25 bits of its largest entry."""
    unit = 1.5 * 2.0 ** (np.ceil(np.log2(np.abs(x).max())) + 27)
    rounded: Array = (x + unit) - unit
    return rounded


def _multiply_exactly(a: Array, b: Array) -> tuple[Array, Array]:
    """``a b`` as the rounded product and its error (Dekker)."""
    # 2^27 + 1 splits a double into two halves of 26 bits.
    a_high, b_high = (
        scaled - (scaled - x)
        for x, scaled in ((a, 134217729.0 * a), (b, 134217729.0 * b))
    )
    a_low, b_low, product = a - a_high, b - b_high, a * b
    return product, (
        (a_high * b_high - product) + a_high * b_low + a_low * b_high
    ) + a_low * b_low


def _subtract_exactly(a: Array, b: Array) -> tuple[Array, Array]:
    """``a - b`` as the rounded difference and its error (Knuth)."""
    difference = a - b
    rest = difference - a
    return difference, (a - (difference - rest)) - (b + rest)
