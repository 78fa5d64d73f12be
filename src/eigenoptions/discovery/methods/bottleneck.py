"""Bottleneck options: one option per room, to its closest doorway, the paper's other baseline (Appendix C)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from eigenoptions.discovery.goals import enough, local_maxima
from eigenoptions.discovery.methods import Method, Progress, far_sighted
from eigenoptions.mdp import MDP, graph
from eigenoptions.options import Purpose

# A state is a passage if its neighbours do not meet again within this many steps once it is removed.
PASSAGE_STEPS = 8
# Most start states for betweenness; of larger state spaces a random sample of this size is used.
MAX_START_STATES = 2_000
# States times start states between two reports of progress, about one second.
REPORT_EVERY = 50_000_000


def purposes(
    mdp: MDP, n_options: int | None, rng: np.random.Generator, *, progress: Progress | None = None
) -> list[Purpose]:
    """For each room, the indicator of its doorways, followed inside the room only (Appendix C)."""
    room, doorways = rooms(mdp, rng, progress=progress)
    W = graph(mdp)
    found: list[Purpose] = []
    for i in range(room.max() + 1):
        # A large map has more rooms than fit into memory, so this ends as soon as there are enough.
        if len(found) == n_options:
            break
        inside = room == i
        doors = doorways[np.asarray(W[doorways] @ inside.astype(float)) > 0]
        if len(doors):
            indicator = np.isin(np.arange(mdp.n_states), doors).astype(np.float64)
            goal = int(doors[0]) if len(doors) == 1 else None
            found.append(
                Purpose(indicator, f"room {len(found) + 1}", initiation=inside, goal=goal, exact=True)
            )
    if not found:
        raise ValueError(f"no doorway was found in {mdp!r}: this state space has no bottleneck")
    return enough(n_options, found, "rooms found")


def rooms(
    mdp: MDP, rng: int | np.random.Generator = 0, *, progress: Progress | None = None
) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Rooms and doorways of a state space: ``(S,)`` the room of each state, -1 at doorways, and the doorway states.

    A passage is a state no two neighbours of which meet nearby once it is removed (a gap in a wall). Where passages
    touch each other (a corridor), those with the largest betweenness among their neighbours are the doorways: on a
    corridor its middle. Rooms are the connected components that remain without the doorways. `progress` is called
    with the numbers of start states of betweenness done and in all, where there are many.

    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> room, doorways = rooms(mdp)
    >>> mdp.coords[doorways].tolist()
    [[3, 6], [6, 2], [7, 9], [10, 6]]
    """
    from eigenoptions._kernels.passages import passages

    W = graph(mdp)
    cut = passages(W.indptr, W.indices, PASSAGE_STEPS)
    inner = W[cut][:, cut]
    doorways = np.flatnonzero(cut)
    if inner.nnz:
        doorways = doorways[np.sort(local_maxima(inner, betweenness_of(W, rng, progress)[cut]))]
    rest = np.ones(mdp.n_states, dtype=bool)
    rest[doorways] = False
    room = np.full(mdp.n_states, -1, dtype=np.int32)
    room[rest] = connected_components(W[rest][:, rest], directed=False)[1]
    return room, doorways


def betweenness_of(
    W: csr_array, rng: int | np.random.Generator = 0, progress: Progress | None = None
) -> NDArray[np.float64]:
    """``(S,)`` betweenness of every state of a graph, from at most 2,000 start states.

    >>> import eigenoptions as eo
    >>> betweenness_of(eo.graph(eo.maze("....."))).tolist()
    [0.0, 6.0, 8.0, 6.0, 0.0]
    """
    from eigenoptions._kernels.passages import betweenness

    n = W.shape[0]
    starts = np.arange(n)
    if n > MAX_START_STATES:
        starts = np.sort(np.random.default_rng(rng).choice(n, MAX_START_STATES, replace=False))
    parts = np.array_split(starts.astype(np.int32), max(1, n * len(starts) // REPORT_EVERY))
    score = np.zeros(n)
    for i, part in enumerate(parts):
        score += betweenness(W.indptr, W.indices, part)
        if progress is not None:
            progress(i + 1, len(parts))
    return score


METHOD = Method(
    "bottleneck",
    purposes=purposes,
    gamma=far_sighted,
    n_options=None,
    summary="shortest paths to the doorways of each room",
)
