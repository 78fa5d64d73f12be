"""Bottleneck options: one option per room, to its closest doorway, the paper's other baseline (Appendix C)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from eigenoptions._validation import Progress
from eigenoptions.discovery.method import (
    TooFewOptionsError,
    choose_goal_discount,
    discovery_method,
    take_first,
)
from eigenoptions.mdp import MDP, graph
from eigenoptions.options import Purpose
from eigenoptions.options.purposes import find_local_maxima


@discovery_method("bottleneck", gamma=choose_goal_discount, n_options=None)
def choose_purposes(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    progress: Progress | None = None,
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
            purposes.append(
                Purpose(indicator, label, initiation=inside, goal=goal, exact=True)
            )
    if not purposes:
        raise TooFewOptionsError(
            f"no doorway was found in {mdp!r}: it has no bottleneck", 0
        )
    return take_first(n_options, purposes, "rooms found")


def find_rooms(
    mdp: MDP,
    rng: int | np.random.Generator = 0,
    *,
    max_steps: int = 8,
    progress: Progress | None = None,
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
    """``(S,)`` states with several neighbours, no two of which meet within `max_steps` once the state is removed."""
    A = csr_array((np.ones(W.nnz), W.indices, W.indptr), shape=W.shape)
    is_passage: NDArray[np.bool_] = np.diff(A.indptr) >= 2
    # One row per state and neighbour: the states reached from the neighbour without passing the state.
    state = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    reached = csr_array(
        (np.ones(A.nnz), A.indices, np.arange(A.nnz + 1)), shape=(A.nnz, A.shape[0])
    )
    for _ in range(max_steps):
        rows = np.flatnonzero(is_passage[state])
        state, reached = state[rows], reached[rows]
        reached = csr_array(reached + reached @ A)
        reached.data[:] = reached.indices != np.repeat(state, np.diff(reached.indptr))
        reached.eliminate_zeros()
        # A row of a passage holds one neighbour of its state, with which it began, and no other.
        is_passage[state[(reached * A[state]).sum(axis=1) > 1]] = False
    return is_passage


def compute_betweenness(
    W: csr_array,
    rng: int | np.random.Generator = 0,
    *,
    max_starts: int = 2000,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """``(S,)`` betweenness of every state of a graph, from at most `max_starts` start states, drawn at random.

    Brandes (2001): shortest paths from each start are counted level by level, and on the way back each state passes the
    paths that depend on it on to the states before it. Levels of many starts are one sparse matrix ``(starts, S)``.

    >>> import eigenoptions as eo
    >>> compute_betweenness(eo.graph(eo.maze("....."))).tolist()
    [0.0, 6.0, 8.0, 6.0, 0.0]
    """
    n = W.shape[0]
    A = csr_array((np.ones(W.nnz), W.indices, W.indptr), shape=W.shape)
    starts = np.arange(n)
    if n > max_starts:
        starts = np.sort(
            np.random.default_rng(rng).choice(n, max_starts, replace=False)
        )
    score = np.zeros(n)
    for low in range(0, len(starts), 256):
        block = starts[low : low + 256]
        m = len(block)
        paths = csr_array((np.ones(m), block, np.arange(m + 1)), shape=(m, n))
        levels, visited = [], np.zeros((m, n), dtype=np.bool_)
        while paths.nnz:
            levels.append(paths)
            visited[paths.nonzero()] = True
            paths = csr_array(paths @ A)
            row = np.repeat(np.arange(m), np.diff(paths.indptr))
            paths.data[visited[row, paths.indices]] = 0.0
            paths.eliminate_zeros()
        dependency = csr_array((m, n))
        for paths, previous in zip(levels[:1:-1], levels[-2:0:-1], strict=True):
            share = paths.power(-1)
            dependency = csr_array(((share + dependency * share) @ A) * previous)
            score += dependency.sum(axis=0)
        if progress is not None:
            progress(low + m, len(starts))
    return score
