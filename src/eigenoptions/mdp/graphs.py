"""Graphs of MDPs, MDPs of graphs, and paths in them (paper, Section 2.3)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import breadth_first_order, dijkstra

from eigenoptions._types import BoolArray, IndexArray
from eigenoptions._validation import check_choice, check_csr, check_state, check_type
from eigenoptions.mdp.table import MDP


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
        are left out: staying carries no direction.

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
    row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    W.data[row == W.indices] = 0.0
    W.eliminate_zeros()
    W.sort_indices()
    return W


def from_graph(source: Any, *, directed: bool | None = None) -> MDP:
    """MDP of a graph: states are its nodes, and action a leads to the a-th neighbour.

    States with fewer neighbours than others stay where they are by the remaining
    actions.

    Parameters
    ----------
    source : networkx graph, sparse matrix or iterable of edges
        A networkx graph, an ``(S, S)`` SciPy sparse matrix, or edges: pairs of nodes,
        or triples with a weight >= 0.
    directed : bool, default=None
        Whether an edge leads one way only. None: as the networkx graph or the matrix
        says; listed edges lead both ways.

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
    if issparse(source):
        weights = source
        nodes: list[Hashable] = list(range(source.shape[0]))
        if directed is None:
            directed = True
    else:
        nodes, weights = _read_edges(source)
        if directed is None:
            directed = hasattr(source, "is_directed") and source.is_directed()

    n = len(nodes)
    if weights.shape != (n, n) or not n:
        raise ValueError(
            f"a graph must have nodes and a square matrix, got shape {weights.shape}"
        )
    W = check_csr("weights", weights, nonnegative=True)
    if not directed:
        # An edge that is listed both ways counts once.
        W = W.maximum(W.T)
    W = remove_loops(W)

    is_numbered = nodes == list(range(n))
    has_unit_weights = bool((W.data == 1.0).all())
    return MDP.from_successors(
        _list_neighbours(W),
        coords=_find_coords(nodes),
        states=None if is_numbered else tuple(nodes),
        weights=None if has_unit_weights else W,
        name=str(getattr(source, "name", "")),
    )


def _read_edges(source: Any) -> tuple[list[Hashable], csr_array]:
    """Nodes, and weights ``(S, S)``, of a networkx graph or of listed edges."""
    is_networkx = hasattr(source, "is_directed")
    edges = []
    try:
        listed = source.edges(data="weight", default=1) if is_networkx else source
        for edge in listed:
            nodes_and_weight = tuple(edge)
            if len(nodes_and_weight) == 2:
                nodes_and_weight += (1,)
            first, second, weight = nodes_and_weight
            edges.append((first, second, float(weight)))
    except (TypeError, ValueError):
        raise ValueError(
            "a graph is a networkx graph, a sparse matrix, or edges (u, v) or "
            f"(u, v, weight), got {type(source).__name__}"
        ) from None

    if is_networkx:
        nodes = list(source)
    else:
        ends = [node for first, second, _ in edges for node in (first, second)]
        nodes = list(dict.fromkeys(ends))
        if all(isinstance(node, int | np.integer) for node in nodes):
            nodes.sort()

    number = {node: i for i, node in enumerate(nodes)}
    rows = [number[first] for first, _, _ in edges]
    columns = [number[second] for _, second, _ in edges]
    weights = [weight for _, _, weight in edges]
    shape = (len(nodes), len(nodes))
    return nodes, csr_array((weights, (rows, columns)), shape=shape)


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
