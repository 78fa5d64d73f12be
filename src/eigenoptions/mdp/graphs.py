"""Graphs of MDPs, MDPs of graphs, and paths in them (paper, Section 2.3)."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import breadth_first_order, dijkstra

from eigenoptions._text import count_noun
from eigenoptions._types import BoolArray, FloatArray, IndexArray
from eigenoptions._validation import (
    check_choice,
    check_csr,
    check_int,
    check_memory,
    check_state,
    check_type,
    show_value,
)
from eigenoptions.mdp.table import MDP

logger = logging.getLogger("eigenoptions")


def graph(mdp: MDP, weights: str | ArrayLike | csr_array = "adjacency") -> csr_array:
    """Undirected graph of an MDP: symmetric weights without a diagonal (Section 2.3).

    Parameters
    ----------
    mdp : MDP
        The dynamics.
    weights : str or array of shape (S, S), default="adjacency"
        ``"adjacency"``: 1 where some action leads from one state to the other, either
        way (the paper's A), or ``mdp.weights`` where it has them.
        ``"transition"``: the mean of p(s' | s) and p(s | s') under the uniform policy.
        ``"incidence"``: 1 for edges that can be walked both ways and 1/2 for one way,
        so that the combinatorial Laplacian is ``T'T / 2`` for the incidence matrix T of
        the transitions (Theorem 5.1). Or non-negative weights.

    Returns
    -------
    csr_array of shape (S, S)
        Directed weights are symmetrised, because the Laplacian's eigenvectors are real
        and orthogonal only for symmetric weights. Self-loops, which are blocked moves,
        are left out: staying carries no direction. Additional states of the MDP, the
        ends of episodes, have no edges.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> graph(maze("S.G")).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    check_type("mdp", mdp, MDP, "make one with maze(...) or from_env(...)")
    if isinstance(weights, str) and weights == "adjacency" and mdp.weights is not None:
        weights = mdp.weights

    if isinstance(weights, str):
        check_choice("weights", weights, ("adjacency", "transition", "incidence"))
        W = _merge_actions(mdp)
        if weights != "transition":
            W.data[:] = 1.0
        # An end that is entered from everywhere makes no neighbours.
        W.data[W.indices >= mdp.n_listed] = 0.0
    else:
        W = check_csr("weights", weights, nonnegative=True)
        n = mdp.n_states
        if W.shape != (n, n):
            raise ValueError(
                f"weights must have shape ({n}, {n}) for {n} states, got {W.shape}"
            )

    W = remove_loops(W + W.T)
    if isinstance(weights, str) and weights == "adjacency":
        W.data[:] = 1.0
    else:
        W.data *= 0.5
    return W


def _merge_actions(mdp: MDP) -> csr_array:
    """``(S, S)`` transition probabilities when every action is equally likely."""
    table = mdp.transition
    n = mdp.n_states
    # Rows of one state follow each other: all of its actions become one row.
    first_entries = table.indptr[:: mdp.n_actions]
    entries = (table.data / mdp.n_actions, table.indices, first_entries)
    W = csr_array(entries, shape=(n, n), copy=True)
    W.sum_duplicates()
    return W


def remove_loops(W: csr_array) -> csr_array:
    """Weights without entries on the diagonal, sorted."""
    W = csr_array(W)
    # Not `setdiag`, which first stores the whole diagonal: that takes five times as
    # long, and in SciPy 1.13 it mixed up entries of others.
    row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    W.data[row == W.indices] = 0.0
    W.eliminate_zeros()
    W.sort_indices()
    return W


def from_graph(
    source: Any,
    *,
    directed: bool | None = None,
    length: str | bool = False,
    pos: Mapping[Hashable, ArrayLike] | None = None,
    max_actions: int | None = None,
) -> MDP:
    """MDP of a graph: states are its nodes, and action a leads to the a-th neighbour.

    States with fewer neighbours than others stay where they are by the remaining
    actions. An edge takes one step, whatever its weight; weights shape the
    eigenvectors.

    Parameters
    ----------
    source : networkx graph, sparse matrix or iterable of edges
        A networkx graph, an ``(S, S)`` SciPy sparse matrix, or edges: pairs of nodes,
        or triples with a weight >= 0.
    directed : bool, default=None
        Whether an edge leads one way only. None: as the networkx graph or the matrix
        says; listed edges lead both ways.
    length : str or bool, default=False
        By default the weight of an edge is *closeness*: the larger, the more its ends
        belong together. For roads give the attribute that is their length
        (``length="km"``), or True if the third entry of an edge, or the entry of a
        matrix, is one. The weight is then the median length divided by its own.
    pos : mapping from nodes to (x, y), default=None
        Where nodes are drawn. None: the attribute ``"pos"`` of the nodes of a networkx
        graph, if all have it. `networkx.spring_layout` makes one.
    max_actions : int, default=None
        Most neighbours of a node. A node that has more, a *hub*, chooses among them in
        several steps: it gets further states, `Relay`, in the form of a tree. None: no
        limit, or 64 if the table had more than 10 million rows.

    Returns
    -------
    MDP
        ``mdp.states`` are the nodes where they are not 0..S-1. Nodes that are pairs of
        integers are coordinates.

    Examples
    --------
    >>> ring = from_graph([("a", "b"), ("b", "c"), ("c", "a")])
    >>> ring.states, ring.successors.tolist()
    (('a', 'b', 'c'), [[1, 2], [0, 2], [0, 1]])
    """
    graph_of = _read_graph(source, directed, length)
    nodes = graph_of.nodes
    W = graph_of.weights
    places = _find_positions(source, nodes, pos)

    # A table has as many actions as the largest number of neighbours.
    most_neighbours = int(np.diff(W.indptr).max())
    if max_actions is not None:
        limit = check_int("max_actions", max_actions, 3)
    elif len(nodes) * most_neighbours > 10**7:
        limit = 64
    else:
        limit = most_neighbours
    hubs = np.flatnonzero(np.diff(W.indptr) > limit)
    if len(hubs):
        W, relays = _add_relays(W, hubs, limit)
        logger.warning(
            "%s with more than %d neighbours (up to %d) in the graph: %s were added, "
            "through which one chooses among them; max_actions= sets another limit",
            count_noun(len(hubs), "node"),
            limit,
            most_neighbours,
            count_noun(len(relays), "state"),
        )
        hub_of_relay = [hub for hub, _ in relays]
        names = [Relay(nodes[hub], number) for hub, number in relays]
        nodes = [*nodes, *names]
        if places is not None:
            places = np.concatenate([places, places[hub_of_relay]])

    is_numbered = nodes == list(range(len(nodes)))
    has_unit_weights = bool((W.data == 1.0).all())
    return MDP.from_successors(
        _list_neighbours(W),
        coords=_find_coords(nodes),
        positions=places,
        states=None if is_numbered else tuple(nodes),
        weights=None if has_unit_weights else W,
        name=str(getattr(source, "name", "")),
    )


def is_graph(source: Any) -> bool:
    """Whether this is a networkx graph or a sparse matrix of weights."""
    is_networkx = hasattr(source, "is_directed") and hasattr(source, "edges")
    return is_networkx or issparse(source)


class Relay(NamedTuple):
    """A state through which a hub of a graph chooses among its neighbours."""

    hub: Hashable
    number: int


class _Graph(NamedTuple):
    """Nodes of a graph, and weights ``(S, S)`` of its edges without loops."""

    nodes: list[Hashable]
    weights: csr_array


def _read_graph(source: Any, directed: bool | None, length: str | bool) -> _Graph:
    """Nodes and weights of a graph of any kind."""
    if issparse(source):
        weights = source
        n_nodes = source.shape[0]
        check_memory(f"{n_nodes:,} nodes", 100 * n_nodes, "number them without gaps")
        nodes: list[Hashable] = list(range(n_nodes))
        if directed is None:
            directed = True
        if isinstance(length, str):
            raise ValueError(
                f"a matrix has no attribute {length!r}: give length=True if its "
                "entries are lengths"
            )
    else:
        nodes, weights = _read_edges(source, length)
        if directed is None:
            directed = hasattr(source, "is_directed") and source.is_directed()

    n = len(nodes)
    if weights.shape != (n, n) or not n:
        raise ValueError(
            f"a graph must have nodes and a square matrix, got shape {weights.shape}"
        )
    W = check_csr("weights", weights, nonnegative=True)
    if length:
        W = _invert_lengths(W)
    if not directed:
        # An edge that is listed both ways counts once.
        W = W.maximum(W.T)
    return _Graph(nodes, remove_loops(W))


def _invert_lengths(lengths: csr_array) -> csr_array:
    """Closeness of nodes whose edges have lengths: the typical edge has weight 1."""
    if not lengths.nnz:
        return lengths
    closeness = lengths.copy()
    closeness.data = np.median(lengths.data) / lengths.data
    return closeness


def _read_edges(source: Any, length: str | bool) -> tuple[list[Hashable], csr_array]:
    """Nodes, and weights or lengths ``(S, S)``, of a networkx graph or of edges."""
    is_networkx = hasattr(source, "is_directed")
    if is_networkx:
        edges = _list_networkx_edges(source, length)
        nodes = list(source)
    else:
        edges = _list_given_edges(source)
        ends = [node for first, second, _ in edges for node in (first, second)]
        nodes = list(dict.fromkeys(ends))
        if all(isinstance(node, int | np.integer) for node in nodes):
            nodes.sort()
    if length:
        for first, second, distance in edges:
            if not distance > 0:
                raise ValueError(
                    f"lengths must be > 0, got {distance} from {first!r} to {second!r}"
                )

    number = {node: i for i, node in enumerate(nodes)}
    rows = [number[first] for first, _, _ in edges]
    columns = [number[second] for _, second, _ in edges]
    weights = [weight for _, _, weight in edges]
    shape = (len(nodes), len(nodes))
    matrix = csr_array((weights, (rows, columns)), shape=shape)
    return nodes, matrix


def _list_networkx_edges(
    source: Any, length: str | bool
) -> list[tuple[Hashable, Hashable, float]]:
    """Edges of a networkx graph with their weights, or with an attribute as length."""
    attribute = length if isinstance(length, str) else "weight"
    edges = []
    for first, second, value in source.edges(data=attribute, default=None):
        if value is None:
            if length:
                raise ValueError(
                    f"the edge from {first!r} to {second!r} has no {attribute!r}: "
                    "give all edges a length"
                )
            value = 1
        edges.append((first, second, _read_weight(first, second, value)))
    return edges


def _list_given_edges(source: Any) -> list[tuple[Hashable, Hashable, float]]:
    """Edges ``(u, v)`` or ``(u, v, weight)`` that are listed."""
    edges = []
    for number, edge in enumerate(_iterate_edges(source)):
        if len(edge) not in (2, 3):
            raise ValueError(
                f"edges are (u, v) or (u, v, weight), got {len(edge)} entries in edge "
                f"{number}"
            )
        weight = edge[2] if len(edge) == 3 else 1
        edges.append((edge[0], edge[1], _read_weight(edge[0], edge[1], weight)))
    return edges


def _iterate_edges(source: Any) -> list[tuple[Any, ...]]:
    """Edges as tuples; ValueError if there are none to be listed."""
    try:
        edges = [tuple(edge) for edge in source]
        hash(tuple(edges))
    except TypeError:
        raise ValueError(
            "a graph is a networkx graph, a sparse matrix, or edges (u, v) or "
            f"(u, v, weight), got {type(source).__name__}"
        ) from None
    return edges


def _read_weight(first: Hashable, second: Hashable, value: Any) -> float:
    """The weight of an edge as a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"the weight from {first!r} to {second!r} must be a number, "
            f"got {show_value(value)}"
        ) from None


def _find_positions(
    source: Any, nodes: list[Hashable], pos: Mapping[Hashable, ArrayLike] | None
) -> FloatArray | None:
    """``(S, 2)`` where nodes are drawn, if that is known of all."""
    if pos is None:
        known = dict(source.nodes(data="pos")) if hasattr(source, "nodes") else {}
        if not known or any(place is None for place in known.values()):
            return None
        pos = known
    missing = [node for node in nodes if node not in pos]
    if missing:
        raise ValueError(f"pos must have all nodes, {missing[0]!r} is missing")
    return np.array([pos[node] for node in nodes], dtype=np.float64)


def _add_relays(
    W: csr_array, hubs: IndexArray, limit: int
) -> tuple[csr_array, list[tuple[int, int]]]:
    """Put a tree of further states between each hub and its neighbours.

    An edge from the hub to a relay, and from a relay to another, has the weight of all
    that lies behind it. The way back from a neighbour leads through the same relays.

    Parameters
    ----------
    W : csr_array of shape (S, S)
        Weights.
    hubs : ndarray of int
        Nodes with more than `limit` neighbours.
    limit : int
        Most neighbours of a state, one of which is the way back.

    Returns
    -------
    csr_array of shape (S + R, S + R)
        Weights with R further states.
    list of (int, int)
        Hub of each further state, and its number among those of the hub.
    """
    n_states = W.shape[0]
    relays: list[tuple[int, int]] = []
    links: list[tuple[int, int, float]] = []
    # By a hub and a neighbour, the relay that is next to the neighbour.
    nearest: dict[tuple[int, int], int] = {}
    both_ways = csr_array(W.maximum(W.T))
    for hub in hubs.tolist():
        entries = slice(both_ways.indptr[hub], both_ways.indptr[hub + 1])
        members = both_ways.indices[entries].tolist()
        weights = dict(zip(members, both_ways.data[entries].tolist(), strict=True))
        tree = _make_tree(members, weights, limit, n_states + len(relays))
        relays += [(hub, number) for number in range(tree.n_relays)]
        links += tree.links
        links += [(hub, relay, weights[relay]) for relay in tree.top]
        for neighbour, relay in tree.nearest.items():
            nearest[hub, neighbour] = relay
    return _join_trees(W, links, nearest, n_states + len(relays)), relays


def _join_trees(
    W: csr_array,
    links: Sequence[tuple[int, int, float]],
    nearest: Mapping[tuple[int, int], int],
    n: int,
) -> csr_array:
    """Return weights ``(n, n)`` of the edges, and of the trees between them.

    Parameters
    ----------
    W : csr_array of shape (S, S)
        Weights.
    links : sequence of (parent, child, weight)
        Edges of the trees, which can be walked both ways.
    nearest : mapping
        By a hub and a neighbour, the relay that takes the place of the hub.
    n : int
        Number of states with the relays.
    """
    edges = W.tocoo()
    rows = []
    columns = []
    for first, second in zip(*(ends.tolist() for ends in edges.coords), strict=True):
        rows.append(nearest.get((first, second), first))
        columns.append(nearest.get((second, first), second))
    values = edges.data.tolist()
    for parent, child, weight in links:
        rows += [parent, child]
        columns += [child, parent]
        values += [weight, weight]
    return csr_array((values, (rows, columns)), shape=(n, n))


class _Tree(NamedTuple):
    """Relays of one hub, links between them, and which are next to what."""

    n_relays: int
    links: list[tuple[int, int, float]]
    top: list[int]
    nearest: dict[int, int]


def _make_tree(
    members: list[int], weights: dict[int, float], limit: int, first_number: int
) -> _Tree:
    """Group members under relays, and these under others, until few are left.

    The weight of each relay, the sum of its members', is added to `weights`.
    """
    n_relays = 0
    links = []
    nearest: dict[int, int] = {}
    neighbours = set(members)
    while len(members) > limit:
        above = []
        for first in range(0, len(members), limit - 1):
            group = members[first : first + limit - 1]
            relay = first_number + n_relays
            n_relays += 1
            above.append(relay)
            weights[relay] = sum(weights[member] for member in group)
            for member in group:
                if member in neighbours:
                    nearest[member] = relay
                else:
                    links.append((relay, member, weights[member]))
        members = above
    return _Tree(n_relays, links, members, nearest)


def _list_neighbours(W: csr_array) -> IndexArray:
    """``(S, A)`` the neighbours of each state; the state itself where it has fewer."""
    n = W.shape[0]
    degree = np.diff(W.indptr)
    n_actions = max(degree.max(), 1)
    neighbours = np.repeat(np.arange(n)[:, None], n_actions, axis=1)

    state = np.repeat(np.arange(n), degree)
    action = np.arange(W.nnz) - W.indptr[state]
    neighbours[state, action] = W.indices
    return neighbours


def _find_coords(nodes: list[Hashable]) -> IndexArray | None:
    """``(S, 2)`` nodes as coordinates, if all are pairs of integers."""
    if not all(isinstance(node, tuple) and len(node) == 2 for node in nodes):
        return None
    cells = np.array(nodes)
    return cells if cells.dtype.kind == "i" else None


def reachable(
    transition: csr_array,
    states: list[int] | IndexArray | BoolArray,
    *,
    backward: bool = False,
) -> BoolArray:
    """``(S,)`` which states can be reached from some states, or can reach them.

    Parameters
    ----------
    transition : csr_array of shape (S * A, S) or (S, S)
        Every stored entry is a possible move from the state of its row.
    states : ndarray of int or of bool of shape (S,)
        Numbers or a mask of states, which are part of the result.
    backward : bool, default=False
        Whether to find the states that can reach one of `states` instead.
    """
    moves = _list_moves(transition)
    if backward:
        moves = moves.T.tocsr()
    n = moves.shape[0]
    is_reached = np.zeros(n + 1, dtype=np.bool_)
    is_reached[:-1][states] = True

    # A search starts in one node, so an additional one leads to all of `states`.
    first_states = np.flatnonzero(is_reached).astype(np.int32)
    indices = np.concatenate([moves.indices, first_states])
    indptr = np.append(moves.indptr, len(indices))
    links = csr_array((np.ones(len(indices)), indices, indptr), shape=(n + 1, n + 1))
    is_reached[breadth_first_order(links, n, return_predecessors=False)] = True
    return is_reached[:-1]


def distance(mdp: MDP, start: int, goal: int) -> int | None:
    """Smallest number of moves from one state to another, or None without a path."""
    start = check_state(start, mdp.n_states)
    goal = check_state(goal, mdp.n_states)
    moves = _list_moves(mdp.transition)
    steps = dijkstra(moves, unweighted=True, indices=start)[goal]
    return int(steps) if np.isfinite(steps) else None


def _list_moves(table: csr_array) -> csr_array:
    """``(S, S)`` the moves of a table ``(S * A, S)`` by any action.

    Indices have 32 bits, as SciPy's searches need them. A move by two actions is stored
    twice.
    """
    n_rows, n = table.shape
    n_actions = n_rows // n
    indptr = table.indptr[::n_actions].astype(np.int32)
    indices = table.indices.astype(np.int32)
    return csr_array((table.data, indices, indptr), shape=(n, n))
