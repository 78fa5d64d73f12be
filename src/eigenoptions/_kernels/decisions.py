"""Steps in the copies of a vector environment: the next primitive action, where it leads, which decisions are complete.

A step of B copies is `begin`, the environment's own step, and `finish`. Where the environment is a table, `move` is its
step, and `decide` all three in one call. State of the copies, changed in place (every array handed to a kernel takes
time, so there are few):

* ``copies (4, B)`` of a table: state, steps of the episode so far, whether it is over, and where the next one begins,
* ``decisions (6, B)``: the choice, the action with which its option continues (-1: none does), the duration so far,
  whether the option that was chosen may not start, whether the episode is over, and the row of `offers` at the choice,
* ``sums (2, B)``: the rewards so far, with and without discount.

``offers (S, n)`` is the action of each option, negative where it may not start, and ``at (B,)`` the row of each copy:
its state where the options are tables, else its number.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from eigenoptions._kernels.walking import GOLDEN, land, mix, one_of

STATE, ELAPSED, ENDED, START = range(4)
CHOICE, NEXT, DURATION, UNAVAILABLE, OVER, BEGIN = range(6)
GAIN, TOTAL = range(2)
# Rows of the results of `finish`: reals, wholes, marks. Those of `decide` have two more wholes and marks.
REWARD, DISCOUNT, RETURN = range(3)
R_OPTION, R_DURATION, R_CHOICE, R_STATE, R_BEGIN = range(5)
R_COMPLETE, R_CUT, R_UNAVAILABLE, R_TERMINATED = range(4)


@njit(cache=True, nogil=True)
def move(indptr, indices, cumulative, maze, copies, draws, actions, states, rewards, ends):  # type: ignore[no-untyped-def]
    """Take an action in each copy of a table; the number of copies that are now over, or -1 (no step) if one is wrong.

    A copy whose episode is over begins a new one. ``maze (3,)`` is the number of actions, the goal (-1: none) and the
    most steps of an episode; `draws (B,)` are random bits for uncertain moves. Results: `states (B,)`, `rewards (B,)`
    and ``ends (2, B)``, terminated and truncated.
    """
    n_actions, goal, limit = maze[0], maze[1], maze[2]
    for action in actions:
        if action < 0 or action >= n_actions:
            return -1
    over = 0
    for b in range(len(actions)):
        if copies[ENDED, b]:
            state, elapsed, terminated = copies[START, b], 0, False
        else:
            row = copies[STATE, b] * n_actions + actions[b]
            first = indptr[row]
            if indptr[row + 1] - first == 1:
                state = np.int64(indices[first])
            else:
                state = np.int64(land(row, indptr, indices, cumulative, draws[b]))
            elapsed, terminated = copies[ELAPSED, b] + 1, state == goal
        truncated = elapsed >= limit
        ended = terminated or truncated
        copies[STATE, b], copies[ELAPSED, b], copies[ENDED, b] = state, elapsed, ended
        states[b], rewards[b], ends[0, b], ends[1, b] = state, terminated, terminated, truncated
        over += ended
    return over


@njit(cache=True, nogil=True)
def begin(decisions, sums, rules, counter, offers, at, actions, moves):  # type: ignore[no-untyped-def]
    """Write the primitive action of each copy to `moves`; the first copy with an impossible action, or -1.

    In place of an option that may not start it is a random one; `counter (1,)` counts the random numbers. `rules` are
    those of `finish`.
    """
    n_actions = rules[0]
    last = n_actions + offers.shape[1]
    for b in range(len(moves)):
        action = decisions[NEXT, b]
        if action < 0:
            choice = actions[b]
            if choice < 0 or choice >= last:
                return b
            action = choice if choice < n_actions else np.int64(offers[at[b], choice - n_actions])
            decisions[CHOICE, b], decisions[DURATION, b] = choice, 0
            decisions[UNAVAILABLE, b], decisions[BEGIN, b] = action < 0, at[b]
            sums[GAIN, b], sums[TOTAL, b] = 0.0, 0.0
            if action < 0:
                counter[0] += GOLDEN
                action = one_of(mix(counter[0]), n_actions)
        moves[b] = action
    return -1


@njit(cache=True, nogil=True)
def finish(  # type: ignore[no-untyped-def]
    decisions, sums, rules, powers, offers, at, rewards, ends, halted, reals, wholes, marks, masks
):
    """Take a primitive step of each copy into account, after which its options are at ``offers[at[b]]``.

    ``rules (4,)`` are the number of actions, the most steps of an option, whether every step is reported on its own,
    and whether the step after the end of an episode is a reset; `powers` the first powers of the discount. ``ends (2,
    B)`` is terminated and truncated; `halted (B,)` marks options that a guard of their own ends here. Results: ``reals
    (3, B)`` reward, discount and undiscounted return, ``wholes (3, B)`` option, duration and choice, ``marks (3, B)``
    complete, cut and unavailable, ``masks (B, A + n)``.
    """
    n_actions, max_duration, single, resets = rules[0], rules[1], rules[2], rules[3]
    gamma, known = powers[1], len(powers)
    for b in range(len(rewards)):
        choice, unavailable, here = decisions[CHOICE, b], decisions[UNAVAILABLE, b], at[b]
        option, action, cut = choice - n_actions, -1, False
        if resets and decisions[OVER, b]:
            ended, complete, duration = False, False, 0
            reward, discount, total = 0.0, 1.0, 0.0
        else:
            ended, reward = ends[0, b] or ends[1, b], float(rewards[b])
            duration = decisions[DURATION, b] + 1
            decisions[DURATION, b] = duration
            discount = powers[duration] if duration < known else gamma ** float(duration)
            if reward != 0.0:
                before = powers[duration - 1] if duration <= known else gamma ** float(duration - 1)
                sums[TOTAL, b] += reward
                sums[GAIN, b] += before * reward
            if option >= 0 and not (unavailable or ended or halted[b]):
                action = offers[here, option]
                cut = action >= 0 and duration >= max_duration
                action = -1 if cut else action
            complete, total = action < 0, sums[TOTAL, b]
            if single:
                complete, duration, discount, total = True, 1, gamma, reward
            else:
                reward = sums[GAIN, b] if complete else 0.0
        decisions[OVER, b], decisions[NEXT, b] = ended, action
        reals[REWARD, b], reals[DISCOUNT, b], reals[RETURN, b] = reward, discount, total
        wholes[R_OPTION, b] = option if option >= 0 and duration > 0 else -1
        wholes[R_DURATION, b], wholes[R_CHOICE, b] = duration, choice
        marks[R_COMPLETE, b], marks[R_CUT, b], marks[R_UNAVAILABLE, b] = complete, cut, unavailable
        free = action < 0
        for a in range(n_actions):
            masks[b, a] = free
        for i in range(offers.shape[1]):
            masks[b, n_actions + i] = free and offers[here, i] >= 0
        if not free:
            masks[b, choice] = 1


@njit(cache=True, nogil=True)
def decide(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    cumulative,
    copies,
    decisions,
    sums,
    rules,
    counter,
    powers,
    offers,
    draws,
    actions,
    reals,
    wholes,
    marks,
    masks,
):
    """`begin`, `move` and `finish`; the number of copies that are now over, or -1 - b for a wrong action of copy b.

    The last three of the rules are those of the maze. Results are those of `finish`, with two more wholes, the state
    and that of the choice, and two more marks, the ends.
    """
    at, moves, rewards = copies[STATE], np.empty_like(actions), np.empty(len(actions))
    wrong = begin(decisions, sums, rules, counter, offers, at, actions, moves)
    if wrong >= 0:
        return -1 - wrong
    states, ends = wholes[R_STATE], marks[R_TERMINATED:]
    over = move(indptr, indices, cumulative, rules[4:], copies, draws, moves, states, rewards, ends)
    halted = np.zeros(len(actions), dtype=np.bool_)
    finish(decisions, sums, rules, powers, offers, at, rewards, ends, halted, reals, wholes, marks, masks)
    # A loop: an assignment of rows brings numba's text of a wrong shape, which compiles for seconds.
    for b in range(len(actions)):
        wholes[R_BEGIN, b] = decisions[BEGIN, b]
    return over
