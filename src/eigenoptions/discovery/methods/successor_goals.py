"""Successor options: landmarks are the centres of clusters of successor representations (Ramesh et al., IJCAI 2019).

The rows of ``Psi = (I - discount P)^-1`` are clustered by k-means. The state m nearest to each centre is a landmark,
and the reward of its option is ``Psi(m, s') - Psi(m, s)``: it leads to where the landmark's own walk is most.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eigenoptions._ties import COMPUTED_TOLERANCE, find_first_maximum
from eigenoptions.discovery.method import (
    discovery_method,
    find_connected_states,
    take_first,
)
from eigenoptions.mdp import MDP, graph
from eigenoptions.mdp.chains import uniform_walk
from eigenoptions.options import Purpose
from eigenoptions.spectra.representations import successor_representation

Array = NDArray[np.float64]


@discovery_method("successor-goals")
def choose_purposes(
    mdp: MDP, n_options: int | None, rng: np.random.Generator, *, discount: float = 0.99
) -> list[Purpose]:
    """Rows of the representation at the landmarks, those of the largest clusters first."""
    states = find_connected_states(mdp, graph(mdp), "successor-goals")
    k = len(take_first(n_options, states.tolist(), "connected states"))
    psi = successor_representation(uniform_walk(mdp), discount)
    landmarks = states[choose_landmarks(psi[np.ix_(states, states)], k)]
    return [Purpose(psi[m], goal=m, exact=True) for m in landmarks.tolist()]


def choose_landmarks(X: Array, k: int, max_sweeps: int = 100) -> list[int]:
    """Rows nearest to the centres of k clusters, largest clusters first.

    The first centres are rows as far apart as possible, so the result depends on no random number. Distances that
    differ by rounding only are equal, so it does not depend on the machine either.

    >>> choose_landmarks(np.array([[0.0], [0.2], [0.1], [5.0], [5.2]]), 2)
    [2, 3]
    """
    to_mean = _squared_distances(X, X.mean(axis=0)[None])[:, 0]
    landmarks = [int(find_first_maximum(-to_mean))]
    nearest = _squared_distances(X, X[landmarks])[:, 0]
    while len(landmarks) < k:
        landmarks.append(int(find_first_maximum(nearest)))
        nearest = np.minimum(nearest, _squared_distances(X, X[landmarks[-1:]])[:, 0])
    centres, label = X[landmarks], np.full(len(X), -1)
    for _ in range(max_sweeps):
        distance = _squared_distances(X, centres)
        closest = find_first_maximum(-distance, COMPUTED_TOLERANCE * distance.max())
        # No cluster loses its last member.
        closest[landmarks] = np.arange(k)
        if (closest == label).all():
            break
        label = closest
        centres = np.stack([X[label == c].mean(axis=0) for c in range(k)])
        distance = _squared_distances(X, centres)
        members = [np.flatnonzero(label == c) for c in range(k)]
        tolerance = COMPUTED_TOLERANCE * distance.max()
        for c, rows in enumerate(members):
            landmarks[c] = int(rows[find_first_maximum(-distance[rows, c], tolerance)])
    size = np.bincount(label, minlength=k)
    return [landmarks[c] for c in np.argsort(-size, kind="stable")]


def _squared_distances(X: Array, centres: Array) -> Array:
    """``(n, k)`` squared distances of rows from centres."""
    square: Array = (
        (X**2).sum(axis=1)[:, None] - 2.0 * X @ centres.T + (centres**2).sum(axis=1)
    )
    return np.maximum(square, 0.0)
