"""NEO, novel exploration via orthogonality: toward what is seldom visited.

Theophilou and Simsek (NeurIPS 2025) add the visits to the diagonal of the Laplacian of
the directed graph: with ``P = D^-1 W`` over the moves that leave a state, ``L = I - P +
beta diag((visits / max visits)^(1 / root))``. Visits act as a drain, so the smoothest
eigenvectors e with real eigenvalues have their extremes where visits are few; the
purpose is ``|e|``. One-way moves are respected.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import schur
from scipy.linalg.lapack import dtrsen
from scipy.sparse import csr_array, diags_array

from eigenoptions._ties import COMPUTED_TOLERANCE
from eigenoptions._types import FloatArray, IndexArray
from eigenoptions.discovery.method import discovery_method
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import uniform_walk
from eigenoptions.options import Purpose
from eigenoptions.spectra.canonical import compute_canonical_basis
from eigenoptions.spectra.representations import (
    compute_smallest_eigenvectors,
    successor_representation,
)

# Eigenvalues are equal, and imaginary parts are zero, up to this share of the largest
# one: of a matrix that is not symmetric, rounding can change them by far more than its
# own size.
_RELATIVE_TOLERANCE = 1e-6

# Weight of the visits, and the root of them that counts, which is nearly the same
# wherever somebody has been.
_BETA = 0.5
_ROOT = 64.0


def choose_settings(visits: IndexArray) -> dict[str, Any]:
    """Settings for samples: the visits that they show."""
    return {"visits": visits}


@discovery_method(
    "neo", candidates="real eigenvectors", settings_of_samples=choose_settings
)
def choose_purposes(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    visits: ArrayLike | None = None,
) -> list[Purpose]:
    """Absolute values of the smoothest real eigenvectors that are not constant.

    `visits` is the number of visits of each state. None: those expected of a random
    walk from the start of the MDP, discounted by 0.99; without a start, from every
    state.
    """
    if visits is None:
        visits = _expect_visits(mdp)
    counts = _check_visits(visits, mdp.n_states)
    drain = _BETA * (counts / counts.max()) ** (1.0 / _ROOT)

    values, vectors = _find_real_eigenvectors(_find_directed_graph(mdp), drain)
    purposes: list[Purpose] = []
    for i, value in enumerate(values.tolist()):
        if len(purposes) == n_options:
            break
        magnitude = np.abs(vectors[:, i])
        potential = magnitude / magnitude.max()
        if np.ptp(potential) > COMPUTED_TOLERANCE:
            purpose = Purpose(
                potential, f"novel {i + 1}", index=i + 1, eigenvalue=value
            )
            purposes.append(purpose)
    return purposes


def _expect_visits(mdp: MDP) -> FloatArray:
    """``(S,)`` expected discounted visits of a random walk from the start."""
    psi = successor_representation(uniform_walk(mdp), 0.99)
    visits: FloatArray = psi.mean(axis=0) if mdp.start is None else psi[mdp.start]
    return np.maximum(visits, 0.0)


def _check_visits(visits: ArrayLike, n_states: int) -> FloatArray:
    """Numbers of visits ``(S,)``, none negative, at least one positive."""
    counts = np.asarray(visits, dtype=np.float64)
    has_shape = counts.shape == (n_states,)
    if not has_shape or not np.isfinite(counts).all() or counts.min() < 0:
        raise ValueError(
            f"visits must be {n_states} numbers from 0, at least one above, "
            f"got shape {counts.shape}"
        )
    if counts.max() == 0:
        raise ValueError(
            f"visits must be {n_states} numbers from 0, at least one above, got zeros"
        )
    return counts


def _find_directed_graph(mdp: MDP) -> csr_array:
    """``(S, S)`` weight 1 where some action leads from one state to another one."""
    W = uniform_walk(mdp)
    W.setdiag(0.0)
    W.eliminate_zeros()
    W.data[:] = 1.0
    return W


# Most states where some moves lead one way. All eigenvectors of a matrix that is not
# symmetric take the cube of its size, some seconds at the limit, and LAPACK reports no
# progress.
_MAX_ONE_WAY = 2_000


def _find_real_eigenvectors(
    W: csr_array, drain: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Real eigenvalues of ``I - D^-1 W + diag(drain)``, smallest first, and vectors."""
    n = W.shape[0]
    degree = np.maximum(W.sum(axis=1), 1.0)
    is_symmetric = not (W - W.T).nnz
    if is_symmetric:
        # A similar matrix is symmetric, so all of its eigenvalues are real.
        root = degree**-0.5
        A = diags_array(1.0 + drain) - diags_array(root) @ W @ diags_array(root)
        values, vectors = compute_smallest_eigenvectors(csr_array(A), n)
        return values, vectors * root[:, None]

    if n > _MAX_ONE_WAY:
        raise ValueError(
            f"neo takes at most {_MAX_ONE_WAY:,} states if some moves lead one way, "
            f'got {n:,}: take method="successor"'
        )
    L = (diags_array(1.0 + drain) - diags_array(1.0 / degree) @ W).toarray()
    eigenvalues, eigenvectors = np.linalg.eig(L)
    tolerance = _RELATIVE_TOLERANCE * np.abs(eigenvalues).max()
    real = np.flatnonzero(np.abs(eigenvalues.imag) <= tolerance)
    order = real[np.argsort(eigenvalues.real[real], kind="stable")]
    values = eigenvalues.real[order]
    vectors = eigenvectors.real[:, order]
    return _choose_bases(L, values, vectors, tolerance)


def _choose_bases(
    L: FloatArray, values: FloatArray, vectors: FloatArray, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """Give equal eigenvalues, in ascending order, the canonical basis of their space.

    Which basis a solver returns depends on rounding. Without enough eigenvectors, the
    space is that of the generalised ones, which exists in every case.
    """
    beginnings = np.flatnonzero(np.diff(values) > tolerance) + 1
    groups = np.split(np.arange(len(values)), beginnings)
    if max(len(group) for group in groups) == 1:
        return values, vectors

    triangular, basis = schur(L)
    chosen_values = []
    chosen_vectors = []
    for group in groups:
        space = vectors[:, group]
        if len(group) > 1:
            low = values[group[0]] - tolerance / 2
            high = values[group[-1]] + tolerance / 2
            space = _find_invariant_space(triangular, basis, low, high, tolerance)
        mean = np.full(space.shape[1], values[group].mean())
        if len(group) > 1:
            space = compute_canonical_basis(mean, space)
        chosen_values.append(mean)
        chosen_vectors.append(space)
    return np.concatenate(chosen_values), np.concatenate(chosen_vectors, axis=1)


def _find_invariant_space(
    triangular: FloatArray,
    basis: FloatArray,
    low: float,
    high: float,
    tolerance: float,
) -> FloatArray:
    """Orthonormal columns for the real eigenvalues between two bounds.

    The matrix is given by its Schur form, whose order is changed so that these
    eigenvalues come first.
    """
    none = np.zeros(len(triangular), dtype=np.int32)
    _, _, real, imaginary, *_ = dtrsen(none, triangular, basis, job="N")
    is_between = (real >= low) & (real <= high) & (np.abs(imaginary) <= tolerance)
    selected = is_between.astype(np.int32)
    _, ordered, _, _, size, *_ = dtrsen(selected, triangular, basis, job="N")
    return np.asarray(ordered[:, :size])
