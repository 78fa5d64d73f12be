"""Q-learning with options: one run of many episodes per call (paper, Section 4.3).

Values start at 0 and rewards are not negative, so neither are values; those of the goal and of options that are not
available are never written and stay 0. Random numbers are those of `walking`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eigenoptions._kernels import compile_helper, compile_kernel
from eigenoptions._kernels.walking import (
    GOLDEN,
    bernoulli,
    choose,
    mix,
    random_index,
    sample_successor,
)


class Task(NamedTuple):
    """Start, goal and most steps of an episode."""

    start: int
    goal: int
    max_steps: int


class Rates(NamedTuple):
    """Step size, discount, and the probability of a random decision in evaluation and while learning."""

    alpha: float
    gamma: float
    epsilon: float
    explore: float


@compile_helper
def _find_highest(q, s):  # type: ignore[no-untyped-def]
    """Highest value of a state."""
    highest = q[s, 0]
    for c in range(1, q.shape[1]):
        highest = q[s, c] if q[s, c] > highest else highest
    return highest


@compile_helper
def _find_best(q, s, n_actions, x):  # type: ignore[no-untyped-def]
    """Column with the highest value of a state; of ties the first n_actions come first, then chance decides."""
    highest, first, n_ties = _find_highest(q, s), 0, 0
    for c in range(n_actions):
        n_ties += q[s, c] == highest
    if n_ties == 0:
        first = n_actions
        for c in range(first, q.shape[1]):
            n_ties += q[s, c] == highest
    k = random_index(x, n_ties)
    for c in range(first, q.shape[1]):
        k -= q[s, c] == highest
        if k < 0:
            return c
    return first


@compile_kernel
def learn(  # type: ignore[no-untyped-def]
    moves,
    choices,
    task,
    rates,
    counter,
    q,
    returns,
    steps,
    has_option_values,
    updates_steps,
):
    """Episodes of one run, each of learning and then of evaluation, in turns in `returns` and `steps` (2 episodes,).

    With `has_option_values`, values q (S, A + n) are those of actions and options, else (S, A) those of actions, and
    options only explore. With `updates_steps` each step updates its action and every option with a value that would
    have taken it; else each decision is updated once, when it ends. Kept from call to call: `counter` (1,) of random
    numbers, and q, which is 0 at first.
    """
    indptr, indices, cumulative, n_actions = moves
    policy, first, available, option_chance, stop_chance = choices
    start, goal, max_steps = task
    alpha, gamma, epsilon, explore = rates
    z = counter[0]
    for episode in range(len(returns)):
        learning = episode % 2 == 0
        random = explore if learning else epsilon
        s = start
        origin, gain, discount = s, 0.0, 1.0
        option, c, a, taken, may_stop = -1, 0, -1, 0, False
        while taken < max_steps and s != goal:
            if a < 0:
                z += GOLDEN
                x = mix(z)
                # At 0 all choices are tied: the paper's agent, without values of options, explores.
                may_stop = random >= 1.0 or bernoulli(x, random)
                may_stop = may_stop or (
                    not has_option_values and _find_highest(q, s) == 0.0
                )
                if may_stop:
                    # `bernoulli` may have used the half of x that an option chance reads.
                    used = has_option_values or (learning and random < 1.0)
                    x = mix(x) if used and option_chance >= 0.0 else x
                    n_options = (
                        first[s + 1] - first[s] if has_option_values or learning else 0
                    )
                    c = choose(x, n_actions, n_options, option_chance)
                    if c >= n_actions:
                        c = n_actions + available[first[s] + c - n_actions]
                else:
                    c = _find_best(q, s, n_actions, x)
                may_stop = may_stop and learning and stop_chance > 0.0
                option = c - n_actions
                a = c if option < 0 else np.int64(policy[s, option])  # type: ignore[assignment]
                origin, gain, discount = s, 0.0, 1.0
            row = s * n_actions + a
            t = np.int64(indices[indptr[row]])
            if indptr[row + 1] - indptr[row] > 1:
                z += GOLDEN
                t = np.int64(sample_successor(row, indptr, indices, cumulative, mix(z)))
            taken += 1
            reward = 1.0 if t == goal else 0.0
            following = -1 if option < 0 else np.int64(policy[t, option])
            is_cut = t == goal or taken == max_steps
            if following >= 0 and may_stop:
                z += GOLDEN
                is_cut |= bernoulli(mix(z), stop_chance)
            if learning and updates_steps:
                # Read before any update: t may be s.
                value = _find_highest(q, t)
                for r in range(
                    first[s], first[s + 1] if has_option_values else first[s]
                ):
                    o = available[r]
                    if policy[s, o] == a:
                        rest = value if policy[t, o] < 0 else q[t, n_actions + o]
                        q[s, n_actions + o] += alpha * (
                            reward + gamma * rest - q[s, n_actions + o]
                        )
                q[s, a] += alpha * (reward + gamma * value - q[s, a])
            elif learning:
                gain, discount = gain + discount * reward, discount * gamma
                if following < 0 or is_cut:
                    # An option that is cut would have continued: its own value remains.
                    rest = _find_highest(q, t) if following < 0 else q[t, c]
                    q[origin, c] += alpha * (gain + discount * rest - q[origin, c])
            s, a = t, -1 if is_cut else following  # type: ignore[assignment]
        returns[episode], steps[episode] = s == goal, taken
    counter[0] = z
