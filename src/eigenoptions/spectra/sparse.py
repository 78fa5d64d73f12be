"""The smallest eigenpairs of a large graph: ARPACK on a SuperLU factor, proved complete by an inertia count.

Mazes are bipartite: cells have two colours like a chess board. Then the states of one colour are eliminated, exactly,
and the iteration works on the other half.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array

from eigenoptions.spectra.canonical import edges
from eigenoptions.spectra.solvers import Array, Laplacian, Pairs, Progress, Semidefinite

# Eigenvectors found beyond the wanted ones, to see where an eigenspace ends.
SPARE_VECTORS = 2
MAX_RESTARTS, MAX_STARTS = 100, 3
# Smallest 1 - lambda of an eigenvector that is taken from half of a bipartite graph.
SMALLEST_COSINE = 0.1
# Entries of the halved matrix per entry of the whole one up to which the elimination pays: 2 in mazes. Eliminating a
# state with d neighbours connects all of them, d * d entries.
MAX_FILL = 4

Found = tuple[Array, Array, int, float, Callable[[Array], Array]]


def sparse(problem: Laplacian, k: int, rng: np.random.Generator, progress: Progress | None) -> Pairs | None:
    """At least the k smallest non-zero eigenpairs, of half the states where that is possible.

    None where the iteration does not serve: the wanted eigenspaces are a large part of the whole space.
    """
    if problem.halved() and fill(problem) <= MAX_FILL * problem.W.nnz:
        half = Half(problem)
        found = _sparse(half, k, rng, progress)
        lifted = found and half.lift(*found)
        if lifted is not None:
            return lifted
    return _sparse(problem, k, rng, progress)


def fill(problem: Laplacian) -> int:
    """Number of entries that the states of the first colour leave behind when they are eliminated, at most."""
    neighbours = np.diff(problem.W.indptr).astype(np.int64)
    return int((neighbours[problem.colour == 0] ** 2).sum())


def _sparse(
    problem: Semidefinite, k: int, rng: np.random.Generator, progress: Progress | None
) -> Found | None:
    """At least the k smallest non-zero eigenpairs, whole eigenspaces, proved complete by an inertia count."""
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
        Z: Array = self.factor.solve(X)
        Z /= self.problem.norm
        self.problem.project(Z.T)
        return Z

    def leading(self, count: int, locked: Array, rng: np.random.Generator) -> Array:
        """About `count` eigenvectors of the smallest eigenvalues, orthogonal to those that are `locked`."""
        from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

        n = len(self.problem.part)

        def outside(X: Array) -> Array:
            self.problem.project(X.T)
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


class Half(Semidefinite):
    """The normalized Laplacian of a bipartite graph without the states of one colour, ``M = I - B'B``.

    With ``L = [[I, -B], [-B', I]]`` an eigenvector y of M with eigenvalue ``x (2 - x)``, x < 1, gives the eigenvector
    ``(B y / (1 - x), y)`` of L with eigenvalue x. Half the states take half the time and memory.
    """

    def __init__(self, whole: Laplacian) -> None:
        from eigenoptions._kernels.spectra import eliminated

        self.whole = whole
        self.gone, self.keep = (np.flatnonzero(whole.colour == c) for c in (0, 1))
        W, degree, n = whole.W, whole.degree, len(self.keep)
        self.B = -whole.matrix[self.gone][:, self.keep]
        M = csr_array(eliminated(W.indptr, W.indices, W.data, degree, self.keep), shape=(n, n))
        # The norm is twice as large as needed: eigenvalues of L that count as equal do so here, too.
        super().__init__(M, 2.0, np.sqrt(degree[self.keep]), whole.part[self.keep], whole.n_zero)

    def lift(
        self, values: Array, vectors: Array, count: int, above: float, inverse: Callable[[Array], Array]
    ) -> Pairs | None:
        """Eigenpairs of the Laplacian from those of this matrix; None where they would lose too many digits."""
        if values[-1] > 1.0 - SMALLEST_COSINE**2:
            return None
        gone, keep, B, Bt = self.gone, self.keep, self.B, self.B.T
        ends = np.append(values, above)
        ends /= 1.0 + np.sqrt(1.0 - ends)
        X = np.empty((len(self.whole.part), len(values)), order="F")
        for x, y, value in zip(X.T, vectors.T, ends, strict=False):
            x[gone], x[keep] = B @ y / (1.0 - value), y
            x *= sqrt(0.5)

        def solve(R: Array) -> Array:
            outer = R[gone]
            Y = inverse(R[keep] + Bt @ outer)
            X = np.empty_like(R)
            X[gone], X[keep] = outer + B @ Y, Y
            self.whole.project(X.T)
            return X

        return ends[:-1], X, count, float(ends[-1]), solve
