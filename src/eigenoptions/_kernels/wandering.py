"""Random walks through a table that write down where they go (paper, Section 5.1).

Each decision is uniform over the primitive actions and the options that may start; options run to their end.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from eigenoptions._kernels.learning import GOLDEN, mix

_11, _32, _LOW = np.uint64(11), np.uint64(32), np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def wander(  # type: ignore[no-untyped-def]
    indptr, indices, cumulative, n_actions, policy, first, offered, chance,
    begin, starts, goal, limit, counter, state, action, after,
):  # fmt: skip
    """Walk N steps; states, actions and next states go into `state`, `action` and `after` (N,).

    `indptr`, `indices`, `cumulative`: csr rows p(. | s, a), summed up. `policy` (k, S); `first` (S + 1,), `offered`:
    csr list of the options that may start in each state. `chance`: of an option, where one may start; negative: uniform
    over actions and options. The walk begins in `begin`, and a new episode in one of `starts` after `goal` (-1: none)
    or `limit` steps. Random numbers are SplitMix64 from `counter` on.
    """
    z = counter
    s, o, age = np.int64(begin), np.int64(-1), np.int64(0)
    for i in range(len(state)):
        if s < 0:
            z += GOLDEN
            s = np.int64(starts[np.int64(((mix(z) >> _32) * np.uint64(len(starts))) >> _32)])
            o, age = np.int64(-1), np.int64(0)
        if o >= 0 and policy[o, s] < 0:
            o = np.int64(-1)
        if o < 0:
            z += GOLDEN
            x = mix(z)
            some = first[s + 1] - first[s]
            use = chance if chance >= 0.0 else some / (n_actions + some)
            if some > 0 and np.float64(x >> _32) < use * 2.0**32:
                o = np.int64(offered[first[s] + np.int64(((x & _LOW) * np.uint64(some)) >> _32)])
                a = np.int64(policy[o, s])
            else:
                a = np.int64(((x & _LOW) * np.uint64(n_actions)) >> _32)
        else:
            a = np.int64(policy[o, s])
        row = s * n_actions + a
        r = np.int64(indptr[row])
        last = np.int64(indptr[row + 1]) - 1
        if r < last:
            z += GOLDEN
            u = np.float64(mix(z) >> _11) * 2.0**-53
            while r < last and u >= cumulative[r]:
                r += 1
        t = np.int64(indices[r])
        state[i], action[i], after[i] = s, a, t
        age += 1
        s = np.int64(-1) if t == goal or age >= limit else t
