"""The smallest eigenpairs of a large graph: ARPACK on a sparse factor, proved complete by an inertia count."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.spectra.solvers import Array, Pairs, Progress, Semidefinite

# Eigenvectors found beyond the wanted ones, to see where an eigenspace ends.
SPARE_VECTORS = 2
MAX_RESTARTS, MAX_STARTS = 100, 3
# Relative error of ARPACK's eigenvalues; those of vectors are corrected in `refine`.
ARPACK_TOLERANCE = 1e-9


def sparse(
    problem: Semidefinite, k: int, rng: np.random.Generator, progress: Progress | None
) -> Pairs | None:
    """At least the k smallest non-zero eigenpairs, whole eigenspaces, proved complete by an inertia count.

    None where the iteration does not serve: the wanted eigenspaces are a large part of the whole space, or the k-th
    eigenvalue does not serve the original problem.
    """
    n = len(problem.part)
    inverse = _Inverse(problem, k, progress)
    values, vectors = np.zeros(0), np.zeros((n, 0), order="F")
    want = k + SPARE_VECTORS
    while 2 * want < n - problem.n_zero:
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
        ends = problem.edges(values)
        whole = ends[(ends >= k) & (ends < len(values))].tolist()
        if not whole:
            want = max(want, len(values) + min(len(values), 32))
            continue
        last = whole[-1]
        count, above = _inertia(problem, inverse.order, values[last - 1], values[last])
        if count == last:
            if values[whole[0] - 1] > problem.highest:
                return None
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
        n = len(problem.part)
        self.problem, self.progress, self.steps = problem, progress, 0
        # Mazes of any size take about so many steps.
        self.expected = 25 + int(2.5 * k)
        self.order = _order(problem)
        # At most the smallest eigenvalue of any unweighted graph of this size (a path), so convergence is fast.
        # Digits lost to a smaller shift come back in `refine`.
        self.factor = _factor(problem, self.order, problem.norm * max(0.1 / n**2, 1e-13))

    def solve(self, B: Array) -> Array:
        """Solve for the rows of B ``(b, n)``; the result has no part in the null space."""
        from eigenoptions._kernels.factors import solve

        return self.problem.project(solve(*self.factor, self.order, B))

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
            X = outside(x[:, None].copy()) if locked.shape[1] else x[:, None]
            Y = self.solve(X.T).T
            y: Array = (outside(Y) if locked.shape[1] else Y)[:, 0]
            return y

        most = n - self.problem.n_zero - locked.shape[1]
        width = max(count + 20, 3 * count // 2)
        operator = LinearOperator((n, n), step, dtype=np.float64)
        found = np.zeros((n, 0))
        for _ in range(MAX_STARTS):
            begin = step(rng.standard_normal(n))
            try:
                found = eigsh(
                    operator,
                    count,
                    which="LA",
                    v0=begin,
                    ncv=min(most, width),
                    tol=ARPACK_TOLERANCE,
                    maxiter=MAX_RESTARTS,
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


def _order(problem: Semidefinite) -> NDArray[np.int32]:
    """An order of the states with a sparse factor: minimum degree, as SuperLU computes it for an incomplete factor."""
    from scipy.sparse.linalg import spilu

    # The pattern alone counts. A large diagonal, so that no pivot is zero.
    pattern = problem.matrix.copy()
    pattern.data[:] = 1.0
    pattern.data[problem.diagonal] = pattern.shape[0]
    # The transpose is the same matrix, by columns.
    found = spilu(
        pattern.T,
        drop_tol=1.0,
        fill_factor=1.0,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    order: NDArray[np.int32] = np.empty_like(found.perm_c)
    order[found.perm_c] = np.arange(len(order))
    return order


def _factor(problem: Semidefinite, order: NDArray[np.int32], shift: float) -> tuple[Any, ...]:
    """Factor L D L' of the operator plus a shift: `_kernels.factors.factor`."""
    from eigenoptions._kernels.factors import factor

    A = problem.matrix
    found: tuple[Any, ...] = factor(A.indptr, A.indices, A.data, order, shift)
    return found


def _inertia(problem: Semidefinite, order: NDArray[np.int32], low: float, high: float) -> tuple[int, float]:
    """Number of non-zero eigenvalues below a point between two eigenvalues, and the point.

    By Sylvester's law the signs of the pivots count the eigenvalues. A pivot close to zero makes the next ones huge and
    their signs uncertain; then another point is tried.
    """
    counts: dict[float, tuple[int, float]] = {}
    for share in (0.5, 0.4, 0.6, 0.3, 0.7):
        point = low + share * (high - low)
        pivots = _factor(problem, order, -point)[-1]
        growth = float(np.abs(pivots).max())
        if not (pivots.all() and growth < np.inf):
            continue
        counts[growth] = int((pivots < 0).sum()) - problem.n_zero, point
        if 1e-14 * growth <= high - low:
            break
    if not counts:
        raise ArithmeticError(f'no eigenvalue count is possible between {low} and {high}; try solver="dense"')
    return counts[min(counts)]
