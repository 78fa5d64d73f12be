"""One solver for all purposes: optimal policies with the terminate action (Section 3).

The reward of a potential f is ``f(s') - f(s)``, and TERMINATE is worth 0. An option may
start where some action has q > 0, and it terminates where none has. Theorem 3.1 says
that for gamma < 1 it terminates somewhere. Here it does so with probability 1 from
every state.

**The equation.** Let v be the value of an option and ``u = v + f``. The Bellman
equation is then ``u(s) = max(f(s), max_a E[x(s')])``, where
``x = (1 - gamma) f + gamma u`` is what arriving in a state is worth. Rounding is
monotone. So every order of updates that begins with ``u = f`` rises to the same least
fixed point, bit for bit: sweeps over whole arrays and updates state by state agree.

**Ties.** `choose_actions` decides for all options when two action values are equal. The
entries of an eigenvector f have an error of at most d, which differs between machines.
The discounted rewards of an option telescope, so u is a weighted mean of entries of f,
and so is x. Hence both have an error of at most d, whatever gamma is. The error of
``q(s, a) = E[x(s')] - f(s)``, and of the difference of two action values, is at most
2 d. With a tolerance above 2 d, values that are equal in truth are found equal on every
machine. The tolerance lies far above 2 d, so that few other differences come close to
it. On every maze that we studied, no difference lies between the noise and the true
differences: from 1e-12 to 1e-9 of max|f|.

**No circles.** Suppose that an option takes actions that are worse than the best by at
most `slack`. From a state to the next one, the mean of u then rises by at least
``(1 - gamma) v(s') - slack``. Around a circle these changes add up to zero. But if
``slack <= (1 - gamma) v / 4``, their sum is positive. So no option runs in a circle,
and in stochastic dynamics each option terminates with probability 1, whatever the
tolerance. This needs a slack above the error of u, and so a limit of gamma: 1 - 1e-7.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import splu

from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._ties import COMPUTED_TOLERANCE, EXACT_TOLERANCE, find_first_maximum
from eigenoptions._types import FloatArray, IntegerArray
from eigenoptions._validation import (
    check_float,
    check_memory,
    check_type,
    set_readonly,
)
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import compute_policy_transitions
from eigenoptions.options.records import TERMINATE, OptionSet, Purpose, check_purposes

# The slack of "No circles" is a share 1 - gamma of a value. It must lie above the error
# of values, or rounding would choose between equal actions.
MAX_GAMMA = 1.0 - 1e-7


@shows_progress
def solve(
    mdp: MDP,
    purposes: Purpose | Iterable[Purpose],
    gamma: float = 0.9,
    *,
    provenance: dict[str, Any] | None = None,
    progress: ProgressArgument = None,
) -> OptionSet:
    """Compute the optimal options of many purposes (Section 3).

    The result is exact: the fixed point of policy iteration.

    Parameters
    ----------
    mdp : MDP
        Deterministic or stochastic dynamics.
    purposes : Purpose or iterable of Purpose
        Potentials with one number per state. Those of additional states do not count:
        the end of an episode is worth 0, like TERMINATE.
    gamma : float, default=0.9
        Discount factor in [0, 0.9999999]. The larger it is, the farther an option goes
        through lower potential to reach a higher one.
    provenance : dict, default=None
        Entries to record in the set beside gamma.
    progress : bool or callable, default=None
        True shows a bar, None only after two seconds. A function is called as
        ``progress(done, total)`` with numbers of options.

    Returns
    -------
    OptionSet
        One option per purpose, in their order.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> corridor = eo.maze("S...G")
    >>> solve(corridor, Purpose([0, 0, 0, 0, 1], "goal 4")).policy.tolist()
    [[1, 1, 1, 1, -1]]
    """
    progress = check_progress(progress)
    gamma = _check_gamma(gamma)
    check_type("mdp", mdp, MDP, "make one with maze() or from_env()")
    if provenance is not None:
        check_type("provenance", provenance, dict, "give names and values")
    if isinstance(purposes, Purpose):
        purposes = [purposes]
    purposes = check_purposes(purposes)
    n_options = len(purposes)
    n_states = mdp.n_states
    n_actions = mdp.n_actions
    for purpose in purposes:
        _check_shape(purpose, n_states)

    action_type = np.min_scalar_type(-n_actions - 1)
    n_bytes = n_options * n_states * (8 + action_type.itemsize)
    what = f"{n_options:,} options of {n_states:,} states"
    check_memory(what, n_bytes, "solve fewer at a time")
    policy = np.empty((n_options, n_states), dtype=action_type)
    value = np.empty((n_options, n_states))

    # Small problems are solved before numba would be loaded.
    is_large = n_options * n_states > 200_000 or n_states > 20_000
    # As many options together as keep their action values within 8 MB.
    block_size = max(1, 1_000_000 // (n_states * n_actions))
    for start in range(0, n_options, block_size):
        stop = min(start + block_size, n_options)
        potentials = _stack_potentials(purposes[start:stop])
        # No way leads up to the end of an episode.
        ends = slice(mdp.n_listed, None)
        potentials[ends] = potentials[: mdp.n_listed].min(axis=0)
        tolerances = _find_tolerances(purposes[start:stop], potentials)

        if mdp.successors is None:
            q = _solve_stochastic(mdp, potentials, gamma, tolerances)
        else:
            q = _solve_deterministic(mdp.successors, potentials, gamma, is_large)

        q_by_option = np.moveaxis(q, 1, 2)
        policy[start:stop] = choose_actions(q_by_option, tolerances, gamma).T
        value[start:stop] = np.maximum(q.max(axis=1), 0.0).T
        if progress is not None:
            progress(stop, n_options)

    for i, purpose in enumerate(purposes):
        if purpose.initiation is not None:
            policy[i, ~purpose.initiation] = TERMINATE
            value[i, ~purpose.initiation] = 0.0

    return OptionSet(
        mdp,
        set_readonly(policy),
        set_readonly(value),
        purposes,
        {"gamma": gamma, "mdp": mdp.name, **(provenance or {})},
    )


def choose_actions(
    q: FloatArray, tolerance: float | FloatArray, gamma: float = 0.0
) -> NDArray[np.int64]:
    """Return the first of the best actions, or TERMINATE if none is worth more than 0.

    Parameters
    ----------
    q : array of shape (..., A)
        Action values.
    tolerance : float or array of shape (...)
        Values that differ by no more than this are equal.
    gamma : float, default=0.0
        Discount factor of the values; 0 for the gain of a single step.

    Returns
    -------
    array of shape (...)
        Actions, or TERMINATE.
    """
    best = q.max(axis=-1)
    # Where values are small the tolerance is smaller, too: see "No circles" above.
    slack = np.minimum(tolerance, 0.25 * (1.0 - gamma) * best)
    first = find_first_maximum(q, slack, maximum=best)
    return np.where(best > tolerance, first, TERMINATE)


def _check_gamma(gamma: float) -> float:
    """Check that a discount factor is small enough for the tie rule."""
    gamma = check_float("gamma", gamma, minimum=0, below=1)
    if gamma > MAX_GAMMA:
        raise ValueError(
            f"gamma must be at most 1 - 1e-7, got 1 - {1.0 - gamma:.3g}: closer to 1, "
            "rounding would choose between equally good actions"
        )
    return gamma


def _check_shape(purpose: Purpose, n_states: int) -> None:
    """Raise ValueError unless a purpose has one number per state."""
    fits = purpose.potential is not None and purpose.potential.shape == (n_states,)
    if purpose.initiation is not None:
        fits = fits and purpose.initiation.shape == (n_states,)
    if not fits:
        raise ValueError(
            f"purpose {purpose.label!r} must have one number for each of "
            f"{n_states} states"
        )


def _stack_potentials(purposes: Sequence[Purpose]) -> FloatArray:
    """Return potentials ``(S, m)``, one column per purpose."""
    # Sweeps read whole rows of states, which are contiguous in the stacked array.
    columns = [np.asarray(purpose.potential) for purpose in purposes]
    potentials: FloatArray = np.stack(columns, axis=1)

    # Differences of larger numbers could overflow. nan is not below, either.
    largest = np.abs(potentials).max(axis=0)
    is_safe = largest.max() < 1e300
    if not is_safe:
        label = purposes[int(largest.argmax())].label
        raise ValueError(
            f"the potential of purpose {label!r} must be finite and below 1e300 in "
            f"size, got {largest.max()}"
        )
    return potentials


def _find_tolerances(purposes: Sequence[Purpose], potentials: FloatArray) -> FloatArray:
    """Return the differences ``(m,)`` up to which action values are equal."""
    relative = np.full(len(purposes), COMPUTED_TOLERANCE)
    for i, purpose in enumerate(purposes):
        if purpose.exact:
            relative[i] = EXACT_TOLERANCE
    tolerances: FloatArray = relative * np.abs(potentials).max(axis=0)
    return tolerances


def _solve_deterministic(
    successors: IntegerArray, potentials: FloatArray, gamma: float, is_large: bool
) -> FloatArray:
    """Return the optimal action values ``(S, A, m)`` of potentials ``(S, m)``."""
    by_action = np.ascontiguousarray(successors.T)
    if is_large:
        # Imported here to keep numba out of small problems.
        from eigenoptions._kernels.sweep import raise_arrival_values

        arrival = potentials.copy()
        raise_arrival_values(successors, potentials, gamma, arrival)
    else:
        arrival = _sweep_deterministic(by_action, potentials, gamma)

    # Actions first in memory, so that maxima over actions are those of whole arrays.
    q: FloatArray = arrival[by_action]
    q -= potentials
    return np.moveaxis(q, 0, 1)


def _sweep_deterministic(
    by_action: IntegerArray, potentials: FloatArray, gamma: float
) -> FloatArray:
    """Return the values x ``(S, m)`` of arriving in each state: sweep until none rises.

    `by_action` ``(A, S)`` holds the successors.
    """
    own_share = (1.0 - gamma) * potentials
    arrival = potentials.copy()

    # Memory bounds the speed of sweeps, so they work in place on two further arrays.
    raised = np.empty_like(arrival)
    outcome = np.empty_like(arrival)
    while True:
        # u(s) = max(f(s), max_a x(s')). Without the mode, `take` makes another copy.
        raised[:] = potentials
        for next_states in by_action:
            np.take(arrival, next_states, axis=0, out=outcome, mode="clip")
            np.maximum(raised, outcome, out=raised)

        # x = (1 - gamma) f + gamma u.
        raised *= gamma
        raised += own_share
        np.maximum(raised, arrival, out=raised)

        if np.array_equal(raised, arrival):
            return arrival
        arrival, raised = raised, arrival


def _solve_stochastic(
    mdp: MDP, potentials: FloatArray, gamma: float, tolerances: FloatArray
) -> FloatArray:
    """Return the optimal action values ``(S, A, m)`` of potentials ``(S, m)``.

    Sweeps come close to them, and policy iteration makes them exact.
    """
    q = _sweep_stochastic(mdp, potentials, gamma)
    for i, potential in enumerate(potentials.T):
        policy = choose_actions(q[:, :, i], tolerances[i], gamma)
        q[:, :, i] = _iterate_policies(mdp, potential, gamma, policy)
    return q


# Most sweeps: policy iteration makes the values exact.
_MOST_SWEEPS = 1_000


def _sweep_stochastic(mdp: MDP, potentials: FloatArray, gamma: float) -> FloatArray:
    """Return action values ``(S, A, m)`` that are close to the optimal ones."""
    precision = 1e-9 * np.abs(potentials).max(axis=0)

    arrival = potentials.copy()
    for _ in range(_MOST_SWEEPS):
        outcomes = compute_outcomes(mdp, arrival, potentials)
        best = np.maximum(potentials, outcomes.max(axis=1))
        rise = (1.0 - gamma) * potentials + gamma * best - arrival
        arrival += np.maximum(rise, 0.0)
        if (rise <= precision).all():
            break

    outcomes = compute_outcomes(mdp, arrival, potentials)
    q: FloatArray = outcomes - potentials[:, None]
    return q


def compute_outcomes(
    mdp: MDP, arrival: FloatArray, potentials: FloatArray
) -> FloatArray:
    """Return what each action is expected to be worth ``(S, A, m)``: E[x(s')].

    The end of an episode, an additional state, is worth as much as to stay and to
    terminate. So it has no potential of its own.

    Parameters
    ----------
    mdp : MDP
        The dynamics.
    arrival, potentials : ndarray of shape (S, m)
        What arriving in each state is worth, and the potentials.
    """
    shape = (mdp.n_states, mdp.n_actions, potentials.shape[1])
    if mdp.n_additional:
        arrival = arrival.copy()
        arrival[mdp.n_listed :] = 0.0
    outcomes: FloatArray = (mdp.transition @ arrival).reshape(shape)
    if mdp.n_additional:
        outcomes += mdp.end_chances[:, :, None] * potentials[:, None]
    return outcomes


def _iterate_policies(
    mdp: MDP, potential: FloatArray, gamma: float, policy: IntegerArray
) -> FloatArray:
    """Return the optimal action values ``(S, A)``, beginning with some policy."""
    states = np.arange(mdp.n_states)
    # An action is replaced only by one that is better by more than rounding. So each
    # policy is better than the one before, and the iteration ends.
    rounding = 4.0 * np.finfo(float).eps * np.abs(potential).max() / (1.0 - gamma)

    while True:
        q = _evaluate_policy(mdp, potential, gamma, policy)
        best = q.max(axis=1)
        taken = np.where(policy >= 0, q[states, policy], 0.0)
        is_better = np.maximum(best, 0.0) > taken + rounding
        if not is_better.any():
            return q

        # Any of the best actions will do here: `choose_actions` has the last word.
        improved = np.where(best > 0.0, q.argmax(axis=1), TERMINATE)
        policy = np.where(is_better, improved, policy)


def _evaluate_policy(
    mdp: MDP, potential: FloatArray, gamma: float, policy: IntegerArray
) -> FloatArray:
    """Return the action values ``(S, A)`` if a policy is followed after one action."""
    columns = potential[:, None]
    gains = compute_outcomes(mdp, columns, columns)[:, :, 0] - columns
    states = np.arange(mdp.n_states)
    reward = np.where(policy >= 0, gains[states, policy], 0.0)

    moves = compute_policy_transitions(mdp, policy)
    system = csc_array(eye_array(mdp.n_states) - gamma * moves)
    value = splu(system).solve(reward)

    arrival = (potential + gamma * value)[:, None]
    q: FloatArray = compute_outcomes(mdp, arrival, columns)[:, :, 0] - columns
    return q
