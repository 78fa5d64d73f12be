"""Passages between rooms, and betweenness of states (paper, Appendix C)."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def passages(indptr, indices, radius):  # type: ignore[no-untyped-def]
    """Mask of the states with two or more neighbours, no two of which meet within `radius` steps without the state."""
    n = len(indptr) - 1
    passage = np.zeros(n, dtype=np.bool_)
    depth = np.full(n, -1, dtype=np.int32)
    queue = np.empty(n, dtype=np.int32)
    for s in range(n):
        low, high = indptr[s], indptr[s + 1]
        apart = high - low >= 2
        for first in range(low, high):
            if not apart:
                break
            queue[0] = indices[first]
            depth[queue[0]] = 0
            depth[s] = 0
            head, tail = 0, 1
            while head < tail and depth[queue[head]] < radius:
                u = queue[head]
                head += 1
                for p in range(indptr[u], indptr[u + 1]):
                    if depth[indices[p]] < 0:
                        depth[indices[p]] = depth[u] + 1
                        queue[tail] = indices[p]
                        tail += 1
            for p in range(low, high):
                apart &= p == first or depth[indices[p]] < 0
            depth[s] = -1
            for i in range(tail):
                depth[queue[i]] = -1
        passage[s] = apart
    return passage


@njit(cache=True, nogil=True)
def betweenness(indptr, indices, sources):  # type: ignore[no-untyped-def]
    """Number of shortest paths from `sources` to all states through each state (Brandes, 2001)."""
    n = len(indptr) - 1
    score = np.zeros(n)
    depth = np.empty(n, dtype=np.int32)
    paths = np.empty(n)
    share = np.empty(n)
    queue = np.empty(n, dtype=np.int32)
    for source in sources:
        depth[:] = -1
        paths[:] = 0.0
        share[:] = 0.0
        depth[source] = 0
        paths[source] = 1.0
        queue[0] = source
        head, tail = 0, 1
        while head < tail:
            u = queue[head]
            head += 1
            for p in range(indptr[u], indptr[u + 1]):
                v = indices[p]
                if depth[v] < 0:
                    depth[v] = depth[u] + 1
                    queue[tail] = v
                    tail += 1
                if depth[v] == depth[u] + 1:
                    paths[v] += paths[u]
        for i in range(tail - 1, 0, -1):
            v = queue[i]
            for p in range(indptr[v], indptr[v + 1]):
                u = indices[p]
                if depth[u] == depth[v] - 1:
                    share[u] += paths[u] / paths[v] * (1.0 + share[v])
            score[v] += share[v]
    return score
