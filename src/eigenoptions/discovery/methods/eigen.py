"""Eigenoptions: purposes are the eigenvectors of the graph's Laplacian, smallest eigenvalues first (Section 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions._validation import Progress
from eigenoptions.discovery.method import TooFewOptionsError, discovery_method
from eigenoptions.mdp import MDP, graph
from eigenoptions.options import Purpose, eigenpurposes
from eigenoptions.spectra.laplacian import GraphLaplacian
from eigenoptions.spectra.spectrum import compute_spectrum


@discovery_method("eigen")
def choose_purposes(
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
    laplacian = GraphLaplacian(graph(mdp, weights), operator)
    n_zero = laplacian.n_zero if skip_zero else 0
    n_signs = 2 if both_signs else 1
    n_purposes = n_signs * (mdp.n_states - n_zero)
    if n_purposes < (n_options or 1):
        raise TooFewOptionsError(
            f"n_options must be in 1..{n_purposes} for {mdp.n_states} states, got {n_options}",
            n_purposes,
        )
    k = None if n_options is None else n_zero - (-n_options // n_signs)
    eigenvectors = compute_spectrum(laplacian, k, rng=rng, progress=progress)
    return eigenpurposes(eigenvectors, both_signs=both_signs, skip_zero=skip_zero)[
        :n_options
    ]
