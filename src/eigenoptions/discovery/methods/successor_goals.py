"""Successor options: landmarks are centres of clusters of successor representations.

Ramesh et al. (IJCAI 2019). The rows of ``Psi = (I - discount P)^-1`` are clustered by
k-means. The state m nearest to each centre is a landmark, and the reward of its option
is ``Psi(m, s') - Psi(m, s)``: it leads to where the landmark's own walk is most.
"""

from __future__ import annotations

import numpy as np

from eigenoptions._ties import COMPUTED_TOLERANCE, find_first_maximum
from eigenoptions._types import FloatArray, IndexArray
from eigenoptions._validation import check_float
from eigenoptions.discovery.method import (
    count_states,
    discovery_method,
    find_connected_states,
)
from eigenoptions.mdp import MDP, graph
from eigenoptions.mdp.chains import uniform_walk
from eigenoptions.options import Purpose
from eigenoptions.spectra.representations import successor_representation


@discovery_method(
    "successor-goals", candidates="connected states", count_purposes=count_states
)
def choose_purposes(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    discount: float = 0.99,
) -> list[Purpose]:
    """Rows of the representation at the landmarks, largest clusters first.

    The discount is at most 1 - 1e-6. All entries of the representation grow with
    1 / (1 - discount), their differences do not: beyond, rounding decides between
    actions that are equally good, and differently on other machines.
    """
    discount = check_float("discount", discount, minimum=0, maximum=1 - 1e-6)
    states = find_connected_states(mdp, graph(mdp), "successor-goals")
    n_landmarks = len(states)
    if n_options is not None:
        n_landmarks = min(n_landmarks, n_options)

    psi = successor_representation(uniform_walk(mdp), discount)
    rows = psi[np.ix_(states, states)]
    landmarks = states[choose_landmarks(rows, n_landmarks)]
    # Psi solves a linear system. Its rounding errors are negligible up to 0.999, and
    # as large as those of an eigenvector up to the limit.
    is_exact = discount <= 0.999
    return [Purpose(psi[m], goal=m, exact=is_exact) for m in landmarks.tolist()]


# Clusters settle after some ten sweeps; rounding might let them alternate.
_MAX_SWEEPS = 100


def choose_landmarks(X: FloatArray, k: int) -> list[int]:
    """Rows nearest to the centres of k clusters, largest clusters first.

    The first centres are rows as far apart as possible, so the result depends on no
    random number. Distances that differ by rounding only are equal, so it does not
    depend on the machine either.

    Examples
    --------
    >>> choose_landmarks(np.array([[0.0], [0.2], [0.1], [5.0], [5.2]]), 2)
    [2, 3]
    """
    landmarks = _spread_landmarks(X, k)
    centres = X[landmarks]
    label = np.full(len(X), -1)
    for _ in range(_MAX_SWEEPS):
        distance = _measure_distances(X, centres)
        tolerance = COMPUTED_TOLERANCE * distance.max()
        closest = find_first_maximum(-distance, tolerance)
        # No cluster loses its last member.
        closest[landmarks] = np.arange(k)
        if (closest == label).all():
            break
        label = closest
        centres = np.stack([X[label == c].mean(axis=0) for c in range(k)])
        landmarks = _find_nearest_rows(X, centres, label)

    size = np.bincount(label, minlength=k)
    return [landmarks[c] for c in np.argsort(-size, kind="stable")]


def _spread_landmarks(X: FloatArray, k: int) -> list[int]:
    """The row nearest to the mean, then each time the row farthest from all before."""
    to_mean = _measure_distances(X, X.mean(axis=0)[None])[:, 0]
    landmarks = [int(find_first_maximum(-to_mean))]
    nearest = _measure_distances(X, X[landmarks])[:, 0]
    while len(landmarks) < k:
        farthest = int(find_first_maximum(nearest))
        landmarks.append(farthest)
        to_farthest = _measure_distances(X, X[[farthest]])[:, 0]
        nearest = np.minimum(nearest, to_farthest)
    return landmarks


def _find_nearest_rows(
    X: FloatArray, centres: FloatArray, label: IndexArray
) -> list[int]:
    """The row of each cluster that is nearest to its centre."""
    distance = _measure_distances(X, centres)
    tolerance = COMPUTED_TOLERANCE * distance.max()
    nearest = []
    for c in range(len(centres)):
        rows = np.flatnonzero(label == c)
        first = find_first_maximum(-distance[rows, c], tolerance)
        nearest.append(int(rows[first]))
    return nearest


def _measure_distances(X: FloatArray, centres: FloatArray) -> FloatArray:
    """``(n, k)`` squared distances of rows from centres."""
    # Imported here: SciPy's distances take long to load, and the first `discover`,
    # which imports all methods, would wait for them.
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(X, centres, "sqeuclidean"))
