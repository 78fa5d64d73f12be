"""Potentials to compare with those of `eigenoptions.Planner`, from the same table."""

from __future__ import annotations

import numpy as np

import eigenoptions as eo
from eigenoptions._types import FloatArray
from eigenoptions.mdp.chains import compute_lengths, uniform_walk


def compute_hitting(mdp: eo.MDP, goal: int) -> FloatArray:
    """Minus the mean time of a random walk to the goal; -inf where it may be lost.

    >>> compute_hitting(eo.maze("S.G"), 2).round(9).tolist()
    [-12.0, -8.0, -0.0]
    """
    # The walk as the only action of a table, until it touches the goal.
    walk = eo.MDP(uniform_walk(mdp))
    policy = np.zeros(mdp.n_states, dtype=np.int64)
    policy[goal] = eo.TERMINATE
    return -compute_lengths(walk, policy)


def compute_commute(mdp: eo.MDP, goal: int) -> FloatArray:
    """Minus the mean time of a random walk on the graph to the goal and back.

    >>> compute_commute(eo.maze("S.G"), 2).round(9).tolist()
    [-8.0, -4.0, -0.0]
    """
    W = eo.graph(mdp)
    embedding = eo.spectrum(W, operator="combinatorial").embedding("commute")
    offsets = embedding - embedding[goal]
    return np.asarray(-W.sum() * (offsets**2).sum(axis=1))


# What `Planner(potential=...)` takes, by the names in tables and figures.
COMPARED = {
    "log-z": "log-z",
    "hitting": compute_hitting,
    "shortest": "shortest",
    "commute": compute_commute,
}
