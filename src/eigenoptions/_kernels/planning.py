"""Following a policy row through a deterministic table."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def run(nxt, policy, length, end):  # type: ignore[no-untyped-def]
    """Fill steps to the end and the state of the end, for one policy row from every state (deterministic).

    Returns -1, or a state from which the policy never ends (then the rest is not filled).
    """
    n = nxt.shape[0]
    path = np.empty(n, dtype=np.int32)
    for s in range(n):
        length[s] = -1
    for first in range(n):
        depth = 0
        s = first
        while length[s] < 0:
            if length[s] == -2:
                return s
            if policy[s] < 0:
                length[s] = 0
                end[s] = s
                break
            length[s] = -2
            path[depth] = s
            depth += 1
            s = nxt[s, policy[s]]
        steps, stop = length[s], end[s]
        while depth > 0:
            depth -= 1
            steps += 1
            length[path[depth]] = steps
            end[path[depth]] = stop
    return -1
