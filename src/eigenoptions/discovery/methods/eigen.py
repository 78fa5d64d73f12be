"""Eigenoptions: purposes are the eigenvectors of the graph's Laplacian, smallest eigenvalues first (Section 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from eigenoptions.discovery.methods import Method, Progress, n_eigenvectors
from eigenoptions.mdp import MDP, graph
from eigenoptions.options import Purpose, eigenpurposes
from eigenoptions.spectra import spectrum


def purposes(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    operator: str = "normalized",
    both_signs: bool = True,
    skip_zero: bool = True,
    weights: Any = "adjacency",
    progress: Progress | None = None,
) -> list[Purpose]:
    """Eigenpurposes of the smallest eigenvalues (Section 3)."""
    W = graph(mdp, weights)
    first = int(connected_components(W, directed=False)[0]) if skip_zero else 0
    k = n_eigenvectors(mdp, n_options, first, both_signs)
    sp = spectrum(W, k=k, operator=operator, rng=rng, progress=progress)
    return eigenpurposes(sp, both_signs=both_signs, skip_zero=skip_zero)[:n_options]


METHOD = Method("eigen", purposes=purposes, summary="eigenvectors of the graph's Laplacian")
