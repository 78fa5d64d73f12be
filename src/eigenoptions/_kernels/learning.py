"""Learning with options: one run of many episodes a call (paper, Section 4.3).

Random numbers are SplitMix64: the n-th number of a run is ``mix(seed + n * GOLDEN)``, so a run is a pure
function of its seed. A choice of one in n takes the low 32 bits, a chance with probability epsilon the high
32, the end of an uncertain move the high 53.

The tables all kernels read: ``nxt (S, A)`` is the next state, or -1 where the move is uncertain; then
``indptr``, ``indices``, ``cumulative`` are the csr rows p(. | s, a), summed up. ``plan (S, n)`` is the action
of each option, -1 where it stops. Two csr lists of options: ``first (S + 1,)`` and ``offered``, those that
may start in each state; ``taking (S * A + 1,)`` and ``takers``, those that take each action there.

Values start at 0 and rewards are not negative, so neither are values; those of the goal and of options that
may not start are never written and stay 0. ``highest (S,)`` is the largest value of each state: an update
seldom changes it, and a scan of the row at every step is slow. States are unsigned, so that indexing needs no
test for negative numbers. Helpers pass no arrays on to other helpers: numba would count references inside the
loop, at half the speed.
"""

from __future__ import annotations

import numpy as np
from numba import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31, _32 = (np.uint64(k) for k in (11, 27, 30, 31, 32))
_LOW = np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def mix(z):  # type: ignore[no-untyped-def]
    """Scramble a counter into a random number."""
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


@njit(cache=True, nogil=True)
def _one_of(x, n):  # type: ignore[no-untyped-def]
    """Pick a number in 0..n-1 with the low half of x."""
    return np.int64(((x & _LOW) * np.uint64(n)) >> _32)


@njit(cache=True, nogil=True)
def _chance(x, epsilon):  # type: ignore[no-untyped-def]
    """Say yes with probability epsilon, with the high half of x."""
    return np.float64(x >> _32) < epsilon * 2.0**32


@njit(cache=True, nogil=True)
def _land(row, indptr, indices, cumulative, x):  # type: ignore[no-untyped-def]
    """End an uncertain move in the first entry of its row whose sum exceeds a uniform number."""
    u = np.float64(x >> _11) * 2.0**-53
    low, high = indptr[row], indptr[row + 1] - 1
    while low < high:
        middle = (low + high) // 2
        if u < cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return indices[low]


@njit(cache=True, nogil=True)
def cumulate(indptr, data):  # type: ignore[no-untyped-def]
    """Sum up each csr row as it goes."""
    sums = np.empty_like(data)
    for row in range(len(indptr) - 1):
        total = 0.0
        for r in range(indptr[row], indptr[row + 1]):
            total += data[r]
            sums[r] = total
    return sums


@njit(cache=True, nogil=True)
def _best(q, s, highest, x):  # type: ignore[no-untyped-def]
    """Pick a column with the highest value of a state, ties broken at random."""
    ties = 0
    for b in range(q.shape[1]):
        ties += q[s, b] == highest
    k = _one_of(x, ties)
    a = 0
    for b in range(q.shape[1]):  # no branch: which of the ties is as random as can be
        hit = q[s, b] == highest
        a = b if hit & (k == 0) else a
        k -= hit
    return a


