"""Eigenpairs of a graph's symmetric Laplacian: dense (LAPACK) or sparse (ARPACK on a SuperLU factor), then refined.

Both solvers leave errors of rounding over the gap. `refine` evaluates residuals in twice the precision and corrects the
vectors by them, which leaves little more than the rounding of the result, and bounds what is left: the residual over
the gap (Davis and Kahan). An inertia count proves that the sparse solver missed nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array, eye_array

from eigenoptions.spectra.canonical import EPS, clusters, gaps

MAX_DENSE_STATES = 20_000
# Above this the divide-and-conquer driver, which is faster, takes too much memory.
MAX_DIVIDE_STATES = 4_096
# States up to which the dense solver is the faster one.
DENSE_UP_TO_STATES = 200
# Eigenvectors that the sparse solver finds beyond the wanted ones, to see where an eigenspace ends.
SPARE_VECTORS = 2
MAX_RESTARTS, MAX_STARTS = 100, 3
# Aims of the refinement: length of a vector's error, within the span of the vectors found and outside of it.
TARGET_INSIDE, TARGET_OUTSIDE = 2e-15, 1e-12
MAX_CORRECTIONS, MAX_INNER_STEPS = 4, 30
ENTRIES_PER_BLOCK = 1_000_000

# Error of a residual, in units of the norm: double-double arithmetic, and a generous allowance for the sums.
RESIDUAL_EPS = 1e-30

Array = NDArray[np.float64]
Progress = Callable[[int, int], object]


def scaled(W: csr_array, degree: Array, left: float, right: float) -> csr_array:
    """``D^-left (D - W) D^-right``; the degree 0 of an isolated state counts as 1."""
    L = csr_array(diags_array(degree) - W)
    if left or right:
        degree = np.where(degree > 0, degree, 1.0)
        rows = np.repeat(np.arange(len(degree)), np.diff(L.indptr))
        # One product, so that the matrix is symmetric to the last bit where both sides are equal.
        L.data *= (degree**-left)[rows] * (degree**-right)[L.indices]
    return L


class Laplacian:
    """The symmetric operator ``D^-p (D - W) D^-p`` of a graph in known components, and its null space.

    The null space has one vector per component, proportional to ``D^p``.
    """

    def __init__(
        self, W: csr_array, degree: Array, power: float, part: NDArray[np.int32], n_zero: int
    ) -> None:
        self.W, self.degree, self.power = W, degree, power
        self.part, self.n_zero = part, n_zero
        positive = np.where(degree > 0, degree, 1.0)
        self.matrix = scaled(W, degree, power, power)
        # The norm is at most twice the largest diagonal entry.
        self.norm = float(self.matrix.diagonal().max()) or 1.0
        weight = positive**power
        self.unit = weight / np.sqrt(np.bincount(part, weight**2, n_zero))[part]
        self._root: Any = None

    def null(self, count: int) -> Array:
        """``(n, count)`` the first vectors of the null space."""
        columns = np.zeros((len(self.part), count), order="F")
        mine = np.flatnonzero(self.part < count)
        columns[mine, self.part[mine]] = self.unit[mine]
        return columns

    def constant(self, x: Array) -> Array:
        """The part of one vector ``(n,)`` in the null space."""
        if self.n_zero == 1:
            return self.unit * (self.unit @ x)
        return self.unit * np.bincount(self.part, self.unit * x, self.n_zero)[self.part]

    def project(self, X: Array) -> Array:
        """Remove the null space from the columns of X ``(n, b)``, in place."""
        if self.n_zero == 1:
            X -= np.outer(self.unit, self.unit @ X)
            return X
        for column in X.T:
            column -= self.constant(column)
        return X

    def residual(self, X: Array, low: Array, values: Array) -> Array:
        """``A (X + low) - (X + low) values`` outside the null space, in twice the precision and from the weights."""
        from eigenoptions._kernels.residual import inverse_root, residual

        if self._root is None:
            n = len(self.part)
            self._root = inverse_root(self.degree) if self.power else (np.ones(n), np.zeros(n))
        W, (high, rest) = self.W, self._root
        X, low = np.ascontiguousarray(X), np.ascontiguousarray(low)
        return self.project(residual(W.indptr, W.indices, W.data, self.degree, high, rest, X, low, values))


def dense(problem: Laplacian) -> tuple[Array, Array]:
    """All non-zero eigenpairs, by LAPACK; the null space is moved out of the way, above everything."""
    n = problem.matrix.shape[0]
    if n > MAX_DENSE_STATES:
        raise ValueError(
            f"all or a third of {n} eigenvectors cannot be held: the limit is {MAX_DENSE_STATES}; ask for fewer"
        )
    Z = problem.null(problem.n_zero)
    A = problem.matrix.toarray()
    A += (4.0 * problem.norm) * (Z @ Z.T)
    if n <= MAX_DIVIDE_STATES:
        values, vectors = np.linalg.eigh(A)
    else:
        from scipy.linalg import eigh

        values, vectors = eigh(A, overwrite_a=True, check_finite=False)
    keep = n - problem.n_zero
    return values[:keep], vectors[:, :keep]


def sparse(
    problem: Laplacian, k: int, rng: np.random.Generator, progress: Progress | None = None
) -> tuple[Array, Array, int, float, Callable[[Array], Array]] | None:
    """At least the k smallest non-zero eigenpairs, whole eigenspaces, proved complete by an inertia count.

    Returns values and vectors in ascending order (a few more than proved), how many of them are proved, a number that
    no other eigenvalue is below, and the solve with the factor. None where the iteration does not serve: the wanted
    eigenspaces are a large part of the whole space.
    """
    room = problem.matrix.shape[0] - problem.n_zero
    inverse = _Inverse(problem, k, progress)
    values, vectors = np.zeros(0), np.zeros((problem.matrix.shape[0], 0), order="F")
    want = k + SPARE_VECTORS
    while 2 * want < room:
        found = inverse.leading(want - len(values), vectors, rng)
        if not found.shape[1]:
            return None
        vectors = np.hstack([vectors, found]) if len(values) else found
        values = np.einsum("ij,ij->j", vectors, problem.matrix @ vectors)
        order = np.argsort(values, kind="stable")
        if (np.diff(order) < 0).any():
            vectors = vectors[:, order]
        values = values[order]
        # The eigenspace of the k-th value must be followed by a gap, and the inertia must agree with the count.
        whole = [high for _, high in clusters(values, problem.norm) if k <= high < len(values)]
        if not whole:
            want = max(want, len(values) + min(len(values), 32))
            continue
        count, above = _inertia(problem, values[whole[0] - 1], values[whole[0]])
        if count == whole[0]:
            return values, vectors, count, above, inverse.solve
        if count < whole[0]:
            raise ArithmeticError(
                f"{whole[0]} eigenvalues found below {above} where the inertia counts {count}: "
                f'the graph may be too badly scaled; try solver="dense"'
            )
        want = len(values) + count - whole[0]
    return None


class _Inverse:
    """Multiplication by the inverse of the Laplacian outside its null space, by a sparse factor at a small shift."""

    def __init__(self, problem: Laplacian, k: int, progress: Progress | None) -> None:
        n = problem.matrix.shape[0]
        self.problem, self.progress, self.steps = problem, progress, 0
        # Mazes of any size take about so many steps.
        self.expected = 25 + int(2.5 * k)
        # At most the smallest eigenvalue of any unweighted graph of this size (a path), so convergence is fast.
        # Digits lost to a smaller shift come back in `refine`.
        self.factor = _factor(problem, problem.norm * max(0.1 / n**2, 1e-13), problem.norm)

    def solve(self, X: Array) -> Array:
        """Solve for the columns of X ``(n, b)``; the result has no part in the null space."""
        return self.problem.project(self.factor.solve(np.asfortranarray(X)) / self.problem.norm)

    def leading(self, count: int, locked: Array, rng: np.random.Generator) -> Array:
        """About `count` eigenvectors of the smallest eigenvalues, orthogonal to those that are `locked`."""
        from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

        n = len(self.problem.part)

        def outside(X: Array) -> Array:
            self.problem.project(X)
            return X - locked @ (locked.T @ X) if locked.shape[1] else X

        def step(x: Array) -> Array:
            self.steps += 1
            if self.progress is not None:
                self.progress(self.steps, max(self.expected, self.steps + 1))
            X = x.reshape(n, 1)
            # ARPACK may start again from any vector.
            return outside(self.factor.solve(outside(X.copy()) if locked.shape[1] else X)).ravel()

        most = n - self.problem.n_zero - locked.shape[1]
        width = max(count + 20, 3 * count // 2)
        operator = LinearOperator((n, n), step, dtype=np.float64)
        found = np.zeros((n, 0))
        for _ in range(MAX_STARTS):
            begin = step(rng.standard_normal(n))
            try:
                found = eigsh(
                    operator, count, which="LA", v0=begin, ncv=min(most, width), tol=0, maxiter=MAX_RESTARTS
                )[1]
            except ArpackNoConvergence as error:
                # Beside a huge eigenvalue the others drown in rounding: lock what is found, go on without it.
                found = error.eigenvectors
            except ArpackError:
                # A Krylov space of few dimensions, as that of a star: another start, and more room.
                width *= 2
            found = outside(found)
            found = found[:, np.linalg.norm(found, axis=0) > 0.9]
            if found.shape[1]:
                break
        return np.asfortranarray(np.linalg.qr(found)[0] if locked.shape[1] else found)


def _factor(problem: Laplacian, shift: float, unit: float = 1.0) -> Any:
    """SuperLU factor of the operator plus a shift, in this unit, in a symmetric order with pivots on the diagonal."""
    from scipy.sparse.linalg import splu

    n = problem.matrix.shape[0]
    A = csc_array(problem.matrix + shift * eye_array(n))
    A.data /= unit
    symmetric = {"SymmetricMode": True}
    return splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)


def _inertia(problem: Laplacian, low: float, high: float) -> tuple[int, float]:
    """Number of non-zero eigenvalues below a point between two eigenvalues, and the point.

    Without row exchanges the factor is L D L', and by Sylvester's law the signs of D count the eigenvalues. A pivot
    close to zero makes the next ones huge and their signs uncertain; then another point is tried.
    """
    counts: dict[float, tuple[int, float]] = {}
    for share in (0.5, 0.4, 0.6, 0.3, 0.7):
        point = low + share * (high - low)
        try:
            factor = _factor(problem, -point)
        except RuntimeError:
            # SuperLU: a pivot is exactly zero.
            continue
        if (factor.perm_r != factor.perm_c).any():
            continue
        pivots = factor.U.diagonal()
        growth = float(np.abs(pivots).max())
        counts[growth] = int((pivots < 0).sum()) - problem.n_zero, point
        if 1e-14 * growth <= high - low:
            break
    if not counts:
        raise ArithmeticError(f'no eigenvalue count is possible between {low} and {high}; try solver="dense"')
    return counts[min(counts)]


def refine(
    problem: Laplacian,
    values: Array,
    vectors: Array,
    count: int,
    above: float,
    solve: Callable[[Array], Array] | None = None,
) -> tuple[Array, Array, Array]:
    """The first `count` eigenpairs, corrected by their residuals, and bounds on the lengths of the vectors' errors.

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
    norm = problem.norm
    values, low = values.copy(), np.zeros((len(vectors), count), order="F")
    error = np.full(count, np.inf)
    active = np.arange(count)
    width = max(4, ENTRIES_PER_BLOCK // len(vectors))
    for attempt in range(MAX_CORRECTIONS + 1):
        label = np.repeat(*np.array([(i, b - a) for i, (a, b) in enumerate(clusters(values, norm))]).T)
        beyond = np.maximum(above - values, EPS * norm)
        floor = RESIDUAL_EPS * norm / np.minimum(gaps(values, norm), beyond)
        old, left = values.copy(), []
        for columns in (active[at : at + width] for at in range(0, len(active), width)):
            R = problem.residual(vectors[:, columns], low[:, columns], old[columns])
            C = vectors.T @ R
            values[columns] += C[columns, np.arange(len(columns))]
            inside = label[:, None] == label[columns]
            E = np.divide(C, values[columns] - old[:, None], out=np.zeros_like(C), where=~inside)
            now = np.linalg.norm(E, axis=0) + floor[columns]
            short = now > np.maximum(TARGET_INSIDE, 2.0 * floor[columns])
            outside = np.zeros(len(columns))
            if solve is not None:
                # What is left of the residual beside its part C in the span, or the rounding of this difference.
                span, whole = np.einsum("ij,ij->j", C, C), np.einsum("ij,ij->j", R, R)
                outside = np.sqrt(np.maximum(whole - span, EPS * span)) / beyond[columns]
                now += outside
                short |= outside > TARGET_OUTSIDE
            short &= now < 0.5 * error[columns]
            error[columns] = now
            if attempt == MAX_CORRECTIONS or not short.any():
                continue
            left.append(columns[short])
            E, far = E[:, short], np.flatnonzero(outside[short] > TARGET_OUTSIDE)
            step = vectors @ E
            if solve is not None and len(far):
                # One step of the preconditioner is enough for most.
                aim = 0.3 * TARGET_OUTSIDE / outside[short][far] if attempt else np.ones(len(far))
                step[:, far] -= _outside(
                    problem, vectors, solve, R[:, short][:, far], old[left[-1][far]], aim
                )
            _add(problem, vectors, low, left[-1], step)
        if not left:
            break
        active = np.concatenate(left)
    return values, vectors, np.minimum(error, 1.0)


def _outside(
    problem: Laplacian, vectors: Array, solve: Callable[[Array], Array], R: Array, values: Array, aim: Array
) -> Array:
    """Solve ``(A - values) X = R`` outside the span of the vectors, until errors fall to `aim` of themselves.

    By conjugate gradients, as all eigenvalues are above `values` there; the inverse of A is the preconditioner, and the
    whole answer where `aim` is 1.
    """

    def clean(X: Array) -> Array:
        return X - vectors @ (vectors.T @ X)

    R = clean(R)
    Z = clean(solve(R))
    if aim.min() >= 1.0:
        return Z
    X, P = np.zeros_like(R), Z
    size = first = np.einsum("ij,ij->j", R, Z)
    for _ in range(MAX_INNER_STEPS):
        Q = clean(problem.matrix @ P - P * values)
        curved = np.einsum("ij,ij->j", P, Q)
        # A column that is solved takes no further part.
        going = (size > aim**2 * first) & (curved > 0)
        if not going.any():
            break
        step = np.divide(size, curved, out=np.zeros_like(size), where=going)
        X += step * P
        R -= step * Q
        Z = clean(solve(R))
        size, last = np.einsum("ij,ij->j", R, Z), size
        P = Z + np.divide(size, last, out=np.zeros_like(size), where=going) * P
    return X


def _add(problem: Laplacian, vectors: Array, low: Array, columns: NDArray[np.intp], step: Array) -> None:
    """Add a step to columns kept as unevaluated sums ``vectors + low``, and remove their part in the null space."""
    for column, more in zip(columns, step.T, strict=True):
        x = vectors[:, column].copy()
        more += low[:, column] - problem.constant(x)
        vectors[:, column] += more
        low[:, column] = more - (vectors[:, column] - x)
