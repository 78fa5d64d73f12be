"""Laplacians, their eigenvectors, and the one basis everybody gets (paper, Section 2.3).

``L = D - W`` (combinatorial), ``D^-1/2 (D - W) D^-1/2`` (normalized, the paper's choice) or ``D^-1 (D - W)``
(random-walk). Small graphs are diagonalised densely, large ones by block Lanczos iteration on a sparse factor.
Either way the answer is complete (an inertia count proves it) and canonical: signs and the bases of repeated
eigenvalues follow one rule that depends on the eigenspaces alone, not on solver, seed or machine.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array, issparse
from scipy.sparse.csgraph import connected_components

from eigenoptions import _sketch as sketch
from eigenoptions.mdp import Features
from eigenoptions.spectra.lanczos import BLOCK, elimination_order, lanczos

log = logging.getLogger("eigenoptions")

OPERATORS = ("normalized", "combinatorial", "random-walk")
DENSE = 512  # states up to which LAPACK on the full matrix is faster than any sparse way
MOST_DENSE = 20_000  # beyond this the full matrix does not fit in a few GB
SAME = 1e-9  # relative distance below which neighbouring eigenvalues are one repeated eigenvalue
NOISE = 1e-13  # the same, absolute, in units of the operator's norm
ALIKE = 25, 1.3  # steps of an iteration, and steps a vector: about what mazes of any size take
ROUNDING = 1e-14  # error of an eigenvector's entries, in units of the operator's norm over the gap
TIE = 1e-8  # relative distance below which two entries of an eigenvector are of equal size

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum:
    """Eigenpairs of a diffusion model: the proto-value functions (Section 2.3).

    Attributes
    ----------
    values
        ``(K,)`` ascending.
    vectors
        ``(d, K)`` unit columns, in the same order.
    operator
        The Laplacian's name.
    features
        The map phi from observations to ``(d,)``, or None for one-hot states.
    n_zero
        How many of the values are zero: one a connected component of the graph.
    coords
        ``(S, 2)`` for pictures, or None.
    accuracy
        ``(K,)`` bound on the error of the entries of each vector (rounding, divided by the distance to the next
        eigenvalue), or None where it is not known.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> eo.spectrum(eo.graph(eo.maze("four-rooms")), k=4)
    Spectrum(4 of dimension 104, normalized: 0, 0.007007, 0.008495, 0.01741)
    """

    values: Array
    vectors: Array
    operator: str = "normalized"
    features: Features | None = None
    n_zero: int = 1
    coords: NDArray[np.int_] | None = None
    accuracy: Array | None = None

    def __repr__(self) -> str:
        few = ", ".join(f"{x:.4g}" for x in self.values[:5]) + (", ..." if len(self.values) > 5 else "")
        return f"Spectrum({len(self.values)} of dimension {len(self.vectors)}, {self.operator}: {few})"

    def __str__(self) -> str:
        if self.coords is None:
            return repr(self)
        shades = "·-+#"  # far below zero to far above
        maps = []
        for i in range(min(4, len(self.values))):
            column = self.vectors[:, i] / np.abs(self.vectors[:, i]).max()
            glyphs = [shades[min(int((x + 1) * 2), 3)] for x in column.tolist()]
            maps.append(f"e{i + 1} {self.values[i]:.4g}\n{sketch.text(self.coords, glyphs)}")
        return "\n\n".join([*maps, repr(self)])

    def _repr_html_(self) -> str:
        if self.coords is None:
            return f"<code>{escape(repr(self))}</code>"
        cells = "".join(
            f'<figure style="display:inline-block;margin:6px"><figcaption><code>e{i + 1}</code> '
            f"{self.values[i]:.4g}</figcaption>{sketch.svg(self.coords, values=self.vectors[:, i])}</figure>"
            for i in range(min(12, len(self.values)))
        )
        return f"<div>{cells}<br><code>{escape(repr(self))}</code></div>"


def laplacian(W: csr_array, operator: str = "normalized") -> csr_array:
    """Laplacian of a graph with symmetric weights W (Section 2.3).

    An isolated state has degree 0; it is divided by 1 instead, so that its row is empty and it has its own
    eigenvalue zero, as every component has.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> laplacian(eo.graph(eo.maze("S.G")), "combinatorial").toarray().tolist()
    [[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]]
    """
    if operator not in OPERATORS:
        raise ValueError(f"operator must be one of {', '.join(OPERATORS)}, got {operator!r}")
    W = _weights(W)
    degree = np.asarray(W.sum(axis=1)).ravel()
    L = csr_array(diags_array(degree) - W)
    if operator == "combinatorial":
        return L
    degree = np.where(degree > 0, degree, 1.0)
    if operator == "random-walk":
        return csr_array(diags_array(1.0 / degree) @ L)
    root = 1.0 / np.sqrt(degree)
    rows = np.repeat(np.arange(len(root)), np.diff(L.indptr))
    L.data *= root[rows] * root[L.indices]  # one product, so that L stays symmetric to the last bit
    return L


def spectrum(
    W: csr_array,
    k: int | None = None,
    operator: str = "normalized",
    *,
    coords: NDArray[np.int_] | None = None,
    solver: str = "auto",
    rng: int | np.random.Generator = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Spectrum:
    """The k smallest eigenpairs of a graph's Laplacian, none missed, in the canonical basis (Section 2.3).

    Parameters
    ----------
    W
        ``(S, S)`` symmetric non-negative weights, as `graph` gives them.
    k
        How many; None for all.
    operator
        ``"normalized"`` (the paper's), ``"combinatorial"`` or ``"random-walk"``.
    coords
        Kept for pictures; does not change the result.
    solver
        ``"dense"``, ``"sparse"`` or, by size, ``"auto"``. The result is the same.
    rng
        Start of the Lanczos iteration. The result does not depend on it, which is tested.
    progress
        Called with the steps of the iteration done and about how many there will be: the second number may grow.

    Notes
    -----
    The canonical basis: in the space of one (possibly repeated) eigenvalue, the first vector is the one with the
    largest single entry a unit vector of that space can have, positive there; the next likewise in what is left. Of
    equal entries the state with the lowest number counts. Vectors that peak are natural to look at: on the open room
    they run along the diagonals into the corners. Where k would cut a repeated eigenvalue, the whole eigenspace is
    computed before the first k vectors are returned, so a smaller k always gives the first columns of a larger one.

    Zero has one eigenvector a component, known in closed form. A graph in several pieces is reported by a warning
    on the logger ``eigenoptions``.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> path = eo.graph(eo.maze("...."))
    >>> spectrum(path, operator="combinatorial").values.round(3).tolist()
    [0.0, 0.586, 2.0, 3.414]
    """
    if operator not in OPERATORS:
        raise ValueError(f"operator must be one of {', '.join(OPERATORS)}, got {operator!r}")
    if solver not in ("auto", "dense", "sparse"):
        raise ValueError(f'solver must be "auto", "dense" or "sparse", got {solver!r}')
    W = _weights(W)
    n = W.shape[0]
    if k is not None and not (isinstance(k, int | np.integer) and 1 <= k <= n):
        raise ValueError(f"k must be in 1..{n} for {n} states, got {k!r}")
    wanted = n if k is None else int(k)
    symmetric = "combinatorial" if operator == "combinatorial" else "normalized"
    L = laplacian(W, symmetric)
    degree = np.asarray(W.sum(axis=1)).ravel()
    degree[degree == 0] = 1.0
    n_zero, part = connected_components(W, directed=False)
    if n_zero > 1:
        log.warning(
            "the graph has %d components; each has its own eigenvalue 0, and no option leads from one to another",
            n_zero,
        )
    zero = _Zero(part, n_zero, np.ones(n) if symmetric == "combinatorial" else np.sqrt(degree))
    values, vectors = np.zeros(n_zero), zero.vectors(min(wanted, n_zero))
    accuracy = np.full(n_zero, ROUNDING)
    if wanted > n_zero:
        more = wanted - n_zero
        dense = n <= DENSE or 3 * more > n - n_zero
        if solver == "dense" or (solver == "auto" and dense):
            found, columns = _dense(L, zero)
        else:
            found, columns = _sparse(L, zero, more, np.random.default_rng(rng), progress)
        found = np.maximum(found, 0.0)  # a very weak link leaves nothing but rounding
        columns = canonical(found, columns, _norm(L))
        accuracy = np.concatenate([accuracy, _accuracy(found, len(columns), _norm(L))])
        values, vectors = np.concatenate([values, found]), np.concatenate([vectors, columns[:more]])
    if progress is not None:
        progress(1, 1)
    if operator == "random-walk":
        vectors /= np.sqrt(degree)
        vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    return Spectrum(
        values[:wanted],
        vectors[:wanted].T,
        operator,
        None,
        min(n_zero, wanted),
        coords,
        accuracy[:wanted],
    )


def canonical(values: Array, rows: Array, norm: float = 1.0) -> Array:
    """The agreed orthonormal basis of every eigenspace (see `spectrum`), for eigenvectors as rows, in place.

    `values` may go on after the last row: an eigenspace is known the less exactly, the closer the next eigenvalue is
    (to about 1e-15 over the gap), and entries count as equal when they differ by less than that.

    >>> tilted = np.array([[0.6, 0.8], [-0.8, 0.6]])
    >>> canonical(np.array([1.0, 1.0]), tilted).round(12) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """
    for low, high in clusters(values[: len(rows)], norm):
        below = values[low] - values[low - 1] if low > 0 else np.inf
        above = values[high] - values[high - 1] if high < len(values) else np.inf
        tie = min(TIE + 5e-14 * norm / min(below, above), 5e-3)
        block = rows[low:high]
        # At every state, the squared peak that a unit vector of this space can have there.
        size = np.einsum("ij,ij->j", block, block)
        if high - low == 1:
            if block[0, _peak(size, tie)] < 0:
                block *= -1.0
            continue
        chosen = np.zeros((0, high - low))  # coefficients of the new basis in the old one
        for _ in range(high - low):
            c = block[:, _peak(size, tie)]
            for _ in range(2):
                c = c - chosen.T @ (chosen @ c)
            chosen = np.vstack([chosen, c / np.linalg.norm(c)])
            size -= (chosen[-1] @ block) ** 2
        block[:] = chosen @ block
    return rows


def clusters(values: Array, norm: float = 1.0) -> list[tuple[int, int]]:
    """Ranges ``(low, high)`` of equal neighbours in ascending eigenvalues.

    >>> clusters(np.array([0.5, 1.0, 1.0 + 1e-14, 2.0]))
    [(0, 1), (1, 3), (3, 4)]
    """
    cuts = np.flatnonzero(np.diff(values) > SAME * np.abs(values[1:]) + NOISE * norm) + 1
    edges = [0, *cuts.tolist(), len(values)]
    return [(a, b) for a, b in pairwise(edges) if b > a]


def _accuracy(values: Array, count: int, norm: float) -> Array:
    """Bound on the error of the entries of the first `count` vectors: rounding over the gap around each cluster."""
    edges = np.concatenate([[0.0], values])
    bound = np.empty(count)
    for low, high in clusters(values[:count], norm):
        above = values[high] - values[high - 1] if high < len(values) else np.inf
        gap = max(min(edges[low + 1] - edges[low], above), NOISE * norm)
        bound[low:high] = min(ROUNDING * (high - low) * norm / gap, 1.0)
    return bound


def _peak(size: Array, tie: float) -> int:
    """The first of the largest squares."""
    return int(np.argmax(size >= (1.0 - 2 * tie) * size.max()))


class _Zero:
    """The null space of a Laplacian: on each component one vector, proportional to `weight`."""

    def __init__(self, part: NDArray[np.int32], count: int, weight: Array) -> None:
        self.part, self.count = part, count
        self.unit = weight / np.sqrt(np.bincount(part, weight**2, count))[part]

    def vectors(self, count: int) -> Array:
        rows = np.zeros((count, len(self.part)))
        mine = self.part < count
        rows[self.part[mine], np.flatnonzero(mine)] = self.unit[mine]
        return rows

    def project(self, X: Array) -> None:
        """Remove it from the columns of X (n, b), in place."""
        if self.count == 1:
            X -= self.unit[:, None] * (self.unit @ X)
            return
        for column in X.T:
            column -= np.bincount(self.part, self.unit * column, self.count)[self.part] * self.unit


def _dense(L: csr_array, zero: _Zero) -> tuple[Array, Array]:
    """All non-zero eigenpairs, by LAPACK; the null space is moved out of the way, above everything."""
    n = L.shape[0]
    if n > MOST_DENSE:
        raise ValueError(
            f"all or a third of {n} eigenvectors cannot be held: the limit is {MOST_DENSE}; ask for fewer"
        )
    A = L.toarray()
    Z = zero.vectors(zero.count)
    A += (4.0 * _norm(L)) * (Z.T @ Z)
    values, vectors = eigh(A, overwrite_a=True)
    keep = n - zero.count
    return values[:keep], np.ascontiguousarray(vectors[:, :keep].T)


def _sparse(
    L: csr_array,
    zero: _Zero,
    k: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[Array, Array]:
    """At least the k smallest non-zero eigenpairs, whole eigenspaces only, proved complete by an inertia count.

    There is one value more than vectors (unless all are found): the next one.
    """
    from eigenoptions._kernels.factor import backsolve, factor, symbolic

    n = L.shape[0]
    norm = _norm(L)
    order = elimination_order(L)
    A = csr_array(L[order][:, order])
    parent, start = symbolic(A.indptr, A.indices)
    null = _Zero(zero.part[order], zero.count, zero.unit[order])
    steps = 0

    def inverse(shift: float) -> Callable[[Array], None]:
        """Multiplication by ``(A + shift)^-1`` outside the null space, in place."""
        rows, entries, pivots = factor(A.indptr, A.indices, A.data, shift, parent, start)

        def apply(X: Array) -> None:
            nonlocal steps
            backsolve(start, rows, entries, pivots, X)
            null.project(X)
            steps += 1
            if progress is not None:
                progress(steps, max(ALIKE[0] + int(ALIKE[1] * k), steps + 1))

        return apply

    def fitted(apply: Callable[[Array], None], found: Array) -> Callable[[Array], None]:
        """The same with a shift of the size of the smallest eigenvalue that is not found yet.

        A shift well above it costs convergence (a perfect maze of 10^6 states has 5e-10), one far below costs digits.
        """
        probe = rng.standard_normal((n, 1))
        for _ in range(3):
            apply(probe)
            probe -= found.T @ (found @ probe)
            probe /= np.linalg.norm(probe)
        return inverse(0.1 * max(float((probe.T @ (A @ probe))[0, 0]), 1e-13 * norm))

    def below(low: float, high: float) -> int:
        """How many non-zero eigenvalues lie below the gap (low, high)."""
        counts: dict[float, int] = {}
        for share in (0.5, 0.4, 0.6, 0.3, 0.7):
            pivots = factor(A.indptr, A.indices, A.data, -low - share * (high - low), parent, start)[2]
            if len(pivots) == n:
                # Nothing is exchanged, so a pivot close to zero makes the next ones huge, and their signs
                # uncertain: then another point of the gap is tried.
                growth = float(np.abs(pivots).max())
                counts[growth] = int((pivots < 0).sum()) - zero.count
                if 1e-14 * growth <= high - low:
                    break
        if not counts:
            raise ArithmeticError(f"no eigenvalue count is possible between {low} and {high}")
        return counts[min(counts)]

    values, vectors = np.zeros(0), np.zeros((0, n))
    room = n - zero.count
    want = min(room, k + BLOCK)
    apply = fitted(inverse(norm / float(n) ** 2), vectors)
    while True:
        found = lanczos(apply, null.project, room, max(want - len(values), 1), vectors, rng)
        vectors = np.concatenate([vectors, found]) if len(vectors) else found
        if len(vectors) < want:
            apply = fitted(apply, vectors)
        del found
        values = np.einsum("ij,ij->i", vectors, (A @ vectors.T).T)
        ranks = np.argsort(values, kind="stable")
        values, vectors = values[ranks], vectors[ranks]
        if len(values) >= room:
            break
        # The eigenspace that holds the k-th value must be followed by a gap; the count below the gap must agree.
        whole = [high for _, high in clusters(values, norm) if k <= high < len(values)]
        if not whole:
            if len(values) >= want:
                want = min(room, want + max(2 * BLOCK, want // 2))
            continue
        count = below(values[whole[0] - 1], values[whole[0]])
        if count == whole[0]:
            values, vectors = values[: count + 1], vectors[:count]
            break
        if count < whole[0]:
            raise ArithmeticError(f"{whole[0]} eigenvalues found where the inertia counts {count}")
        want = len(values) + count - whole[0]
    out = np.empty_like(vectors)
    out[:, order] = vectors
    return values, out


def _norm(L: csr_array) -> float:
    """Scale of the operator: its largest diagonal entry (its norm is at most twice that)."""
    return float(L.diagonal().max()) or 1.0


def _weights(W: Any) -> csr_array:
    """Checked symmetric weights."""
    if not issparse(W) and not (isinstance(W, np.ndarray) and W.ndim == 2):
        raise ValueError(
            f"the graph must be an (S, S) array of weights, got {type(W).__name__}; call graph(mdp) first"
        )
    W = csr_array(W, dtype=np.float64)
    if (W.data == 0).any():  # a stored zero is no edge
        W = W.copy()
        W.eliminate_zeros()
    if W.shape[0] != W.shape[1] or W.shape[0] == 0:
        raise ValueError(f"the graph must be an (S, S) array of weights, got shape {W.shape}")
    if not (np.isfinite(W.data).all() and (W.data >= 0).all()):
        raise ValueError("weights must be finite and not negative")
    if (abs(W - W.T) > 1e-12 * max(W.data.max(initial=0.0), 1e-300)).nnz:
        raise ValueError("weights must be symmetric: use graph(mdp, weights=W), or (W + W.T) / 2")
    return W
