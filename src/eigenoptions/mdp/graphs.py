"""MDPs of graphs, and paths in them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import breadth_first_order, dijkstra

from eigenoptions._validation import check_choice, check_csr, check_state, check_type
from eigenoptions.mdp.table import MDP


def graph(mdp: MDP, weights: str | ArrayLike | csr_array = "adjacency") -> csr_array:
    """Undirected graph of an MDP: symmetric weights W with an empty diagonal (Section 2.3).

    Parameters
    ----------
    mdp : MDP
        The dynamics.
    weights : str or array (S, S), default "adjacency"
        ``"adjacency"``: 1 where some action leads from one state to the other, either way (the paper's A), or
        ``mdp.weights`` where it has them. ``"random-walk"``: the mean of p(s' | s) and p(s | s') under the uniform
        policy. ``"incidence"``: 1 for edges that can be walked both ways and 1/2 for one way, so that the combinatorial
        Laplacian is ``T'T / 2`` for the incidence matrix T of the transitions (Theorem 5.1). Or non-negative weights.

    Returns
    -------
    csr_array
        ``(S, S)``. Directed weights are symmetrised, because the Laplacian's eigenvectors are real and orthogonal only
        for symmetric weights. Self-loops (blocked moves) are left out: staying carries no direction.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> graph(maze("S.G")).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    check_type("mdp", mdp, MDP, "make one with maze(...) or from_env(...)")
    table, n = mdp.transition, mdp.n_states
    is_adjacency = isinstance(weights, str) and weights == "adjacency"
    if is_adjacency and mdp.weights is not None:
        weights, is_adjacency = mdp.weights, False
    if isinstance(weights, str):
        check_choice("weights", weights, ("adjacency", "random-walk", "incidence"))
        # All actions of a state in one row.
        entries = (
            table.data / mdp.n_actions,
            table.indices,
            table.indptr[:: mdp.n_actions],
        )
        W = csr_array(entries, shape=(n, n), copy=True)
        W.sum_duplicates()
        if weights != "random-walk":
            W.data[:] = 1.0
    else:
        W = check_csr("weights", weights, nonnegative=True)
        if W.shape != (n, n):
            raise ValueError(
                f"weights must have shape ({n}, {n}) for {n} states, got {W.shape}"
            )
    W = remove_loops(W + W.T)
    W.data[:] = 1.0 if is_adjacency else 0.5 * W.data
    return W


def remove_loops(W: csr_array) -> csr_array:
    """Weights without entries on the diagonal, sorted."""
    W = csr_array(W)
    W.data[np.repeat(np.arange(W.shape[0]), np.diff(W.indptr)) == W.indices] = 0.0
    W.eliminate_zeros()
    W.sort_indices()
    return W


def from_graph(source: Any, *, directed: bool | None = None) -> MDP:
    """MDP of a graph: its nodes are the states, and action a of a state leads to its a-th neighbour.

    States with fewer neighbours than others stay where they are by the remaining actions.

    Parameters
    ----------
    source
        A networkx graph, an ``(S, S)`` SciPy sparse matrix, or edges: pairs of nodes, or triples with a weight >= 0.
    directed : bool, optional
        Whether an edge leads one way only. By default as the networkx graph or the matrix says; edges lead both ways.

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
    if issparse(source):
        W, directed, nodes = (
            source,
            directed is not False,
            list[Any](range(source.shape[0])),
        )
    else:
        is_networkx = hasattr(source, "is_directed")
        try:
            listed = map(
                tuple, source.edges(data="weight", default=1) if is_networkx else source
            )
            edges = [
                (u, v, float(w))
                for u, v, w in ((*e, 1) if len(e) == 2 else e for e in listed)
            ]
        except (TypeError, ValueError):
            kinds = (
                "a networkx graph, a sparse matrix, or edges (u, v) or (u, v, weight)"
            )
            raise ValueError(
                f"a graph is {kinds}, got {type(source).__name__}"
            ) from None
        nodes = list(
            source
            if is_networkx
            else dict.fromkeys(node for edge in edges for node in edge[:2])
        )
        if not is_networkx and all(
            isinstance(node, int | np.integer) for node in nodes
        ):
            nodes.sort()
        directed = (
            source.is_directed() if is_networkx and directed is None else directed
        )
        number = {node: i for i, node in enumerate(nodes)}
        ends = [[number[edge[end]] for edge in edges] for end in (0, 1)]
        W = csr_array(
            ([edge[2] for edge in edges], ends), shape=(len(nodes), len(nodes))
        )
    n = len(nodes)
    if W.shape != (n, n) or not n:
        raise ValueError(
            f"a graph must have nodes and a square matrix, got shape {W.shape}"
        )
    W = check_csr("weights", W, nonnegative=True)
    # An edge that is listed both ways counts once.
    W = remove_loops(W if directed else W.maximum(W.T))
    degree = np.diff(W.indptr)
    successors = np.repeat(np.arange(n)[:, None], max(degree.max(), 1), axis=1)
    state = np.repeat(np.arange(n), degree)
    successors[state, np.arange(W.nnz) - W.indptr[state]] = W.indices
    on_grid = all(isinstance(node, tuple) and len(node) == 2 for node in nodes)
    cells = np.array(nodes if on_grid else None)
    return MDP.from_successors(
        successors,
        coords=cells if cells.dtype.kind == "i" else None,
        states=None if nodes == list(range(n)) else tuple(nodes),
        weights=None if (W.data == 1.0).all() else W,
        name=str(getattr(source, "name", "")),
    )


def reachable(
    transition: csr_array, states: Any, *, backward: bool = False
) -> NDArray[np.bool_]:
    """``(S,)`` which states can be reached from some of `states`, or with `backward` can reach one of them.

    Every stored entry of `transition` ``(S * A, S)`` or ``(S, S)`` is a possible move from the state of its row.
    `states` are numbers or a mask ``(S,)``; they are part of the result.
    """
    moves = _merge_actions(transition)
    moves, n = moves.T.tocsr() if backward else moves, moves.shape[0]
    mask = np.zeros(n + 1, dtype=np.bool_)
    mask[:-1][states] = True
    # An additional node leads to all of the first states.
    indices = np.concatenate([moves.indices, np.flatnonzero(mask).astype(np.int32)])
    indptr = np.append(moves.indptr, len(indices))
    links = csr_array((np.ones(len(indices)), indices, indptr), shape=(n + 1, n + 1))
    mask[breadth_first_order(links, n, return_predecessors=False)] = True
    return mask[:-1]


def distance(mdp: MDP, start: int, goal: int) -> int | None:
    """Smallest number of moves that can lead from one state to another, or None where no path does."""
    start, goal = check_state(start, mdp.n_states), check_state(goal, mdp.n_states)
    steps = dijkstra(_merge_actions(mdp.transition), unweighted=True, indices=start)[
        goal
    ]
    return int(steps) if np.isfinite(steps) else None


def _merge_actions(table: csr_array) -> csr_array:
    """``(S, S)`` the moves of a table ``(S * A, S)`` by any action, with indices of 32 bits for SciPy's searches."""
    n = table.shape[1]
    indptr = table.indptr[:: table.shape[0] // n].astype(np.int32)
    return csr_array((table.data, table.indices.astype(np.int32), indptr), shape=(n, n))
