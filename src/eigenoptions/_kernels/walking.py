"""Random walks over actions and options in a table (paper, Section 5.1 and Appendix B).

A walk lasts for a number of steps, or until it has touched all states. In plain words::

    while there are steps left:
        if an episode begins:  draw its first state
        if an option is running here:  follow it, or stop it by chance
        if no option is running:  choose an action, or an option that is available
        take the action
        if the next state is the goal, or the episode is too long:  end the episode
        if the next state is touched for the first time:  note how long that took

A walk that continues after touching a state g is, up to then, the walk that stops at g.
So one walk gives the steps from its start to every goal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eigenoptions._kernels.compilation import compile_helper, compile_kernel
from eigenoptions._kernels.random_numbers import (
    draw,
    happens,
    pick_index,
    scale_to_unit,
)
from eigenoptions._types import FloatArray, IntegerArray

_32 = np.uint64(32)


class Moves(NamedTuple):
    """Dynamics of a table with S states: csr rows p(. | s, a) of ``(S * A, S)``.

    Attributes
    ----------
    indptr, indices : integer arrays
        Structure of the csr matrix. Row ``s * A + a`` holds the successors of action a
        in state s.
    cumulative : float array
        Cumulative sums of the probabilities of each row.
    n_actions : int
        Number of actions A.
    """

    indptr: IntegerArray
    indices: IntegerArray
    cumulative: FloatArray
    n_actions: int


class Choices(NamedTuple):
    """Options of a walk, and the probabilities of its decisions.

    Attributes
    ----------
    policy : (S, n) integer array
        Action of each option in each state, negative where it terminates.
    first, available : integer arrays
        The options that are available in state s are
        ``available[first[s]:first[s + 1]]``.
    option_chance : float
        Probability that a decision is for an option, where one is available. A negative
        number stands for a uniform choice over actions and options.
    stop_chance : float
        Probability that a running option is stopped before each of its further steps.
    """

    policy: IntegerArray
    first: IntegerArray
    available: IntegerArray
    option_chance: float
    stop_chance: float


class Episodes(NamedTuple):
    """Where episodes begin and end.

    Attributes
    ----------
    starts : integer array
        States that an episode may start in, all equally likely.
    goal : int
        State in which an episode ends; -1 if there is none.
    limit : int
        Steps after which an episode ends.
    """

    starts: IntegerArray
    goal: int
    limit: int


class WalkState(NamedTuple):
    """How far a walk has come: what `wander` returns, and continues from.

    Attributes
    ----------
    state : int
        Current state; -1 where a new episode begins.
    option : int
        Option that is running, or -1.
    age : int
        Steps of the episode so far.
    n_untouched : int
        Number of states that the walk has still to touch.
    touch_steps : float
        Sum of the ages at which states were touched.
    """

    state: int
    option: int = -1
    age: int = 0
    n_untouched: int = 0
    touch_steps: float = 0.0


class Trace(NamedTuple):
    """Transitions that `wander` writes down, one per step; empty arrays: none."""

    state: NDArray[np.int64]
    action: NDArray[np.int64]
    next_state: NDArray[np.int64]


@compile_helper
def choose(
    number: np.uint64, n_actions: int, n_options: int, option_chance: float
) -> int:
    """Draw a decision: an action 0..n_actions-1, or n_actions + i for the i-th option.

    This is the one place where a random decision is drawn, here and while learning.
    """
    if option_chance < 0.0:
        return pick_index(number, n_actions + n_options)
    if n_options > 0 and happens(number, option_chance):
        return n_actions + pick_index(number, n_options)
    return pick_index(number, n_actions)


@compile_helper
def take_action(
    counter: np.uint64, moves: Moves, state: int, action: int
) -> tuple[np.uint64, int]:
    """Take an action: the counter and the next state.

    The counter advances if the action is stochastic.
    """
    row = state * moves.n_actions + action
    low = moves.indptr[row]
    high = moves.indptr[row + 1] - 1
    if low == high:
        return counter, moves.indices[low]

    # The first successor whose cumulative sum exceeds a uniform number, by bisection.
    counter, number = draw(counter)
    threshold = scale_to_unit(number)
    while low < high:
        middle = (low + high) // 2
        if threshold < moves.cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return counter, moves.indices[low]


@compile_helper
def _decide(
    number: np.uint64, choices: Choices, state: int, n_actions: int
) -> tuple[int, int]:
    """Draw a decision: the action to take, and the option, or -1 if there is none."""
    first = choices.first[state]
    n_options = choices.first[state + 1] - first

    option_chance = choices.option_chance
    if option_chance < 0.0:
        option_chance = n_options / (n_actions + n_options)

    choice = choose(number, n_actions, n_options, option_chance)
    if choice < n_actions:
        return choice, -1
    option = choices.available[first + choice - n_actions]
    return choices.policy[state, option], option


@compile_kernel
def wander(
    moves: Moves,
    choices: Choices,
    episodes: Episodes,
    place: WalkState,
    counter: NDArray[np.uint64],
    n_steps: int,
    touched: NDArray[np.uint8],
    trace: Trace,
) -> WalkState:
    """Walk on for `n_steps`, or until no state is left to touch.

    Parameters
    ----------
    moves, choices, episodes
        Dynamics, options, and where episodes begin and end.
    place : WalkState
        Where the walk stands.
    counter : (1,) array
        Counter of the random numbers; it is advanced.
    n_steps : int
        Most steps of this call.
    touched : (S,) array
        1 for each state that the walk has touched; it is updated. Empty: touches do not
        count.
    trace : Trace
        Arrays (n_steps,) that the transitions are written to, or empty ones.

    Returns
    -------
    WalkState
        Where the walk stands now.
    """
    state, option, age, n_untouched, touch_steps = place
    n_actions = moves.n_actions
    position = counter[0]
    writes = len(trace.state) > 0
    counts_touches = len(touched) > 0

    for i in range(n_steps):
        if state < 0:
            position, number = draw(position)
            state = episodes.starts[pick_index(number >> _32, len(episodes.starts))]
            option = -1
            age = 0

        # A running option ends where its policy terminates, or by chance.
        action = -1
        if option >= 0:
            action = choices.policy[state, option]
        if action >= 0 and choices.stop_chance > 0.0:
            position, number = draw(position)
            if happens(number, choices.stop_chance):
                action = -1

        if action < 0:
            position, number = draw(position)
            action, option = _decide(number, choices, state, n_actions)

        position, next_state = take_action(position, moves, state, action)
        age += 1
        if writes:
            trace.state[i] = state
            trace.action[i] = action
            trace.next_state[i] = next_state

        if next_state == episodes.goal or age >= episodes.limit:
            state = -1
        else:
            state = next_state

        if counts_touches and touched[next_state] == 0:
            touched[next_state] = 1
            n_untouched -= 1
            touch_steps += age
            if n_untouched == 0:
                break

    counter[0] = position
    return WalkState(state, option, age, n_untouched, touch_steps)
