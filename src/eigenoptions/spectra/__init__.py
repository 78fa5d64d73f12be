"""Laplacians, their eigenvectors, and the one basis everybody gets (paper, Section 2.3).

``L = D - W`` (combinatorial), ``D^-1/2 (D - W) D^-1/2`` (normalized, the paper's choice) or ``D^-1 (D - W)``
(random-walk); and two representations of the random walk on the graph, the successor and the default representation
(`representations`). Small graphs are diagonalised densely (`solvers`), large ones by Lanczos iteration on a sparse
factor (`sparse`), bipartite ones by half of their states.
Either way the result is complete (an inertia count proves it), verified (by the residuals of what is returned), as
accurate as double precision allows, and canonical: signs and the bases of repeated eigenvalues follow one rule that
depends on the eigenspaces alone, not on solver, seed or machine (`canonical`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from eigenoptions._validation import (
    check_choice,
    check_csr,
    check_float,
    check_int,
    check_real,
    check_settings,
    make_generator,
    readonly,
    set_readonly,
)
from eigenoptions.mdp import Features
from eigenoptions.spectra.canonical import canonical_basis, clusters
from eigenoptions.spectra.solvers import (
    DENSE_HALF_UP_TO_STATES,
    DENSE_UP_TO_STATES,
    HALF_UP_TO_SHARE,
    MAX_DENSE_STATES,
    Laplacian,
    Pairs,
    Progress,
    Semidefinite,
    dense,
    refine,
    scaled,
    tilted,
    verify,
)

__all__ = [
    "MAX_DENSE_STATES",
    "OPERATORS",
    "Operator",
    "Spectrum",
    "clusters",
    "laplacian",
    "operators",
    "spectrum",
]

log = logging.getLogger("eigenoptions")

# Above it products of the refinement overflow.
MAX_DEGREE = 1e290
# Class, dimensions and type of the data, indices and pointers of a graph. SciPy checks arrays for longer than it takes
# to diagonalise a small graph.
USUAL_KINDS = [(np.ndarray, 1, np.dtype(t)) for t in (np.float64, np.int32, np.int32)]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Operator:
    """A diffusion model ``D^-left (D - W) D^-right``; its eigenvectors follow from a symmetric one.

    Attributes
    ----------
    left, right
        The powers of the degrees.
    settings
        Names and default values of the settings that `spectrum` accepts with this operator. None: a value must be
        given.
    laplacian
        Whether the eigenvalues are those of a Laplacian: ascending, and zero once per component. Otherwise they are
        those of a representation of the walk, largest first.

    Examples
    --------
    >>> OPERATORS["random-walk"].power, OPERATORS["random-walk"].tilt
    (0.5, 0.5)
    """

    left: float
    right: float
    settings: Mapping[str, float | None] = field(default_factory=dict)
    laplacian: bool = True

    @property
    def power(self) -> float:
        """The p of the symmetric operator ``D^-p (D - W) D^-p`` with the same eigenvalues."""
        return (self.left + self.right) / 2

    @property
    def tilt(self) -> float:
        """The t in ``v = D^-t u``, which makes an eigenvector v of a symmetric one u."""
        return (self.left - self.right) / 2


OPERATORS = {
    "normalized": Operator(0.5, 0.5),
    "combinatorial": Operator(0.0, 0.0),
    "random-walk": Operator(1.0, 0.0),
    "successor": Operator(1.0, 0.0, {"gamma": 0.99}, laplacian=False),
    "default": Operator(1.0, 0.0, {"rewards": None, "temperature": 1.3}, laplacian=False),
}


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum:
    """Eigenpairs of a diffusion model: the proto-value functions (Section 2.3).

    Attributes
    ----------
    values
        ``(K,)`` ascending; largest first where the operator is a representation (``"successor"``, ``"default"``).
    vectors
        ``(d, K)`` unit columns, in the same order.
    operator
        The Laplacian's name.
    features
        The map phi from observations to ``(d,)``, or None for one-hot states.
    n_zero
        How many of the vectors have the Laplacian's eigenvalue zero: one per connected component of the graph.
    coords
        ``(S, 2)`` for pictures, or None.
    accuracy
        ``(K,)`` bound on the error of the entries of each vector, or None where it is not known: the residual over
        the distance to the next eigenvalue, and what the choice of the canonical basis adds to it.

    All arrays are read-only.

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

    def __post_init__(self) -> None:
        for name in ("values", "vectors", "coords", "accuracy"):
            given = getattr(self, name)
            if given is not None or name in ("values", "vectors"):
                object.__setattr__(self, name, readonly(given))
        if self.values.ndim != 1 or self.vectors.ndim != 2 or self.vectors.shape[1] != len(self.values):
            shapes = f"{self.values.shape} and {self.vectors.shape}"
            raise ValueError(f"values (K,) and vectors (d, K) must fit, got shapes {shapes}")
        for name in ("values", "vectors"):
            given = check_real(name, getattr(self, name))
            if not np.isfinite(given).all():
                wrong = given[~np.isfinite(given)][0]
                raise ValueError(
                    f"{name} must be finite, got {wrong}: leave out eigenpairs that did not converge"
                )

    def embedding(self, scale: str = "commute", *, t: int = 1) -> Array:
        """``(d, K)`` columns scaled so that distances between rows have a meaning.

        Parameters
        ----------
        scale
            ``"commute"``: columns over the square root of their eigenvalues, and 0 for eigenvalue zero. With all
            eigenvectors of the combinatorial Laplacian, the squared distance of two rows times the sum of all degrees
            is the expected number of steps of a random walk from one state to the other and back (Wang et al., 2023).
            ``"diffusion"``: columns times ``(1 - eigenvalue)^t``, a diffusion map (Coifman and Lafon, 2006).
        t
            Steps of the diffusion.

        Examples
        --------
        On a path of three states the walk from one end to the other and back takes 8 steps:

        >>> import eigenoptions as eo
        >>> rows = eo.spectrum(eo.graph(eo.maze("...")), operator="combinatorial").embedding("commute")
        >>> round(4 * float(((rows[0] - rows[2]) ** 2).sum()), 9)
        8.0
        """
        check_choice("scale", scale, ("commute", "diffusion"))
        if self.operator in OPERATORS and not OPERATORS[self.operator].laplacian:
            raise ValueError(
                f"an embedding needs eigenvalues of a Laplacian, but this is a spectrum of operator {self.operator!r}: "
                'use operator="random-walk", which has the same eigenvectors as "successor"'
            )
        if scale == "diffusion":
            return self.vectors * (1.0 - self.values) ** check_int("t", t, minimum=0)
        factor = np.zeros(len(self.values))
        np.divide(1.0, np.sqrt(self.values), out=factor, where=self.values > 0)
        factor[: self.n_zero] = 0.0
        return self.vectors * factor

    def plot(self, **settings: Any) -> Any:
        """A figure of the eigenvectors as heat maps; `settings` are those of `plots.pvfs`. It needs `coords`."""
        from eigenoptions import _text as sketch

        return sketch.plot(self, **settings)

    def __repr__(self) -> str:
        few = ", ".join(f"{x:.4g}" for x in self.values[:5]) + (", ..." if len(self.values) > 5 else "")
        return f"Spectrum({len(self.values)} of dimension {len(self.vectors)}, {self.operator}: {few})"

    def __str__(self) -> str:
        if self.coords is None:
            return repr(self)
        # Far below zero to far above.
        from eigenoptions import _text as sketch

        shades = "·-+#"
        maps = []
        for i in range(min(4, len(self.values))):
            column = self.vectors[:, i] / np.abs(self.vectors[:, i]).max()
            glyphs = [shades[min(int((x + 1) * 2), 3)] for x in column.tolist()]
            maps.append(f"e{i + 1} {self.values[i]:.4g}\n{sketch.text(self.coords, glyphs)}")
        return "\n\n".join([*maps, repr(self)])

    def _repr_html_(self) -> str:
        if self.coords is None:
            return f"<code>{escape(repr(self))}</code>"
        from eigenoptions import _text as sketch

        cells = "".join(
            f'<figure style="display:inline-block;margin:6px"><figcaption><code>e{i + 1}</code> '
            f"{self.values[i]:.4g}</figcaption>{sketch.svg(self.coords, values=self.vectors[:, i])}</figure>"
            for i in range(min(12, len(self.values)))
        )
        more = f"{len(self.values) - 12} more are not shown<br>" if len(self.values) > 12 else ""
        return f"<div>{cells}<br>{more}<code>{escape(repr(self))}</code></div>"


