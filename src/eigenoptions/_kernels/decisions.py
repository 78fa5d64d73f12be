"""Decisions in the copies of a vector environment: which primitive action is next, and which decisions are complete.

`begin` runs before and `finish` after the environment's step; `OptionsVectorWrapper` calls both once per step. The
state of B copies is three arrays, changed in place, since every array handed to a kernel takes time:

* ``counts (3, B)``: the choice, the action with which its option continues (-1: none does), and the duration so far,
* ``sums (2, B)``: the rewards so far, with and without discount,
* ``flags (2, B)``: whether the episode is over, and whether the option that was chosen may not start.
"""

from __future__ import annotations

from typing import Any

from numba import njit

CHOICE, NEXT, DURATION = range(3)
GAIN, TOTAL = range(2)
OVER, UNAVAILABLE = range(2)
# Rows of what `finish` returns.
REWARD, DISCOUNT, RETURN = range(3)
COMPLETE, CUT = range(2)


@njit(cache=True, nogil=True)
def begin(  # type: ignore[no-untyped-def]
    counts: Any, sums: Any, flags: Any, n_actions: int, offers: Any, actions: Any, draws: Any, moves: Any
):
    """Write the primitive action of each copy to `moves`; the first copy with an impossible action, or -1.

    `offers (B, n)` is the action of each option in each copy, negative where it may not start; `draws (B,)` are random
    actions in place of those.
    """
    last = n_actions + offers.shape[1]
    for b in range(len(moves)):
        if counts[NEXT, b] >= 0:
            moves[b] = counts[NEXT, b]
            continue
        choice = actions[b]
        if choice < 0 or choice >= last:
            return b
        move = choice if choice < n_actions else offers[b, choice - n_actions]
        counts[CHOICE, b] = choice
        counts[DURATION, b] = 0
        sums[GAIN, b] = 0.0
        sums[TOTAL, b] = 0.0
        flags[UNAVAILABLE, b] = move < 0
        moves[b] = draws[b] if move < 0 else move
    return -1


@njit(cache=True, nogil=True)
def finish(  # type: ignore[no-untyped-def]
    counts: Any,
    sums: Any,
    flags: Any,
    gamma: float,
    max_duration: int,
    single: bool,
    resets: bool,
    offers: Any,
    rewards: Any,
    ended: Any,
    halted: Any,
    reals: Any,
    wholes: Any,
    marks: Any,
    masks: Any,
):
    """Take a primitive step of each copy into account; `offers` are those at the new observations.

    `single`: every step is reported on its own; `resets`: the step after the end of an episode is a reset; `halted
    (B,)` marks options that a guard of their own ends here. Results: ``reals (3, B)`` reward, discount and
    undiscounted return, ``wholes (2, B)`` option and duration, ``marks (2, B)`` complete and cut, ``masks (B, A + n)``.
    """
    n_actions = masks.shape[1] - offers.shape[1]
    for b in range(len(ended)):
        choice = counts[CHOICE, b]
        option = choice - n_actions
        move, cut = -1, False
        if resets and flags[OVER, b]:
            flags[OVER, b] = False
            reals[REWARD, b], reals[DISCOUNT, b], reals[RETURN, b] = 0.0, 1.0, 0.0
            wholes[0, b], wholes[1, b] = -1, 0
            marks[COMPLETE, b] = False
        else:
            reward = rewards[b]
            counts[DURATION, b] += 1
            duration = counts[DURATION, b]
            if reward != 0.0:
                sums[TOTAL, b] += reward
                sums[GAIN, b] += gamma ** float(duration - 1) * reward
            if option >= 0 and not (flags[UNAVAILABLE, b] or ended[b] or halted[b]):
                move = offers[b, option]
                cut = move >= 0 and duration >= max_duration
                move = -1 if cut else move
            flags[OVER, b] = ended[b]
            wholes[0, b] = max(option, -1)
            if single:
                reals[REWARD, b], reals[DISCOUNT, b], reals[RETURN, b] = reward, gamma, reward
                wholes[1, b] = 1
            else:
                reals[REWARD, b] = sums[GAIN, b] if move < 0 else 0.0
                reals[DISCOUNT, b] = gamma if duration == 1 else gamma ** float(duration)
                reals[RETURN, b] = sums[TOTAL, b]
                wholes[1, b] = duration
            marks[COMPLETE, b] = single or move < 0
        counts[NEXT, b] = move
        marks[CUT, b] = cut
        for a in range(n_actions):
            masks[b, a] = move < 0
        for i in range(offers.shape[1]):
            masks[b, n_actions + i] = offers[b, i] >= 0 and move < 0
        if move >= 0:
            masks[b, choice] = 1
