"""Eigenpairs of a graph's symmetric Laplacian: dense (LAPACK) or sparse (`sparse`), then refined.

Both solvers leave errors of rounding over the gap. `refine` evaluates residuals in twice the precision and corrects the
vectors by them, which leaves little more than the rounding of the result, and bounds what is left: the residual over
the gap (Davis and Kahan).
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions.spectra.canonical import EPS, edges, gaps

MAX_DENSE_STATES = 20_000
# Above this the divide-and-conquer driver, which is faster, takes too much memory.
MAX_DIVIDE_STATES = 4_096
# States up to which the dense solver is the faster one.
DENSE_UP_TO_STATES = 200
# Length of a vector's error at which the refinement ends: within the span of the vectors found, and outside of it,
# where errors are smooth, so that those of entries are far smaller.
TARGET_INSIDE, TARGET_OUTSIDE = 2e-15, 2e-14
MAX_CORRECTIONS, MAX_INNER_STEPS = 4, 30
ENTRIES_PER_BLOCK, ENTRIES_IN_CACHE = 1_000_000, 32_000
# Largest residual |L v - lambda v| of a unit vector, in units of the operator's norm. In a cluster of nearly equal
# eigenvalues vectors are mixed, which costs up to 1e-9.
MAX_RESIDUAL = 1e-8

# Accuracy below which an entry of a symmetric operator's eigenvector counts as known.
KNOWN = 1e-2

# Error of a residual, in units of the norm: double-double arithmetic, and a generous allowance for the sums.
RESIDUAL_EPS = 1e-30

Array = NDArray[np.float64]
Progress = Callable[[int, int], object]
# Eigenvalues and vectors in ascending order, some more than wanted; how many of them are whole eigenspaces and proved
# complete; a number that no other eigenvalue is below; and the inverse of the operator outside its null space, or None
# where there are no other eigenvectors.
Pairs = tuple[Array, Array, int, float, Callable[[Array], Array] | None]


def scaled(W: csr_array, degree: Array, left: float, right: float) -> csr_array:
    """``D^-left (D - W) D^-right`` of W with sorted rows; the degree 0 of an isolated state counts as 1."""
    from eigenoptions._kernels import spectra as kernels

    positive = np.where(degree > 0, degree, 1.0)
    rows = positive**-left
    columns = rows if left == right else positive**-right
    return csr_array(kernels.scaled(W.indptr, W.indices, W.data, degree, rows, columns), shape=W.shape)


class Semidefinite:
    """A symmetric matrix without negative eigenvalues whose null space is known.

    The null space has one vector per component, proportional to a `weight` of the states.
    """

    def __init__(
        self, matrix: csr_array, norm: float, weight: Array, part: NDArray[np.int32], n_zero: int
    ) -> None:
        self.matrix, self.norm, self.part, self.n_zero = matrix, norm, part, n_zero
        self.unit = weight / np.sqrt(np.bincount(part, weight**2, n_zero))[part]

    def null(self, count: int) -> Array:
        """``(n, count)`` the first vectors of the null space."""
        columns = np.zeros((len(self.part), count), order="F")
        mine = np.flatnonzero(self.part < count)
        columns[mine, self.part[mine]] = self.unit[mine]
        return columns

    def constant(self, X: Array) -> Array:
        """The part of a vector ``(n,)`` or of the rows of X ``(b, n)`` in the null space."""
        if self.n_zero == 1:
            return self.unit * (X @ self.unit if X.ndim == 1 else (X @ self.unit)[:, None])
        rows = X.reshape(-1, X.shape[-1])
        inside = [np.bincount(self.part, self.unit * x, self.n_zero)[self.part] * self.unit for x in rows]
        return np.reshape(inside, X.shape)

    def project(self, X: Array) -> Array:
        """Remove the null space from a vector ``(n,)`` or the rows of X ``(b, n)``, in place."""
        X -= self.constant(X)
        return X


class Laplacian(Semidefinite):
    """The symmetric operator ``D^-p (D - W) D^-p`` of a graph in known components, and its null space, that of ``D^p``.

    `colour` is 0 or 1 at each state, different for neighbours; empty where the graph is not bipartite.
    """

    def __init__(
        self,
        W: csr_array,
        degree: Array,
        power: float,
        part: NDArray[np.int32],
        n_zero: int,
        colour: NDArray[np.int8],
    ) -> None:
        self.W, self.degree, self.power, self.colour = W, degree, power, colour
        matrix = scaled(W, degree, power, power)
        # The norm is at most twice the largest diagonal entry.
        norm = float(matrix.diagonal().max()) or 1.0
        super().__init__(matrix, norm, np.where(degree > 0, degree, 1.0) ** power, part, n_zero)
        self._root: Any = None

    def residual(self, X: Array, low: Array | None, values: Array) -> Array:
        """``A x - value x`` for rows x of X + low, outside the null space: in twice the precision, from the weights."""
        from eigenoptions._kernels.spectra import inverse_root, residual

        if self._root is None:
            n = len(self.part)
            self._root = inverse_root(self.degree) if self.power else (np.ones(n), np.zeros(n))
        W, (high, rest) = self.W, self._root
        Y = np.zeros_like(X) if low is None else low
        return self.project(residual(W.indptr, W.indices, W.data, self.degree, high, rest, X, Y, values))

    def halved(self) -> bool:
        """Whether the states of one colour can be eliminated."""
        return self.power == 0.5 and len(self.colour) > 0 and bool(self.degree.all())


def dense(problem: Laplacian, k: int) -> Pairs:
    """All non-zero eigenpairs, by LAPACK; the null space is moved out of the way, beyond everything."""
    n, n_zero = problem.matrix.shape[0], problem.n_zero
    if n > MAX_DENSE_STATES:
        raise ValueError(
            f"all or a third of {n} eigenvectors cannot be held: the limit is {MAX_DENSE_STATES}; ask for fewer"
        )
    A, Z = problem.matrix.toarray(), problem.null(n_zero)
    if problem.halved():
        values, vectors = _by_colour(A, Z, problem.colour)
    else:
        A += (4.0 * problem.norm) * (Z @ Z.T)
        if n <= MAX_DIVIDE_STATES:
            values, vectors = np.linalg.eigh(A)
        else:
            from scipy.linalg import eigh

            values, vectors = eigh(A, overwrite_a=True, check_finite=False)
        values, vectors = values[: n - n_zero], vectors[:, : n - n_zero]
    ends = edges(values, problem.norm)
    return values, vectors, int(ends[np.searchsorted(ends, k)]), np.inf, None


def _by_colour(A: Array, Z: Array, colour: NDArray[np.int8]) -> tuple[Array, Array]:
    """All eigenpairs but the null vectors Z of ``A = [[I, C], [C', I]]``, in order: C is a quarter of the matrix.

    Singular vectors u and v of C with the singular value s give the eigenvectors ``(u, -v)`` and ``(u, v)`` with the
    eigenvalues ``1 - s`` and ``1 + s``; what is left of u in the larger colour has the eigenvalue 1.
    """
    one, other = sorted((np.flatnonzero(colour == c) for c in (0, 1)), key=len, reverse=True)
    n_zero, more = Z.shape[1], len(one) - len(other)
    U, s, V = np.linalg.svd(A[np.ix_(one, other)] - 8.0 * (Z[one] @ Z[other].T))
    # The null vectors, moved out of the way, are the first ones: of these only (u, v) is wanted.
    s[:n_zero] = 1.0
    s, V = np.append(s, np.zeros(more)), np.concatenate([V, np.zeros((more, len(other)))])
    lower, upper = slice(n_zero, None), slice(len(other) - 1, None, -1)
    values = np.concatenate([1.0 - s[lower], 1.0 + s[upper]])
    vectors = np.empty((len(A), len(values)), order="F")
    vectors[one] = np.hstack([U[:, lower], U[:, upper]])
    vectors[other] = np.hstack([-V[lower].T, V[upper].T])
    vectors *= sqrt(0.5)
    vectors[:, len(other) - n_zero : len(one) - n_zero] *= sqrt(2.0)
    return values, vectors


def refine(
    problem: Laplacian,
    values: Array,
    vectors: Array,
    count: int,
    above: float,
    solve: Callable[[Array], Array] | None = None,
) -> tuple[Array, Array, Array]:
    """The first `count` eigenpairs, corrected by their residuals, and bounds on the lengths of the vectors' errors.

    One pass is enough for most vectors: within the span of `vectors` the error of a correction is quadratic, and
    outside of it the step ``A^-1 R`` itself bounds what is left. Others take further passes.

    Parameters
    ----------
    problem
        The operator.
    values, vectors
        Approximate eigenpairs ``(m,)`` and ``(n, m)``; the vectors are overwritten.
    count
        How many to refine: whole eigenspaces, the smallest ones.
    above
        No eigenvalue other than `values` is below this number.
    solve
        The inverse of the operator, to correct by directions outside `vectors`. None: there are none.
    """
    rows, norm = np.ascontiguousarray(vectors.T), problem.norm
    values, error = values.copy(), np.zeros(count)
    active, low = np.arange(count), rows[:0]
    width = max(4, ENTRIES_PER_BLOCK // rows.shape[1])
    for attempt in range(MAX_CORRECTIONS):
        ends = edges(values, norm)
        label = np.repeat(np.arange(len(ends) - 1), ends[1:] - ends[:-1])
        beyond = np.maximum(above - values, EPS * norm)
        floor = RESIDUAL_EPS * norm / np.minimum(gaps(values, norm), beyond)
        old, left, rest = values.copy(), [], []
        for at in range(0, len(active), width):
            mine = active[at : at + width]
            here = low[at : at + width] if attempt else None
            X = rows[mine]
            R = problem.residual(X, here, old[mine])
            largest = float(max(R.max(), -R.min()))
            if largest > MAX_RESIDUAL * norm:
                raise ArithmeticError(
                    f"the eigenvectors are not exact enough (residual {largest:.1e}, the limit is "
                    f'{MAX_RESIDUAL * norm:.1e}): try solver="dense"'
                )
            C = R @ rows.T
            values[mine] += C[np.arange(len(mine)), mine]
            other = label[mine, None] != label
            E = np.divide(C, values[mine, None] - old, out=np.zeros_like(C), where=other)
            step, size = E @ rows, np.sqrt(np.einsum("ij,ij->i", E, E))
            # Terms of second order, of which the largest is by the worst of the other vectors.
            error[mine] = floor[mine] + size * max(4.0 * float(size.max()), 4.0 * EPS)
            short = error[mine] > np.maximum(TARGET_INSIDE, 2.0 * floor[mine])
            if solve is not None:
                R -= C @ rows
                outside, bound = _outside(problem, rows, solve, R, old[mine], beyond[mine])
                step -= outside
                error[mine] += bound
                short |= bound > TARGET_OUTSIDE
            # Vectors are kept as unevaluated sums with `low`, outside the null space.
            step -= problem.constant(X)
            if here is not None:
                step += here
            rows[mine] = better = X + step
            left.append(mine[short])
            rest.append(step[short] - (better[short] - X[short]))
        active = np.concatenate(left)
        if not len(active):
            break
        low = np.concatenate(rest)
    return values, rows.T, np.minimum(error, 1.0)


def _outside(
    problem: Laplacian,
    rows: Array,
    solve: Callable[[Array], Array],
    R: Array,
    values: Array,
    beyond: Array,
) -> tuple[Array, Array]:
    """Solve ``(A - value) x = r`` for the rows of R outside the span of other `rows`, and bound the errors of x.

    The answer is ``z = A^-1 r`` where that is exact enough: all eigenvalues outside are at least ``value + beyond``,
    so the error is at most ``value / beyond`` times z. Other rows are solved by conjugate gradients with A^-1 as
    the preconditioner.
    """
    # A few at a time, as many as the processor's cache holds.
    width = max(1, ENTRIES_IN_CACHE // rows.shape[1])

    def inverse(R: Array) -> Array:
        X = np.empty_like(R)
        for at in range(0, len(R), width):
            X[at : at + width] = solve(R[at : at + width].T).T
        return clean(X)

    def clean(X: Array) -> Array:
        X -= (X @ rows.T) @ rows
        return X

    X = inverse(R)
    ratio = values / beyond
    bound = ratio * np.linalg.norm(X, axis=1)
    far = np.flatnonzero(bound > TARGET_OUTSIDE)
    if not len(far):
        return X, bound
    R, Z, shift = R[far], X[far], values[far, None]
    X[far], P, size = 0.0, Z, np.einsum("ij,ij->i", R, Z)
    for _ in range(MAX_INNER_STEPS):
        Q = (problem.matrix @ P.T).T - P * shift
        step = (size / np.einsum("ij,ij->i", P, Q))[:, None]
        X[far] += step * P
        R = R - step * Q
        Z = inverse(R)
        size, last = np.einsum("ij,ij->i", R, Z), size
        P = Z + (size / last)[:, None] * P
        bound[far] = (1.0 + ratio[far]) * np.linalg.norm(Z, axis=1)
        # Rows that are solved take no further part.
        going = bound[far] > TARGET_OUTSIDE
        if not going.any():
            break
        far, R, P, shift, size = far[going], R[going], P[going], shift[going], size[going]
    return X, bound


def tilted(vectors: Array, accuracy: Array, scale: Array) -> tuple[Array, Array]:
    """Eigenvectors ``scale * u`` of an operator that is similar to a symmetric one, in place, and their accuracy.

    Raises ValueError where the scale turns errors of u into errors as large as the entries.
    """
    vectors *= scale[:, None]
    length = np.linalg.norm(vectors, axis=0)
    known = accuracy * (scale.max() / length)
    if ((known >= 1.0) & (accuracy < KNOWN)).any():
        raise _too_wide(f"the error of their entries may be {known.max():.1e}", scale)
    vectors /= length
    return vectors, np.minimum(known, 1.0)


def verify(matrix: csr_array, norm: float, values: Array, vectors: Array, scale: Array | None = None) -> None:
    """Raise ValueError unless every column solves the eigen-equation of ``diag(scale) matrix diag(1 / scale)``.

    Parameters
    ----------
    matrix, norm
        A symmetric operator, and its norm.
    values, vectors
        ``(k,)`` eigenvalues and ``(n, k)`` columns of length 1.
    scale
        ``(n,)`` of an operator that is not symmetric itself; None: ones.
    """
    worst, width = 0.0, max(8, ENTRIES_PER_BLOCK // len(vectors))
    for low in range(0, len(values), width):
        X, block = vectors[:, low : low + width], values[low : low + width]
        if scale is not None:
            X = X / scale[:, None]
        R = matrix @ X - X * block
        if scale is not None:
            R *= scale[:, None]
        worst = max(worst, float(np.einsum("ij,ij->j", R, R).max()) ** 0.5)
    # Also where it is not a number.
    if not worst <= MAX_RESIDUAL * norm:
        raise _too_wide(f"a residual is {worst:.1e}, the limit is {MAX_RESIDUAL * norm:.1e}", scale)


def _too_wide(why: str, scale: Array | None) -> ValueError:
    spread = (
        "" if scale is None else f", degrees spread by a factor of {(scale.max() / scale.min()) ** 2:.1e}"
    )
    return ValueError(
        f"the weights range too widely for eigenvectors of this operator ({why}{spread}): narrow that range, or use "
        'operator="normalized"'
    )
