"""Optimal values of many potentials at once, and the policies they give (paper, Section 3).

With u = v + e the Bellman equation with the terminate action reads
``u(s) = max(e(s), max_a sum_s' p(s'|s,a) x(s'))`` where ``x = (1 - gamma) e + gamma u`` is what arriving is worth.
Rounding is monotone, so every order of updates from ``u = e`` climbs to the same least fixed point, bit for bit:
the order (blocks, sweeps, renumbering) is free and chosen for speed only.
"""

from __future__ import annotations

import numpy as np
from numba import njit

LANES = 8  # potentials advanced together: one cache line of float64
BLOCK = 64  # states relaxed together until they rest


@njit(cache=True, nogil=True)
def feeders(nxt):  # type: ignore[no-untyped-def]
    """Csr lists: for each block, the blocks with a move into it (itself left out)."""
    n, n_actions = nxt.shape
    n_blocks = (n + BLOCK - 1) // BLOCK
    seen = np.full(n_blocks, -1, dtype=np.int32)
    count = np.zeros(n_blocks + 1, dtype=np.int64)
    for b in range(n_blocks):
        for s in range(b * BLOCK, min(n, (b + 1) * BLOCK)):
            for a in range(n_actions):
                t = nxt[s, a] // BLOCK
                if t != b and seen[t] != b:
                    seen[t] = b
                    count[t + 1] += 1
    indptr = np.cumsum(count)
    fill = indptr[:-1].copy()
    indices = np.empty(indptr[-1], dtype=np.int32)
    seen[:] = -1
    for b in range(n_blocks):
        for s in range(b * BLOCK, min(n, (b + 1) * BLOCK)):
            for a in range(n_actions):
                t = nxt[s, a] // BLOCK
                if t != b and seen[t] != b:
                    seen[t] = b
                    indices[fill[t]] = b
                    fill[t] += 1
    return indptr, indices


@njit(cache=True, nogil=True)
def _relax(s, nxt, E, X, gamma, best):  # type: ignore[no-untyped-def]
    """One backup of all lanes at state s; tells whether any value rose."""
    n_actions = nxt.shape[1]
    if n_actions == 4:
        a, b, c, d = nxt[s, 0], nxt[s, 1], nxt[s, 2], nxt[s, 3]
        for j in range(LANES):
            p = X[a, j] if X[a, j] > X[b, j] else X[b, j]
            q = X[c, j] if X[c, j] > X[d, j] else X[d, j]
            best[j] = p if p > q else q
    else:
        for j in range(LANES):
            best[j] = X[nxt[s, 0], j]
        for k in range(1, n_actions):
            t = nxt[s, k]
            for j in range(LANES):
                best[j] = X[t, j] if X[t, j] > best[j] else best[j]
    rose = 0
    for j in range(LANES):
        e = E[s, j]
        u = best[j] if best[j] > e else e
        x = (1.0 - gamma) * e + gamma * u
        rose += x > X[s, j]
        X[s, j] = x if x > X[s, j] else X[s, j]
    return rose > 0


@njit(cache=True, nogil=True)
def climb(nxt, E, X, gamma, indptr, indices):  # type: ignore[no-untyped-def]
    """Raise X (n, LANES) to the fixed point for deterministic moves; the number of state backups done.

    Blocks of states are relaxed back and forth until they rest; a block is visited again only when a block
    it can move into has risen.
    """
    n = nxt.shape[0]
    n_blocks = len(indptr) - 1
    dirty = np.ones(n_blocks, dtype=np.uint8)
    best = np.empty(LANES)
    backups = 0
    forward = True
    waiting = n_blocks
    while waiting > 0:
        for i in range(n_blocks):
            b = i if forward else n_blocks - 1 - i
            if dirty[b] == 0:
                continue
            dirty[b] = 0
            low, high = b * BLOCK, min(n, (b + 1) * BLOCK)
            rose = False
            up = forward
            moved = True
            while moved:
                moved = False
                for r in range(high - low):
                    s = low + r if up else high - 1 - r
                    moved |= _relax(s, nxt, E, X, gamma, best)
                backups += high - low
                rose |= moved
                up = not up
            if rose:
                for r in range(indptr[b], indptr[b + 1]):
                    dirty[indices[r]] = 1
        forward = not forward
        waiting = 0
        for b in range(n_blocks):
            waiting += dirty[b]
    return backups


@njit(cache=True, nogil=True)
def greedy(nxt, E, X, scale, gamma, tol, policy, value):  # type: ignore[no-untyped-def]
    """Policy and value (lanes, n) from the fixed point X (n, lanes); -1 where no action has q > 0.

    Ties within ``tol * scale`` go to terminate; of equal actions the first is taken. Two actions count as equal
    when they differ by less than that and by less than (1 - gamma) v / 4: the second bound keeps a policy of
    near-best actions from ever turning in a circle.
    """
    n, n_actions = nxt.shape
    for s in range(n):
        for j in range(policy.shape[0]):
            top = X[nxt[s, 0], j]
            for a in range(1, n_actions):
                top = max(top, X[nxt[s, a], j])
            v = top - E[s, j]
            limit = tol * scale[j]
            policy[j, s] = -1
            value[j, s] = max(v, 0.0)
            if v > limit:
                slack = min(limit, 0.25 * (1.0 - gamma) * v)
                for a in range(n_actions):
                    if X[nxt[s, a], j] >= top - slack:
                        policy[j, s] = a
                        break


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


@njit(cache=True, nogil=True)
def climb_stochastic(indptr, indices, data, n_actions, E, X, gamma, tol, limit):  # type: ignore[no-untyped-def]
    """Raise X (n, lanes) for stochastic moves until no entry rises by more than `tol`; the number of sweeps."""
    n, lanes = E.shape
    best = np.empty(lanes)
    mean = np.empty(lanes)
    for sweep in range(limit):
        most = 0.0
        for i in range(n):
            s = i if sweep % 2 == 0 else n - 1 - i
            for j in range(lanes):
                best[j] = E[s, j]
            for row in range(s * n_actions, (s + 1) * n_actions):
                for j in range(lanes):
                    mean[j] = 0.0
                for r in range(indptr[row], indptr[row + 1]):
                    for j in range(lanes):
                        mean[j] += data[r] * X[indices[r], j]
                for j in range(lanes):
                    best[j] = max(best[j], mean[j])
            for j in range(lanes):
                x = (1.0 - gamma) * E[s, j] + gamma * best[j]
                most = max(most, x - X[s, j])
                X[s, j] = max(x, X[s, j])
        if most <= tol:
            return sweep + 1
    return limit
