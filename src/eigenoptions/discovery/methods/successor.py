"""Eigenoptions of the successor representation (Machado et al., ICLR 2018).

The representation of the uniformly random policy P is ``Psi = (I - discount P)^-1``. Purposes are its eigenvectors, in
the order of the largest eigenvalues: where P is symmetric, those of ``I - P`` in the order of the smallest (their
Theorem). P counts blocked moves, so a state at a wall is left less often; in a maze these are the eigenvectors of the
combinatorial Laplacian. (The operator ``"successor"`` of `spectrum` takes the random walk ``D^-1 W`` on the graph
instead, which never stays.) A representation learned by temporal differences can be given instead.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from eigenoptions._validation import check_float
from eigenoptions.discovery.method import discovery_method, take_first
from eigenoptions.mdp import MDP, graph
from eigenoptions.mdp.chains import uniform_walk
from eigenoptions.options import Purpose, eigenpurposes
from eigenoptions.spectra.laplacian import GraphLaplacian
from eigenoptions.spectra.representations import (
    smallest_eigenvectors,
    successor_representation,
)
from eigenoptions.spectra.spectrum import Spectrum, compute_spectrum


@discovery_method("successor")
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

    Where P is not symmetric, they are those of ``(Psi + Psi') / 2``, as in the paper's successors. `representation`
    is a learned Psi (`learn_representation`), used in place of the exact one.
    """
    discount = check_float("discount", discount, minimum=0, below=1)
    n, n_signs = mdp.n_states, 2 if both_signs else 1
    P = uniform_walk(mdp)
    if representation is None and abs(P - P.T).max() < 1e-12:
        # The Laplacian of the moves is I - P, which has the same eigenvectors.
        laplacian = GraphLaplacian(graph(mdp, "transition"), "combinatorial")
        k = None
        if n_options is not None:
            k = min(n, laplacian.n_zero + ceil(n_options / n_signs))
        slow = compute_spectrum(laplacian, k, rng=rng)
        values = 1.0 / (1.0 - discount * (1.0 - slow.values))
        eigenvectors = Spectrum(values, slow.vectors, "successor", n_zero=slow.n_zero)
    else:
        psi = (
            successor_representation(P, discount)
            if representation is None
            else np.asarray(representation)
        )
        if psi.shape != (n, n) or not np.isfinite(psi).all():
            raise ValueError(
                f"representation must be finite numbers of shape ({n}, {n}), got shape {psi.shape}"
            )
        k = n if n_options is None else min(n, -(-n_options // n_signs))
        values, vectors = smallest_eigenvectors(-(psi + psi.T) / 2.0, k)
        eigenvectors = Spectrum(-values, vectors, "successor", n_zero=0)
    purposes = eigenpurposes(eigenvectors, both_signs=both_signs)
    return take_first(n_options, purposes, f"signs and eigenvectors of {mdp!r}")
