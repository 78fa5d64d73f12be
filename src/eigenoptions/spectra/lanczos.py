"""Block Lanczos iteration, and the order in which to eliminate a sparse matrix.

What `spectra` needs to find the ends of a large spectrum: `lanczos` finds leading eigenvectors of an operator that is
only known by what it does to a few vectors, `elimination_order` keeps the sparse factor behind that operator sparse.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvals_banded, solve_banded
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import spilu

BLOCK = 2  # vectors of a block: a solve for two costs little more than a solve for one, and pairs are found at once
WIDE = 2 * BLOCK  # diagonals of the projected matrix that can be other than zero, from the main one down
GLANCE = 200  # basis vectors from which a look at one Ritz vector is worth it before all are computed

Array = NDArray[np.float64]


def lanczos(
    apply: Callable[[Array], None],
    project: Callable[[Array], None],
    rank: int,
    want: int,
    locked: Array,
    rng: np.random.Generator,
) -> Array:
    """The `want` eigenvectors (as rows) of the largest eigenvalues of a positive operator, orthogonal to `locked`.

    Block Lanczos without restarts: after the recurrence with the last two blocks, one pass over the whole basis keeps
    it orthogonal to working precision. `apply` and `project` work on columns (n, b) in place; `project` removes the
    operator's null space, whose complement has dimension `rank`.

    Beside a huge eigenvalue small ones drown in its rounding. Those below 1e-5 of the largest are left out: fewer rows
    than wanted come back, and the caller asks again with these locked.
    """
    n, most = locked.shape[1], rank - len(locked)
    want = min(want, most)
    basis = _Basis(locked, apply, project, rng)
    begin = rng.standard_normal((n, min(BLOCK, most)))
    apply(begin)
    Q, _ = basis.extend(begin.T.copy(), 0.0)
    before = Q[:0]
    T = np.zeros((WIDE, 0))  # by diagonals: entry (j + d, j) at T[d, j]
    tested, least = 0, 0.0  # size of the basis at the last test, and what was too small then
    scale = 0.0  # of the operator: what is far smaller is rounding
    while True:
        m, b = basis.size, len(Q)
        X = Q.T.copy()
        apply(X)
        W = X.T.copy()
        scale = max(scale, float(np.linalg.norm(W, axis=1).max()))
        near = np.concatenate([before, Q])
        H = near @ W.T
        W -= H.T @ near
        T = np.pad(T, ((0, 0), (0, b)))
        for c in range(b):
            for j in range(m - len(near), m - b + c + 1):
                T[m - b + c - j, j] = H[j - m + len(near), c]
        full, narrow = m == most, most - m < b  # at the very end the basis spans all there is
        if not full:
            before = Q
            Q, R = basis.extend(W[: most - m], scale)
        if full or (not narrow and m >= 1.5 * want and m // b % 2 == 0):
            # All Ritz vectors take m^3 steps, so they wait for the slowest one; not for ever, as that is a guess.
            if GLANCE <= m < 1.25 * tested and not full and not _settled(T, want, R, least):
                continue
            tested = m
            theta, S = np.linalg.eigh(_full(T))
            theta, S = theta[::-1][:want], S[:, ::-1][:, :want]
            least = 1e-5 * float(theta[0])
            clear = theta >= least
            error = np.linalg.norm(R @ S[-b:], axis=0) if not full else np.zeros(want)
            if (error <= 1e-14 * theta)[clear].all():
                return basis.combine(S[:, clear])


def _full(T: Array) -> Array:
    """The lower half of the symmetric matrix (m, m) with diagonals T."""
    m = T.shape[1]
    out = np.zeros((m, m))
    for d in range(min(WIDE, m)):
        np.fill_diagonal(out[d:], T[d, : m - d])
    return out


def _settled(T: Array, want: int, R: Array, least: float) -> bool:
    """Whether the last of the wanted Ritz vectors (not below `least`) has converged: m^2 steps in all."""
    m = T.shape[1]
    at = m - want, m - want
    last = eigvals_banded(T, lower=True, select="i", select_range=at, check_finite=False)
    theta = max(float(last[0]), least)
    band = np.zeros((2 * WIDE - 1, m))
    for d in range(WIDE):
        band[WIDE - 1 + d] = T[d]
        band[WIDE - 1 - d, d:] = T[d, : m - d]
    band[WIDE - 1] -= theta
    x = np.ones(m)
    try:
        for _ in range(3):
            x = solve_banded((WIDE - 1, WIDE - 1), band, x, check_finite=False)
            x /= np.linalg.norm(x)
    except np.linalg.LinAlgError:  # a pivot is zero
        return True
    return bool(np.linalg.norm(R @ x[-len(R) :]) <= 1e-14 * theta)


class _Basis:
    """Orthonormal rows that grow, in chunks, so that nothing is copied as they do."""

    CHUNK = 32

    def __init__(
        self,
        locked: Array,
        apply: Callable[[Array], None],
        project: Callable[[Array], None],
        rng: np.random.Generator,
    ) -> None:
        self.locked, self.apply, self.project, self.rng = locked, apply, project, rng
        self.chunks: list[Array] = []
        self.size = 0

    def extend(self, W: Array, scale: float) -> tuple[Array, Array]:
        """Add the rows of W (b, n), made orthonormal to all before; returns them and R with ``W' = Q' R``.

        Where nothing of a row is left but rounding in units of `scale` (an invariant subspace is found), a random
        direction takes its place.
        """
        b, n = W.shape
        R = np.zeros((b, b))
        first = self.size
        for c in range(b):
            w = W[c]
            length = self._clean(w, R[:, c], first)
            if length <= 1e-13 * scale:
                fresh = self.rng.standard_normal((n, 1))
                self.apply(fresh)
                w[:] = fresh[:, 0]
                length, R[c, c] = self._clean(w, np.zeros(b), first), 0.0
            else:
                R[c, c] = length
            w /= length
            if self.size % self.CHUNK == 0:
                self.chunks.append(np.empty((self.CHUNK, n)))
            self.chunks[-1][self.size % self.CHUNK] = w
            self.size += 1
        return W, R

    def _clean(self, w: Array, r: Array, first: int) -> float:
        """Make w orthogonal to everything, in place; coefficients on rows from `first` on are added to r."""
        old = float(np.linalg.norm(w))
        for _ in range(4):
            self.project(w[:, None])
            if len(self.locked):
                w -= (self.locked @ w) @ self.locked
            for i, chunk in enumerate(self.chunks):
                filled = chunk[: self.size - i * self.CHUNK]
                h = filled @ w
                w -= h @ filled
                mine = h[max(first - i * self.CHUNK, 0) :]
                if len(mine):
                    at = max(i * self.CHUNK - first, 0)
                    r[at : at + len(mine)] += mine
            new = float(np.linalg.norm(w))
            if new > 0.5 * old:  # once is enough unless much was taken away
                break
            old = new
        return new

    def combine(self, S: Array) -> Array:
        """Unit rows ``S' Q``, for S (m, k); the basis is given up on the way to spare memory."""
        out = np.zeros((S.shape[1], self.chunks[0].shape[1]))
        while self.chunks:
            chunk = self.chunks.pop()
            low = len(self.chunks) * self.CHUNK
            part = S[low : low + self.CHUNK]
            out += part.T @ chunk[: len(part)]
        out /= np.linalg.norm(out, axis=1)[:, None]
        return out


def elimination_order(L: csr_array) -> NDArray[np.int32]:
    """A fill-reducing order: SuperLU's minimum degree, taken from an incomplete factor that drops everything."""
    A = csc_array(L + (L.diagonal().max() or 1.0) * eye_array(L.shape[0]))
    partial = spilu(
        A,
        drop_tol=1.0,
        fill_factor=1,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    order = np.empty(L.shape[0], dtype=np.int32)
    order[partial.perm_c] = np.arange(L.shape[0], dtype=np.int32)
    return order
