"""One solver for all purposes: optimal policies with the terminate action (paper, Section 3).

The reward of a potential f is ``f(s') - f(s)`` and TERMINATE is worth 0 everywhere. `solve` finds the optimal
policies of many purposes at once. An option may start where some action has q > 0 and stops where none has
(Theorem 3.1: for gamma < 1 it stops somewhere; here it in fact ends with probability 1 from every state).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, csc_array, csr_array, eye_array
from scipy.sparse.csgraph import breadth_first_order, reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from eigenoptions.mdp import MDP
from eigenoptions.options import TERMINATE, OptionSet, Purpose
from eigenoptions.parallel import ENGINES, pmap

TIE = 1e-12  # of max|f|: below this a q-value is noise of the eigenvector, and goes to TERMINATE
GROUP = 8  # options that the kernel advances together, and so those of a job
WORTH = 20_000_000  # states times options, about two seconds, from which workers pay
STOCHASTIC = 20  # times longer that a stochastic table takes


def solve(
    mdp: MDP,
    purposes: Purpose | Iterable[Purpose],
    gamma: float = 0.9,
    *,
    tol: float = TIE,
    provenance: dict[str, Any] | None = None,
    engine: str = "serial",
    workers: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> OptionSet:
    """Optimal options of many purposes, exactly: the fixed point of policy iteration (Section 3).

    Parameters
    ----------
    mdp
        Deterministic or stochastic dynamics.
    purposes
        Potentials with one number a state.
    gamma
        Discount in [0, 1): how far the option looks over a valley.
    tol
        Ties within ``tol * max|f|`` go to TERMINATE; of equal actions the first is taken.
    provenance
        What to record in the set beside gamma.
    engine, workers
        Where to compute, as in `parallel.pmap`; the options are the same. What takes less than about two seconds
        is computed here in any case.
    progress
        Called with options done and options in all.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> corridor = eo.maze("S...G")
    >>> solve(corridor, Purpose(np.array([0.0, 0, 0, 0, 1]), "goal 4")).policy.tolist()
    [[1, 1, 1, 1, -1]]
    """
    if not (isinstance(gamma, int | float | np.floating | np.integer) and 0 <= gamma < 1):
        raise ValueError(f"gamma must be in [0, 1), got {gamma!r}")
    if not isinstance(mdp, MDP):
        raise TypeError(
            f"solve takes an MDP, got {type(mdp).__name__}: make one with maze(...) or from_env(...)"
        )
    if not 0 <= tol < 1:
        raise ValueError(f"tol must be in [0, 1), got {tol!r}")
    wanted = (
        [purposes]
        if isinstance(purposes, Purpose)
        else list(purposes)
        if isinstance(purposes, Iterable)
        else [None]
    )
    for p in wanted:
        if not isinstance(p, Purpose):
            kind = type(purposes if p is None else p).__name__
            raise TypeError(
                f"purposes must be Purpose objects, got {kind}: make them with eigenpurposes(spectrum)"
            )
        if np.shape(p.direction) != (mdp.n_states,):
            raise ValueError(
                f"purpose {p.label!r} is for another state space: its direction has shape "
                f"{np.shape(p.direction)}, the MDP has {mdp.n_states} states"
            )
        if not np.isfinite(_scale(p)):
            raise ValueError(f"purpose {p.label!r} has entries that are not finite numbers")
        if p.initiation is not None and np.shape(p.initiation) != (mdp.n_states,):
            raise ValueError(f"the initiation mask of {p.label!r} must have shape ({mdp.n_states},)")
    n = len(wanted)
    made = _room(mdp, n)
    directions = [p.direction for p in wanted]
    shared: dict[str, Any] = {
        "mdp": mdp,
        "masks": [p.initiation for p in wanted],
        "gamma": float(gamma),
        "tol": tol,
        "order": None if mdp.successors is None or not n else renumbered(mdp.successors),
    }
    jobs = [(low, min(low + GROUP, n)) for low in range(0, n, GROUP)]
    cost = mdp.n_states * n * (1 if mdp.successors is not None else STOCHASTIC)
    if engine == "serial" or (engine in ENGINES and cost < WORTH):
        _solved((0, n), directions, **shared, out=made, progress=progress)
    else:
        done = 0

        def keep(i: int, part: list[NDArray[Any]]) -> None:
            nonlocal done
            low, high = jobs[i]
            for mine, theirs in zip(made, part, strict=True):
                mine[low:high] = theirs
            part.clear()  # nothing is held twice
            done += high - low
            if progress is not None:
                progress(done, n)

        shared["potentials"] = np.stack(directions) if n else directions
        pmap(_solved, jobs, engine, shared=shared, workers=workers, arrived=keep)
    policy, value, mean_length = made
    return OptionSet(
        policy,
        mdp.n_actions,
        value,
        tuple(p.label or f"purpose {i + 1}" for i, p in enumerate(wanted)),
        np.array([p.eigenvalue for p in wanted], dtype=float),
        mean_length,
        mdp.fingerprint,
        mdp.coords,
        {"gamma": float(gamma), "mdp": mdp.name, **(provenance or {})},
    )


def lengths(mdp: MDP, policy: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Expected steps until an option stops, from every state; 0 where it may not start, inf where it never stops.

    >>> import eigenoptions as eo
    >>> lengths(eo.maze("S...G"), np.array([1, 1, 1, 1, -1])).tolist()
    [4.0, 3.0, 2.0, 1.0, 0.0]
    """
    from eigenoptions._kernels.planning import run

    if mdp.successors is not None:
        length, end = np.empty((2, mdp.n_states), dtype=np.int32)
        if run(mdp.successors, np.ascontiguousarray(policy), length, end) < 0:
            return length.astype(np.float64)
    P = _followed(mdp, policy)
    lost = ~_reaching(P, np.asarray(policy) < 0)  # no stop can be reached from here
    ends = ~_reaching(P, lost)  # and from here nowhere that is lost
    steps = np.where(np.asarray(policy) < 0, 0.0, 1.0)
    keep = np.flatnonzero(ends)
    result = np.full(mdp.n_states, np.inf)
    if len(keep):
        result[keep] = splu(csc_array(eye_array(len(keep)) - P[keep][:, keep])).solve(steps[keep])
    return result


