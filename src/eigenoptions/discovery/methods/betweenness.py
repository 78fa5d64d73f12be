"""Betweenness options: goals are the local maxima of betweenness.

Simsek and Barto (NeurIPS 2008). Betweenness of a state v is ``sum over s, t of
paths(s, t through v) / paths(s, t)``, over all shortest paths between pairs of other
states. It peaks in doorways and other states that many paths have to pass.
"""

from __future__ import annotations

import numpy as np

from eigenoptions._types import Progress
from eigenoptions.discovery.method import choose_goal_discount, discovery_method
from eigenoptions.mdp import MDP, graph
from eigenoptions.mdp.betweenness import compute_betweenness
from eigenoptions.options import Purpose
from eigenoptions.options.purposes import find_local_maxima, make_goal_purposes


@discovery_method(
    "betweenness",
    gamma=choose_goal_discount,
    n_options=None,
    candidates="local maxima of betweenness",
    remedy='method="random" has more',
)
def choose_purposes(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    progress: Progress | None = None,
) -> list[Purpose]:
    """Indicators of the local maxima of betweenness, largest first.

    Options may start everywhere. Of more than 2,000 states, shortest paths from a
    random sample of them count.
    """
    W = graph(mdp)
    betweenness = compute_betweenness(W, rng, progress=progress)
    maxima = find_local_maxima(W, betweenness)
    has_neighbour = np.diff(W.indptr)[maxima] > 0
    goals = maxima[has_neighbour]
    return make_goal_purposes(mdp, goals[:n_options].tolist())
