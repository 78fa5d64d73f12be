"""Rewards of many purposes between states of a memory, from the bytes that changed (paper, Section 5.2).

Much of a memory changes in the same way whatever the action, so the changes towards the first state are kept in full,
and of the other states only where they differ from it.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def gains(here, there, watched, table, place, direction, purposes, bounds, out):  # type: ignore[no-untyped-def]
    """Fill `out` ``(k, N)`` with ``e . (phi(there) - phi(here))``, each purpose between its own states.

    Purposes ``bounds[i]`` to ``bounds[i + 1]`` are at ``here[i]`` and go to ``there[i]`` ``(N, bytes)``. Unit u of the
    b-th watched byte is ``table[value, u]``; it is feature ``place[b, u]``, or no feature (-1).
    """
    n_there, each = there.shape[1], table.shape[1]
    most = len(watched) * each
    # Features that change on the way to some state, and by how much on the way to the first.
    feature = np.empty(most, dtype=np.int64)
    change = np.empty(most)
    # The states where a feature is not as in the first, and by how much; those of feature f end at ends[f + 1].
    other = np.empty(most * n_there, dtype=np.int64)
    excess = np.empty(most * n_there)
    ends = np.zeros(most + 1, dtype=np.int64)
    weight = np.empty(most)
    for i in range(len(here)):
        count = 0
        for b in range(len(watched)):
            address = watched[b]
            value, first = here[i, address], there[i, 0, address]
            moved = False
            for j in range(n_there):
                moved |= there[i, j, address] != value
            if not moved:
                continue
            for u in range(each):
                if place[b, u] < 0:
                    continue
                end = ends[count]
                for j in range(1, n_there):
                    more = table[there[i, j, address], u] - table[first, u]
                    if more != 0.0:
                        other[end], excess[end] = j, more
                        end += 1
                change[count] = table[first, u] - table[value, u]
                if change[count] != 0.0 or end > ends[count]:
                    feature[count] = place[b, u]
                    count += 1
                    ends[count] = end
        for k in range(bounds[i], bounds[i + 1]):
            base = 0.0
            for f in range(count):
                weight[f] = direction[purposes[k], feature[f]]
                base += weight[f] * change[f]
            out[k, :] = base
            for f in range(count):
                for m in range(ends[f], ends[f + 1]):
                    out[k, other[m]] += weight[f] * excess[m]
