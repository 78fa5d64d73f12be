"""Bottleneck options: one option per room, to its closest doorway, the paper's other baseline (Appendix C)."""

from __future__ import annotations

from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, shortest_path

from eigenoptions.discovery.goals import TooFewOptionsError, find_local_maxima, first_n_or_raise
from eigenoptions.discovery.methods import Progress, discovery_method, near_one_discount
from eigenoptions.mdp import MDP, graph
from eigenoptions.options import Purpose


@discovery_method(
    "bottleneck", "shortest paths to the doorways of each room", gamma=near_one_discount, n_options=None
)
def choose_purposes(
    mdp: MDP, n_options: int | None, rng: np.random.Generator, *, progress: Progress | None = None
) -> list[Purpose]:
    """For each room, the indicator of its doorways, followed inside the room only (Appendix C)."""
    room, doorways = find_rooms(mdp, rng, progress=progress)
    W = graph(mdp)
    purposes: list[Purpose] = []
    for i in range(room.max() + 1):
        # A large map has more rooms than fit into memory, so this ends as soon as there are enough.
        if len(purposes) == n_options:
            break
        inside = room == i
        doors = doorways[W[doorways] @ inside.astype(float) > 0]
        if len(doors):
            indicator = np.isin(np.arange(mdp.n_states), doors).astype(np.float64)
            goal = int(doors[0]) if len(doors) == 1 else None
            label = f"room {len(purposes) + 1}"
            purposes.append(Purpose(indicator, label, initiation=inside, goal=goal, exact=True))
    if not purposes:
        raise TooFewOptionsError(f"no doorway was found in {mdp!r}: it has no bottleneck", 0)
    return first_n_or_raise(n_options, purposes, "rooms found")


def find_rooms(
    mdp: MDP, rng: int | np.random.Generator = 0, *, max_steps: int = 8, progress: Progress | None = None
) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Rooms and doorways of a state space: ``(S,)`` the room of each state, -1 at doorways, and the doorway states.

    A passage is a state whose neighbours do not meet again within `max_steps` steps once it is removed (a gap in a
    wall). Where passages touch each other (a corridor), those with the largest betweenness among their neighbours are
    the doorways: on a corridor its middle. Rooms are the connected components that remain without the doorways.

    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> room, doorways = find_rooms(mdp)
    >>> mdp.coords[doorways].tolist()
    [[3, 6], [6, 2], [7, 9], [10, 6]]
    """
    W = graph(mdp)
    is_passage = find_passages(W, max_steps)
    between_passages = W[is_passage][:, is_passage]
    doorways = np.flatnonzero(is_passage)
    if between_passages.nnz:
        score = compute_betweenness(W, rng, progress=progress)[is_passage]
        doorways = doorways[np.sort(find_local_maxima(between_passages, score))]
    inside = np.ones(mdp.n_states, dtype=bool)
    inside[doorways] = False
    room = np.full(mdp.n_states, -1, dtype=np.int32)
    room[inside] = connected_components(W[inside][:, inside], directed=False)[1]
    return room, doorways


def find_passages(W: csr_array, max_steps: int) -> NDArray[np.bool_]:
    """``(S,)`` states with two or more neighbours, no two of which meet within `max_steps` steps without the state."""
    A = W.astype(bool).astype(np.float64)
    is_passage: NDArray[np.bool_] = np.diff(A.indptr) >= 2
    # One row per state and neighbour: the states that are reached from the neighbour.
    state, neighbour = A.nonzero()
    reached = csr_array(
        (np.ones(len(state)), (np.arange(len(state)), neighbour)), shape=(len(state), A.shape[0])
    )
    for _ in range(max_steps + 1):
        meets = reached.multiply(A[state]).astype(bool).sum(axis=1) > 1
        is_passage[state[meets]] = False
        # Most states are decided after two steps.
        state, reached = state[is_passage[state]], reached[is_passage[state]]
        entries = (reached + reached @ A).tocoo()
        row, column = (x[entries.col != state[entries.row]] for x in (entries.row, entries.col))
        reached = csr_array((np.ones(len(row)), (row, column)), shape=reached.shape)
    return is_passage


def compute_betweenness(
    W: csr_array,
    rng: int | np.random.Generator = 0,
    *,
    max_starts: int = 2000,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """``(S,)`` betweenness of every state of a graph, from at most `max_starts` start states, drawn at random.

    >>> import eigenoptions as eo
    >>> compute_betweenness(eo.graph(eo.maze("....."))).tolist()
    [0.0, 6.0, 8.0, 6.0, 0.0]
    """
    n = W.shape[0]
    starts = np.arange(n)
    if n > max_starts:
        starts = np.sort(np.random.default_rng(rng).choice(n, max_starts, replace=False))
    blocks = np.array_split(starts, max(1, n * len(starts) // 2_000_000))
    score = np.zeros(n)
    for i, block in enumerate(blocks):
        score += sum_dependencies(W, block)
        if progress is not None:
            progress(i + 1, len(blocks))
    return score


def sum_dependencies(W: csr_array, starts: NDArray[np.intp]) -> NDArray[np.float64]:
    """``(S,)`` number of shortest paths from `starts` to all states through each state (Brandes, 2001).

    All starts advance together, one distance after the other. A pair of a start and a state has one number.
    """
    n, degree = W.shape[0], np.diff(W.indptr)
    depth = shortest_path(W, unweighted=True, indices=starts).ravel()
    paths, dependency = np.zeros(len(depth)), np.zeros(len(depth))
    pairs = np.arange(len(starts)) * n + starts
    paths[pairs] = 1.0
    edges = []
    for distance in count(1):
        # Edges from the pairs at the last distance to those at this one.
        state = pairs % n
        offset = np.arange(degree[state].sum()) - np.repeat(
            np.cumsum(degree[state]) - degree[state], degree[state]
        )
        near = np.repeat(pairs, degree[state])
        far = near - near % n + W.indices[np.repeat(W.indptr[state], degree[state]) + offset]
        is_edge = depth[far] == distance
        near, far = near[is_edge], far[is_edge]
        if not len(far):
            break
        np.add.at(paths, far, paths[near])
        edges.append((near, far))
        pairs = np.unique(far)
    for near, far in reversed(edges):
        np.add.at(dependency, near, paths[near] / paths[far] * (1.0 + dependency[far]))
    dependency[np.arange(len(starts)) * n + starts] = 0.0
    return np.asarray(dependency.reshape(len(starts), n).sum(axis=0))
