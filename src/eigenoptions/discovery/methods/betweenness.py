"""Betweenness options: goals are the local maxima of betweenness (Simsek and Barto, NeurIPS 2008).

Betweenness of a state v is ``sum over s, t of paths(s, t through v) / paths(s, t)``, over all shortest paths between
pairs of other states. It peaks in doorways and other states that many paths have to pass.
"""

from __future__ import annotations

import numpy as np

from eigenoptions.discovery.goals import enough, goal_purposes, local_maxima
from eigenoptions.discovery.methods import Method, Progress, far_sighted
from eigenoptions.discovery.methods.bottleneck import betweenness_of
from eigenoptions.mdp import MDP, graph
from eigenoptions.options import Purpose


def purposes(
    mdp: MDP, n_options: int | None, rng: np.random.Generator, *, progress: Progress | None = None
) -> list[Purpose]:
    """Indicators of the local maxima of betweenness, largest first.

    Options may start everywhere. Of more than 2,000 states, shortest paths from a random sample of them count.
    """
    W = graph(mdp)
    found = [
        s for s in local_maxima(W, betweenness_of(W, rng, progress)).tolist() if W.indptr[s] < W.indptr[s + 1]
    ]
    return goal_purposes(
        mdp, enough(n_options, found, "local maxima of betweenness", 'method="random" has more')
    )


METHOD = Method(
    "betweenness",
    purposes=purposes,
    gamma=far_sighted,
    n_options=None,
    summary="shortest paths to states that many shortest paths pass",
)
