"""Eigenoptions: purposes are eigenvectors of the graph's Laplacian (Section 3)."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from eigenoptions._types import IndexArray, Progress
from eigenoptions.discovery.method import discovery_method
from eigenoptions.mdp import MDP, graph
from eigenoptions.options import Purpose, eigenpurposes
from eigenoptions.spectra.laplacian import GraphLaplacian
from eigenoptions.spectra.spectrum import compute_spectrum


def count_eigenpurposes(
    mdp: MDP,
    *,
    operator: str = "normalized",
    both_signs: bool = True,
    skip_zero: bool = True,
    weights: str | ArrayLike | csr_array = "adjacency",
) -> int:
    """The number of signs and eigenvectors; zero has one per component of the graph."""
    n_vectors = mdp.n_states
    if skip_zero:
        n_vectors -= GraphLaplacian(graph(mdp, weights), operator).n_zero
    return 2 * n_vectors if both_signs else n_vectors


def choose_settings(visits: IndexArray) -> dict[str, Any]:
    """Settings for samples: the Laplacian of their incidence matrix (Theorem 5.1)."""
    return {"weights": "incidence", "operator": "combinatorial"}


@discovery_method(
    "eigen",
    candidates="signs and eigenvectors",
    count_purposes=count_eigenpurposes,
    settings_of_samples=choose_settings,
    has_features=True,
    alternative={"operator": "random-walk"},
)
def choose_purposes(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    operator: str = "normalized",
    both_signs: bool = True,
    skip_zero: bool = True,
    weights: str | ArrayLike | csr_array = "adjacency",
    progress: Progress | None = None,
) -> list[Purpose]:
    """Eigenpurposes of the smallest eigenvalues (Section 3)."""
    laplacian = GraphLaplacian(graph(mdp, weights), operator)
    k = None
    if n_options is not None:
        n_skipped = laplacian.n_zero if skip_zero else 0
        n_signs = 2 if both_signs else 1
        k = min(mdp.n_states, n_skipped + ceil(n_options / n_signs))
    eigenvectors = compute_spectrum(laplacian, k, rng=rng, progress=progress)
    purposes = eigenpurposes(eigenvectors, both_signs=both_signs, skip_zero=skip_zero)
    return purposes[:n_options]
