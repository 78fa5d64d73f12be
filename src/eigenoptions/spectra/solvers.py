"""Eigenpairs of a graph's symmetric Laplacian: dense (LAPACK) or sparse (`sparse`), then refined.

Both solvers leave errors of rounding over the gap. `refine` evaluates residuals in twice the precision and corrects the
vectors by them, which leaves little more than the rounding of the result, and bounds what is left: the residual over
the gap (Davis and Kahan).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions.spectra.canonical import EPS, edges, gaps

MAX_DENSE_STATES = 20_000
# Above this the divide-and-conquer driver, which is faster, takes too much memory.
MAX_DIVIDE_STATES = 4_096
# States up to which the dense solver is the faster one, for all states and for half of them.
DENSE_UP_TO_STATES = 200
DENSE_HALF_UP_TO_STATES = 500
# Share of the spectrum up to which half of the states are likely to give it.
HALF_UP_TO_SHARE = 0.375
# Smallest 1 - lambda of an eigenvector that is taken from half of a bipartite graph.
SMALLEST_COSINE = 0.1
# Entries of the halved matrix per entry of the whole one up to which the elimination pays: 2 in mazes. Eliminating a
# state with d neighbours connects all of them, d * d entries.
MAX_FILL = 4
# Length of a vector's error outside the span of the vectors found at which the refinement ends. Errors are smooth
# there, so that those of entries are far smaller.
TARGET_OUTSIDE, MAX_INNER_STEPS = 2e-14, 120
ENTRIES_PER_BLOCK = 1_000_000
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


def scaled(W: csr_array, degree: Array, left: float, right: float) -> tuple[Any, Any, Any]:
    """The arrays of ``D^-left (D - W) D^-right`` of W with sorted rows; degree 0, of an isolated state, counts as 1."""
    from eigenoptions._kernels import spectra as kernels

    positive = np.where(degree > 0, degree, 1.0)
    rows = positive**-left
    columns = rows if left == right else positive**-right
    arrays: tuple[Any, Any, Any] = kernels.scaled(W.indptr, W.indices, W.data, degree, rows, columns)
    return arrays


class Semidefinite:
    """A symmetric matrix without negative eigenvalues whose null space is known, stored with its diagonal.

    The null space has one vector per component, proportional to a `weight` of the states.
    """

    # Largest eigenvalue that serves the original problem.
    highest = np.inf
    # The graph as `_kernels.spectra.residual` takes it, to evaluate residuals in twice the precision.
    graph: tuple[Any, ...]

    def __init__(
        self, arrays: tuple[Any, Any, Any], norm: float, weight: Array, part: NDArray[np.int32], n_zero: int
    ) -> None:
        self.arrays, self.norm, self.part, self.n_zero = arrays, norm, part, n_zero
        self.unit = weight / np.sqrt(np.bincount(part, weight**2, n_zero))[part]

    @cached_property
    def matrix(self) -> csr_array:
        """The matrix itself."""
        n = len(self.part)
        matrix = csr_array(self.arrays, shape=(n, n))
        matrix.sort_indices()
        return matrix

    @cached_property
    def diagonal(self) -> NDArray[np.intp]:
        """``(n,)`` places of the diagonal in the stored entries of the matrix."""
        row = np.repeat(np.arange(len(self.part)), np.diff(self.matrix.indptr))
        return np.flatnonzero(self.matrix.indices == row)

    def null(self, count: int) -> Array:
        """``(count, n)`` the first vectors of the null space."""
        return np.where(self.part == np.arange(count)[:, None], self.unit, 0.0)

    def project(self, X: Array) -> Array:
        """Remove the null space from the rows of X ``(b, n)``, in place."""
        from eigenoptions._kernels.spectra import project

        project(X, self.part, self.unit)
        return X

    def edges(self, values: Array) -> NDArray[np.intp]:
        """Where clusters of eigenvalues that count as equal begin, and their end."""
        return edges(values, self.norm)

    def lift(self, values: Array, rows: Array, error: Array) -> tuple[Array, Array, Array]:
        """Eigenpairs of the original problem from those of this matrix, and bounds on the lengths of their errors."""
        return values, rows, error


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
        from eigenoptions._kernels.spectra import inverse_root

        self.W, self.degree, self.power, self.colour = W, degree, power, colour
        arrays = scaled(W, degree, power, power)
        # The norm is at most twice the largest entry, which is on the diagonal.
        norm = float(arrays[0].max()) or 1.0
        super().__init__(arrays, norm, np.where(degree > 0, degree, 1.0) ** power, part, n_zero)
        everywhere = np.arange(len(degree))
        self.root = inverse_root(degree) if power else (np.ones(len(degree)), np.zeros(len(degree)))
        self.edges_of = W.indptr, W.indices, W.data
        self.graph = (*self.edges_of, degree, *self.root, everywhere, everywhere[:0], part, self.unit)

    @property
    def two_colours(self) -> bool:
        """Whether the operator is ``[[I, -B], [-B', I]]`` in the order of the colours."""
        return self.power == 0.5 and len(self.colour) > 0 and bool(self.degree.all())

    def halved(self) -> Half | None:
        """The same problem without the states of one colour, where they can be eliminated at little cost."""
        if not self.two_colours:
            return None
        neighbours = np.diff(self.W.indptr)[self.colour == 0].astype(np.int64)
        return Half(self) if neighbours @ neighbours <= MAX_FILL * self.W.nnz else None


class Half(Semidefinite):
    """The normalized Laplacian of a bipartite graph without the states of one colour, ``M = I - B'B``.

    With ``L = [[I, -B], [-B', I]]`` an eigenvector y of M with eigenvalue ``x (2 - x)``, x < 1, gives the eigenvector
    ``(B y / (1 - x), y)`` of L with eigenvalue x. Half the states take half the time and memory.
    """

    highest = 1.0 - SMALLEST_COSINE**2

    def __init__(self, whole: Laplacian) -> None:
        from eigenoptions._kernels.spectra import eliminated

        self.whole = whole
        self.gone, self.keep = (np.flatnonzero(whole.colour == c) for c in (0, 1))
        arrays = eliminated(*whole.edges_of, whole.root[0], self.keep)
        super().__init__(arrays, 1.0, whole.unit[self.keep], whole.part[self.keep], whole.n_zero)
        self.graph = (*whole.edges_of, whole.degree, *whole.root, self.keep, self.gone, self.part, self.unit)

    def edges(self, values: Array) -> NDArray[np.intp]:
        """Those of the eigenvalues x."""
        return self.whole.edges(self._raised(values))

    def lift(self, values: Array, rows: Array, error: Array) -> tuple[Array, Array, Array]:
        """Eigenpairs of the whole graph."""
        from eigenoptions._kernels.spectra import lifted

        raised = self._raised(values)
        X = lifted(*self.whole.edges_of, self.whole.root[0], self.keep, self.gone, rows, raised)
        # An error of y, and the rounding of B y, are at most 1 / cosine times as large in B y / cosine.
        cosine = 1.0 - raised
        return raised, X, np.minimum((error + 4.0 * EPS) / cosine, 1.0)

    @staticmethod
    def _raised(values: Array) -> Array:
        """The x of ``x (2 - x)``; not above 1."""
        return values / (1.0 + np.sqrt(np.maximum(1.0 - values, 0.0)))


def dense(problem: Semidefinite, k: int) -> Pairs | None:
    """All non-zero eigenpairs, by LAPACK; the null space is moved out of the way, beyond everything.

    None where there are not so many, or the k-th does not serve the original problem.
    """
    from eigenoptions._kernels.spectra import shifted

    n, n_zero = len(problem.part), problem.n_zero
    if n > MAX_DENSE_STATES:
        raise ValueError(
            f"all or a third of {n} eigenvectors cannot be held: the limit is {MAX_DENSE_STATES}; ask for fewer"
        )
    if k > n - n_zero:
        return None
    dense_form = partial(shifted, *problem.arrays, problem.part, problem.unit)
    if isinstance(problem, Laplacian) and problem.two_colours:
        values, vectors = _by_colour(dense_form(-8.0), problem.colour, n_zero)
    else:
        A = dense_form(4.0 * problem.norm)
        if n <= MAX_DIVIDE_STATES:
            values, vectors = np.linalg.eigh(A)
        else:
            from scipy.linalg import eigh

            values, vectors = eigh(A, overwrite_a=True, check_finite=False)
        values, vectors = values[: n - n_zero], vectors[:, : n - n_zero]
    ends = problem.edges(values)
    count = int(ends[np.searchsorted(ends, k)])
    return None if values[count - 1] > problem.highest else (values, vectors, count, np.inf, None)


def _by_colour(A: Array, colour: NDArray[np.int8], n_zero: int) -> tuple[Array, Array]:
    """All eigenpairs but the null vectors of ``A = [[I, C], [C', I]]``, in order: C is a quarter of the matrix.

    Singular vectors u and v of C with the singular value s give the eigenvectors ``(u, -v)`` and ``(u, v)`` with the
    eigenvalues ``1 - s`` and ``1 + s``; what is left of u in the larger colour has the eigenvalue 1.
    """
    one, other = sorted((np.flatnonzero(colour == c) for c in (0, 1)), key=len, reverse=True)
    more = len(one) - len(other)
    U, s, V = np.linalg.svd(A[np.ix_(one, other)])
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
    problem: Semidefinite,
    values: Array,
    vectors: Array,
    count: int,
    above: float,
    solve: Callable[[Array], Array] | None = None,
) -> tuple[Array, Array, Array]:
    """The first `count` eigenpairs, corrected by their residuals; vectors as rows, and bounds on their errors' lengths.

    First by directions outside the span of `vectors`, where the step ``A^-1 R`` itself bounds what is left; then within
    it, where the error of a correction is quadratic, from residuals of the vectors so far.

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
    from eigenoptions._kernels import spectra as kernels

    rows, norm, values = np.ascontiguousarray(vectors.T), problem.norm, values.copy()
    ends = problem.edges(values)
    label = np.repeat(np.arange(len(ends) - 1), ends[1:] - ends[:-1])
    beyond = np.maximum(above - values, EPS * norm)
    floor = RESIDUAL_EPS * norm / np.minimum(gaps(values, ends), beyond)
    width = max(4, ENTRIES_PER_BLOCK // rows.shape[1])
    bound = np.zeros(count)
    if solve is not None:
        for at in range(0, count, width):
            mine = slice(at, min(at + width, count))
            step, bound[mine] = _outside(problem, rows, solve, mine, values, beyond)
            rows[mine] -= step
        bound += EPS
    error, largest = kernels.refine(problem.graph, rows, values, label, floor[:count], width)
    if not largest <= MAX_RESIDUAL * norm:
        raise ArithmeticError(
            f"the eigenvectors are not exact enough (residual {largest:.1e}, the limit is "
            f'{MAX_RESIDUAL * norm:.1e}): try solver="dense"'
        )
    return values[:count], rows[:count], np.minimum(error + bound, 1.0)


def _outside(
    problem: Semidefinite,
    rows: Array,
    solve: Callable[[Array], Array],
    mine: slice,
    values: Array,
    beyond: Array,
) -> tuple[Array, Array]:
    """Errors of the rows `mine` outside the span of all rows, and bounds on what they are wrong by.

    They solve ``(A - value) x = r``, where r is the residual. The answer is ``z = A^-1 r`` where that is exact enough:
    all eigenvalues outside are at least ``value + beyond``, so the error is at most ``value / beyond`` times z. Other
    rows are solved by conjugate gradients with A^-1 as the preconditioner.
    """
    from eigenoptions._kernels.spectra import residual

    def clean(X: Array) -> Array:
        X -= (X @ rows.T) @ rows
        return X

    R = clean(residual(problem.graph, rows[mine], np.zeros_like(rows[mine]), values[mine]))
    X = clean(solve(R))
    ratio = values[mine] / beyond[mine]
    bound = ratio * np.linalg.norm(X, axis=1)
    far = np.flatnonzero(bound > TARGET_OUTSIDE)
    if not len(far):
        return X, bound
    R, Z, shift = R[far], X[far], values[mine][far, None]
    X[far], P, size = 0.0, Z, np.einsum("ij,ij->i", R, Z)
    for _ in range(MAX_INNER_STEPS):
        Q = (problem.matrix @ P.T).T - P * shift
        step = (size / np.einsum("ij,ij->i", P, Q))[:, None]
        X[far] += step * P
        R = R - step * Q
        Z = clean(solve(R))
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


def verify(
    arrays: tuple[Any, Any, Any], norm: float, values: Array, vectors: Array, scale: Array | None = None
) -> None:
    """Raise ValueError unless every column solves the eigen-equation of ``diag(scale) A diag(1 / scale)``.

    Parameters
    ----------
    arrays, norm
        Entries, columns and row pointers of a symmetric sparse matrix, and its norm.
    values, vectors
        ``(k,)`` eigenvalues and ``(n, k)`` columns of length 1.
    scale
        ``(n,)`` of an operator that is not symmetric itself; None: ones.
    """
    from eigenoptions._kernels.spectra import residual_lengths

    weight, rows = np.ones(len(vectors)) if scale is None else scale, np.ascontiguousarray(vectors.T)
    worst = residual_lengths(*arrays, weight, rows, values).max()
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