def operators() -> list[str]:
    """Names of the operators that need nothing but a graph, which the command line and the studio offer.

    >>> operators()
    ['normalized', 'combinatorial', 'random-walk', 'successor']
    """
    return [name for name, kind in OPERATORS.items() if None not in kind.settings.values()]


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
    kind = _operator(operator)
    if not kind.laplacian:
        known = ", ".join(name for name, other in OPERATORS.items() if other.laplacian)
        raise ValueError(f"the Laplacian must be one of {known}, got {operator!r}, which is a representation")
    W, degree, *_ = _weights(W)
    L = csr_array(scaled(W, degree, kind.left, kind.right), shape=W.shape)
    L.eliminate_zeros()
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
    **settings: Any,
) -> Spectrum:
    """The k smoothest eigenpairs of a graph, none missed, in the canonical basis (Section 2.3).

    Parameters
    ----------
    W
        ``(S, S)`` symmetric non-negative weights, as `graph` gives them.
    k
        How many; None for all.
    operator
        The k smallest eigenvalues of a Laplacian: ``"normalized"`` (the paper's), ``"combinatorial"`` or
        ``"random-walk"``. Or the k largest of a representation of the random walk ``P = D^-1 W`` on the graph:
        ``"successor"``, ``(I - gamma P)^-1``, whose eigenvectors are those of ``"random-walk"``; ``"default"``,
        ``(diag(exp(-rewards / temperature)) - P)^-1``, which depends on rewards.
    coords
        Kept for pictures; does not change the result.
    solver
        ``"dense"``, ``"sparse"`` or, by size, ``"auto"``. The result is the same. More than a third of the spectrum is
        always computed densely.
    rng
        Random generator of the start vector of the Lanczos iteration. The result does not depend on it.
    progress
        Called with the steps of the iteration done and about how many there will be: the second number may grow.
    settings
        Settings of the operator. ``"successor"``: `gamma` (0.99), the discount. ``"default"``: `rewards`, one negative
        number per state, and `temperature` (1.3): the higher, the less rewards matter.

    Notes
    -----
    The canonical basis: in the space of one (possibly repeated) eigenvalue, the first vector is the one with the
    largest single entry a unit vector of that space can have, positive there; the next likewise in what is left. Of
    equal entries the state with the lowest number counts. Vectors that peak are natural to look at: on the open room
    they run along the diagonals into the corners. Where k would cut a repeated eigenvalue, the whole eigenspace is
    computed before the first k vectors are returned, so a smaller k always gives the first columns of a larger one.

    Zero has one eigenvector per component, known in closed form. A graph in several pieces is reported by a warning
    on the logger ``eigenoptions``.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> path = eo.graph(eo.maze("...."))
    >>> spectrum(path, operator="combinatorial").values.round(3).tolist()
    [0.0, 0.586, 2.0, 3.414]
    """
    kind = _operator(operator)
    given = _settings(operator, kind, settings)
    if solver not in ("auto", "dense", "sparse"):
        raise ValueError(f'solver must be "auto", "dense" or "sparse", got {solver!r}')
    W, degree, part, n_zero, colour = _weights(W)
    n = W.shape[0]
    if k is not None and not (isinstance(k, int | np.integer) and 1 <= k <= n):
        raise ValueError(f"k must be in 1..{n} for {n} states, got {k!r}")
    wanted = n if k is None else int(k)
    if "rewards" in kind.settings:
        from eigenoptions.spectra.representations import default_spectrum

        values, vectors, accuracy = default_spectrum(W, degree, wanted, **given)
        return Spectrum(values, vectors, operator, None, 0, coords, accuracy)
    if n_zero > 1:
        log.warning(
            "the graph has %d components; each has its own eigenvalue 0, so that the first label is e%d, and no option "
            "leads from one to another",
            n_zero,
            n_zero + 1,
        )
    if type(rng) is not int or rng < 0:
        # Making a generator takes longer than the checks of a small graph, which needs none.
        rng = make_generator(rng)
    problem = Laplacian(W, degree, kind.power, part, n_zero, colour)
    few = min(wanted, n_zero)
    values, rows, accuracy = np.zeros(few), problem.null(few), np.full(few, 2e-16)
    if wanted > n_zero:
        more = wanted - n_zero
        found, basis, error = _smallest(problem, more, solver, rng, progress)
        vectors, error = canonical_basis(found, basis.T, problem.norm, error)
        values = np.concatenate([values, np.maximum(found[:more], 0.0)])
        rows = np.concatenate([rows, vectors.T[:more]])
        accuracy = np.concatenate([accuracy, error[:more]])
    vectors = rows.T
    if progress is not None:
        progress(1, 1)
    scale = np.where(degree > 0, degree, 1.0) ** -kind.tilt if kind.tilt else None
    if scale is not None:
        vectors, accuracy = tilted(vectors, accuracy, scale)
    verify(problem.arrays, problem.norm, values, vectors, scale)
    if "gamma" in given:
        # P v = (1 - lambda) v, so the inverse of I - gamma P has this eigenvalue.
        values = 1.0 / (1.0 - given["gamma"] * (1.0 - values))
    set_readonly(vectors)
    return Spectrum(values, vectors, operator, None, few, coords, accuracy)


