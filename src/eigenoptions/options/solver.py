"""One solver for all purposes: optimal policies with the terminate action (paper, Section 3).

The reward of a potential f is ``f(s') - f(s)`` and TERMINATE is worth 0. An option may start where some action has
q > 0 and terminates where none has (Theorem 3.1: for gamma < 1 it terminates somewhere; here it even does so with
probability 1 from every state).

**The equation.** With ``u = v + f`` the Bellman equation reads ``u(s) = max(f(s), max_a E[x(s')])``, where
``x = (1 - gamma) f + gamma u`` is what arriving in a state is worth. Rounding is monotone, so every order of updates
from ``u = f`` rises to the same least fixed point, bit for bit: sweeps over whole arrays and state by state agree.

**Ties.** `choose_actions` decides when two action values are equal, for all options. An eigenvector f is known up to an
error d in each entry, which differs between machines. The discounted rewards of an option telescope: u is a weighted
mean of entries of f, and so is x. Both are wrong by at most d, whatever gamma; ``q(s, a) = E[x(s')] - f(s)`` and the
difference of two action values by at most 2 d. Truly equal values are found equal on every machine if the tolerance
exceeds 2 d; so that few others come close to it, it lies far above d, and on every maze studied in the empty range
between noise and true differences (1e-12 to 1e-9 of max|f|).

**No circles.** Following an action that is worse than the best by `slack`, the mean of u changes from a state to the
next by at least ``(1 - gamma) v(s') - slack``. Around a circle these changes add up to zero, but with
``slack <= (1 - gamma) v / 4`` their sum would be positive. So no option turns in a circle, and in stochastic dynamics
each terminates with probability 1, whatever the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import splu

from eigenoptions._ties import COMPUTED_TOLERANCE, EXACT_TOLERANCE, find_first_maximum
from eigenoptions._validation import check_float, check_type, set_readonly
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import compute_policy_transitions
from eigenoptions.options.records import TERMINATE, OptionSet, Purpose, check_purposes

Array = NDArray[np.float64]


def solve(
    mdp: MDP,
    purposes: Purpose | Iterable[Purpose],
    gamma: float = 0.9,
    *,
    provenance: dict[str, Any] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> OptionSet:
    """Optimal options of many purposes, exactly: the fixed point of policy iteration (Section 3).

    Parameters
    ----------
    mdp : MDP
        Deterministic or stochastic dynamics.
    purposes : Purpose or iterable of Purpose
        Potentials with one number per state.
    gamma : float, default=0.9
        Discount factor in [0, 1); larger values let an option pass through lower potential.
    provenance : dict, default=None
        Entries to record in the set beside gamma.
    progress : callable, default=None
        Called as ``progress(done, total)`` with numbers of options.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> corridor = eo.maze("S...G")
    >>> solve(corridor, Purpose([0, 0, 0, 0, 1], "goal 4")).policy.tolist()
    [[1, 1, 1, 1, -1]]
    """
    gamma = check_float("gamma", gamma, minimum=0, below=1)
    check_type("mdp", mdp, MDP, "make one with maze() or from_env()")
    purposes = check_purposes(
        [purposes] if isinstance(purposes, Purpose) else list(purposes)
    )
    n, n_states, n_actions = len(purposes), mdp.n_states, mdp.n_actions
    for p in purposes:
        shapes = {
            array.shape for array in (p.potential, p.initiation) if array is not None
        }
        if p.potential is None or shapes != {(n_states,)}:
            raise ValueError(
                f"purpose {p.label!r} must have one number for each of {n_states} states"
            )
    tolerances = np.array(
        [EXACT_TOLERANCE if p.exact else COMPUTED_TOLERANCE for p in purposes]
    )

    policy = np.empty((n, n_states), dtype=np.min_scalar_type(-n_actions - 1))
    value = np.empty((n, n_states))
    # As many options together as keep the action values of a block within 8 MB.
    block = max(1, 1_000_000 // (n_states * n_actions))
    for low in range(0, n, block):
        chosen = slice(low, min(low + block, n))
        potentials = np.array([p.potential for p in purposes[chosen]]).T.copy()
        scales = np.abs(potentials).max(axis=0)
        if not scales.max() < 1e300:
            label = purposes[low + int(scales.argmax())].label
            raise ValueError(
                f"the potential of purpose {label!r} must be below 1e300, got {scales.max()}"
            )
        tolerance = tolerances[chosen] * scales
        if mdp.successors is None:
            q = _solve_stochastic(mdp, potentials, gamma, tolerance)
        else:
            compiled = n * n_states > 200_000
            q = _solve_deterministic(mdp.successors, potentials, gamma, compiled)
        policy[chosen] = choose_actions(np.moveaxis(q, 1, 2), tolerance, gamma).T
        value[chosen] = np.maximum(q.max(axis=1), 0.0).T
        if progress is not None:
            progress(chosen.stop, n)
    for i, p in enumerate(purposes):
        if p.initiation is not None:
            policy[i, ~p.initiation], value[i, ~p.initiation] = TERMINATE, 0.0
    return OptionSet(
        mdp,
        set_readonly(policy),
        set_readonly(value),
        purposes,
        {"gamma": gamma, "mdp": mdp.name, **(provenance or {})},
    )


def _solve_deterministic(
    successors: NDArray[Any], potentials: Array, gamma: float, compiled: bool
) -> Array:
    """``(S, A, m)`` optimal action values of potentials ``(S, m)`` by sweeps until nothing rises."""
    by_action, arrival = np.ascontiguousarray(successors.T), potentials.copy()
    if compiled:
        from eigenoptions._kernels.sweep import raise_arrival_values

        raise_arrival_values(successors, potentials, gamma, arrival)
    else:
        # In place, because memory bounds the speed of sweeps.
        base, outcome = (1.0 - gamma) * potentials, np.empty_like(arrival)
        best = np.full_like(arrival, np.nan)
        while not np.array_equal(best, arrival):
            best[:] = potentials
            for next_states in by_action:
                np.maximum(
                    best,
                    np.take(arrival, next_states, axis=0, out=outcome, mode="clip"),
                    out=best,
                )
            best *= gamma
            best += base
            arrival, best = np.maximum(best, arrival, out=best), arrival
    # Actions first in memory, so that maxima over actions are those of whole arrays.
    q: Array = arrival[by_action]
    q -= potentials
    return np.moveaxis(q, 0, 1)


def _solve_stochastic(
    mdp: MDP, potentials: Array, gamma: float, tolerances: Array
) -> Array:
    """``(S, A, m)`` optimal action values of potentials ``(S, m)``: sweeps come close, policy iteration is exact."""
    n_states, n_actions, n_potentials = mdp.n_states, mdp.n_actions, potentials.shape[1]
    shape = (n_states, n_actions, n_potentials)
    scales, arrival = np.abs(potentials).max(axis=0), potentials.copy()
    for _ in range(1_000):
        best = np.maximum(
            potentials, (mdp.transition @ arrival).reshape(shape).max(axis=1)
        )
        rise = (1.0 - gamma) * potentials + gamma * best - arrival
        arrival += np.maximum(rise, 0.0)
        if (rise <= 1e-9 * scales).all():
            break
    q: Array = (mdp.transition @ arrival).reshape(shape) - potentials[:, None]
    # An action is replaced only by one that is better by more than this: each policy is better, the iteration ends.
    rounding = 4.0 * np.finfo(float).eps * scales / (1.0 - gamma)
    for j, potential in enumerate(potentials.T):
        row = choose_actions(q[:, :, j], tolerances[j], gamma)
        while True:
            acts = row >= 0
            moves = compute_policy_transitions(mdp, row)
            system = csc_array(eye_array(n_states) - gamma * moves)
            v = splu(system).solve(moves @ potential - potential * acts)
            q[:, :, j] = (mdp.transition @ (potential + gamma * v)).reshape(
                shape[:2]
            ) - potential[:, None]
            best = q[:, :, j].max(axis=1)
            better = (
                np.maximum(best, 0.0)
                > np.where(acts, q[np.arange(n_states), row, j], 0.0) + rounding[j]
            )
            if not better.any():
                break
            row = np.where(
                better, np.where(best > 0.0, q[:, :, j].argmax(axis=1), TERMINATE), row
            )
    return q


def choose_actions(
    q: Array, tolerance: float | Array, gamma: float = 0.0
) -> NDArray[np.int64]:
    """The first of the best actions, or TERMINATE, which is worth 0, where none is better.

    Values `q` ``(..., A)`` that differ by no more than the `tolerance` (one number, or one per row) are equal. `gamma`
    is their discount; 0 for the gain of a single step or of a look-ahead.
    """
    best = q.max(axis=-1)
    acts = best > tolerance
    slack = np.minimum(tolerance, 0.25 * (1.0 - gamma) * best)
    first = find_first_maximum(q, slack, maximum=best)
    return np.where(acts, first, TERMINATE)
