"""Bottleneck options: one option per room, to its closest doorway (Appendix C)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from eigenoptions._types import BoolArray, IndexArray, Progress, Randomness
from eigenoptions._validation import check_memory
from eigenoptions.discovery.method import (
    NoOptionsError,
    choose_goal_discount,
    discovery_method,
)
from eigenoptions.mdp import MDP, graph
from eigenoptions.mdp.betweenness import compute_betweenness
from eigenoptions.options import Purpose
from eigenoptions.options.purposes import find_local_maxima


@discovery_method(
    "bottleneck",
    gamma=choose_goal_discount,
    n_options=None,
    candidates="rooms found",
)
def choose_purposes(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    progress: Progress | None = None,
) -> list[Purpose]:
    """For each room, the indicator of its doorways, followed inside the room only."""
    room, doorways = find_rooms(mdp, rng, progress=progress)
    W = graph(mdp)
    purposes: list[Purpose] = []
    for i in range(room.max() + 1):
        # A large map has more rooms than fit into memory: stop when there are enough.
        if len(purposes) == n_options:
            break
        is_inside = room == i
        is_adjacent = W[doorways] @ is_inside.astype(float) > 0
        doors = doorways[is_adjacent]
        if not len(doors):
            continue
        indicator = np.zeros(mdp.n_states)
        indicator[doors] = 1.0
        purpose = Purpose(
            indicator,
            f"room {len(purposes) + 1}",
            initiation=is_inside,
            goal=int(doors[0]) if len(doors) == 1 else None,
            exact=True,
        )
        purposes.append(purpose)
    if not purposes:
        raise NoOptionsError(f"no doorway was found in {mdp!r}: it has no bottleneck")
    return purposes


def find_rooms(
    mdp: MDP,
    rng: Randomness = 0,
    *,
    max_steps: int = 8,
    progress: Progress | None = None,
) -> tuple[NDArray[np.int32], IndexArray]:
    """Rooms and doorways of a state space.

    A passage is a state whose neighbours do not meet again within `max_steps` steps
    once it is removed: a gap in a wall. Where passages touch each other, in a corridor,
    those with the largest betweenness among their neighbours are the doorways: the
    middle of the corridor. Rooms are the connected components that remain without the
    doorways.

    Parameters
    ----------
    mdp : MDP
        The state space.
    rng : int or Generator, default=0
        Draws the starts of `compute_betweenness`.
    max_steps : int, default=8
        Steps within which neighbours of a passage must not meet.
    progress : callable, default=None
        As in `compute_betweenness`.

    Returns
    -------
    room : ndarray of shape (S,)
        The room of each state, -1 at doorways.
    doorways : ndarray
        The doorway states.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> room, doorways = find_rooms(mdp)
    >>> mdp.coords[doorways].tolist()
    [[3, 6], [6, 2], [7, 9], [10, 6]]
    """
    W = graph(mdp)
    is_passage = find_passages(W, max_steps)
    doorways = np.flatnonzero(is_passage)
    between_passages = W[is_passage][:, is_passage]
    if between_passages.nnz:
        betweenness = compute_betweenness(W, rng, progress=progress)[is_passage]
        maxima = find_local_maxima(between_passages, betweenness)
        doorways = doorways[np.sort(maxima)]

    is_inside = np.ones(mdp.n_states, dtype=np.bool_)
    is_inside[doorways] = False
    room = np.full(mdp.n_states, -1, dtype=np.int32)
    inner_graph = W[is_inside][:, is_inside]
    room[is_inside] = connected_components(inner_graph, directed=False)[1]
    return room, doorways


def find_passages(W: csr_array, max_steps: int) -> BoolArray:
    """``(S,)`` states that separate all of their neighbours.

    A passage has several neighbours, no two of which meet within `max_steps` once the
    passage is removed.
    """
    n = W.shape[0]
    A = csr_array((np.ones(W.nnz), W.indices, W.indptr), shape=W.shape)
    degree = np.diff(A.indptr)
    is_passage: BoolArray = degree >= 2

    # One row per state and neighbour: the states that are reached from the neighbour
    # without passing through the state.
    state = np.repeat(np.arange(n), degree)
    reached = csr_array(
        (np.ones(A.nnz), A.indices, np.arange(A.nnz + 1)), shape=(A.nnz, n)
    )
    for _ in range(max_steps):
        rows = np.flatnonzero(is_passage[state])
        state = state[rows]
        reached = reached[rows]

        # At most so many entries, which are sorted: a copy of an index and a number.
        n_entries = reached.nnz + int(degree[reached.indices].sum())
        check_memory(
            f"the surroundings of {n:,} states",
            24 * min(n_entries, len(rows) * n),
            'they are too dense for bottlenecks, take method="community"',
        )
        reached = csr_array(reached + reached @ A)
        row_state = np.repeat(state, np.diff(reached.indptr))
        reached.data[:] = reached.indices != row_state
        reached.eliminate_zeros()

        # A row of a passage holds one neighbour of its state, with which it began.
        n_neighbours = (reached * A[state]).sum(axis=1)
        is_passage[state[n_neighbours > 1]] = False
    return is_passage