def _smallest(
    problem: Laplacian, k: int, solver: str, rng: int | np.random.Generator, progress: Progress | None
) -> tuple[Array, Array, Array]:
    """At least the k smallest non-zero eigenvalues, rows of eigenvectors, and bounds on the lengths of their errors.

    They are whole eigenspaces, refined, and found in half of the states where that is possible.
    """
    n = len(problem.part)
    half = problem.halved() if k <= HALF_UP_TO_SHARE * n else None
    forms: list[Semidefinite] = [problem] if half is None else [half, problem]
    ways: list[Callable[[Semidefinite, int], Pairs | None]] = [dense]
    few = DENSE_UP_TO_STATES if half is None else DENSE_HALF_UP_TO_STATES
    if solver == "sparse" or (solver == "auto" and n > few):
        from eigenoptions.spectra.sparse import sparse

        if 3 * k <= n - problem.n_zero:
            ways.insert(0, partial(sparse, rng=np.random.default_rng(rng), progress=progress))
    for way in ways:
        for form in forms:
            pairs = way(form, k)
            if pairs is not None:
                return form.lift(*refine(form, *pairs))
    raise AssertionError("the dense solver answers for the whole problem")


def _operator(name: str) -> Operator:
    if name not in OPERATORS:
        raise ValueError(f"operator must be one of {', '.join(OPERATORS)}, got {name!r}")
    return OPERATORS[name]


