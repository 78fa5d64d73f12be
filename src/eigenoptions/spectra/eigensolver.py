"""The smallest eigenpairs of a Laplacian, complete and accurate to rounding.

Small graphs are diagonalised densely. Large graphs are solved by Lanczos iteration
(ARPACK) with the inverse of the Laplacian, which a sparse factor (SuperLU) applies. An
inertia count proves that no eigenvalue is missing.

Either solver leaves an error of the size of rounding over the gap between eigenvalues,
which is different on every machine. A correction removes it. It needs residuals that
are more accurate than double precision, so these are computed in pairs of doubles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import ArpackError, LinearOperator, SuperLU, eigsh, splu

from eigenoptions._types import FloatArray, IndexArray, Progress
from eigenoptions._validation import check_memory
from eigenoptions.spectra.canonical import find_cluster_bounds
from eigenoptions.spectra.laplacian import GraphLaplacian

# With fewer states, the dense solver is faster.
MIN_SPARSE_STATES = 300


class _Eigenpairs(NamedTuple):
    """Eigenvalues ``(m,)`` in ascending order, vectors ``(S, m)`` in any basis.

    The first `n_complete` of them span whole eigenspaces.
    """

    values: FloatArray
    vectors: FloatArray
    n_complete: int


def find_smallest_eigenpairs(
    laplacian: GraphLaplacian,
    k: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Find the smallest non-zero eigenvalues of the symmetric form, and their vectors.

    Parameters
    ----------
    laplacian : GraphLaplacian
        The Laplacian of a graph.
    k : int
        Smallest number of eigenvalues to find.
    rng : Generator
        Draws the start vector of the iteration.
    progress : callable or None, default=None
        Called as ``progress(done, total)`` with steps of the iteration.

    Returns
    -------
    values : array (m,)
        The m >= k smallest eigenvalues in ascending order.
    vectors : array (S, m)
        Orthonormal columns. They span whole eigenspaces, in any basis.
    """
    n_states = len(laplacian.mass)
    eigenpairs = None
    if n_states >= MIN_SPARSE_STATES:
        eigenpairs = _solve_sparse(laplacian, k, rng, progress)

    # The graph is small, or the iteration did not converge.
    if eigenpairs is None:
        # The matrix, its eigenvectors, and as much again for LAPACK.
        n_bytes = 4 * 8 * n_states**2
        remedy = "ask for fewer (k), or narrow the range of weights and degrees"
        what = f"the dense eigenvectors of {n_states:,} states"
        check_memory(what, n_bytes, remedy)
        eigenpairs = _solve_dense(laplacian, k)
    return _correct_eigenpairs(laplacian, eigenpairs)


def _solve_dense(laplacian: GraphLaplacian, k: int) -> _Eigenpairs:
    """All non-zero eigenvalues, of which the first k and more are complete."""
    # Move the eigenvalue zero of the null space above all others.
    null_vector = laplacian.null_vector
    component = laplacian.component
    shift = np.outer(4.0 * laplacian.norm * null_vector, null_vector)
    is_same_component = component[:, None] == component
    A = laplacian.symmetric.toarray()
    A += np.where(is_same_component, shift, 0.0)

    values, vectors = eigh(A, overwrite_a=True, check_finite=False, driver="evd")
    n_nonzero = len(values) - laplacian.n_zero
    values = values[:n_nonzero]
    vectors = vectors[:, :n_nonzero]
    return _Eigenpairs(values, vectors, _find_end(values, k, laplacian.norm))


def _find_end(values: FloatArray, k: int, norm: float) -> int:
    """The number of eigenvalues up to the end of the cluster of the k-th."""
    bounds = find_cluster_bounds(values, norm)
    return int(bounds[np.searchsorted(bounds, k)])


