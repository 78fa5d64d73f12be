"""MDPs of graphs, and paths in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import breadth_first_order, dijkstra

from eigenoptions._validation import check_csr, check_state
from eigenoptions.mdp.table import MDP, check_nonnegative


def from_graph(source: Any, *, directed: bool | None = None) -> MDP:
    """MDP of a graph: its nodes are the states, and action a of a state leads to its a-th neighbour.

    States with fewer neighbours than others stay where they are by the remaining actions.

    Parameters
    ----------
    source
        A networkx graph or digraph, an ``(S, S)`` SciPy sparse matrix, or edges: pairs of nodes, or triples with a
        weight. Weights are those of `graph`; they must not be negative.
    directed : bool, optional
        Whether an edge leads one way only. By default as the networkx graph says; a matrix as it stands; edges both
        ways.

    Returns
    -------
    MDP
        ``mdp.states`` are the nodes where they are not 0..S-1. Nodes that are pairs of integers are coordinates.

    Examples
    --------
    >>> ring = from_graph([("a", "b"), ("b", "c"), ("c", "a")])
    >>> ring.states, ring.successors.tolist()
    (('a', 'b', 'c'), [[1, 2], [0, 2], [0, 1]])
    """
    nodes: list[Any]
    if hasattr(source, "adj") and hasattr(source, "is_directed"):
        nodes = list(source.nodes)
        edges = [(u, v, 1 if data is None else data) for u, v, data in source.edges(data="weight")]
        directed = bool(source.is_directed()) if directed is None else directed
    elif issparse(source):
        if source.ndim != 2 or source.shape[0] != source.shape[1]:
            raise ValueError(f"a graph must be a square matrix, got shape {source.shape}")
        nodes, directed = list(range(source.shape[0])), directed is None or directed
        matrix = check_csr("the graph", source).tocoo()
        edges = list(zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True))
    elif isinstance(source, Iterable) and not isinstance(source, str | dict):
        listed = [tuple(edge) for edge in source]
        if any(len(edge) not in (2, 3) for edge in listed):
            raise ValueError("edges must be pairs (u, v) or triples (u, v, weight)")
        edges = [(*edge, 1) if len(edge) == 2 else edge for edge in listed]
        nodes = list(dict.fromkeys(node for edge in edges for node in edge[:2]))
        if all(isinstance(node, int | np.integer) for node in nodes):
            nodes.sort()
    else:
        raise TypeError(f"a graph is a networkx graph, a sparse matrix or edges, got {type(source).__name__}")
    if not nodes:
        raise ValueError("the graph has no node: give at least one edge")

    number = {node: i for i, node in enumerate(nodes)}
    n = len(nodes)
    row, column = (np.array([number[edge[end]] for edge in edges], dtype=np.int64) for end in (0, 1))
    W = csr_array((np.array([edge[2] for edge in edges], dtype=np.float64), (row, column)), shape=(n, n))
    check_nonnegative("weights", W.data)
    if not directed:
        # An edge that is listed both ways counts once.
        W = csr_array(W.maximum(W.T))
    W.setdiag(0.0)
    W.eliminate_zeros()
    W.sort_indices()
    degree = np.diff(W.indptr)
    successors = np.repeat(np.arange(n)[:, None], max(degree.max(), 1), axis=1)
    state = np.repeat(np.arange(n), degree)
    successors[state, np.arange(W.nnz) - W.indptr[state]] = W.indices

    on_grid = all(
        isinstance(node, tuple) and len(node) == 2 and all(isinstance(x, int) for x in node) for node in nodes
    )
    return MDP.from_successors(
        successors,
        coords=np.array(nodes) if on_grid else None,
        states=None if nodes == list(range(n)) else tuple(nodes),
        weights=None if (W.data == 1.0).all() else W,
        name=str(getattr(source, "name", "")),
    )


def reachable(transition: Any, states: ArrayLike, *, backward: bool = False) -> NDArray[np.bool_]:
    """``(S,)`` which states can be reached from some of `states`, or with `backward` can reach one of them.

    Every stored entry of `transition` ``(S * A, S)`` or ``(S, S)`` is a possible move from the state of its row.
    `states` are numbers or a mask ``(S,)``; they are part of the result.

    >>> one_way = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> reachable(one_way, [1]).tolist(), reachable(one_way, [1], backward=True).tolist()
    ([False, True, True], [True, True, False])
    """
    table = check_csr("transition", transition if issparse(transition) else csr_array(transition))
    rows, n = table.shape
    if n == 0 or rows == 0 or rows % n:
        raise ValueError(f"transition must have shape (S*A, S) with at least one state, got {table.shape}")
    moves = csr_array((table.data, table.indices, table.indptr[:: rows // n]), shape=(n, n))
    if backward:
        moves = csr_array(moves.T)
    first = np.asarray(states)
    if first.size and first.dtype.kind not in "biu":
        raise ValueError(f"states must be numbers in 0..{n - 1} or a mask, got {first.dtype}")
    first = np.flatnonzero(first) if first.dtype == np.bool_ else first.astype(np.intp).ravel()
    if len(first) and not 0 <= first.min() <= first.max() < n:
        raise ValueError(f"states must be in 0..{n - 1}, got {first.min()}..{first.max()}")
    # An additional node leads to all of the first states.
    indices = np.concatenate([moves.indices, first])
    indptr = np.append(moves.indptr, len(indices))
    links = csr_array((np.ones(len(indices)), indices, indptr), shape=(n + 1, n + 1))
    mask = np.zeros(n + 1, dtype=np.bool_)
    mask[breadth_first_order(links, n, return_predecessors=False)] = True
    return mask[:-1]


def distance(mdp: MDP, start: int, goal: int) -> int | None:
    """Smallest number of moves that can lead from one state to another, or None where no path does.

    >>> from eigenoptions.mdp import maze
    >>> distance(maze("S.G"), 0, 2)
    2
    """
    start, goal = check_state(start, mdp.n_states), check_state(goal, mdp.n_states)
    table, shape = mdp.transition, (mdp.n_states, mdp.n_states)
    # 32 bits, which every version of SciPy's search reads.
    rows = table.indptr[:: mdp.n_actions].astype(np.int32)
    moves = csr_array((table.data, table.indices.astype(np.int32), rows), shape=shape)
    steps = dijkstra(moves, unweighted=True, indices=start)[goal]
    return int(steps) if np.isfinite(steps) else None
