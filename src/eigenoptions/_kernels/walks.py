"""One long random walk over actions and options, until it has touched every state (paper, Appendix B).

The walk that runs on after touching g is, up to then, the walk that stops at g. So a single walk gives the steps from
its start to *every* goal, and a goal that is hard to reach cannot hide: the walk waits for it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from eigenoptions._kernels.learning import GOLDEN, mix

_11, _32 = np.uint64(11), np.uint64(32)


@njit(cache=True, nogil=True)
def cover(indptr, indices, cumulative, n_actions, policy, first, offered, place, count, touched, budget):  # type: ignore[no-untyped-def]
    """Walk on for at most `budget` steps, or until no state is left; the sum of the steps of states touched now.

    `indptr`, `indices`, `cumulative`: csr rows p(. | s, a), summed up. `policy` (k, S). `first` (S + 1,), `offered`:
    csr list of the options that may start in each state. What goes on from call to call: `place`, [state, running
    option or -1, steps so far, states left]; `count` (1,), the counter of SplitMix64 numbers; `touched` (S,).
    """
    s, o, steps, left = place[0], place[1], place[2], place[3]
    z = count[0]
    end = steps + budget
    total = 0.0
    while steps < end and left > 0:
        if o >= 0 and policy[o, s] < 0:
            o = -1
        if o < 0:
            z += GOLDEN
            choices = n_actions + first[s + 1] - first[s]
            a = np.int64(((mix(z) >> _32) * np.uint64(choices)) >> _32)
            if a >= n_actions:
                o = offered[first[s] + a - n_actions]
                a = policy[o, s]
        else:
            a = np.int64(policy[o, s])
        row = s * n_actions + a
        r = indptr[row]
        last = indptr[row + 1] - 1
        if r < last:
            z += GOLDEN
            u = np.float64(mix(z) >> _11) * 2.0**-53
            while r < last and u >= cumulative[r]:
                r += 1
        s = np.int64(indices[r])
        steps += 1
        if touched[s] == 0:
            touched[s] = 1
            left -= 1
            total += steps
    place[0], place[1], place[2], place[3] = s, o, steps, left
    count[0] = z
    return total
