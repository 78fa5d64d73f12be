"""Eigenoptions of the successor representation (Machado et al., ICLR 2018).

The representation of the uniformly random policy P is ``Psi = (I - discount P)^-1``. Purposes are its eigenvectors, in
the order of the largest eigenvalues: where P is symmetric, those of ``I - P`` in the order of the smallest (their
Theorem). P counts blocked moves, so a state at a wall is left less often; in a maze these are the eigenvectors of the
combinatorial Laplacian. A representation learned by temporal differences can be given instead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from eigenoptions._validation import check_float
from eigenoptions.discovery.methods import Method, n_eigenvectors
from eigenoptions.mdp import MDP
from eigenoptions.options import Purpose, eigenpurposes
from eigenoptions.spectra import Spectrum, spectrum
from eigenoptions.spectra.representations import smallest_eigenvectors, successor_representation, uniform_walk


def purposes(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    discount: float = 0.99,
    both_signs: bool = True,
    representation: ArrayLike | None = None,
) -> list[Purpose]:
    """Eigenpurposes of the largest eigenvalues of the successor representation.

    Where P is not symmetric, they are those of ``(Psi + Psi') / 2``, as in the paper's successors. `representation`
    is a learned Psi (`learned_successor`), used in place of the exact one.
    """
    check_float("discount", discount, minimum=0, below=1)
    P = uniform_walk(mdp)
    difference = P - P.T
    reversible = not difference.nnz or float(np.abs(difference.data).max()) < 1e-12
    exact = representation is None and reversible
    first = int(connected_components(P, directed=False)[0]) if exact else 0
    k = n_eigenvectors(mdp, n_options, first, both_signs)
    found = _symmetric(P, k, discount, rng) if exact else _dense(mdp, P, k, discount, representation)
    return eigenpurposes(found, both_signs=both_signs)[:n_options]


def _symmetric(P: csr_array, k: int, discount: float, rng: np.random.Generator) -> Spectrum:
    """Spectrum of a symmetric walk: the Laplacian of its moves is ``I - P``."""
    W = P.copy()
    W.setdiag(0.0)
    W = csr_array((W + W.T) / 2.0)
    W.eliminate_zeros()
    found = spectrum(W, k, "combinatorial", rng=rng)
    values = 1.0 / (1.0 - discount * (1.0 - found.values))
    return Spectrum(values, found.vectors, "successor", found.n_zero)


def _dense(mdp: MDP, P: csr_array, k: int, discount: float, representation: ArrayLike | None) -> Spectrum:
    """Spectrum of the symmetric part of a representation."""
    n = mdp.n_states
    psi = successor_representation(P, discount) if representation is None else np.asarray(representation)
    if psi.shape != (n, n) or not np.isfinite(psi).all():
        raise ValueError(
            f"representation must hold finite numbers of shape ({n}, {n}), got shape {psi.shape}"
        )
    values, vectors = smallest_eigenvectors(-(psi + psi.T) / 2.0, k)
    return Spectrum(-values, vectors, "successor", n_zero=0)


METHOD = Method(
    "successor",
    purposes=purposes,
    summary="eigenvectors of the successor representation",
)
