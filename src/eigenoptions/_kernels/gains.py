"""Rewards of many purposes between states of a memory, from the bytes that changed (paper, Section 5.2)."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def gains(here, there, watched, table, place, direction, purposes, bounds, out):  # type: ignore[no-untyped-def]
    """Fill `out` ``(k, N)`` with ``e . (phi(there) - phi(here))``, each purpose between its own states.

    Purposes ``bounds[i]`` to ``bounds[i + 1]`` are at ``here[i]`` and go to ``there[i]`` ``(N, bytes)``. Unit u of the
    b-th watched byte is ``table[value, u]``, and feature ``place[b, u]``, or none of them (-1).
    """
    n_there, each = there.shape[1], table.shape[1]
    feature = np.empty(len(watched) * each, dtype=np.int64)
    change = np.empty((len(watched) * each, n_there))
    for i in range(len(here)):
        count = 0
        for b in range(len(watched)):
            address = watched[b]
            value = here[i, address]
            moved = False
            for j in range(n_there):
                moved |= there[i, j, address] != value
            if not moved:
                continue
            for u in range(each):
                if place[b, u] < 0:
                    continue
                moved = False
                for j in range(n_there):
                    change[count, j] = table[there[i, j, address], u] - table[value, u]
                    moved |= change[count, j] != 0.0
                if moved:
                    feature[count] = place[b, u]
                    count += 1
        for k in range(bounds[i], bounds[i + 1]):
            out[k, :] = 0.0
            for f in range(count):
                weight = direction[purposes[k], feature[f]]
                for j in range(n_there):
                    out[k, j] += weight * change[f, j]
