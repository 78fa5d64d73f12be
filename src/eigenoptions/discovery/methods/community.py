"""Community options: from each community of states to its neighbours, at every level.

Evans and Simsek (NeurIPS 2023). Communities maximise modularity, ``sum over pairs
inside of W(s, s') - resolution d(s) d(s') / sum of d``, by the method of Louvain
(Blondel et al., 2008): states move to the neighbouring community that gains most,
communities become states of a smaller graph, and so on. Each round is a level. An
option leads out of one community into an adjacent one.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from eigenoptions._ties import find_first_maximum
from eigenoptions._types import IndexArray
from eigenoptions._validation import check_float
from eigenoptions.discovery.method import (
    NoOptionsError,
    choose_goal_discount,
    discovery_method,
)
from eigenoptions.mdp import MDP, graph
from eigenoptions.options import Purpose


@discovery_method(
    "community",
    gamma=choose_goal_discount,
    candidates="pairs of communities",
    remedy="a higher resolution has more",
)
def choose_purposes(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    resolution: float = 0.2,
) -> list[Purpose]:
    """For two adjacent communities, the entries of the second, followed in the first.

    Levels come from the coarsest to the finest. The higher `resolution`, the smaller
    are communities; at 0.1 to 0.3 the coarsest communities of four rooms are its rooms.
    """
    resolution = check_float("resolution", resolution, above=0)
    table = mdp.transition.tocoo()
    before = table.row // mdp.n_actions
    after = table.col

    purposes: list[Purpose] = []
    levels = find_communities(graph(mdp), resolution)
    for level, label in enumerate(reversed(levels), start=1):
        is_crossing = label[before] != label[after]
        entries = after[is_crossing]
        pairs = np.stack([label[before[is_crossing]], label[entries]], axis=1)
        for a, b in np.unique(pairs, axis=0).tolist():
            # A large map has more pairs than fit into memory: stop at enough of them.
            if len(purposes) == n_options:
                return purposes
            goals = np.unique(entries[(pairs == (a, b)).all(axis=1)])
            indicator = np.zeros(mdp.n_states)
            indicator[goals] = 1.0
            purpose = Purpose(
                indicator,
                f"{level}: {a} to {b}",
                initiation=label == a,
                goal=int(goals[0]) if len(goals) == 1 else None,
                exact=True,
            )
            purposes.append(purpose)
    if not purposes:
        raise NoOptionsError(
            f"all states of {mdp!r} are one community: raise resolution above "
            f"{resolution}"
        )
    return purposes


def find_communities(W: csr_array, resolution: float = 1.0) -> list[IndexArray]:
    r"""Levels of communities ``(S,)`` of the states of a graph, finest first.

    States are tried in their order, so the result depends on no random number.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> rooms = eo.graph(eo.maze("...#...\n.......\n...#..."))
    >>> find_communities(rooms, 0.3)[-1].tolist()
    [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1]
    """
    levels: list[IndexArray] = []
    label = np.arange(W.shape[0])
    while True:
        community = _move_nodes(W, resolution)
        n_nodes = len(community)
        if community.max() + 1 == n_nodes:
            return levels
        label = community[label]
        levels.append(label)

        # Communities become the nodes of a smaller graph.
        member = csr_array((np.ones(n_nodes), (np.arange(n_nodes), community)))
        W = csr_array(member.T @ W @ member)


def _move_nodes(W: csr_array, resolution: float) -> IndexArray:
    """Communities after moving nodes one by one until no move gains.

    They are numbered by their first nodes.
    """
    n = W.shape[0]
    degree = W.sum(axis=1).tolist()
    scale = resolution / max(sum(degree), 1e-300)
    neighbours = _list_neighbours(W)

    # At first every node is a community of its own.
    label = list(range(n))
    total_degree = list(degree)
    has_moved = True
    while has_moved:
        has_moved = False
        for node in range(n):
            own = label[node]
            total_degree[own] -= degree[node]

            weight_to = {own: 0.0}
            for neighbour, weight in neighbours[node]:
                community = label[neighbour]
                weight_to[community] = weight_to.get(community, 0.0) + weight
            communities = sorted(weight_to)
            cost_per_degree = scale * degree[node]
            gains = [
                weight_to[community] - cost_per_degree * total_degree[community]
                for community in communities
            ]

            # A move must gain more than rounding, so that the search ends.
            own_gain = gains[communities.index(own)]
            if max(gains) > own_gain + 1e-9:
                best = find_first_maximum(np.array(gains), 1e-9)
                label[node] = communities[int(best)]
                has_moved = True
            total_degree[label[node]] += degree[node]

    number = {community: i for i, community in enumerate(dict.fromkeys(label))}
    return np.array([number[community] for community in label])


def _list_neighbours(W: csr_array) -> list[list[tuple[int, float]]]:
    """The other nodes that each node is connected to, with the weights of the edges."""
    neighbours = []
    for node in range(W.shape[0]):
        edges = slice(W.indptr[node], W.indptr[node + 1])
        pairs = zip(W.indices[edges].tolist(), W.data[edges].tolist(), strict=True)
        neighbours.append([(other, w) for other, w in pairs if other != node])
    return neighbours
