"""`discover`: from dynamics to options, every method in one place (paper, Sections 3 and 4, Appendices C and D).

A method is a function that chooses purposes; `METHODS` names them. One solver then makes the options.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.sparse.csgraph import connected_components

from eigenoptions.discovery.online import cycle as cycle
from eigenoptions.discovery.samples import from_samples, from_transitions
from eigenoptions.mdp import MDP, Transitions, graph, mazes
from eigenoptions.options import OptionSet, Purpose, eigenpurposes
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.solver import solve
from eigenoptions.parallel import on_engine
from eigenoptions.spectra import spectrum

log = logging.getLogger("eigenoptions")

NEAR = 8  # steps around a state in which its neighbours must meet again, or it is a passage
PIVOTS = 2_000  # most start states for betweenness; above, a sample
LONG = 50_000_000  # states times start states, about a second, between two reports of progress
SPECTRUM = 75  # percent of the work, about, that is done when the spectrum is

Progress = Callable[[int, int], object]


@overload
def discover(
    source: MDP,
    n_options: int | None = None,
    method: str = "eigen",
    *,
    gamma: float | None = None,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> OptionSet: ...
@overload
def discover(
    source: Any,
    n_options: int | None = None,
    method: str = "eigen",
    *,
    gamma: float | None = None,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> OptionSet | LinearOptionSet: ...
@on_engine()
def discover(
    source: Any,
    n_options: int | None = None,
    method: str = "eigen",
    *,
    gamma: float | None = None,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> OptionSet | LinearOptionSet:
    """Options of an MDP, of samples, or of an environment, without any reward (Sections 3 and 5).

    Parameters
    ----------
    source
        An `MDP`. Or `Transitions` (or batches of them), or an environment (or its id), which is sampled: see
        `sampling.from_transitions` and `sampling.from_samples`. Where its states are numbered, the sampled MDP takes
        the place of the exact one; otherwise options live in a feature space, and a `LinearOptionSet` comes out.
    n_options
        How many, both signs counted; None for all there are.
    method
        ``"eigen"``: eigenoptions, in order of eigenvalue, + before -. ``"bottleneck"``: one option a room, to its
        closest doorway (Appendix C). ``"random"``: shortest paths to random states (Appendix D).
    gamma
        Discount of the options' purposes; by default 0.9 for eigenoptions, and for the others so close to 1 that the
        farthest state still feels the goal.
    rng
        Used by ``"random"``, and by ``"bottleneck"`` beyond 2,000 states.
    progress
        Called with percents done and 100; purposes (the spectrum) are about three quarters of the work.
    settings
        For ``"eigen"``: `operator` ("normalized"), `both_signs` (True), `skip_zero` (True) and `weights` of the graph.
        For samples: `steps`, `features` and the other settings of `sampling.from_samples`.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> discover(eo.maze("four-rooms"), n_options=4)
    OptionSet(4 options on 104 states: e2+, e2-, e3+, e3-)
    >>> discover(eo.maze("four-rooms"), method="bottleneck")
    OptionSet(4 options on 104 states: room 1, room 2, room 3, room 4)
    >>> discover("MountainCar-v0", n_options=2, steps=2000, features="fourier")
    LinearOptionSet(2 learned options on 16 features: e1+, e1-)
    """
    if not isinstance(source, MDP):
        given = {"rng": rng, "gamma": gamma, "progress": progress}
        return _sampled(source, n_options, method, {**given, **settings})
    mdp = source
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if n_options is not None and not (isinstance(n_options, int | np.integer) and n_options >= 1):
        raise ValueError(f"n_options must be a whole number from 1, got {n_options!r}")
    many = None if n_options is None else int(n_options)
    told = {"progress": _share(progress, 0, SPECTRUM)} if method in ("eigen", "bottleneck") else {}
    purposes = METHODS[method](mdp, many, np.random.default_rng(rng), **settings, **told)
    if gamma is None:
        gamma = 0.9 if method == "eigen" else 1.0 - 0.5 / (mdp.n_states + 1)
    record = {k: v for k, v in settings.items() if isinstance(v, str | bool | int | float)}
    return solve(
        mdp,
        purposes,
        gamma,
        provenance={"method": method, **record},
        progress=_share(progress, SPECTRUM if told else 0, 100),
    )


def _share(progress: Progress | None, low: int, high: int) -> Progress | None:
    """Tell of a part of the work as percents from low to high of all of it."""
    if progress is None:
        return None
    return lambda done, total: progress(low + (high - low) * done // max(total, 1), 100)


def _sampled(
    source: Any, n_options: int | None, method: str, settings: dict[str, Any]
) -> OptionSet | LinearOptionSet:
    """Options of samples, or of what can be sampled."""
    if isinstance(source, str) and source in mazes():
        raise ValueError(f"{source!r} is a maze: give its MDP, discover(maze({source!r}), ...)")
    if isinstance(source, np.ndarray) or issparse(source):
        raise TypeError(
            "discover takes an MDP, Transitions or an environment, got an array: make an MDP of it first"
        )
    if method != "eigen":
        raise ValueError(
            f"from samples there are eigenoptions only, not {method!r}: make an MDP with from_env first"
        )
    if isinstance(source, Transitions) or (hasattr(source, "__iter__") and not isinstance(source, str)):
        for name in ("rng", "progress"):  # they are of sampling, and these are samples
            settings.pop(name)
        return from_transitions(source, n_options, **settings)
    if isinstance(source, str) or callable(source) or hasattr(source, "step"):
        return from_samples(source, n_options, **settings)
    kind = type(source).__name__
    raise TypeError(
        f"discover takes an MDP, Transitions or an environment, got {kind}: make an MDP with maze(...)"
    )


def eigen(
    mdp: MDP,
    n_options: int | None,
    rng: np.random.Generator,
    *,
    operator: str = "normalized",
    both_signs: bool = True,
    skip_zero: bool = True,
    weights: Any = "adjacency",
    progress: Progress | None = None,
) -> list[Purpose]:
    """Eigenpurposes of the smallest eigenvalues (Section 3)."""
    W = graph(mdp, weights)
    signs = 2 if both_signs else 1
    first = int(connected_components(W, directed=False)[0]) if skip_zero else 0
    most = signs * (mdp.n_states - first)
    if most == 0:
        raise ValueError(f"no action leads from one state of {mdp!r} to another: it has no eigenoptions")
    if n_options is not None and n_options > most:
        raise ValueError(f"n_options must be in 1..{most} for {mdp.n_states} states, got {n_options}")
    k = mdp.n_states if n_options is None else first - (-n_options // signs)
    sp = spectrum(W, k=k, operator=operator, coords=mdp.coords, rng=rng, progress=progress)
    return eigenpurposes(sp, both_signs=both_signs, skip_zero=skip_zero)[:n_options]


def random_goals(mdp: MDP, n_options: int | None, rng: np.random.Generator) -> list[Purpose]:
    """Indicators of states drawn without replacement (Appendix D)."""
    if n_options is not None and n_options > mdp.n_states:
        raise ValueError(f"n_options must be in 1..{mdp.n_states} for {mdp.n_states} states, got {n_options}")
    return [_goal(mdp, [s], f"goal {s}") for s in rng.permutation(mdp.n_states)[:n_options].tolist()]


def bottlenecks(
    mdp: MDP, n_options: int | None, rng: np.random.Generator, *, progress: Progress | None = None
) -> list[Purpose]:
    """For each room, the indicator of its doorways, followed inside the room only (Appendix C)."""
    room, doorways = rooms(mdp, rng, progress=progress)
    W = graph(mdp)
    purposes: list[Purpose] = []
    for i in range(room.max() + 1):
        if len(purposes) == n_options:  # a large map has more rooms than there is memory for
            break
        inside = room == i
        doors = doorways[np.asarray(W[doorways] @ inside.astype(float)) > 0]
        if len(doors):
            purposes.append(_goal(mdp, doors, f"room {len(purposes) + 1}", inside))
    if not purposes:
        raise ValueError(f"no doorway was found in {mdp!r}: this state space has no bottleneck")
    if n_options is not None and n_options > len(purposes):
        raise ValueError(
            f"n_options must be in 1..{len(purposes)}, the number of rooms found, got {n_options}"
        )
    return purposes[:n_options]


def rooms(
    mdp: MDP, rng: int | np.random.Generator = 0, *, progress: Progress | None = None
) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Rooms and doorways of a state space: ``(S,)`` the room of each state, -1 at doorways, and the doorway states.

    A passage is a state no two neighbours of which meet nearby once it is taken away (a gap in a wall). Where passages
    touch each other (a corridor), those with the largest betweenness among their neighbours are the doorways: on a
    corridor its middle. Rooms are what is left in pieces. `progress` is called with start states of betweenness done
    and in all, where there are many.

    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> room, doorways = rooms(mdp)
    >>> mdp.coords[doorways].tolist()
    [[3, 6], [6, 2], [7, 9], [10, 6]]
    """
    from eigenoptions._kernels.passages import betweenness, passages

    W = graph(mdp)
    cut = passages(W.indptr, W.indices, NEAR)
    inner = W[cut][:, cut]
    doorways = np.flatnonzero(cut)
    if inner.nnz:
        n = mdp.n_states
        sources = np.arange(n)
        if n > PIVOTS:
            sources = np.sort(np.random.default_rng(rng).choice(n, PIVOTS, replace=False))
        parts = np.array_split(sources.astype(np.int32), max(1, n * len(sources) // LONG))
        score = np.zeros(len(doorways))
        for i, part in enumerate(parts):
            score += betweenness(W.indptr, W.indices, part)[cut]
            if progress is not None:
                progress(i + 1, len(parts))
        # Of equal neighbours the first wins: a tiny slope breaks the tie.
        score = score * (1.0 - 1e-9 * np.arange(len(score)) / len(score))
        rows = np.repeat(np.arange(len(score)), np.diff(inner.indptr))
        beaten = np.zeros(len(score), dtype=bool)
        beaten[rows[score[inner.indices] > score[rows]]] = True
        doorways = doorways[~beaten]
    rest = np.ones(mdp.n_states, dtype=bool)
    rest[doorways] = False
    room = np.full(mdp.n_states, -1, dtype=np.int32)
    room[rest] = connected_components(W[rest][:, rest], directed=False)[1]
    return room, doorways


def _goal(mdp: MDP, states: Iterable[int], label: str, inside: NDArray[np.bool_] | None = None) -> Purpose:
    direction = np.zeros(mdp.n_states)
    direction[np.asarray(states)] = 1.0
    return Purpose(direction, label, initiation=inside)


METHODS: dict[str, Callable[..., list[Purpose]]] = {
    "eigen": eigen,
    "bottleneck": bottlenecks,
    "random": random_goals,
}
