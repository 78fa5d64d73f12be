"""Laplacians of graphs and their eigenvectors in one canonical basis (paper, Section 2.3).

``L = D - W`` (combinatorial), ``D^-1/2 (D - W) D^-1/2`` (normalized, the paper's choice) or ``D^-1 (D - W)``
(random-walk), and the successor representation of the random walk, which has the eigenvectors of the last one.
The result is complete (an inertia count proves it), verified by the residuals of what is returned, accurate to rounding
(`eigensolver`), and canonical: signs and bases of repeated eigenvalues follow one rule that depends on the eigenspaces
alone, not on solver, seed or machine (`canonical`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._validation import (
    Record,
    check_choice,
    check_float,
    check_int,
    make_generator,
    readonly,
    set_readonly,
)
from eigenoptions.features import Map
from eigenoptions.spectra.canonical import canonical_basis
from eigenoptions.spectra.eigensolver import SymmetricLaplacian, smallest_eigenpairs
from eigenoptions.spectra.laplacian import OPERATORS, check_weights

log = logging.getLogger("eigenoptions")


Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum(Record):
    """Eigenpairs of a diffusion model: the proto-value functions (Section 2.3).

    Attributes
    ----------
    values, vectors
        ``(K,)`` ascending (largest first for operator ``"successor"``), and ``(d, K)`` unit columns. Read-only.
    operator
        Name of the operator.
    n_zero
        How many of the vectors have the Laplacian's eigenvalue zero: one per connected component of the graph.
    features
        The map phi from observations to ``(d,)``, or None for numbered states.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> eo.spectrum(eo.graph(eo.maze("four-rooms")), k=4)
    Spectrum(4 of dimension 104, normalized: 0, 0.007007, 0.008495, 0.01741)
    """

    values: Array
    vectors: Array
    operator: str = "normalized"
    n_zero: int = 1
    features: Map | None = None

    def __post_init__(self) -> None:
        for name in ("values", "vectors"):
            array = readonly(getattr(self, name), np.float64)
            if not np.isfinite(array).all():
                raise ValueError(
                    f"{name} must be finite: leave out eigenpairs that did not converge"
                )
            object.__setattr__(self, name, array)
        if self.values.shape != self.vectors.shape[1:] or self.vectors.ndim != 2:
            shapes = f"{self.values.shape} and {self.vectors.shape}"
            raise ValueError(
                f"values (K,) and vectors (d, K) must fit, got shapes {shapes}"
            )

    def embedding(self, scale: str = "commute", *, t: int = 1) -> Array:
        """``(d, K)`` columns scaled so that distances between rows have a meaning.

        Parameters
        ----------
        scale
            ``"commute"``: columns over the root of their eigenvalues, and 0 for eigenvalue zero. With all eigenvectors
            of the combinatorial Laplacian, the squared distance of two rows times the sum of all degrees is the
            expected number of steps of a random walk from one state to the other and back (Wang et al., 2023).
            ``"diffusion"``: columns times ``(1 - eigenvalue)^t``, a diffusion map (Coifman and Lafon, 2006).
        t
            Steps of the diffusion.

        Examples
        --------
        >>> import eigenoptions as eo
        >>> rows = eo.spectrum(eo.graph(eo.maze("...")), operator="combinatorial").embedding("commute")
        >>> round(4 * float(((rows[0] - rows[2]) ** 2).sum()), 9)
        8.0
        """
        check_choice("scale", scale, ("commute", "diffusion"))
        if self.operator == "successor":
            raise ValueError(
                "an embedding needs eigenvalues of a Laplacian: use operator='random-walk'"
            )
        if scale == "diffusion":
            return self.vectors * (1.0 - self.values) ** check_int("t", t, minimum=0)
        nonzero = (np.arange(len(self.values)) >= self.n_zero) & (self.values > 0)
        return self.vectors * np.divide(
            1.0, np.sqrt(self.values), out=np.zeros(len(nonzero)), where=nonzero
        )

    def __repr__(self) -> str:
        few = ", ".join(f"{x:.4g}" for x in self.values[:5]) + (
            ", ..." if len(self.values) > 5 else ""
        )
        return f"Spectrum({len(self.values)} of dimension {len(self.vectors)}, {self.operator}: {few})"


def spectrum(
    W: csr_array,
    k: int | None = None,
    operator: str = "normalized",
    *,
    gamma: float = 0.99,
    rng: int | np.random.Generator = 0,
    progress: Callable[[int, int], object] | None = None,
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
        ``"random-walk"``. Or the k largest of ``"successor"``, the representation ``(I - gamma P)^-1`` of the random
        walk ``P = D^-1 W``, whose eigenvectors are those of ``"random-walk"``.
    gamma
        Discount of the successor representation; other operators do not use it.
    rng
        Seed or generator of the start vector of the Lanczos iteration. The result does not depend on it.
    progress
        Called with the steps of the iteration done and about how many there will be: the second number may grow.

    Notes
    -----
    In the space of one (possibly repeated) eigenvalue, the first vector is the one with the largest single entry a unit
    vector of that space can have, positive there; the next likewise in what is left. Of equal entries the state with
    the lowest number counts. A smaller k always gives the first columns of a larger one. Zero has one eigenvector per
    connected component.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> path = eo.graph(eo.maze("...."))
    >>> spectrum(path, operator="combinatorial").values.round(3).tolist()
    [0.0, 0.586, 2.0, 3.414]
    """
    check_choice("operator", operator, OPERATORS)
    gamma, generator = (
        check_float("gamma", gamma, minimum=0, below=1),
        make_generator(rng),
    )
    W = check_weights(W)
    n = W.shape[0]
    k = n if k is None else check_int("k", k, maximum=n)

    # The symmetric operator with the same eigenvalues, and its null space, one vector per component.
    symmetric = SymmetricLaplacian(W, operator != "combinatorial")
    if symmetric.n_zero > 1:
        log.warning(
            f"the graph has {symmetric.n_zero} components: no option leads from one to another"
        )
    n_zero = min(k, symmetric.n_zero)
    values, vectors = np.zeros(k), np.zeros((n, k), order="F")
    states = np.flatnonzero(symmetric.component < n_zero)
    vectors[states, symmetric.component[states]] = symmetric.null_vector[states]
    if k > n_zero:
        eigenvalues, eigenvectors = smallest_eigenpairs(
            symmetric, k - n_zero, generator, progress
        )
        eigenvectors = canonical_basis(
            eigenvalues, eigenvectors, symmetric.norm, relative_error=0.0
        )
        values[n_zero:] = np.maximum(eigenvalues[: k - n_zero], 0.0)
        vectors[:, n_zero:] = eigenvectors[:, : k - n_zero]
    if progress is not None:
        progress(1, 1)

    # Eigenvectors of the operator itself, and their residuals.
    L = symmetric.matrix
    if operator in ("random-walk", "successor"):
        L = symmetric.random_walk
        vectors /= np.sqrt(symmetric.mass)[:, None]
        vectors /= np.linalg.norm(vectors, axis=0)
    largest = np.linalg.norm(L @ vectors - vectors * values, axis=0).max()
    if not largest <= 1e-8 * symmetric.norm:
        raise ValueError(
            f"the weights range too widely for eigenvectors of this operator (a residual is {largest:.1e}, the limit "
            f'is {1e-8 * symmetric.norm:.1e}): narrow that range, or use operator="normalized"'
        )
    if operator == "successor":
        # P v = (1 - lambda) v, so the inverse of I - gamma P has this eigenvalue.
        values = 1.0 / (1.0 - gamma * (1.0 - values))
    return Spectrum(values, set_readonly(vectors), operator, n_zero)
