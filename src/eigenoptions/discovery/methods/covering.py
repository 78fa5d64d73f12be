"""Covering options: connect the two most distant states, again and again.

Jinnai et al. (ICML 2019). The expected cover time of a random walk is bounded by the
algebraic connectivity, the second eigenvalue of the Laplacian L of the graph. Adding
the edge between the extremes of its eigenvector f raises it most, to first order:
``argmax (f(s) - f(s'))^2 over s, s'``. So the method repeats: f with ``L f = lambda_2
f``; options to argmax f and to argmin f; an edge between the two.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from eigenoptions._ties import find_first_maximum
from eigenoptions._types import Progress
from eigenoptions.discovery.method import (
    choose_goal_discount,
    count_states,
    discovery_method,
    find_connected_states,
)
from eigenoptions.mdp import MDP, graph
from eigenoptions.options import Purpose
from eigenoptions.options.purposes import make_goal_purposes
from eigenoptions.spectra import spectrum


@discovery_method(
    "covering",
    gamma=choose_goal_discount,
    candidates="states that covering connects",
    count_purposes=count_states,
)
def choose_purposes(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    progress: Progress | None = None,
) -> list[Purpose]:
    """Indicators of the ends of the Fiedler vector, of the graph with all added edges.

    In the paper an option may start at the opposite end only. Here it may start
    everywhere, which explores better (Machado et al., 2023) and makes an option to a
    state that is an end twice the same option; it is listed once.
    """
    W = graph(mdp)
    states = find_connected_states(mdp, W, "covering")
    W = csr_array(W[states][:, states])
    n_goals = len(states) if n_options is None else n_options

    # A dict keeps the order of goals and holds each of them once.
    goals: dict[int, None] = {}
    while len(goals) < n_goals:
        fiedler = spectrum(W, 2, "combinatorial", rng=rng).vectors[:, 1]
        highest = int(find_first_maximum(fiedler))
        lowest = int(find_first_maximum(-fiedler))
        if W[highest, lowest]:
            # The most distant states are neighbours: every round would find them again.
            break
        goals[int(states[highest])] = None
        goals[int(states[lowest])] = None

        edge = ([1.0, 1.0], ([highest, lowest], [lowest, highest]))
        W = csr_array(W + csr_array(edge, shape=W.shape))
        if progress is not None:
            progress(min(len(goals), n_goals), n_goals)
    return make_goal_purposes(mdp, list(goals)[:n_options])