def _solve_sparse(
    laplacian: GraphLaplacian,
    k: int,
    rng: np.random.Generator,
    progress: Progress | None,
) -> _Eigenpairs | None:
    """A few more than k eigenvalues by iteration; None where it does not serve."""
    n_states = len(laplacian.mass)
    n_zero = laplacian.n_zero
    inverse = _Inverse(laplacian, k, progress)
    operator = LinearOperator((n_states, n_states), inverse.multiply, dtype=np.float64)

    # Two more than asked for, to see where the eigenspace of the k-th value ends.
    n_wanted = k + 2
    while 3 * n_wanted < n_states - n_zero:
        start = inverse.multiply(rng.standard_normal(n_states))
        n_lanczos = max(n_wanted + 20, 3 * n_wanted // 2)
        try:
            _, vectors = eigsh(
                operator, n_wanted, which="LA", v0=start, ncv=n_lanczos, maxiter=100
            )
        except ArpackError:
            # The Krylov space has few dimensions (a star), or one eigenvalue hides the
            # others (a very weak link).
            return None
        values, vectors = _project(laplacian, vectors)

        # A gap must follow the eigenspace of the k-th value, and the inertia must count
        # no other eigenvalue below the gap. If not, look at more eigenvalues.
        end = _find_end(values, k, laplacian.norm)
        if end < n_wanted:
            n_below = _count_below(laplacian.symmetric, values[end - 1], values[end])
            if n_below == n_zero + end:
                return _Eigenpairs(values, vectors, end)
        n_wanted *= 2
    return None


class _Inverse:
    """The inverse of the Laplacian outside of its null space.

    Parameters
    ----------
    laplacian : GraphLaplacian
        The Laplacian of a graph.
    k : int
        The number of eigenvalues, from which the number of products is guessed.
    progress : callable or None
        Called as ``progress(done, total)`` with numbers of products.
    """

    def __init__(
        self, laplacian: GraphLaplacian, k: int, progress: Progress | None
    ) -> None:
        n_states = len(laplacian.mass)
        # The shift makes the matrix regular. It is below the smallest non-zero
        # eigenvalue of any unweighted graph of this size, which is that of a path.
        shift = laplacian.norm * max(0.1 / n_states**2, 1e-13)
        self.factor = _factorize(laplacian.symmetric, shift)
        self.laplacian = laplacian
        self.progress = progress
        self.n_products = 0
        self.n_expected = 25 + int(2.5 * k)

    def multiply(self, x: FloatArray) -> FloatArray:
        """The product with a vector ``(S,)``."""
        self.n_products += 1
        if self.progress is not None:
            total = max(self.n_expected, self.n_products + 1)
            self.progress(self.n_products, total)
        # Before the solution too, because the factor is nearly singular along the null
        # space: a small part of x there would grow large.
        x = self.laplacian.remove_null_space(x.ravel())
        solution = self.factor.solve(x)
        return self.laplacian.remove_null_space(solution)


def _project(
    laplacian: GraphLaplacian, vectors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Eigenpairs of the Laplacian in the space of some vectors (Rayleigh and Ritz)."""
    vectors = np.apply_along_axis(laplacian.remove_null_space, 0, vectors)
    projected = vectors.T @ (laplacian.symmetric @ vectors)
    values, rotation = eigh((projected + projected.T) / 2)
    return values, vectors @ rotation


def _factorize(L: csr_array, shift: float) -> SuperLU:
    """Factor of ``L + shift`` with pivots on the diagonal."""
    shifted = L + shift * eye_array(L.shape[0])
    return splu(
        shifted.tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )


def _count_below(L: csr_array, low: float, high: float) -> int | None:
    """The number of eigenvalues of L below the gap between two of them.

    By Sylvester's law of inertia, as many eigenvalues are below a point as pivots of
    ``L - point`` are negative. The pivots count only if no rows were exchanged, and if
    none is close to zero, which would make the next one huge. If not, another point of
    the gap is tried. None: no point will do.
    """
    gap = high - low
    for fraction in (0.5, 0.4, 0.6):
        point = low + fraction * gap
        try:
            factor = _factorize(L, -point)
        except RuntimeError:
            # A pivot is exactly zero.
            continue
        pivots = factor.U.diagonal()
        is_in_order = (factor.perm_r == factor.perm_c).all()
        if is_in_order and 1e-14 * np.abs(pivots).max() <= gap:
            return int((pivots < 0).sum())
    return None


# Most corrections: the error that one leaves is quadratic.
_MOST_PASSES = 4


def _correct_eigenpairs(
    laplacian: GraphLaplacian,
    eigenpairs: _Eigenpairs,
    *,
    block_entries: int = 2**22,
) -> tuple[FloatArray, FloatArray]:
    """The complete eigenpairs, corrected by all of them, in place.

    The error that a pass leaves is quadratic, so one pass is enough unless eigenvalues
    are nearly equal. Blocks of columns bound the memory of intermediate results.
    """
    values, vectors, n_complete = eigenpairs
    bounds = find_cluster_bounds(values, laplacian.norm)
    cluster = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    products = _AccurateProducts(laplacian)

    # Eigenvectors of (D - W) v = value mass v. The coefficients of this equation are
    # the weights as they are given, while those of the symmetric form are rounded.
    root_mass = np.sqrt(laplacian.mass)[:, None]
    vectors /= root_mass

    width = max(1, block_entries // len(vectors))
    for _ in range(_MOST_PASSES):
        largest = 0.0
        for first in range(0, n_complete, width):
            block = slice(first, min(first + width, n_complete))
            change = _correct_block(products, values, vectors, cluster, block)
            largest = max(largest, change)
        # The square of this is below rounding.
        if largest < 1e-8:
            break

    vectors *= root_mass
    return values[:n_complete], vectors[:, :n_complete]


def _correct_block(
    products: _AccurateProducts,
    values: FloatArray,
    vectors: FloatArray,
    cluster: IndexArray,
    block: slice,
) -> float:
    """Correct a block of eigenpairs in place; return the largest change of a vector.

    To first order, the part of a vector along another eigenvector is wrong by its
    residual there, over the difference of the eigenvalues.
    """
    # The terms of a residual cancel but for their last digits. In double precision,
    # what is left would be mostly rounding error.
    X = np.ascontiguousarray(vectors[:, block])
    product, product_rest = products.multiply_difference(X)
    target, target_rest = products.multiply_mass(X, values[block])
    residual, residual_error = _subtract_exactly(product, target)
    residual += residual_error + (product_rest - target_rest)

    # The residual along the vector itself is the error of its eigenvalue.
    parts = vectors.T @ residual
    values[block] += parts[block].diagonal()

    # Along the other vectors, it is the error of the vector times the difference of the
    # eigenvalues. Within an eigenspace any basis is right.
    gaps = values[block] - values[:, None]
    is_other_space = cluster[:, None] != cluster[block]
    parts /= np.where(is_other_space, gaps, np.inf)
    vectors[:, block] += vectors @ parts
    return float(np.abs(parts).max())


class _AccurateProducts:
    """Both sides of ``A v = value mass v`` with ``A = D - W``, to about 24 digits.

    Each is the sum of two arrays: rounded numbers, and a small rest.

    A product with A is split by leading bits: ``A x = A_high x_high + (A_high x_low +
    A_low x)``. The first product is exact. Its factors are multiples of one unit each,
    with at most 25 bits, and the absolute entries in a row of A sum to at most twice
    the largest entry. So all sums fit into the 53 bits of a double.
    """

    def __init__(self, laplacian: GraphLaplacian) -> None:
        A = laplacian.difference
        high = _round_to_leading_bits(A.data)
        low = A.data - high
        self.A_high = csr_array((high, A.indices, A.indptr), A.shape)
        self.A_low = csr_array((low, A.indices, A.indptr), A.shape)
        self.mass = laplacian.mass[:, None]

    def multiply_difference(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``A X`` of vectors ``(S, m)``, and its rest."""
        X_high = _round_to_leading_bits(X)
        product = self.A_high @ X_high
        rest = self.A_high @ (X - X_high) + self.A_low @ X
        return product, rest

    def multiply_mass(
        self, X: FloatArray, values: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """``mass X values`` of vectors ``(S, m)`` and values ``(m,)``, and its rest."""
        weighted, weighted_error = _multiply_exactly(X, self.mass)
        product, product_error = _multiply_exactly(weighted, values)
        return product, product_error + weighted_error * values


def _round_to_leading_bits(x: FloatArray) -> FloatArray:
    """`x` rounded to 25 bits of its largest entry.

    A product of two such numbers has 50 bits, so a double holds it exactly.
    """
    # A double has 52 bits behind its leading one. Doubles of the size of `large`, which
    # is 27 bits above the largest entry, are multiples of its 25th bit. So the sum is
    # rounded to that bit, and the difference is exact. The factor 1.5 keeps the sum
    # with a negative entry in the same range of doubles.
    exponent = np.ceil(np.log2(np.abs(x).max()))
    large = 1.5 * 2.0 ** (exponent + 27)
    rounded: FloatArray = (x + large) - large
    return rounded


def _multiply_exactly(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``a b`` as the rounded product and its error (Dekker, 1971)."""
    a_high, a_low = _split_bits(a)
    b_high, b_low = _split_bits(b)
    product = a * b
    # The products of halves are exact. The order of the sums keeps them exact, too.
    error = a_high * b_high - product
    error += a_high * b_low
    error += a_low * b_high
    error += a_low * b_low
    return product, error


def _split_bits(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """`x` as a sum of two doubles with 26 bits each (Veltkamp, 1968)."""
    scaled = (2.0**27 + 1.0) * x
    high = scaled - (scaled - x)
    return high, x - high


def _subtract_exactly(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``a - b`` as the rounded difference and its error (Knuth, 1969)."""
    difference = a - b
    # The part of b that came through the rounding, and what was lost of a and b.
    b_rounded = a - difference
    a_error = a - (difference + b_rounded)
    b_error = b - b_rounded
    return difference, a_error - b_error
