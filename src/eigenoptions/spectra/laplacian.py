"""The Laplacians of a graph, one record per operator (paper, Section 2.3).

W are symmetric weights, and D has the degrees of the states on its diagonal. Each
operator gives a state a mass: its degree, or 1.

=================  ========================  ======
operator           matrix                    mass
=================  ========================  ======
``normalized``     D^-1/2 (D - W) D^-1/2     degree
``combinatorial``  D - W                     1
``random-walk``    D^-1 (D - W)              degree
``successor``      (I - gamma D^-1 W)^-1     degree
=================  ========================  ======

The symmetric matrix ``mass^-1/2 (D - W) mass^-1/2`` is the form that is diagonalised.
The eigenpairs of each operator follow from those of its symmetric form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import connected_components

from eigenoptions._types import FloatArray
from eigenoptions._validation import check_choice, check_csr


@dataclass(frozen=True)
class Operator:
    """How an operator follows from its symmetric form.

    Attributes
    ----------
    compute_mass : callable
        Takes the degrees ``(S,)`` and returns the masses ``(S,)``.
    is_symmetric : bool
        Whether the operator has the matrix of its symmetric form. If not, it has the
        eigenvectors of ``mass^-1 (D - W)``.
    convert_values : callable or None, default=None
        Takes the eigenvalues of the Laplacian and the discount gamma, and returns those
        of the operator. None: the operator is the Laplacian itself.
    """

    compute_mass: Callable[[FloatArray], FloatArray]
    is_symmetric: bool
    convert_values: Callable[[FloatArray, float], FloatArray] | None = None

    @property
    def is_laplacian(self) -> bool:
        """Whether the operator is a Laplacian, and not a function of one."""
        return self.convert_values is None


def _take_degrees(degree: FloatArray) -> FloatArray:
    """The degrees as masses. An isolated state has degree 0 and mass 1."""
    return np.where(degree > 0, degree, 1.0)


def _discount_visits(values: FloatArray, gamma: float) -> FloatArray:
    """Eigenvalues of ``(I - gamma P)^-1`` from those of ``I - P``."""
    return 1.0 / (1.0 - gamma * (1.0 - values))


# To add an operator, add its record here.
OPERATORS = {
    "normalized": Operator(_take_degrees, is_symmetric=True),
    "combinatorial": Operator(np.ones_like, is_symmetric=True),
    "random-walk": Operator(_take_degrees, is_symmetric=False),
    "successor": Operator(
        _take_degrees,
        is_symmetric=False,
        convert_values=_discount_visits,
    ),
}


def laplacian(W: csr_array, operator: str = "normalized") -> csr_array:
    """Return a Laplacian of a graph (Section 2.3).

    Parameters
    ----------
    W : csr_array (S, S)
        Symmetric non-negative weights, as `graph` returns them.
    operator : {"normalized", "combinatorial", "random-walk"}, default="normalized"
        ``D^-1/2 (D - W) D^-1/2``, ``D - W`` or ``D^-1 (D - W)``, with the degrees D.

    Returns
    -------
    csr_array (S, S)
        The Laplacian. The row of an isolated state, whose degree is 0, is empty: the
        state has its own eigenvalue zero, as every component has.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> laplacian(eo.graph(eo.maze("S.G")), "combinatorial").toarray().tolist()
    [[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]]
    """
    names = [name for name, record in OPERATORS.items() if record.is_laplacian]
    check_choice("operator", operator, names)
    return GraphLaplacian(W, operator).matrix


class GraphLaplacian:
    """A graph as one of the operators sees it: the matrices and the null space.

    Each connected component has one null vector, which is zero outside of it. All of
    them fit into one array, `null_vector`.

    Parameters
    ----------
    W : csr_array (S, S)
        Symmetric non-negative weights.
    operator : str, default="normalized"
        A name in `OPERATORS`.

    Attributes
    ----------
    mass : array (S,)
        The mass of each state.
    difference : csr_array (S, S)
        ``D - W``.
    symmetric : csr_array (S, S)
        ``mass^-1/2 (D - W) mass^-1/2``.
    norm : float
        Largest diagonal entry of the symmetric matrix, at least half of its norm.
    n_zero : int
        Number of connected components, which is that of eigenvalues zero.
    component : array (S,)
        The component of each state, numbered in the order of their first states.
    null_vector : array (S,)
        The entry of each state in the null vector of its component.
    """

    def __init__(self, W: csr_array, operator: str = "normalized") -> None:
        self.name = check_choice("operator", operator, OPERATORS)
        self.operator = OPERATORS[operator]

        W = _check_weights(W)
        degree = W.sum(axis=1)
        self.mass = self.operator.compute_mass(degree)
        states = np.arange(len(degree) + 1)
        D = csr_array((degree, states[:-1], states), W.shape)
        self.difference = D - W

        scale = self.mass**-0.5
        self.symmetric = _scale_entries(self.difference, scale, scale)
        # A graph without edges has the zero matrix: any positive number will do.
        self.norm = float(self.symmetric.diagonal().max()) or 1.0

        self.n_zero, self.component = connected_components(W, directed=False)
        component_mass = np.bincount(self.component, self.mass)
        self.null_vector = np.sqrt(self.mass / component_mass[self.component])

    @property
    def matrix(self) -> csr_array:
        """The Laplacian ``(S, S)`` whose eigenvectors the operator has."""
        if self.operator.is_symmetric:
            return self.symmetric
        return _scale_entries(self.difference, 1.0 / self.mass, np.ones_like(self.mass))

    def convert_vectors(self, vectors: FloatArray) -> FloatArray:
        """Unit eigenvectors of `matrix`, from those ``(S, k)`` of `symmetric`."""
        if self.operator.is_symmetric:
            return vectors
        # The matrix is mass^-1/2 times the symmetric form times mass^1/2.
        scaled = vectors / np.sqrt(self.mass)[:, None]
        unit: FloatArray = scaled / np.linalg.norm(scaled, axis=0)
        return unit

    def convert_values(self, values: FloatArray, gamma: float) -> FloatArray:
        """Eigenvalues of the operator, from those of the Laplacian."""
        if self.operator.convert_values is None:
            return values
        return self.operator.convert_values(values, gamma)

    def remove_null_space(self, x: FloatArray) -> FloatArray:
        """The part of a vector ``(S,)`` that is orthogonal to all null vectors."""
        projections = np.bincount(self.component, self.null_vector * x)
        remainder: FloatArray = x - self.null_vector * projections[self.component]
        return remainder


def _scale_entries(A: csr_array, left: FloatArray, right: FloatArray) -> csr_array:
    """``diag(left) A diag(right)``.

    If A is symmetric and both sides are equal, the result is symmetric to the last bit:
    each entry is multiplied by ``left right``, which does not depend on the order.
    """
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    entries = A.data * (left[rows] * right[A.indices])
    return csr_array((entries, A.indices, A.indptr), A.shape)


def _check_weights(W: Any) -> csr_array:
    """Symmetric weights as a csr array without stored zeros."""
    shape = W.shape if issparse(W) else np.shape(W)
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        raise ValueError(
            f"W must have shape (S, S), got {type(W).__name__} {shape}: call graph(mdp)"
        )
    W = check_csr("weights", W, nonnegative=True)

    difference = W - W.T
    if not difference.nnz:
        return W
    if np.abs(difference.data).max() > 1e-12 * W.data.max():
        raise ValueError(
            "weights must be symmetric: use graph(mdp, weights=W), or (W + W.T) / 2"
        )
    return csr_array(W + W.T) / 2.0
