"""Random walks over actions and options in a table: `cover` until all states are visited, `wander` for N steps.

Each decision is for a primitive action or for an option that may start; options run to their end (paper, Section 5.1
and Appendix B). `choose` is the one place where a decision is drawn, here and in the learning kernels.

Random numbers are SplitMix64: number n of a stream is ``mix(seed + n * GOLDEN)``, so a walk is a pure function of its
seed. A choice of one in n takes 32 bits, a chance the other 32, the end of an uncertain move the high 53.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31, _32 = (np.uint64(k) for k in (11, 27, 30, 31, 32))
_LOW = np.uint64(0xFFFFFFFF)


class Moves(NamedTuple):
    """Dynamics: csr rows p(. | s, a) of ``(S * A, S)`` with running sums as data, and the number of actions A."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    cumulative: NDArray[np.float64]
    n_actions: int


class Menu(NamedTuple):
    """Options ``policy (k, S)``, the csr list of those that may start per state, and the chance to choose one.

    Options of state s are ``offered[first[s]:first[s + 1]]``. A negative `chance` is a uniform choice over actions
    and options.
    """

    policy: NDArray[Any]
    first: NDArray[Any]
    offered: NDArray[Any]
    chance: float


class Episodes(NamedTuple):
    """State to `begin` in (-1: one of `starts`), `starts` of later episodes, `goal` (-1: none), and most steps."""

    begin: int
    starts: NDArray[Any]
    goal: int
    limit: int


@njit(cache=True, nogil=True)
def mix(z):  # type: ignore[no-untyped-def]
    """Random number of a counter."""
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


@njit(cache=True, nogil=True)
def one_of(x, n):  # type: ignore[no-untyped-def]
    """Number in 0..n-1 from the low half of x."""
    return np.int64(((x & _LOW) * np.uint64(n)) >> _32)


@njit(cache=True, nogil=True)
def happens(x, chance):  # type: ignore[no-untyped-def]
    """True with probability `chance`, from the high half of x."""
    return np.float64(x >> _32) < chance * 2.0**32


@njit(cache=True, nogil=True)
def choose(x, n_actions, n_options, chance):  # type: ignore[no-untyped-def]
    """Decision of a walk: an action 0..n_actions-1, or n_actions + i for the i-th option that may start.

    Where an option may start, it is one with probability `chance`; a negative chance makes all choices equal.
    """
    if chance < 0.0:
        return one_of(x, n_actions + n_options)
    if n_options > 0 and happens(x, chance):
        return n_actions + one_of(x, n_options)
    return one_of(x, n_actions)


@njit(cache=True, nogil=True)
def land(row, indptr, indices, cumulative, x):  # type: ignore[no-untyped-def]
    """End of an uncertain move: the first entry of its row whose running sum exceeds a uniform number."""
    u = np.float64(x >> _11) * 2.0**-53
    low, high = np.int64(indptr[row]), np.int64(indptr[row + 1]) - 1
    while low < high:
        middle = (low + high) // 2
        if u < cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return indices[low]


@njit(cache=True, nogil=True)
def cumulate(indptr, data):  # type: ignore[no-untyped-def]
    """Running sums of each csr row."""
    sums = np.empty_like(data)
    for row in range(len(indptr) - 1):
        total = 0.0
        for r in range(indptr[row], indptr[row + 1]):
            total += data[r]
            sums[r] = total
    return sums


@njit(cache=True, nogil=True)
def cover(moves, menu, place, count, touched, budget):  # type: ignore[no-untyped-def]
    """Walk on for at most `budget` steps, or until no state is left; the sum of the steps of states touched now.

    A walk that continues after touching g is, up to then, the walk that stops at g. So one walk gives the steps from
    its start to every goal. Kept from call to call: `place`, [state, running option or -1, steps so far, states
    left]; `count` (1,), the counter of random numbers; `touched` (S,).
    """
    indptr, indices, cumulative, n_actions = moves
    policy, first, offered, chance = menu
    s, o, steps, left = place[0], place[1], place[2], place[3]
    z = count[0]
    end = steps + budget
    total = 0.0
    while steps < end and left > 0:
        if o >= 0 and policy[o, s] < 0:
            o = -1
        if o < 0:
            z += GOLDEN
            x = mix(z)
            a = choose((x >> _32) | (x << _32), n_actions, first[s + 1] - first[s], chance)
            if a >= n_actions:
                o = offered[first[s] + a - n_actions]
                a = np.int64(policy[o, s])
        else:
            a = np.int64(policy[o, s])
        row = s * n_actions + a
        r = indptr[row]
        if indptr[row + 1] - r > 1:
            z += GOLDEN
            s = np.int64(land(row, indptr, indices, cumulative, mix(z)))
        else:
            s = np.int64(indices[r])
        steps += 1
        if touched[s] == 0:
            touched[s] = 1
            left -= 1
            total += steps
    place[0], place[1], place[2], place[3] = s, o, steps, left
    count[0] = z
    return total


@njit(cache=True, nogil=True)
def wander(moves, menu, episodes, counter, state, action, after, option):  # type: ignore[no-untyped-def]
    """Walk N steps; states, actions, next states and running options (-1: none) go into the arrays (N,)."""
    indptr, indices, cumulative, n_actions = moves
    policy, first, offered, chance = menu
    begin, starts, goal, limit = episodes
    z = counter
    s, o, age = np.int64(begin), np.int64(-1), np.int64(0)
    for i in range(len(state)):
        if s < 0:
            z += GOLDEN
            s = np.int64(starts[one_of(mix(z) >> _32, len(starts))])
            o, age = np.int64(-1), np.int64(0)
        if o >= 0 and policy[o, s] < 0:
            o = np.int64(-1)
        if o < 0:
            z += GOLDEN
            some = first[s + 1] - first[s]
            use = chance if chance >= 0.0 else some / (n_actions + some)
            a = choose(mix(z), n_actions, some, use)
            if a >= n_actions:
                o = np.int64(offered[first[s] + a - n_actions])
                a = np.int64(policy[o, s])
        else:
            a = np.int64(policy[o, s])
        row = s * n_actions + a
        t = np.int64(indices[indptr[row]])
        if indptr[row + 1] - indptr[row] > 1:
            z += GOLDEN
            t = np.int64(land(row, indptr, indices, cumulative, mix(z)))
        state[i], action[i], after[i], option[i] = s, a, t, o
        age += 1
        s = np.int64(-1) if t == goal or age >= limit else t