def _settings(name: str, kind: Operator, given: dict[str, Any]) -> dict[str, Any]:
    """All settings of the operator, those that are not given by default."""
    check_settings(
        f"operator {name!r}", given, kind.settings, ("k", "operator", "coords", "solver", "rng", "progress")
    )
    chosen = {**kind.settings, **given}
    for setting, value in chosen.items():
        if value is None:
            raise ValueError(f"operator {name!r} needs {setting}: give {setting}=, one number per state")
    if "gamma" in chosen:
        chosen["gamma"] = check_float("gamma", chosen["gamma"], minimum=0, below=1)
    return chosen


def _weights(W: Any) -> tuple[csr_array, Array, NDArray[np.int32], int, NDArray[np.int8]]:
    """Checked symmetric weights with sorted rows; degrees, components and their number, colours (see `survey`)."""
    from eigenoptions._kernels.spectra import survey

    if not issparse(W) and not (isinstance(W, np.ndarray) and W.ndim == 2):
        raise ValueError(
            f"the graph must be an (S, S) array of weights, got {type(W).__name__}; call graph(mdp) first"
        )
    if not _usual(W):
        W = _in_order(W)
    if W.shape[0] != W.shape[1] or W.shape[0] == 0:
        raise ValueError(f"the graph must be an (S, S) array of weights, got shape {W.shape}")
    found = survey(W.indptr, W.indices, W.data)
    if not found[-1]:
        W = _in_order(W)
        found = survey(W.indptr, W.indices, W.data)
    degree, part, colour, n_parts, asymmetry, good = found
    if not good:
        raise ValueError("weights must be finite and not negative, and so must their sum at each state")
    most = degree.max()
    if most > MAX_DEGREE:
        raise ValueError(
            f"sums of weights must be at most {MAX_DEGREE:g}, got {most:g}: divide the weights by it"
        )
    if asymmetry > 0:
        difference = W - W.T
        if np.abs(difference.data).max(initial=0.0) > 1e-12 * max(W.data.max(), 1e-300):
            raise ValueError("weights must be symmetric: use graph(mdp, weights=W), or (W + W.T) / 2")
        return _weights(csr_array(W + W.T) / 2.0)
    return W, degree, part, n_parts, colour


def _usual(W: Any) -> bool:
    """Whether the arrays of a graph have the usual types and shapes, so that a kernel can check what is in them."""
    if type(W) is not csr_array or W.ndim != 2:
        return False
    arrays = (getattr(W, name, None) for name in ("data", "indices", "indptr"))
    kinds = [(type(a), a.ndim, a.dtype) for a in arrays if isinstance(a, np.ndarray)]
    return kinds == USUAL_KINDS and len(W.indptr) == W.shape[0] + 1


def _in_order(W: Any) -> csr_array:
    """Weights as csr with valid, sorted and different indices and no stored zeros, which are no edges."""
    W = check_csr("the graph", W) if issparse(W) else csr_array(check_real("weights", W))
    W = csr_array(W, dtype=np.float64, copy=True)
    W.sum_duplicates()
    W.eliminate_zeros()
    if W.indices.dtype != np.int32 and W.nnz < 2**31:
        # Kernels are compiled per type.
        W = csr_array((W.data, W.indices.astype(np.int32), W.indptr.astype(np.int32)), shape=W.shape)
    return W
