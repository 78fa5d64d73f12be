"""Eigenoptions: purposes are the eigenvectors of the graph's Laplacian, smallest eigenvalues first (Section 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from eigenoptions.discovery.methods import Method, Progress
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
    signs = 2 if both_signs else 1
    first = int(connected_components(W, directed=False)[0]) if skip_zero else 0
    most = signs * (mdp.n_states - first)
    if most == 0:
        raise ValueError(f"no action leads from one state of {mdp!r} to another: it has no eigenoptions")
    if n_options is not None and n_options > most:
        raise ValueError(f"n_options must be in 1..{most} for {mdp.n_states} states, got {n_options}")
    k = mdp.n_states if n_options is None else first - (-n_options // signs)
    sp = spectrum(W, k=k, operator=operator, coords=mdp.coords, rng=rng, progress=progress)
    return eigenpurposes(sp, both_signs=both_signs, skip_zero=skip_zero)[:n_options]


METHOD = Method("eigen", purposes=purposes, samples=True, summary="eigenvectors of the graph's Laplacian")