@njit(cache=True, nogil=True)
def _update(q, highest, s, c, step):  # type: ignore[no-untyped-def]
    """Add `step` to one value, and keep the highest of its state true."""
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
def q_learning(  # type: ignore[no-untyped-def]
    nxt, indptr, indices, cumulative, plan, first, offered,
    start, goal, max_steps, alpha, gamma, epsilon, seed,
    q, returns, steps, learning_returns, learning_steps,
):  # fmt: skip
    """Learn values q (S, A) of actions, off-policy from a uniform choice over actions and options."""
    n_actions = nxt.shape[1]
    highest = np.zeros(nxt.shape[0])
    clock = seed
    for episode in range(len(returns)):
        s = np.uint32(start)
        option = -1
        taken = 0
        while taken < max_steps and s != goal:
            a = -1
            if option >= 0:
                a = plan[s, option]
            if a < 0:
                clock += GOLDEN
                a = _one_of(mix(clock), n_actions + first[s + 1] - first[s])
                option = -1
                if a >= n_actions:
                    option = offered[first[s] + a - n_actions]
                    a = plan[s, option]
            move = np.uint32(a)
            t = nxt[s, move]
            if t < 0:
                clock += GOLDEN
                t = _land(s * n_actions + move, indptr, indices, cumulative, mix(clock))
            t = np.uint32(t)
            reward = 1.0 if t == goal else 0.0
            _update(q, highest, s, move, alpha * (reward + gamma * highest[t] - q[s, move]))
            s = t
            taken += 1
        learning_returns[episode] = s == goal
        learning_steps[episode] = taken

        s = np.uint32(start)
        taken = 0
        while taken < max_steps and s != goal:
            clock += GOLDEN
            x = mix(clock)
            if highest[s] == 0.0 or _chance(x, epsilon):  # at 0 all actions are tied
                move = np.uint32(_one_of(x, n_actions))
            else:
                move = np.uint32(_best(q, s, highest[s], x))
            t = nxt[s, move]
            if t < 0:
                clock += GOLDEN
                t = _land(s * n_actions + move, indptr, indices, cumulative, mix(clock))
            s = np.uint32(t)
            taken += 1
        returns[episode] = s == goal
        steps[episode] = taken


@njit(cache=True, nogil=True)
def over_options(  # type: ignore[no-untyped-def]
    nxt, indptr, indices, cumulative, plan, first, offered, taking, takers, intra,
    start, goal, max_steps, alpha, gamma, epsilon, explore, seed,
    q, returns, steps, learning_returns, learning_steps,
):  # fmt: skip
    """Learn values q (S, A + n) of actions and options.

    With ``intra`` false this is SMDP Q-learning: each choice is updated once, when it ends. With true it is
    intra-option Q-learning: each step updates its action and every option that would have taken it.
    """
    n_actions = nxt.shape[1]
    highest = np.zeros(nxt.shape[0])
    clock = seed
    for half in range(2 * len(returns)):
        episode, learning = half // 2, half % 2 == 0
        blind = explore if learning else epsilon
        s = np.uint32(start)
        origin, gain, discount = s, 0.0, 1.0
        option, c = -1, 0
        a = -1
        taken = 0
        while taken < max_steps and s != goal:
            if a < 0:
                clock += GOLDEN
                x = mix(clock)
                if highest[s] == 0.0 or _chance(x, blind):  # at 0 all that may start are tied
                    c = _one_of(x, n_actions + first[s + 1] - first[s])
                    if c >= n_actions:
                        c = n_actions + offered[first[s] + c - n_actions]
                else:
                    c = _best(q, s, highest[s], x)
                option = c - n_actions
                a = c if option < 0 else plan[s, option]
                origin, gain, discount = s, 0.0, 1.0
            t = nxt[s, a]
            if t < 0:
                clock += GOLDEN
                t = _land(s * n_actions + a, indptr, indices, cumulative, mix(clock))
            t = np.uint32(t)
            taken += 1
            reward = 1.0 if t == goal else 0.0
            following = -1 if option < 0 else plan[t, option]
            if learning and intra:
                value = highest[t]  # before any update: t may be s
                for r in range(taking[s * n_actions + a], taking[s * n_actions + a + 1]):
                    o = takers[r]
                    rest = value if plan[t, o] < 0 else q[t, n_actions + o]
                    step = alpha * (reward + gamma * rest - q[s, n_actions + o])
                    _update(q, highest, s, n_actions + o, step)
                _update(q, highest, s, a, alpha * (reward + gamma * value - q[s, a]))
            elif learning:
                gain += discount * reward
                discount *= gamma
                if following < 0 or t == goal or taken == max_steps:
                    # An option cut at the end of the episode would have gone on: its own value is left.
                    rest = highest[t] if following < 0 else q[t, c]
                    _update(q, highest, origin, c, alpha * (gain + discount * rest - q[origin, c]))
            s = t
            a = following
        if learning:
            learning_returns[episode] = s == goal
            learning_steps[episode] = taken
        else:
            returns[episode] = s == goal
            steps[episode] = taken
