"""Random walks over actions and options in a table: for a number of steps, or until all states are touched.

Each decision is for a primitive action or for an available option; options run to their end, or stop by chance (paper,
Section 5.1 and Appendix B). `choose` is the one place where a decision is drawn, here and in the learning kernel.

Random numbers are SplitMix64: number n of a stream is ``mix(seed + n * GOLDEN)``, so a walk is a pure function of its
seed. A choice of one in n takes the low 32 bits, a probability the high 32, a successor the high 53.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eigenoptions._kernels import compile_helper, compile_kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31, _32 = (np.uint64(k) for k in (11, 27, 30, 31, 32))
_LOW = np.uint64(0xFFFFFFFF)


class Moves(NamedTuple):
    """Dynamics: csr rows p(. | s, a) of ``(S * A, S)`` with cumulative sums as data, and the number of actions A."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    cumulative: NDArray[np.float64]
    n_actions: int


class Choices(NamedTuple):
    """Options ``policy (S, n)``, the csr list of those available in each state, and the probabilities of a decision.

    Options of state s are ``available[first[s]:first[s + 1]]``. A negative `option_chance` is a uniform choice over
    actions and options.
    """

    policy: NDArray[Any]
    first: NDArray[Any]
    available: NDArray[Any]
    option_chance: float
    stop_chance: float


class Episodes(NamedTuple):
    """States that episodes start in, `goal` (-1: none), and most steps."""

    starts: NDArray[Any]
    goal: int
    limit: int


@compile_helper
def mix(z):  # type: ignore[no-untyped-def]
    """Random number of a counter."""
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


@compile_helper
def random_index(x, n):  # type: ignore[no-untyped-def]
    """Number in 0..n-1 from the low half of x."""
    return np.int64(((x & _LOW) * np.uint64(n)) >> _32)


@compile_helper
def bernoulli(x, probability):  # type: ignore[no-untyped-def]
    """True with this probability, from the high half of x."""
    return np.float64(x >> _32) < probability * 2.0**32


@compile_helper
def choose(x, n_actions, n_options, option_chance):  # type: ignore[no-untyped-def]
    """Decision of a walk: an action 0..n_actions-1, or n_actions + i for the i-th available option."""
    if option_chance < 0.0:
        return random_index(x, n_actions + n_options)
    if n_options > 0 and bernoulli(x, option_chance):
        return n_actions + random_index(x, n_options)
    return random_index(x, n_actions)


@compile_helper
def sample_successor(row, indptr, indices, cumulative, x):  # type: ignore[no-untyped-def]
    """Successor of a stochastic action: the first entry of its row whose cumulative sum exceeds a uniform number."""
    u = np.float64(x >> _11) * 2.0**-53
    low, high = np.int64(indptr[row]), np.int64(indptr[row + 1]) - 1
    while low < high:
        middle = (low + high) // 2
        if u < cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return indices[low]


@compile_kernel
def wander(  # type: ignore[no-untyped-def]
    moves, choices, episodes, place, counter, n_steps, touched, state, action, after
):
    """Walk on for `n_steps` or until no state is left to touch; the sum of the steps until the states touched now.

    A walk that continues after touching g is, up to then, the walk that stops at g. So one walk gives the steps from
    its start to every goal. Kept from call to call: `place`, [state (-1: a new episode begins), running option or -1,
    steps of the episode, states left to touch], `counter` (1,) of random numbers, and `touched` (S,), or (0,) where
    touches do not count. Transitions go into `state`, `action`, `after` (n_steps,), unless these are (0,).
    """
    indptr, indices, cumulative, n_actions = moves
    policy, first, available, option_chance, stop_chance = choices
    starts, goal, limit = episodes
    s, o, age, left = place[0], place[1], place[2], place[3]
    z, total = counter[0], 0.0
    records, counts = len(state) > 0, len(touched) > 0
    for i in range(n_steps):
        if s < 0:
            z += GOLDEN
            s = np.int64(starts[random_index(mix(z) >> _32, len(starts))])
            o, age = np.int64(-1), np.int64(0)
        if o >= 0 and policy[s, o] >= 0 and stop_chance > 0.0:
            z += GOLDEN
            o = np.int64(-1) if bernoulli(mix(z), stop_chance) else o
        if o < 0 or policy[s, o] < 0:
            z += GOLDEN
            n_options = first[s + 1] - first[s]
            use = (
                option_chance
                if option_chance >= 0.0
                else n_options / (n_actions + n_options)
            )
            a, o = choose(mix(z), n_actions, n_options, use), np.int64(-1)
            if a >= n_actions:
                o = np.int64(available[first[s] + a - n_actions])
                a = np.int64(policy[s, o])
        else:
            a = np.int64(policy[s, o])
        row = s * n_actions + a
        t = np.int64(indices[indptr[row]])
        if indptr[row + 1] - indptr[row] > 1:
            z += GOLDEN
            t = np.int64(sample_successor(row, indptr, indices, cumulative, mix(z)))
        age += 1
        if records:
            state[i], action[i], after[i] = s, a, t
        s = np.int64(-1) if t == goal or age >= limit else t
        if counts and touched[t] == 0:
            touched[t] = 1
            left -= 1
            total += age
            if left == 0:
                break
    place[0], place[1], place[2], place[3] = s, o, age, left
    counter[0] = z
    return total
