"""Laplacians of a graph (paper, Section 2.3)."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from eigenoptions._validation import (
    check_choice,
    check_csr,
)
from eigenoptions.spectra.eigensolver import SymmetricLaplacian

Array = NDArray[np.float64]


log = logging.getLogger("eigenoptions")


OPERATORS = ("normalized", "combinatorial", "random-walk", "successor")


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
    check_choice("operator", operator, OPERATORS[:3])
    symmetric = SymmetricLaplacian(check_weights(W), operator != "combinatorial")
    L = symmetric.random_walk if operator == "random-walk" else symmetric.matrix
    L.eliminate_zeros()
    return L


def check_weights(W: Any) -> csr_array:
    """Symmetric weights as csr without stored zeros."""
    shape = W.shape if issparse(W) else np.shape(W)
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        raise ValueError(
            f"W must have shape (S, S), got {type(W).__name__} {shape}: call graph(mdp)"
        )
    W = check_csr("weights", W, nonnegative=True)
    difference = W - W.T
    if difference.nnz and np.abs(difference.data).max() > 1e-12 * W.data.max():
        raise ValueError(
            "weights must be symmetric: use graph(mdp, weights=W), or (W + W.T) / 2"
        )
    return csr_array(W + W.T) / 2.0 if difference.nnz else W
