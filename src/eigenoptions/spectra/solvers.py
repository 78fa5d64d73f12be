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
from scipy.sparse import csc_array, csr_array, eye_array

from eigenoptions.spectra.canonical import EPS, edges, gaps

MAX_DENSE_STATES = 20_000
# Above this the divide-and-conquer driver, which is faster, takes too much memory.
MAX_DIVIDE_STATES = 4_096
# States up to which the dense solver is the faster one.
DENSE_UP_TO_STATES = 200
# Eigenvectors that the sparse solver finds beyond the wanted ones, to see where an eigenspace ends.
SPARE_VECTORS = 2
MAX_RESTARTS, MAX_STARTS = 100, 3
# Length of a vector's error at which the refinement ends: within the span of the vectors found, and outside of it,
# where errors are smooth, so that those of entries are far smaller.
TARGET_INSIDE, TARGET_OUTSIDE = 2e-15, 2e-14
MAX_CORRECTIONS, MAX_INNER_STEPS = 4, 30
ENTRIES_PER_BLOCK = 1_000_000
# Smallest 1 - lambda of an eigenvector that is taken from half of a bipartite graph.
SMALLEST_COSINE = 0.1
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

    def constant(self, x: Array) -> Array:
        """The part of one vector ``(n,)`` in the null space."""
        if self.n_zero == 1:
            return self.unit * (self.unit @ x)
        return self.unit * np.bincount(self.part, self.unit * x, self.n_zero)[self.part]

    def project(self, X: Array) -> Array:
        """Remove the null space from a vector ``(n,)`` or the columns of X ``(n, b)``, in place."""
        if X.ndim == 1:
            X -= self.constant(X)
            return X
        if self.n_zero == 1:
            X -= np.outer(self.unit, self.unit @ X)
            return X
        for column in X.T:
            column -= self.constant(column)
        return X

    def lift(self, found: Pairs) -> Pairs | None:
        """Eigenpairs of the Laplacian from those of this matrix; None where they are not exact enough."""
        return found


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
        """``A (X + low) - (X + low) values`` outside the null space, in twice the precision and from the weights."""
        from eigenoptions._kernels.spectra import inverse_root, residual

        if self._root is None:
            n = len(self.part)
            self._root = inverse_root(self.degree) if self.power else (np.ones(n), np.zeros(n))
        W, (high, rest) = self.W, self._root
        X = np.ascontiguousarray(X.T)
        Y = np.zeros_like(X) if low is None else np.ascontiguousarray(low.T)
        return self.project(residual(W.indptr, W.indices, W.data, self.degree, high, rest, X, Y, values).T)

    def halved(self) -> bool:
        """Whether the states of one colour can be eliminated."""
        return self.power == 0.5 and len(self.colour) > 0 and bool(self.degree.all())


class Half(Semidefinite):
    """The normalized Laplacian of a bipartite graph without the states of one colour, ``M = I - B'B``.

    With ``L = [[I, -B], [-B', I]]`` an eigenvector y of M with eigenvalue ``x (2 - x)``, x < 1, gives the eigenvector
    ``(B y / (1 - x), y)`` of L with eigenvalue x. Half the states take half the time and memory.
    """

    def __init__(self, whole: Laplacian) -> None:
        from eigenoptions._kernels.spectra import eliminated

        self.whole, self.keep = whole, np.flatnonzero(whole.colour)
        W, degree, part = whole.W, whole.degree, whole.part[self.keep]
        n = len(self.keep)
        M = csr_array(eliminated(W.indptr, W.indices, W.data, degree, self.keep), shape=(n, n))
        # Twice as large as needed: eigenvalues of L that count as equal do so here, too.
        super().__init__(M, 2.0, np.sqrt(degree[self.keep]), part, whole.n_zero)

    def lift(self, found: Pairs) -> Pairs | None:
        """Eigenpairs of the Laplacian from those of this matrix; None where they are not exact enough."""
        values, vectors, count, above, inverse = found
        near = int(np.searchsorted(values, 1.0 - SMALLEST_COSINE**2))
        if near < count or (near == count and near == len(values)):
            return None
        ends = np.append(values[:near], min(above, 1.0, *values[near : near + 1]))
        ends = ends / (1.0 + np.sqrt(1.0 - ends))
        X = np.zeros((len(self.whole.part), near), order="F")
        X[self.keep] = vectors[:, :near]
        other = self.whole.matrix @ X / (ends[:-1] - 1.0)
        other[self.keep] = X[self.keep]
        other /= np.sqrt(2.0)

        def solve(R: Array) -> Array:
            X = R.copy(order="F")
            X[self.keep] = 0.0
            inner = (R - self.whole.matrix @ X)[self.keep]
            if inverse is None:
                X[self.keep] = vectors @ ((vectors.T @ inner) / values[:, None])
            else:
                X[self.keep] = inverse(inner)
            out = R + X - self.whole.matrix @ X
            out[self.keep] = X[self.keep]
            return self.whole.project(out)

        return ends[:-1], np.asfortranarray(other), count, float(ends[-1]), solve


