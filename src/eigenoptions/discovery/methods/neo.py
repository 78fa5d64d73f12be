"""NEO, novel exploration via orthogonality: toward what is seldom visited, also along one-way moves (NeurIPS 2025).

Theophilou and Simsek add the visits to the diagonal of the Laplacian of the directed graph: with ``P = D^-1 W`` over
the moves that leave a state, ``L = I - P + beta diag((visits / max visits)^(1 / root))``. Visits act as a drain, so the
smoothest eigenvectors e with real eigenvalues have their extremes where visits are few; the purpose is ``|e|``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array

from eigenoptions._ties import COMPUTED_TOLERANCE
from eigenoptions._validation import check_float
from eigenoptions.discovery.method import discovery_method, take_first
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import uniform_walk
from eigenoptions.options import Purpose
from eigenoptions.spectra.representations import (
    smallest_eigenvectors,
    successor_representation,
)

Array = NDArray[np.float64]


@discovery_method("neo")
def choose_purposes(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    visits: ArrayLike | None = None,
    beta: float = 0.5,
    root: float = 64.0,
) -> list[Purpose]:
    """Absolute values of the smoothest real eigenvectors; those that are constant are left out.

    `visits` is the number of visits of each state. None: those expected of a random walk from the start of the MDP,
    discounted by 0.99; without a start, from every state.
    """
    beta = check_float("beta", beta, above=0)
    root = check_float("root", root, minimum=1)
    n = mdp.n_states
    if visits is None:
        psi = successor_representation(uniform_walk(mdp), 0.99)
        visits = np.maximum(
            psi.mean(axis=0) if mdp.start is None else psi[mdp.start], 0.0
        )
    counts = np.asarray(visits, dtype=np.float64)
    if counts.shape != (n,) or not (
        np.isfinite(counts).all() and counts.min() >= 0 and counts.max() > 0
    ):
        raise ValueError(
            f"visits must be {n} numbers from 0, at least one above, got shape {counts.shape}"
        )
    # The directed graph: weight 1 where some action leads from one state to another one.
    W = uniform_walk(mdp)
    W.setdiag(0.0)
    W.eliminate_zeros()
    W.data[:] = 1.0
    values, vectors = _find_real_eigenvectors(
        W, beta * (counts / counts.max()) ** (1.0 / root)
    )
    purposes: list[Purpose] = []
    for i, (value, vector) in enumerate(
        zip(values.tolist(), vectors.T, strict=True), 1
    ):
        potential = np.abs(vector) / np.abs(vector).max()
        if np.ptp(potential) > COMPUTED_TOLERANCE:
            purposes.append(Purpose(potential, f"novel {i}", index=i, eigenvalue=value))
        if len(purposes) == n_options:
            break
    return take_first(n_options, purposes, f"real eigenvectors of {n} states")


def _find_real_eigenvectors(W: csr_array, drain: Array) -> tuple[Array, Array]:
    """Real eigenvalues of ``I - D^-1 W + diag(drain)``, smallest first, and their eigenvectors ``(S, k)``."""
    n = W.shape[0]
    degree = np.maximum(W.sum(axis=1), 1.0)
    if not (W - W.T).nnz:
        inverse_root = diags_array(degree**-0.5)
        A = diags_array(1.0 + drain) - inverse_root @ W @ inverse_root
        values, vectors = smallest_eigenvectors(csr_array(A), n)
        return values, vectors * (degree**-0.5)[:, None]
    L = (diags_array(1.0 + drain) - diags_array(1.0 / degree) @ W).toarray()
    eigenvalues, eigenvectors = np.linalg.eig(L)
    # Imaginary parts up to this are rounding.
    real = np.flatnonzero(np.abs(eigenvalues.imag) <= 1e-10)
    order = real[np.argsort(eigenvalues.real[real], kind="stable")]
    return eigenvalues.real[order], eigenvectors.real[:, order]
