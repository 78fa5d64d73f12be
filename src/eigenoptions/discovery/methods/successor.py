"""Eigenoptions of the successor representation (Machado et al., ICLR 2018).

The representation of the uniformly random policy P is ``Psi = (I - discount P)^-1``.
Purposes are its eigenvectors, in the order of the largest eigenvalues: where P is
symmetric, those of ``I - P`` in the order of the smallest (their Theorem). P counts
blocked moves, so a state at a wall is left less often; in a maze these are the
eigenvectors of the combinatorial Laplacian. (``operator="successor"`` of `spectrum` is
the representation of another walk, which goes to each neighbour alike.)
A representation learned by temporal differences can be given instead.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from eigenoptions._types import FloatArray
from eigenoptions._validation import check_float
from eigenoptions.discovery.method import discovery_method
from eigenoptions.mdp import MDP, graph
from eigenoptions.mdp.chains import uniform_walk
from eigenoptions.options import Purpose, eigenpurposes
from eigenoptions.spectra import Spectrum
from eigenoptions.spectra.laplacian import GraphLaplacian
from eigenoptions.spectra.representations import (
    compute_smallest_eigenvectors,
    successor_representation,
)
from eigenoptions.spectra.spectrum import compute_spectrum


@discovery_method(
    "successor",
    candidates="signs and eigenvectors",
)
def choose_purposes(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    discount: float = 0.99,
    both_signs: bool = True,
    representation: ArrayLike | None = None,
) -> list[Purpose]:
    """Eigenpurposes of the largest eigenvalues of the successor representation.

    Where P is not symmetric, they are those of ``(Psi + Psi') / 2``, as in the paper's
    successors. `representation` is a learned Psi (`learn_representation`), used in
    place of the exact one.
    """
    discount = check_float("discount", discount, minimum=0, below=1)
    n_vectors = None
    if n_options is not None:
        n_vectors = ceil(n_options / (2 if both_signs else 1))

    P = uniform_walk(mdp)
    is_symmetric = abs(P - P.T).max() < 1e-12
    if representation is None and is_symmetric:
        eigenvectors = _solve_symmetric(mdp, n_vectors, discount, rng)
    else:
        psi = _check_representation(representation, P, discount)
        eigenvectors = _solve_dense(psi, n_vectors)
    return eigenpurposes(eigenvectors, both_signs=both_signs)[:n_options]


def _solve_symmetric(
    mdp: MDP, n_vectors: int | None, discount: float, rng: np.random.Generator
) -> Spectrum:
    """Eigenpairs by those of ``I - P``, the sparse Laplacian of the moves."""
    laplacian = GraphLaplacian(graph(mdp, "transition"), "combinatorial")
    k = None
    if n_vectors is not None:
        k = min(mdp.n_states, laplacian.n_zero + n_vectors)
    slow = compute_spectrum(laplacian, k, rng=rng)
    values = 1.0 / (1.0 - discount * (1.0 - slow.values))
    return Spectrum(values, slow.vectors, "successor", n_zero=slow.n_zero)


def _solve_dense(psi: FloatArray, n_vectors: int | None) -> Spectrum:
    """Eigenpairs of the symmetric part of a representation, largest first."""
    k = len(psi)
    if n_vectors is not None:
        k = min(k, n_vectors)
    values, vectors = compute_smallest_eigenvectors(-(psi + psi.T) / 2.0, k)
    return Spectrum(-values, vectors, "successor", n_zero=0)


def _check_representation(
    representation: ArrayLike | None, P: csr_array, discount: float
) -> FloatArray:
    """The given representation ``(S, S)``, or that of the walk P."""
    if representation is None:
        return successor_representation(P, discount)
    n = P.shape[0]
    psi = np.asarray(representation)
    if psi.shape != (n, n) or not np.isfinite(psi).all():
        raise ValueError(
            f"representation must be finite numbers of shape ({n}, {n}), "
            f"got shape {psi.shape}"
        )
    return psi