def eigenpairs(problem: Laplacian, k: int, rng: np.random.Generator | None, progress: Progress | None) -> Pairs:
    """At least the k smallest non-zero eigenpairs; `rng` starts the sparse solver, None asks for the dense one."""
    few = 3 * k <= problem.matrix.shape[0] - problem.n_zero
    for core in [Half(problem), problem] if few and problem.halved() else [problem]:
        found = sparse(core, k, rng, progress) if rng is not None and few else None
        lifted = core.lift(found or dense(core, k))
        if lifted is not None:
            break
    assert lifted is not None
    return lifted


def dense(problem: Semidefinite, k: int) -> Pairs:
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
    values, vectors = values[: n - problem.n_zero], vectors[:, : n - problem.n_zero]
    ends = edges(values, problem.norm)
    return values, vectors, int(ends[np.searchsorted(ends, k)]), np.inf, None


def sparse(
    problem: Semidefinite, k: int, rng: np.random.Generator, progress: Progress | None = None
) -> Pairs | None:
    """At least the k smallest non-zero eigenpairs, whole eigenspaces, proved complete by an inertia count.

    None where the iteration does not serve: the wanted eigenspaces are a large part of the whole space.
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
        ends = edges(values, problem.norm)
        whole = ends[(ends >= k) & (ends < len(values))].tolist()
        if not whole:
            want = max(want, len(values) + min(len(values), 32))
            continue
        last = whole[-1]
        count, above = _inertia(problem, values[last - 1], values[last])
        if count == last:
            return values, vectors, whole[0], above, inverse.solve
        if count < last:
            raise ArithmeticError(
                f"{last} eigenvalues found below {above} where the inertia counts {count}: "
                f'the graph may be too badly scaled; try solver="dense"'
            )
        want = len(values) + count - last
    return None


class _Inverse:
    """Multiplication by the inverse of the Laplacian outside its null space, by a sparse factor at a small shift."""

    def __init__(self, problem: Semidefinite, k: int, progress: Progress | None) -> None:
        n = problem.matrix.shape[0]
        self.problem, self.progress, self.steps = problem, progress, 0
        # Mazes of any size take about so many steps.
        self.expected = 25 + int(2.5 * k)
        # At most the smallest eigenvalue of any unweighted graph of this size (a path), so convergence is fast.
        # Digits lost to a smaller shift come back in `refine`.
        self.factor = _factor(problem, problem.norm * max(0.1 / n**2, 1e-13), problem.norm)

    def solve(self, X: Array) -> Array:
        """Solve for the columns of X ``(n, b)``; the result has no part in the null space."""
        Z = np.empty_like(X, order="F")
        # Column by column is faster than all at once, which do not fit into the processor's cache.
        for column, x in zip(Z.T, X.T, strict=True):
            column[:] = self.factor.solve(x)
        Z /= self.problem.norm
        return self.problem.project(Z)

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
            # ARPACK may start again from any vector.
            y: Array = self.factor.solve(outside(x.copy()) if locked.shape[1] else x)
            return outside(y)

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


def _factor(problem: Semidefinite, shift: float, unit: float = 1.0) -> Any:
    """SuperLU factor of the operator plus a shift, in this unit, in a symmetric order with pivots on the diagonal."""
    from scipy.sparse.linalg import splu

    n = problem.matrix.shape[0]
    A = csc_array(problem.matrix + shift * eye_array(n))
    A.data /= unit
    symmetric = {"SymmetricMode": True}
    return splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)


def _inertia(problem: Semidefinite, low: float, high: float) -> tuple[int, float]:
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
    n, norm = len(vectors), problem.norm
    values, error = values.copy(), np.zeros(count)
    active, low = np.arange(count), np.zeros((n, 0))
    width = max(4, ENTRIES_PER_BLOCK // n)
    for attempt in range(MAX_CORRECTIONS):
        ends = edges(values, norm)
        label = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        beyond = np.maximum(above - values, EPS * norm)
        floor = RESIDUAL_EPS * norm / np.minimum(gaps(values, norm), beyond)
        old, left, rest = values.copy(), [], []
        for at in range(0, len(active), width):
            columns = active[at : at + width]
            here = low[:, at : at + width] if attempt else None
            R = problem.residual(vectors[:, columns], here, old[columns])
            if float(np.abs(R).max()) > MAX_RESIDUAL * norm:
                raise ArithmeticError(
                    f"the eigenvectors are not exact enough (residual {np.abs(R).max():.1e}, the limit is "
                    f'{MAX_RESIDUAL * norm:.1e}): try solver="dense"'
                )
            C = vectors.T @ R
            values[columns] += C[columns, np.arange(len(columns))]
            inside = label[:, None] == label[columns]
            E = np.divide(C, values[columns] - old[:, None], out=np.zeros_like(C), where=~inside)
            step, size = vectors @ E, np.linalg.norm(E, axis=0)
            # Terms of second order, of which the largest is by the worst of the other vectors.
            error[columns] = floor[columns] + size * max(4.0 * float(size.max()), 4.0 * EPS)
            short = error[columns] > np.maximum(TARGET_INSIDE, 2.0 * floor[columns])
            if solve is not None:
                R -= vectors @ C
                outside, bound = _outside(problem, vectors, solve, R, old[columns], beyond[columns])
                step -= outside
                error[columns] += bound
                short |= bound > TARGET_OUTSIDE
            tail = _add(problem, vectors, here, columns, step)
            left.append(columns[short])
            if attempt + 1 < MAX_CORRECTIONS and short.any():
                rest.append(tail[:, short])
        active = np.concatenate(left)
        if not len(active):
            break
        low = np.hstack(rest) if rest else low
    return values, vectors, np.minimum(error, 1.0)


def _outside(
    problem: Laplacian,
    vectors: Array,
    solve: Callable[[Array], Array],
    R: Array,
    values: Array,
    beyond: Array,
) -> tuple[Array, Array]:
    """Solve ``(A - values) X = R`` outside the span of the vectors, and bound the error of X.

    The answer is ``Z = A^-1 R`` where that is exact enough: all eigenvalues outside are at least ``values + beyond``,
    so the error is at most ``values / beyond`` times Z. Other columns are solved by conjugate gradients with A^-1 as
    the preconditioner.
    """

    def clean(X: Array) -> Array:
        X -= vectors @ (vectors.T @ X)
        return X

    X = clean(solve(R))
    ratio = values / beyond
    bound = ratio * np.linalg.norm(X, axis=0)
    far = np.flatnonzero(bound > TARGET_OUTSIDE)
    R, Z, shift = R[:, far], X[:, far], values[far]
    X[:, far], P, size = 0.0, Z, np.einsum("ij,ij->j", R, Z)
    for _ in range(MAX_INNER_STEPS):
        if not len(far):
            break
        Q = clean(problem.matrix @ P - P * shift)
        step = size / np.einsum("ij,ij->j", P, Q)
        X[:, far] += step * P
        R = R - step * Q
        Z = clean(solve(R))
        size, last = np.einsum("ij,ij->j", R, Z), size
        P = Z + (size / last) * P
        bound[far] = (1.0 + ratio[far]) * np.linalg.norm(Z, axis=0)
        # Columns that are solved take no further part.
        going = bound[far] > TARGET_OUTSIDE
        far, R, P, shift, size = far[going], R[:, going], P[:, going], shift[going], size[going]
    return X, bound


def _add(
    problem: Laplacian, vectors: Array, low: Array | None, columns: NDArray[np.intp], step: Array
) -> Array:
    """Add a step to columns kept as unevaluated sums ``vectors + low``, outside the null space; the new `low`."""
    X = vectors[:, columns]
    step -= X - problem.project(X.copy())
    if low is not None:
        step += low
    vectors[:, columns] = X + step
    step -= vectors[:, columns] - X
    return step


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
