"""Community options: from each community of states to its neighbours, at every level (Evans and Simsek, NeurIPS 2023).

Communities maximise modularity, ``sum over pairs inside of W(s, s') - resolution d(s) d(s') / sum of d``, by the method
of Louvain (Blondel et al., 2008): states move to the neighbouring community that gains most, communities become states
of a smaller graph, and so on. Each round is a level. An option leads out of one community into an adjacent one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._ties import find_first_maximum
from eigenoptions._validation import check_float
from eigenoptions.discovery.method import (
    TooFewOptionsError,
    choose_goal_discount,
    discovery_method,
    take_first,
)
from eigenoptions.mdp import MDP, graph
from eigenoptions.options import Purpose

Labels = NDArray[np.intp]


@discovery_method("community", gamma=choose_goal_discount)
def choose_purposes(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    resolution: float = 0.2,
) -> list[Purpose]:
    """For each two adjacent communities, the indicator of the second's entries, followed inside the first.

    Levels come from the coarsest to the finest. The higher `resolution`, the smaller are communities; at 0.1 to 0.3 the
    coarsest communities of four rooms are its rooms.
    """
    resolution = check_float("resolution", resolution, above=0)
    table = mdp.transition.tocoo()
    before, after = table.row // mdp.n_actions, table.col
    purposes: list[Purpose] = []
    for level, label in enumerate(
        reversed(find_communities(graph(mdp), resolution)), start=1
    ):
        crossing = label[before] != label[after]
        pairs = np.stack([label[before[crossing]], label[after[crossing]]], axis=1)
        for a, b in np.unique(pairs, axis=0).tolist():
            # A large map has more pairs than fit into memory, so this ends as soon as there are enough.
            if len(purposes) == n_options:
                return purposes
            entries = np.zeros(mdp.n_states)
            entries[after[crossing][(pairs == (a, b)).all(axis=1)]] = 1.0
            goals = np.flatnonzero(entries)
            goal = int(goals[0]) if len(goals) == 1 else None
            purposes.append(
                Purpose(
                    entries,
                    f"{level}: {a} to {b}",
                    initiation=label == a,
                    goal=goal,
                    exact=True,
                )
            )
    if not purposes:
        raise TooFewOptionsError(
            f"all states of {mdp!r} are one community: raise resolution above {resolution}",
            0,
        )
    return take_first(
        n_options, purposes, "pairs of communities", "a higher resolution has more"
    )


def find_communities(W: csr_array, resolution: float = 1.0) -> list[Labels]:
    r"""Levels of communities of a graph, finest first: ``(S,)`` the number of each state's community.

    States are tried in their order, so the result depends on no random number.

    >>> import eigenoptions as eo
    >>> find_communities(eo.graph(eo.maze("...#...\n.......\n...#...")), 0.3)[-1].tolist()
    [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1]
    """
    levels: list[Labels] = []
    label = np.arange(W.shape[0])
    while True:
        community = _move_nodes(W, resolution)
        if community.max() + 1 == W.shape[0]:
            return levels
        label = community[label]
        levels.append(label)
        member = csr_array(
            (np.ones(len(community)), (np.arange(len(community)), community))
        )
        W = csr_array(member.T @ W @ member)


def _move_nodes(W: csr_array, resolution: float) -> Labels:
    """Communities after moving nodes one by one until no move gains, numbered by their first nodes."""
    n = W.shape[0]
    degree = W.sum(axis=1).tolist()
    scale = resolution / max(sum(degree), 1e-300)
    total, label = list(degree), list(range(n))
    edges = [
        [
            (j, w)
            for j, w in zip(W.indices[a:b].tolist(), W.data[a:b].tolist(), strict=True)
            if j != i
        ]
        for i, (a, b) in enumerate(zip(W.indptr[:-1], W.indptr[1:], strict=True))
    ]
    moved = True
    while moved:
        moved = False
        for i in range(n):
            own = label[i]
            total[own] -= degree[i]
            weight_to = {own: 0.0}
            for j, w in edges[i]:
                weight_to[label[j]] = weight_to.get(label[j], 0.0) + w
            gain = {c: w - scale * degree[i] * total[c] for c, w in weight_to.items()}
            best = max(gain.values())
            # A move must gain more than rounding, so that the search ends; of equal communities the first is taken.
            if best > gain[own] + 1e-9:
                neighbours = sorted(gain)
                gains = np.array([gain[community] for community in neighbours])
                label[i] = neighbours[find_first_maximum(gains, 1e-9)]
                moved = True
            total[label[i]] += degree[i]
    number = {c: k for k, c in enumerate(dict.fromkeys(label))}
    return np.array([number[c] for c in label])
