"""Learning with options: one run of many episodes per call (paper, Section 4.3).

Values start at 0 and rewards are not negative, so neither are values; those of the goal and of options that may not
start are never written and stay 0. ``highest (S,)`` is the largest value of each state: an update seldom changes it,
and a scan of the row at every step is slow. States are unsigned, so that indexing needs no test for negative numbers.
Kernels unpack their records first, and helpers pass no arrays on to other helpers: numba would count references
inside the loop, at half the speed. Random numbers are those of `walking`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from eigenoptions._kernels.walking import GOLDEN, choose, happens, land, mix, one_of


class Dynamics(NamedTuple):
    """Next states ``nxt (S, A)``, -1 where the move is uncertain; then csr rows p(. | s, a) with running sums."""

    nxt: NDArray[np.int32]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    cumulative: NDArray[np.float64]


class Choices(NamedTuple):
    """Options as a learner reads them.

    ``plan (S, n)`` is the action of each option, -1 where it stops. Two csr lists of options: ``first (S + 1,)`` and
    ``offered``, those that may start per state; ``taking (S * A + 1,)`` and ``takers``, those that take each action
    there. ``chance`` is the probability to explore by an option where one may start; negative: a uniform choice.
    Where ``follow`` is false, `q_learning` takes the first action of an option twice and then chooses again.
    """

    plan: NDArray[Any]
    first: NDArray[np.int64]
    offered: NDArray[np.int32]
    taking: NDArray[np.int64]
    takers: NDArray[np.int32]
    chance: float
    follow: bool


class Task(NamedTuple):
    """Start, goal and most steps of an episode."""

    start: int
    goal: int
    max_steps: int


class Rates(NamedTuple):
    """Step size, discount, and the chance of a uniform choice in evaluation and while learning."""

    alpha: float
    gamma: float
    epsilon: float
    explore: float


class Record(NamedTuple):
    """What a run fills: values (S, A) or (S, A + n), and returns and steps (episodes,) of both kinds of episodes."""

    q: NDArray[np.float64]
    returns: NDArray[np.float64]
    steps: NDArray[np.int32]
    learning_returns: NDArray[np.float64]
    learning_steps: NDArray[np.int32]


@njit(cache=True, nogil=True)
def _best(q, s, highest, x):  # type: ignore[no-untyped-def]
    """Column with the highest value of a state, ties broken at random."""
    ties = 0
    for b in range(q.shape[1]):
        ties += q[s, b] == highest
    k = one_of(x, ties)
    a = 0
    # No branch: which of the ties it is cannot be predicted.
    for b in range(q.shape[1]):
        hit = q[s, b] == highest
        a = b if hit & (k == 0) else a
        k -= hit
    return a


@njit(cache=True, nogil=True)
def _update(q, highest, s, c, step):  # type: ignore[no-untyped-def]
    """Add `step` to one value, and update the highest of its state."""
    old = q[s, c]
    new = old + step
    q[s, c] = new
    before = highest[s]
    highest[s] = new if new > before else before
    if new < old and old == before:
        most = q[s, 0]
        for b in range(1, q.shape[1]):
            most = q[s, b] if q[s, b] > most else most
        highest[s] = most


@njit(cache=True, nogil=True)
def learn(dynamics, choices, task, rates, seed, record, over, intra):  # type: ignore[no-untyped-def]
    """One run of episodes, each of learning and then of evaluation.

    With ``over`` true, values q (S, A + n) are those of actions and options, else (S, A) those of actions, and options
    only explore. With ``intra`` true each step updates its action and, if ``over``, every option that would have taken
    it; else each choice is updated once, when it ends.
    """
    nxt, indptr, indices, cumulative = dynamics
    plan, first, offered, taking, takers, chance, follow = choices
    start, goal, max_steps = task
    alpha, gamma, epsilon, explore = rates
    q, returns, steps, learning_returns, learning_steps = record
    n_actions = nxt.shape[1]
    highest = np.zeros(nxt.shape[0])
    clock = seed
    for half in range(2 * len(returns)):
        episode, learning = half // 2, half % 2 == 0
        random = explore if learning else epsilon
        s = np.uint32(start)
        origin, gain, discount = s, 0.0, 1.0
        option, c, a, taken = -1, 0, -1, 0
        while taken < max_steps and s != goal:
            if a < 0:
                clock += GOLDEN
                x = mix(clock)
                # At 0 all choices are tied.
                if random >= 1.0 or highest[s] == 0.0 or happens(x, random):
                    # A chance reads the half of x that `happens` has used: it needs another number.
                    x = mix(x) if over and chance >= 0.0 else x
                    n_options = first[s + 1] - first[s] if over or learning else 0
                    c = choose(x, n_actions, n_options, chance)
                    if c >= n_actions:
                        c = n_actions + offered[first[s] + c - n_actions]
                else:
                    c = _best(q, s, highest[s], x)
                option = c - n_actions
                a = c if option < 0 else plan[s, option]
                origin, gain, discount = s, 0.0, 1.0
            move = np.uint32(a)
            t = nxt[s, move]
            if t < 0:
                clock += GOLDEN
                t = land(s * n_actions + move, indptr, indices, cumulative, mix(clock))
            t = np.uint32(t)
            taken += 1
            reward = 1.0 if t == goal else 0.0
            following = -1 if option < 0 else plan[t, option] if follow else a
            option = option if follow else -1
            if learning and intra:
                # Read before any update: t may be s.
                value = highest[t]
                row = s * n_actions + move
                for r in range(taking[row], taking[row + 1] if over else taking[row]):
                    o = takers[r]
                    rest = value if plan[t, o] < 0 else q[t, n_actions + o]
                    step = alpha * (reward + gamma * rest - q[s, n_actions + o])
                    _update(q, highest, s, n_actions + o, step)
                _update(q, highest, s, move, alpha * (reward + gamma * value - q[s, move]))
            elif learning:
                gain, discount = gain + discount * reward, discount * gamma
                if following < 0 or t == goal or taken == max_steps:
                    # An option cut at the end of the episode would have continued: its own value remains.
                    rest = highest[t] if following < 0 else q[t, c]
                    _update(q, highest, origin, c, alpha * (gain + discount * rest - q[origin, c]))
            s, a = t, following
        (learning_returns if learning else returns)[episode] = s == goal
        (learning_steps if learning else steps)[episode] = taken
