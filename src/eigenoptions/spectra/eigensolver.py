"""The smallest eigenpairs of a graph's symmetric Laplacian, complete and accurate to rounding.

Small graphs are diagonalised densely. Large ones are solved by Lanczos iteration (ARPACK) on the inverse, with a sparse
factor (SuperLU); an inertia count proves that no eigenvalue is missing. Either solver leaves errors of rounding over
the gap between eigenvalues, which differ between machines. One correction from residuals in twice the precision
removes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, LinearOperator, SuperLU, eigsh, splu

from eigenoptions.spectra.canonical import cluster_bounds

# States up to which the dense solver is faster, and up to which its arrays fit into memory.
MIN_SPARSE_STATES, MAX_DENSE_STATES = 300, 20_000

Array = NDArray[np.float64]
Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class SymmetricLaplacian:
    """``S (D - W) S`` with ``S = D^-exponent``, and its null space.

    Attributes
    ----------
    difference_high, difference_low
        ``D - W``, split into the leading bits of its entries and the rest.
    scale_high, scale_low
        ``(n,)`` diagonal of S as an unevaluated sum of two doubles.
    matrix
        ``S (D - W) S``, rounded.
    null_space
        ``(n, components)`` one unit column per connected component, in the order of their first states.
    norm
        Largest diagonal entry: the operator's norm is at most twice this.
    """

    difference_high: csr_array
    difference_low: csr_array
    scale_high: Array
    scale_low: Array
    matrix: csr_array
    null_space: csr_array
    norm: float

    @classmethod
    def from_weights(cls, W: csr_array, degree: Array, exponent: float) -> SymmetricLaplacian:
        """The operator of symmetric weights; degree 0, of an isolated state, counts as 1 in S."""
        n, positive = len(degree), np.where(degree > 0, degree, 1.0)
        high, low = positive**-exponent, np.zeros(n)
        if exponent:
            # One Newton step for 1 / sqrt(degree).
            square, error = multiply_exactly(high, high)
            product, rest = multiply_exactly(positive, square)
            low = 0.5 * high * ((1.0 - product) - (rest + positive * error))
        difference = csr_array(diags_array(degree) - W)
        matrix = scale_entries(difference, high, high)
        difference_high = difference.copy()
        difference_high.data = leading_bits(difference.data)
        difference_low = csr_array(difference - difference_high)
        difference_low.eliminate_zeros()
        n_components, component = connected_components(W, directed=False)
        weight = positive**exponent
        weight = weight / np.sqrt(np.bincount(component, weight**2))[component]
        null_space = csr_array((weight, component, np.arange(n + 1)), shape=(n, n_components))
        norm = float(matrix.diagonal().max()) or 1.0
        return cls(difference_high, difference_low, high, low, matrix, null_space, norm)

    def remove_null_space(self, X: Array) -> Array:
        """The part of the columns of X that is orthogonal to the null space."""
        projected: Array = X - self.null_space @ (self.null_space.T @ X)
        return projected


def scale_entries(A: csr_array, left: Array, right: Array) -> csr_array:
    """``diag(left) A diag(right)``, symmetric to the last bit where A is symmetric and both sides are equal."""
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    return csr_array((A.data * (left[rows] * right[A.indices]), A.indices, A.indptr), shape=A.shape)


def smallest_eigenpairs(
    operator: SymmetricLaplacian, k: int, rng: np.random.Generator, progress: Progress | None = None
) -> tuple[Array, Array]:
    """At least the k smallest non-zero eigenvalues and their vectors ``(n, m)``: whole eigenspaces.

    Vectors within an eigenspace are arbitrary; see `canonical_basis`.
    """
    n = operator.matrix.shape[0]
    eigenpairs = None if n < MIN_SPARSE_STATES else _solve_sparse(operator, k, rng, progress)
    if eigenpairs is None:
        if n > MAX_DENSE_STATES:
            raise ValueError(
                f"{k} eigenvectors of this graph need the dense solver, whose limit is {MAX_DENSE_STATES} states, "
                f"got {n}: ask for fewer, or narrow the range of weights and degrees"
            )
        eigenpairs = _solve_dense(operator, k)
    return correct_eigenpairs(operator, *eigenpairs)


def _solve_dense(operator: SymmetricLaplacian, k: int) -> tuple[Array, Array, int]:
    """All non-zero eigenvalues, vectors, and the number of them that the eigenspace of the k-th ends at."""
    null_space = operator.null_space
    # The eigenvalue zero of the null space is moved above all others.
    shift = 4.0 * operator.norm * (null_space @ null_space.T)
    values, vectors = eigh((operator.matrix + shift).toarray(), overwrite_a=True, check_finite=False)
    values = values[: len(values) - null_space.shape[1]]
    bounds = cluster_bounds(values, operator.norm)
    return values, vectors[:, : len(values)], int(bounds[np.searchsorted(bounds, k)])


def _solve_sparse(
    operator: SymmetricLaplacian, k: int, rng: np.random.Generator, progress: Progress | None
) -> tuple[Array, Array, int] | None:
    """As `_solve_dense`, for somewhat more than k eigenvalues; None where the iteration does not serve."""
    L, norm = operator.matrix, operator.norm
    n, n_zero = operator.null_space.shape
    # A shift below the smallest non-zero eigenvalue of any unweighted graph of this size (a path).
    factor = _factorize(L, norm * max(0.1 / n**2, 1e-13))
    n_products = 0

    def multiply_inverse(x: Array) -> Array:
        nonlocal n_products
        n_products += 1
        if progress is not None:
            progress(n_products, max(25 + int(2.5 * k), n_products + 1))
        return operator.remove_null_space(factor.solve(operator.remove_null_space(x.ravel())))

    inverse = LinearOperator((n, n), multiply_inverse, dtype=np.float64)
    # Two more than asked for, to see where an eigenspace ends.
    n_wanted = k + 2
    while 3 * n_wanted < n - n_zero:
        start, ncv = multiply_inverse(rng.standard_normal(n)), max(n_wanted + 20, 3 * n_wanted // 2)
        try:
            _, vectors = eigsh(inverse, n_wanted, which="LA", v0=start, ncv=ncv, maxiter=100)
        except ArpackError:
            # The Krylov space has few dimensions (a star), or one eigenvalue hides the others (a very weak link).
            return None
        vectors = operator.remove_null_space(vectors)
        projected = vectors.T @ (L @ vectors)
        values, rotation = eigh((projected + projected.T) / 2)
        vectors = vectors @ rotation
        # The eigenspace of the k-th value must be followed by a gap, below which the inertia counts no other value.
        bounds = cluster_bounds(values, norm)
        ends = bounds[(bounds >= k) & (bounds < len(values))]
        if not len(ends):
            n_wanted += min(n_wanted, 32)
            continue
        n_complete = int(ends[-1])
        n_below = _count_below(L, values[n_complete - 1], values[n_complete])
        if n_below is None:
            return None
        if n_below - n_zero == n_complete:
            return values, vectors, int(ends[0])
        n_wanted += max(n_below - n_zero - n_complete, 1)
    return None


def _factorize(L: csr_array, shift: float) -> SuperLU:
    """Factor of ``L + shift`` with pivots on the diagonal."""
    return splu(
        (L + shift * eye_array(L.shape[0])).tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )


def _count_below(L: csr_array, low: float, high: float) -> int | None:
    """Number of eigenvalues of L below the gap between two of them, by Sylvester's law: the signs of the pivots.

    The signs count only where no rows were exchanged and no pivot is close to zero, which makes the next one huge: then
    another point of the gap is tried. None where none serves.
    """
    for fraction in (0.5, 0.4, 0.6):
        try:
            factor = _factorize(L, -(low + fraction * (high - low)))
        except RuntimeError:
            # A pivot is exactly zero.
            continue
        pivots = factor.U.diagonal()
        if (factor.perm_r == factor.perm_c).all() and 1e-14 * np.abs(pivots).max() <= high - low:
            return int((pivots < 0).sum())
    return None


def correct_eigenpairs(
    operator: SymmetricLaplacian,
    values: Array,
    vectors: Array,
    count: int,
    *,
    entries_per_block: int = 1 << 22,
) -> tuple[Array, Array]:
    """The first `count` eigenpairs, corrected by all other ones with the help of precise residuals.

    To first order the part of a vector along another eigenvector is wrong by its residual there over the difference of
    the eigenvalues. The error that is left is quadratic, so that one pass is enough but for nearly equal eigenvalues.
    Columns are corrected in blocks, which bounds the memory for intermediate results.
    """
    bounds = cluster_bounds(values, operator.norm)
    cluster = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    width = max(1, entries_per_block // len(vectors))
    for _ in range(4):
        largest = 0.0
        for low in range(0, count, width):
            block = np.arange(low, min(low + width, count))
            residual = compute_residual(operator, vectors[:, block], values[block])
            errors = vectors.T @ operator.remove_null_space(residual)
            values[block] += errors[block, np.arange(len(block))]
            other = cluster[:, None] != cluster[block]
            gaps = np.where(other, values[block] - values[:, None], np.inf)
            step = vectors @ (errors / gaps)
            vectors[:, block] += step
            largest = max(largest, float(np.linalg.norm(step, axis=0).max()))
        if largest < 1e-8:
            break
    return values[:count], vectors[:, :count]


def compute_residual(operator: SymmetricLaplacian, X: Array, values: Array) -> Array:
    """``S (D - W) S x - value x`` for the columns x of X, to about 24 digits of its terms.

    Terms are unevaluated sums of two doubles. ``D - W`` and ``S x`` are split into leading bits, so few that their
    product is exact, and the rest, whose products need no more than double precision.
    """
    scale, scale_low = operator.scale_high[:, None], operator.scale_low[:, None]
    X = np.ascontiguousarray(X)
    Y, Y_low = multiply_exactly(X, scale)
    Y_high = leading_bits(Y)
    product = operator.difference_high @ Y_high
    rest = operator.difference_high @ ((Y - Y_high) + (Y_low + X * scale_low)) + operator.difference_low @ Y
    scaled, scaled_low = multiply_exactly(product, scale)
    target, target_low = multiply_exactly(X, values)
    difference, error = add_exactly(scaled, -target)
    small = (scaled_low - target_low) + (product * scale_low + rest * scale)
    result: Array = difference + (error + small)
    return result


def leading_bits(x: Array) -> Array:
    """`x` rounded to 25 bits of its largest entry."""
    unit = 1.5 * 2.0 ** (np.ceil(np.log2(np.abs(x).max(initial=1e-300))) + 27)
    rounded: Array = (x + unit) - unit
    return rounded


def multiply_exactly(a: Array, b: Array) -> tuple[Array, Array]:
    """``a b`` as the rounded product and its error (Dekker)."""
    product = a * b
    # 2^27 + 1 splits a double into two halves of 26 bits.
    shifted = 134217729.0 * a
    a_high = shifted - (shifted - a)
    a_low = a - a_high
    shifted = 134217729.0 * b
    b_high = shifted - (shifted - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def add_exactly(a: Array, b: Array) -> tuple[Array, Array]:
    """``a + b`` as the rounded sum and its error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
