"""One solver for all purposes: optimal policies with the terminate action (paper, Section 3).

The reward of a potential f is ``f(s') - f(s)`` and TERMINATE is worth 0 everywhere. `solve` finds the optimal
policies of many purposes at once. An option may start where some action has q > 0 and stops where none has
(Theorem 3.1: for gamma < 1 it stops somewhere; here it in fact ends with probability 1 from every state).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, csc_array, csr_array, eye_array
from scipy.sparse.csgraph import breadth_first_order, reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from eigenoptions.mdp import MDP
from eigenoptions.options import TERMINATE, OptionSet, Purpose

TIE = 1e-12  # of max|f|: below this a q-value is noise of the eigenvector, and goes to TERMINATE


def solve(
    mdp: MDP,
    purposes: Purpose | Iterable[Purpose],
    gamma: float = 0.9,
    *,
    tol: float = TIE,
    provenance: dict[str, Any] | None = None,
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
    policy = np.empty((n, mdp.n_states), dtype=np.min_scalar_type(-mdp.n_actions - 1))
    value = np.empty((n, mdp.n_states))
    if mdp.successors is not None:
        _solve_deterministic(mdp.successors, wanted, float(gamma), tol, policy, value)
    else:
        _solve_stochastic(mdp, wanted, float(gamma), tol, policy, value)
    for i, p in enumerate(wanted):
        if p.initiation is not None:
            outside = ~np.asarray(p.initiation, dtype=bool)
            policy[i, outside] = TERMINATE
            value[i, outside] = 0.0
    return OptionSet(
        policy,
        mdp.n_actions,
        value,
        tuple(p.label or f"purpose {i + 1}" for i, p in enumerate(wanted)),
        np.array([p.eigenvalue for p in wanted], dtype=float),
        np.array([lengths(mdp, row).sum() / max((row >= 0).sum(), 1) for row in policy]),
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


def _solve_deterministic(
    successors: NDArray[np.int32],
    purposes: list[Purpose],
    gamma: float,
    tol: float,
    policy: NDArray[np.integer[Any]],
    value: NDArray[np.float64],
) -> None:
    from eigenoptions._kernels.planning import LANES, climb, feeders, gather, greedy, scatter

    order, nxt = renumbered(successors)
    indptr, indices = feeders(nxt)
    E = np.empty((len(order), LANES))
    actions = np.empty(E.shape, dtype=policy.dtype)
    gains = np.empty(E.shape)
    for first in range(0, len(purposes), LANES):
        last = first + LANES
        gather(np.stack([p.direction for p in purposes[first:last]]).astype(np.float64, copy=False), order, E)
        X = E.copy()
        climb(nxt, E, X, gamma, indptr, indices)
        limit = np.zeros(LANES)
        limit[: len(purposes[first:last])] = [tol * _scale(p) for p in purposes[first:last]]
        greedy(nxt, E, X, limit, gamma, actions, gains)
        scatter(actions, gains, order, policy[first:last], value[first:last])


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
    purposes: list[Purpose],
    gamma: float,
    tol: float,
    policy: NDArray[np.integer[Any]],
    value: NDArray[np.float64],
) -> None:
    """Sweeps bring the values close; policy iteration with exact evaluation then finds its fixed point."""
    from eigenoptions._kernels.planning import LANES, climb_stochastic

    P = mdp.transition
    for first in range(0, len(purposes), LANES):
        E = np.stack([p.direction for p in purposes[first : first + LANES]], axis=1).astype(np.float64)
        X = E.copy()
        scales = np.abs(E).max(axis=0)
        rise = 1e-13 * (scales[scales > 0].min() if scales.any() else 1.0)
        climb_stochastic(P.indptr, P.indices, P.data, mdp.n_actions, E, X, gamma, rise, 100_000)
        for j in range(E.shape[1]):
            e, x = np.ascontiguousarray(E[:, j]), X[:, j]
            row, v = _greedy(mdp, e, x, gamma, tol)
            for _ in range(100):
                acting = np.where(row < 0, 0.0, 1.0)
                T = _followed(mdp, row)
                v = splu(csc_array(eye_array(mdp.n_states) - gamma * T)).solve(T @ e - e * acting)
                better, v = _greedy(mdp, e, e + gamma * v, gamma, tol)
                if np.array_equal(better, row):
                    break
                row = better
            else:
                raise ArithmeticError(
                    f"policy iteration did not settle for purpose {purposes[first + j].label!r}"
                )
            policy[first + j], value[first + j] = row, v


def _greedy(
    mdp: MDP, e: NDArray[np.float64], x: NDArray[np.float64], gamma: float, tol: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Best action and value at every state, given what arriving is worth; ties as in the kernel `greedy`."""
    q = (mdp.transition @ x).reshape(mdp.n_states, mdp.n_actions) - e[:, None]
    best = q.max(axis=1)
    limit = tol * np.abs(e).max()
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
