"""Q-learning with options: many episodes of one run per call (paper, Section 4.3).

Each learning episode is followed by an evaluation, which updates nothing. An episode in
plain words::

    state = start
    until the goal is reached or no steps are left:
        if no option is running:
            choose an action or an option: at random, or the one of the highest value
        take the action (where an option is running: the one of its policy)
        the option continues, unless it terminates in the next state or is cut
        while learning: update the values of the state
        state = next state

Three rules say what is updated:

* *action*: ``Q(s, a)`` moves towards ``r + gamma max Q(s', .)`` after each step.
  Options have no values; they only explore.
* *intra-option*: the same, and each option o that would have taken a in s moves towards
  ``r + gamma U(s', o)``, where U is ``Q(s', o)`` if o continues in s', else
  ``max Q(s', .)``.
* *smdp*: only the decision is updated, when it ends. A decision o made in s that ends
  in s' after k steps and a discounted reward R moves ``Q(s, o)`` towards ``R + gamma^k
  max Q(s', .)``. An option that is cut would have continued: its own value ``Q(s', o)``
  takes the place of the maximum.

A *choice* is a column of the values: action c is column c, and option o is column
``n_actions + o``. Values start at 0 and rewards are not negative, so neither are
values. Those of the goal and of options that are not available are never written, and
stay 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eigenoptions._kernels.compilation import compile_helper, compile_kernel
from eigenoptions._kernels.random_numbers import draw, happens, mix, pick_index
from eigenoptions._kernels.walking import Choices, Moves, choose, take_action
from eigenoptions._types import FloatArray

# Columns of the returns and steps of an episode.
LEARNING = 0
EVALUATION = 1


class GoalTask(NamedTuple):
    """Start and goal of an episode, and its most steps."""

    start: int
    goal: int
    max_steps: int


class Rates(NamedTuple):
    """Hyperparameters of Q-learning.

    Attributes
    ----------
    alpha : float
        Step size.
    gamma : float
        Discount.
    epsilon, explore : float
        Probability of a random decision in evaluation, and while learning.
    """

    alpha: float
    gamma: float
    epsilon: float
    explore: float


class Rule(NamedTuple):
    """What is learned.

    Attributes
    ----------
    has_option_values : bool
        Options have values, as actions do. Otherwise they only explore.
    updates_each_step : bool
        Each step updates its action and the options that would have taken it. Otherwise
        each decision is updated once, when it ends.
    """

    has_option_values: bool
    updates_each_step: bool


class Run(NamedTuple):
    """Arrays that a run writes to.

    Attributes
    ----------
    counter : (1,) array
        Counter of the random numbers.
    q : (S, A) or (S, A + n) array
        Values of actions, and of options where they have values; 0 at first.
    returns, steps : (episodes, 2) arrays
        Return and steps of each learning episode and of the evaluation after it.
    """

    counter: NDArray[np.uint64]
    q: FloatArray
    returns: FloatArray
    steps: NDArray[np.int32]


class _Transition(NamedTuple):
    """One step of an episode."""

    state: int
    action: int
    reward: float
    next_state: int


@compile_helper
def _find_highest(q: FloatArray, state: int) -> float:
    """Highest value of a state."""
    highest: float = q[state, 0]
    for choice in range(1, q.shape[1]):
        if q[state, choice] > highest:
            highest = q[state, choice]
    return highest


@compile_helper
def _choose_best(number: np.uint64, q: FloatArray, state: int, n_actions: int) -> int:
    """Choice of the highest value; actions go before options, then chance decides."""
    highest = _find_highest(q, state)

    # Count the actions of the highest value; where there are none, the options.
    first = 0
    n_best = 0
    for choice in range(n_actions):
        n_best += q[state, choice] == highest
    if n_best == 0:
        first = n_actions
        for choice in range(n_actions, q.shape[1]):
            n_best += q[state, choice] == highest

    # Take one of those that were counted.
    n_before = pick_index(number, n_best)
    for choice in range(first, q.shape[1]):
        n_before -= q[state, choice] == highest
        if n_before < 0:
            return choice
    return first


@compile_helper
def _choose_at_random(
    number: np.uint64,
    choices: Choices,
    state: int,
    n_actions: int,
    offers_options: bool,
) -> int:
    """Random choice: an action, or ``n_actions + o`` for an available option o."""
    first = choices.first[state]
    n_options = 0
    if offers_options:
        n_options = choices.first[state + 1] - first

    choice = choose(number, n_actions, n_options, choices.option_chance)
    if choice < n_actions:
        return choice
    return n_actions + int(choices.available[first + choice - n_actions])


@compile_helper
def _move_value(
    q: FloatArray, state: int, choice: int, target: float, alpha: float
) -> None:
    """Move the value of a choice towards its target."""
    q[state, choice] += alpha * (target - q[state, choice])


@compile_helper
def _update_options(
    q: FloatArray,
    choices: Choices,
    rates: Rates,
    n_actions: int,
    step: _Transition,
    highest: float,
) -> None:
    """Update all options that would have taken this step (rule *intra-option*).

    `highest` is the highest value of the next state.
    """
    for i in range(choices.first[step.state], choices.first[step.state + 1]):
        option = choices.available[i]
        if choices.policy[step.state, option] != step.action:
            continue

        choice = n_actions + option
        if choices.policy[step.next_state, option] >= 0:
            rest = q[step.next_state, choice]
        else:
            rest = highest
        target = step.reward + rates.gamma * rest
        _move_value(q, step.state, choice, target, rates.alpha)


@compile_kernel
def learn(
    moves: Moves,
    choices: Choices,
    task: GoalTask,
    rates: Rates,
    rule: Rule,
    run: Run,
) -> None:
    """Learn for as many episodes as `run.returns` has rows, each with its evaluation.

    The loop is not cut into functions: numba counts references to each array that a
    function receives, which would cost more than a step.
    """
    n_actions = moves.n_actions
    q = run.q
    counter = run.counter[0]

    for episode in range(len(run.returns)):
        for phase in (LEARNING, EVALUATION):
            is_learning = phase == LEARNING
            random_chance = rates.explore if is_learning else rates.epsilon
            offers_options = is_learning or rule.has_option_values

            state = task.start
            n_steps = 0
            # Negative: no option is running.
            action = -1
            while n_steps < task.max_steps and state != task.goal:
                # 1. Decide, unless an option is running.
                if action < 0:
                    counter, number = draw(counter)
                    is_random = random_chance >= 1.0 or happens(number, random_chance)
                    if not rule.has_option_values:
                        # The paper's agent explores where it knows nothing yet.
                        is_random = is_random or _find_highest(q, state) == 0.0

                    if is_random:
                        # An option chance reads the high half of the number. Where
                        # `happens` may have read it before, take fresh bits.
                        is_read = rule.has_option_values or random_chance < 1.0
                        if is_read and offers_options and choices.option_chance >= 0.0:
                            number = mix(number)
                        choice = _choose_at_random(
                            number, choices, state, n_actions, offers_options
                        )
                    else:
                        choice = _choose_best(number, q, state, n_actions)

                    option = choice - n_actions
                    action = choice
                    if option >= 0:
                        action = choices.policy[state, option]
                    may_stop = is_random and is_learning and choices.stop_chance > 0.0

                    # Where the decision was made, its discounted reward so far, and
                    # gamma to the number of its steps.
                    origin = state
                    gain = 0.0
                    discount = 1.0

                # 2. Take the action.
                counter, next_state = take_action(counter, moves, state, action)
                n_steps += 1
                is_goal = next_state == task.goal
                reward = 1.0 if is_goal else 0.0

                # 3. An option continues where its policy has an action, unless it is
                # cut: by the end of the episode, or by chance.
                next_action = -1
                if option >= 0:
                    next_action = choices.policy[next_state, option]
                is_cut = is_goal or n_steps == task.max_steps
                if next_action >= 0 and may_stop:
                    counter, number = draw(counter)
                    is_cut |= happens(number, choices.stop_chance)

                # 4. Update the values.
                if is_learning and rule.updates_each_step:
                    # Read before any update: the next state may be the same state.
                    highest = _find_highest(q, next_state)
                    if rule.has_option_values:
                        step = _Transition(state, action, reward, next_state)
                        _update_options(q, choices, rates, n_actions, step, highest)
                    target = reward + rates.gamma * highest
                    _move_value(q, state, action, target, rates.alpha)
                elif is_learning:
                    gain += discount * reward
                    discount *= rates.gamma
                    if next_action < 0:
                        target = gain + discount * _find_highest(q, next_state)
                        _move_value(q, origin, choice, target, rates.alpha)
                    elif is_cut:
                        # The option would have continued: its own value remains.
                        target = gain + discount * q[next_state, choice]
                        _move_value(q, origin, choice, target, rates.alpha)

                state = next_state
                action = -1 if is_cut else next_action

            run.returns[episode, phase] = state == task.goal
            run.steps[episode, phase] = n_steps

    run.counter[0] = counter
