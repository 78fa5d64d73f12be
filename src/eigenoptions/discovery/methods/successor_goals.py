"""Successor options: landmarks are the centres of clusters of successor representations (Ramesh et al., IJCAI 2019).

The rows of ``Psi = (I - discount P)^-1`` are clustered by k-means. The state m nearest to each centre is a landmark,
and the reward of its option is ``Psi(m, s') - Psi(m, s)``: it leads to where the landmark's own walk is most.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eigenoptions.discovery.goals import TIE, connected
from eigenoptions.discovery.methods import Method
from eigenoptions.mdp import MDP, graph
from eigenoptions.options import Purpose
from eigenoptions.spectra.representations import successor_representation, uniform_walk

MAX_SWEEPS = 100

Array = NDArray[np.float64]


def purposes(
    mdp: MDP, n_options: int | None, rng: np.random.Generator, *, discount: float = 0.99
) -> list[Purpose]:
    """Rows of the representation at the landmarks, those of the largest clusters first."""
    states = connected(mdp, graph(mdp), METHOD.name)
    n = len(states)
    if n_options is not None and n_options > n:
        raise ValueError(f"n_options must be in 1..{n} for {n} connected states, got {n_options}")
    psi = successor_representation(uniform_walk(mdp), discount)
    chosen = states[landmarks(psi[np.ix_(states, states)], n if n_options is None else n_options)]
    return [Purpose(psi[m], goal=m, exact=True) for m in chosen.tolist()]


def landmarks(X: Array, k: int) -> list[int]:
    """Rows nearest to the centres of k clusters, largest clusters first.

    The first centres are rows as far apart as possible, so the result depends on no random number.

    >>> landmarks(np.array([[0.0], [0.2], [0.1], [5.0], [5.2]]), 2)
    [2, 3]
    """
    chosen = [int(np.argmin(_squares(X, X.mean(axis=0)[None])[:, 0]))]
    nearest = _squares(X, X[chosen])[:, 0]
    while len(chosen) < k:
        chosen.append(int(np.argmax(nearest >= nearest.max() * (1.0 - TIE))))
        nearest = np.minimum(nearest, _squares(X, X[chosen[-1:]])[:, 0])
    centres, label = X[chosen], np.full(len(X), -1)
    for _ in range(MAX_SWEEPS):
        distance = _squares(X, centres)
        new = np.argmax(distance <= distance.min(axis=1, keepdims=True) + TIE * distance.max(), axis=1)
        # No cluster loses its last member.
        new[chosen] = np.arange(k)
        if (new == label).all():
            break
        label = new
        centres = np.stack([X[label == c].mean(axis=0) for c in range(k)])
        distance = _squares(X, centres)
        chosen = []
        for c in range(k):
            inside = np.flatnonzero(label == c)
            own = distance[inside, c]
            chosen.append(int(inside[np.argmax(own <= own.min() + TIE * distance.max())]))
    size = np.bincount(label, minlength=k)
    return [chosen[c] for c in np.argsort(-size, kind="stable")]


def _squares(X: Array, centres: Array) -> Array:
    """``(n, k)`` squared distances of rows from centres."""
    square: Array = (X**2).sum(axis=1)[:, None] - 2.0 * X @ centres.T + (centres**2).sum(axis=1)
    return np.maximum(square, 0.0)


METHOD = Method(
    "successor-goals",
    purposes=purposes,
    max_states=4_000,
    summary="paths to landmarks, the centres of clusters of successor representations",
)