def _scale(purpose: Purpose) -> float:
    """max|f|; not finite if some entry is not."""
    return float(max(np.max(purpose.direction), -np.min(purpose.direction)))


def _reaching(P: csr_array, targets: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """States from which some path of P leads into `targets`, those included: a search backwards from all at once."""
    n = len(targets)
    back = csr_array(P.T)
    heads = np.flatnonzero(targets)
    root = csr_array((np.ones(len(heads)), heads, [0, len(heads)]), shape=(1, n))
    found = breadth_first_order(
        csr_array(block_array([[back, None], [root, csr_array((1, 1))]])), n, return_predecessors=False
    )
    mask = np.zeros(n + 1, dtype=bool)
    mask[found] = True
    return mask[:n]


def _room(mdp: MDP, n: int) -> list[NDArray[Any]]:
    """Space for policies, values and mean lengths of n options."""
    shape = n, mdp.n_states
    return [np.empty(shape, dtype=np.min_scalar_type(-mdp.n_actions - 1)), np.empty(shape), np.empty(n)]


def _solved(
    job: tuple[int, int],
    potentials: Sequence[NDArray[np.float64]],
    mdp: MDP,
    masks: list[NDArray[np.bool_] | None],
    gamma: float,
    tol: float,
    order: tuple[NDArray[np.int32], NDArray[np.int32]] | None,
    out: list[NDArray[Any]] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> list[NDArray[Any]]:
    """Policies, values and mean lengths of the options ``job[0]..job[1]-1``; in `out` if given."""
    low, high = job
    made = _room(mdp, high - low) if out is None else out
    policy, value, mean_length = made
    step = _climber(mdp, *order, gamma) if order is not None else None
    for first in range(low, high, GROUP):
        last = min(first + GROUP, high)
        here = slice(first - low, last - low)
        F = np.stack(potentials[first:last]).astype(np.float64, copy=False)
        limits = tol * np.maximum(F.max(axis=1), -F.min(axis=1))
        if step is not None:
            step(F, limits, policy[here], value[here])
        else:
            _solve_stochastic(mdp, F, gamma, limits, policy[here], value[here])
        for i in range(first, last):
            row, mask = policy[i - low], masks[i]
            if mask is not None:
                row[~mask], value[i - low, ~mask] = TERMINATE, 0.0
            mean_length[i - low] = lengths(mdp, row).sum() / max((row >= 0).sum(), 1)
        if progress is not None:
            progress(last, high)
    return made


def _climber(
    mdp: MDP, order: NDArray[np.int32], nxt: NDArray[np.int32], gamma: float
) -> Callable[[NDArray[np.float64], NDArray[np.float64], NDArray[Any], NDArray[np.float64]], None]:
    """A function that solves up to eight potentials of deterministic moves, with the scratch that it needs."""
    from eigenoptions._kernels.planning import LANES, climb, feeders, gather, greedy, scatter

    indptr, indices = feeders(nxt)
    E, X, gains = (np.empty((len(order), LANES)) for _ in range(3))
    actions = np.empty(E.shape, dtype=np.min_scalar_type(-mdp.n_actions - 1))

    def step(
        F: NDArray[np.float64],
        limits: NDArray[np.float64],
        policy: NDArray[Any],
        value: NDArray[np.float64],
    ) -> None:
        gather(F, order, E)
        X[:] = E
        climb(nxt, E, X, gamma, indptr, indices)
        limit = np.zeros(LANES)
        limit[: len(F)] = limits
        greedy(nxt, E, X, limit, gamma, actions, gains)
        scatter(actions, gains, order, policy, value)

    return step


def renumbered(successors: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """An order of the states in which sweeps travel far, and the moves in that numbering.

    Along a corridor values travel in one sweep only in breadth-first order; in open rooms the reading order is better.
    The fixed point is the same in any order.
    """
    n = len(successors)
    here = np.arange(n, dtype=np.int32)
    moving = successors != here[:, None]
    if n <= 512 or moving.sum() >= 2.3 * n:
        return here, successors
    rows = np.repeat(here, moving.sum(axis=1))
    edges = csr_array((np.ones(len(rows), dtype=np.int8), (rows, successors[moving])), shape=(n, n))
    order = reverse_cuthill_mckee(csr_array(edges + edges.T), symmetric_mode=True).astype(np.int32)
    place = np.empty_like(order)
    place[order] = here
    return order, place[successors[order]]


def _solve_stochastic(
    mdp: MDP,
    F: NDArray[np.float64],
    gamma: float,
    limits: NDArray[np.float64],
    policy: NDArray[np.integer[Any]],
    value: NDArray[np.float64],
) -> None:
    """Sweeps bring the values close; policy iteration with exact evaluation then finds its fixed point."""
    from eigenoptions._kernels.planning import climb_stochastic

    P = mdp.transition
    E = np.ascontiguousarray(F.T)
    X = E.copy()
    scales = np.abs(F).max(axis=1)
    rise = 1e-13 * (scales[scales > 0].min() if scales.any() else 1.0)
    climb_stochastic(P.indptr, P.indices, P.data, mdp.n_actions, E, X, gamma, rise, 100_000)
    for j, e in enumerate(np.ascontiguousarray(F)):
        row, v = _greedy(mdp, e, X[:, j], gamma, limits[j])
        for _ in range(100):
            acting = np.where(row < 0, 0.0, 1.0)
            T = _followed(mdp, row)
            v = splu(csc_array(eye_array(mdp.n_states) - gamma * T)).solve(T @ e - e * acting)
            better, v = _greedy(mdp, e, e + gamma * v, gamma, limits[j])
            if np.array_equal(better, row):
                break
            row = better
        else:
            raise ArithmeticError("policy iteration did not settle: choose another gamma")
        policy[j], value[j] = row, v


def _greedy(
    mdp: MDP, e: NDArray[np.float64], x: NDArray[np.float64], gamma: float, limit: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Best action and value at every state, given what arriving is worth; ties as in the kernel `greedy`."""
    q = (mdp.transition @ x).reshape(mdp.n_states, mdp.n_actions) - e[:, None]
    best = q.max(axis=1)
    slack = np.minimum(limit, 0.25 * (1.0 - gamma) * best)
    first = (q >= (best - slack)[:, None]).argmax(axis=1)
    return np.where(best > limit, first, TERMINATE), np.maximum(best, 0.0)


def _followed(mdp: MDP, policy: NDArray[np.integer[Any]]) -> csr_array:
    """``(S, S)`` moves under a policy row; empty rows where it stops."""
    row = np.asarray(policy, dtype=np.int64)
    P = csr_array(mdp.transition[np.arange(mdp.n_states) * mdp.n_actions + np.maximum(row, 0)])
    P.data = P.data * np.repeat(row >= 0, np.diff(P.indptr))
    P.eliminate_zeros()
    return P
