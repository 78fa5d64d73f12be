"""One solver for all purposes: optimal policies with the terminate action (paper, Section 3).

The reward of a potential f is ``f(s') - f(s)`` and TERMINATE is worth 0. An option may start where some action has
q > 0 and stops where none has (Theorem 3.1: for gamma < 1 it stops somewhere; here it even ends with probability 1
from every state).

`tolerance` and `first_best` decide when two action values are equal, for all options.
An eigenvector f is known up to an error d in each entry, which differs between machines. The discounted rewards of an
option telescope: ``u = v + f`` is a weighted mean of entries of f, and so is what arriving in a state is worth,
``x = (1 - gamma) f + gamma u``. Both are wrong by at most d, whatever gamma; ``q(s, a) = E[x(s')] - f(s)`` and the
difference of two action values by at most 2 d. Truly equal values are found equal on every machine if the tolerance
exceeds 2 d; so that few others come close to it, it lies far above d, and on every maze studied in the empty range
between noise and true differences (1e-12 to 1e-9 of max|f|).

Following an action that is worse than the best by `slack`, the mean of u changes from a state to the next by at least
``(1 - gamma) v(s') - slack``. Around a circle these changes add up to zero, but with ``slack <= (1 - gamma) v / 4``
their sum would be positive. So no option turns in a circle, and in stochastic dynamics each ends with probability 1,
whatever the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from eigenoptions._validation import check_float, set_readonly
from eigenoptions.mdp import MDP, reachable
from eigenoptions.options import TERMINATE, Option, OptionSet, Purpose, origins

if TYPE_CHECKING:
    from eigenoptions._kernels.planning import Moves

# Options per parallel job: as many as the kernel advances together.
OPTIONS_PER_JOB = 8
# States times options solved between two reports of progress, about 20 ms.
STATES_PER_REPORT = 2_000_000
# A fixed point is found after about ten improvements; more than this is a defect.
MAX_IMPROVEMENTS = 100
# Sweeps over a stochastic table before policy iteration takes over.
MAX_SWEEPS = 100_000
# Relative to max|f|. Values of an exact potential (a goal) have rounding errors of 1e-16 only; those of a computed one
# (an eigenvector) have errors of up to 1e-12.
EXACT_FLOOR = 1e-12
COMPUTED_FLOOR = 1e-9
# Tolerance over the bound on the error of an entry. Bounds differ between machines, so where they count (above 1e-10)
# the tolerance rises in steps of a factor.
SAFETY_FACTOR = 10.0
STEP = 100.0

Array = NDArray[np.float64]


def solve(
    mdp: MDP,
    purposes: Purpose | Iterable[Purpose],
    gamma: float = 0.9,
    *,
    tol: float | None = None,
    provenance: dict[str, Any] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> OptionSet:
    """Optimal options of many purposes, exactly: the fixed point of policy iteration (Section 3).

    Parameters
    ----------
    mdp
        Deterministic or stochastic dynamics.
    purposes
        Potentials with one number per state.
    gamma
        Discount in [0, 1): how far the option looks over a valley.
    tol
        Least tolerance of ties, relative to max|f|; see `tolerance`. None: 1e-12, or 1e-9 for eigenvectors.
    provenance
        Entries to record in the set besides gamma.
    progress
        Called with the number of options done and the number of all options.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> corridor = eo.maze("S...G")
    >>> solve(corridor, Purpose(np.array([0.0, 0, 0, 0, 1]), "goal 4")).policy.tolist()
    [[1, 1, 1, 1, -1]]
    """
    from eigenoptions._kernels.planning import moves

    wanted, potentials, scales, accuracy = _checked(mdp, purposes, gamma, tol)
    n, size, known = len(wanted), mdp.n_states, mdp.successors
    result = _empty(mdp, n)
    shared: dict[str, Any] = {
        "mdp": mdp,
        "potentials": potentials,
        "masks": [p.initiation for p in wanted],
        "gamma": float(gamma),
        "tolerances": tolerance(scales, accuracy, tol),
        "moves": None if known is None or not n else moves(*renumbered(known)),
    }
    share = OPTIONS_PER_JOB
    if known is not None:
        share *= max(1, STATES_PER_REPORT // (OPTIONS_PER_JOB * size))
    jobs = [(low, min(low + share, n)) for low in range(0, n, share)]
    done = 0

    for low, high in jobs:
        _solved((low, high), **shared, out=[array[low:high] for array in result])
        done += high - low
        if progress is not None:
            progress(done, n)
    set_readonly(*result)
    # Of a deterministic table, mean lengths are computed when they are asked for.
    lengths_known: dict[str, Any] = {"mean_length": result[2]} if len(result) > 2 else {}
    return OptionSet(
        result[0],
        mdp.n_actions,
        result[1],
        state_space=mdp.fingerprint,
        coords=mdp.coords,
        successors=mdp.most_likely_successors,
        legend=mdp.legend,
        provenance={"gamma": float(gamma), "mdp": mdp.name, **(provenance or {})},
        **lengths_known,
        **origins(wanted),
    )


def lengths(mdp: MDP, policy: NDArray[np.integer[Any]]) -> Array:
    """Expected steps until an option stops, from every state; 0 where it may not start, inf where it never stops.

    >>> import eigenoptions as eo
    >>> lengths(eo.maze("S...G"), np.array([1, 1, 1, 1, -1])).tolist()
    [4.0, 3.0, 2.0, 1.0, 0.0]
    """
    from eigenoptions._kernels.planning import run

    policy = Option(policy, np.zeros(mdp.n_states)).policy
    if len(policy) != mdp.n_states or not TERMINATE <= policy.min() <= policy.max() < mdp.n_actions:
        raise ValueError(
            f"policy must hold {mdp.n_states} actions in {TERMINATE}..{mdp.n_actions - 1}, "
            f"got {len(policy)} in {policy.min(initial=0)}..{policy.max(initial=0)}"
        )
    if mdp.successors is not None:
        length, end = np.empty((2, mdp.n_states), dtype=np.int32)
        if run(mdp.successors, np.ascontiguousarray(policy), length, end) < 0:
            return length.astype(np.float64)
    P = _followed(mdp, policy)
    stops = np.asarray(policy) < 0
    lost = ~reachable(P, stops, backward=True)
    ends = ~reachable(P, lost, backward=True)
    keep = np.flatnonzero(ends)
    result = np.full(mdp.n_states, np.inf)
    if len(keep):
        steps = np.where(stops[keep], 0.0, 1.0)
        result[keep] = splu(csc_array(eye_array(len(keep)) - P[keep][:, keep])).solve(steps)
    return result


def renumbered(successors: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """An order of the states in which sweeps travel far, and the moves in that numbering."""
    # Along a corridor values travel in one sweep only in breadth-first order; in open rooms reading order is better.
    n = len(successors)
    here = np.arange(n, dtype=np.int32)
    if n <= 512 or (moving := successors != here[:, None]).sum() >= 2.3 * n:
        return here, successors
    rows = np.repeat(here, moving.sum(axis=1))
    edges = csr_array((np.ones(len(rows), dtype=np.int8), (rows, successors[moving])), shape=(n, n))
    order = reverse_cuthill_mckee(csr_array(edges + edges.T), symmetric_mode=True).astype(np.int32)
    place = np.empty_like(order)
    place[order] = here
    return order, place[successors[order]]


def _checked(
    mdp: MDP, purposes: Any, gamma: float, tol: float | None
) -> tuple[list[Purpose], Array | list[Array], Array, Array]:
    """The purposes, their potentials, max|f| and accuracy of each, after all arguments have been found valid."""
    check_float("gamma", gamma, minimum=0, below=1)
    if tol is not None:
        check_float("tol", tol, minimum=0, below=1)
    if not isinstance(mdp, MDP):
        raise TypeError(f"solve takes an MDP, got {type(mdp).__name__}: make one with maze() or from_env()")
    several = isinstance(purposes, Iterable) and not isinstance(purposes, Purpose)
    wanted = list(purposes) if several else [purposes]
    shape = (mdp.n_states,)
    for p in wanted:
        if not isinstance(p, Purpose):
            kind = type(p).__name__
            raise TypeError(f"purposes must be Purpose objects, got {kind}: make them with eigenpurposes")
        if p.direction.shape != shape:
            both = f"its direction has shape {p.direction.shape}, the MDP has {mdp.n_states} states"
            raise ValueError(f"purpose {p.label!r} is for another state space: {both}")
        if p.initiation is not None and p.initiation.shape != shape:
            raise ValueError(f"the initiation mask of {p.label!r} must have shape ({mdp.n_states},)")
    accuracy = np.array([p.accuracy for p in wanted], dtype=np.float64)
    if not ((accuracy >= 0) & (accuracy < np.inf)).all():
        p = next(p for p in wanted if not 0 <= p.accuracy < np.inf)
        raise ValueError(f"the accuracy of {p.label!r} must be a number from 0, got {p.accuracy!r}")
    rows = [p.direction for p in wanted]
    # Many large potentials are not held twice.
    small = 0 < len(rows) * mdp.n_states <= STATES_PER_REPORT
    potentials = np.concatenate(rows).reshape(len(rows), -1) if small else rows
    largest = np.abs(potentials).max(axis=1) if small else np.array([np.abs(f).max() for f in rows])
    if not np.isfinite(largest).all():
        label = wanted[int(np.argmin(np.isfinite(largest)))].label
        raise ValueError(f"purpose {label!r} has entries that are not finite numbers")
    return wanted, potentials, largest, accuracy


def _solved(
    job: tuple[int, int],
    potentials: Array | list[Array],
    mdp: MDP,
    masks: list[NDArray[np.bool_] | None],
    gamma: float,
    tolerances: Array,
    moves: Moves | None,
    out: list[NDArray[Any]] | None = None,
) -> list[NDArray[Any]]:
    """The arrays of `_empty` for the options ``job[0]..job[1]-1``, in `out` or in new ones."""
    from eigenoptions._kernels.planning import plan

    chosen = slice(*job)
    F = np.asarray(potentials[chosen])
    policy, value, *mean_length = out = out or _empty(mdp, len(F))
    if moves is not None:
        plan(moves, F, tolerances[chosen], gamma, policy, value)
    else:
        _solve_stochastic(mdp, F, gamma, tolerances[chosen], policy, value)
    for i, mask in enumerate(masks[chosen]):
        if mask is not None:
            policy[i, ~mask], value[i, ~mask] = TERMINATE, 0.0
    if mean_length:
        mean_length[0][:] = [lengths(mdp, row).sum() / max((row >= 0).sum(), 1) for row in policy]
    return out


def _empty(mdp: MDP, n: int) -> list[NDArray[Any]]:
    """Arrays for policies and values of n options; in stochastic dynamics also for their mean lengths.

    In deterministic ones `OptionSet` computes these when they are asked for.
    """
    shape = n, mdp.n_states
    arrays = [np.empty(shape, dtype=np.min_scalar_type(-mdp.n_actions - 1)), np.empty(shape)]
    return arrays if mdp.successors is not None else [*arrays, np.empty(n)]


def _solve_stochastic(
    mdp: MDP, F: Array, gamma: float, tolerances: Array, policy: NDArray[np.integer[Any]], value: Array
) -> None:
    """Sweeps bring the values close, policy iteration makes them exact, and the tie rule then takes the actions."""
    from eigenoptions._kernels.planning import climb_stochastic

    P = mdp.transition
    E = np.ascontiguousarray(F.T)
    X = E.copy()
    scales = np.abs(F).max(axis=1)
    rise = 1e-13 * (scales[scales > 0].min() if scales.any() else 1.0)
    climb_stochastic((P.indptr, P.indices, P.data), mdp.n_actions, E, X, gamma, rise, MAX_SWEEPS)
    for j, e in enumerate(np.ascontiguousarray(F)):
        start = _row(_action_values(mdp, e, X[:, j]), float(tolerances[j]), gamma)
        q = _optimal(mdp, e, start, gamma, float(scales[j]))
        policy[j], value[j] = _row(q, float(tolerances[j]), gamma), np.maximum(q.max(axis=1), 0.0)


def _optimal(mdp: MDP, e: Array, row: NDArray[np.intp], gamma: float, scale: float) -> Array:
    """``(S, A)`` optimal action values, by policy iteration that begins with a policy row."""
    states = np.arange(mdp.n_states)
    # An action is replaced only by one that is better by more than this: each policy is better, the iteration ends.
    rounding = 4.0 * np.finfo(float).eps * scale / (1.0 - gamma)
    for _ in range(MAX_IMPROVEMENTS):
        acting = row >= 0
        T = _followed(mdp, row)
        v = splu(csc_array(eye_array(mdp.n_states) - gamma * T)).solve(T @ e - e * acting)
        q = _action_values(mdp, e, e + gamma * v)
        best = q.max(axis=1)
        better = np.maximum(best, 0.0) > np.where(acting, q[states, row], 0.0) + rounding
        if not better.any():
            return q
        row = np.where(better, np.where(best > 0.0, q.argmax(axis=1), TERMINATE), row)
    raise ArithmeticError(
        f"no fixed point within {MAX_IMPROVEMENTS} improvements at gamma {gamma}: change gamma"
    )


def _action_values(mdp: MDP, e: Array, x: Array) -> Array:
    """``(S, A)`` values of the actions, given what arriving in each state is worth."""
    q: Array = (mdp.transition @ x).reshape(mdp.n_states, mdp.n_actions) - e[:, None]
    return q


def _row(q: Array, tolerance: float, gamma: float) -> NDArray[np.intp]:
    """Policy row of action values, by the tie rule."""
    first, acts = first_best(q, tolerance, gamma)
    return np.where(acts, first, TERMINATE)


def _followed(mdp: MDP, policy: NDArray[np.integer[Any]]) -> csr_array:
    """``(S, S)`` moves under a policy row; empty rows where it stops."""
    row = np.asarray(policy, dtype=np.int64)
    P = csr_array(mdp.transition[np.arange(mdp.n_states) * mdp.n_actions + np.maximum(row, 0)])
    P.data = P.data * np.repeat(row >= 0, np.diff(P.indptr))
    P.eliminate_zeros()
    return P


def tolerance(scale: ArrayLike, accuracy: ArrayLike, floor: float | None = None) -> NDArray[np.float64]:
    """Difference up to which values of an option are equal: at least ten times the bound on the error of f.

    `scale` is max|f|, `accuracy` the bound (`Purpose.accuracy`; 0 for an exact potential), one number or one per
    potential; `floor` the least tolerance relative to `scale`, None: 1e-12 for exact potentials, 1e-9 for others.

    >>> [f"{x:.0e}" for x in tolerance([2.0, 2.0, 2.0], [0.0, 1e-14, 1e-9])]
    ['2e-12', '2e-09', '2e-07']
    """
    scale, accuracy = np.asarray(scale, dtype=np.float64), np.asarray(accuracy, dtype=np.float64)
    floors = np.where(accuracy > 0.0, COMPUTED_FLOOR, EXACT_FLOOR) if floor is None else floor
    unit = COMPUTED_FLOOR * np.where(scale > 0.0, scale, 1.0)
    with np.errstate(divide="ignore"):
        steps = np.ceil(np.log(SAFETY_FACTOR * accuracy / unit) / np.log(STEP))
    tolerances: NDArray[np.float64] = np.maximum(floors * scale, unit * STEP**steps)
    return tolerances


def first_best(
    q: NDArray[np.float64], tolerance: ArrayLike, gamma: float = 0.0
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The first of the best actions, and whether it is better than TERMINATE, which is worth 0.

    Values `q` ``(..., A)`` that differ by no more than the `tolerance` (one number, or one per row) are equal. `gamma`
    is their discount; 0 for the gain of a single step or of a look-ahead.

    >>> first, acts = first_best(np.array([[1.0, 1.0 + 1e-12, 0.0], [-1.0, 1e-12, 0.0]]), 1e-9)
    >>> first.tolist(), acts.tolist()
    ([0, 1], [True, False])
    """
    best = q.max(axis=-1)
    acts = best > tolerance
    slack = np.where(acts, np.minimum(tolerance, 0.25 * (1.0 - gamma) * best), tolerance)
    first: NDArray[Any] = (q >= (best - slack)[..., None]).argmax(axis=-1)
    return first, acts
