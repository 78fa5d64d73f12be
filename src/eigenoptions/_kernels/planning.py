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
    """Csr lists: for each block of BLOCK states, the blocks with a move into it (itself left out)."""
    n, n_actions = nxt.shape
    n_blocks = (n + BLOCK - 1) // BLOCK
    seen = np.empty(n_blocks, dtype=np.int32)
    indptr = np.zeros(n_blocks + 1, dtype=np.int64)
    indices = np.empty(0, dtype=np.int32)
    for filling in range(2):  # count, then fill
        fill = indptr[:-1].copy()
        seen[:] = -1
        for i in range(n):
            b = i // BLOCK
            for a in range(n_actions):
                t = nxt[i, a] // BLOCK
                if t != b and seen[t] != b:
                    seen[t] = b
                    if filling:
                        indices[fill[t]] = b
                        fill[t] += 1
                    else:
                        indptr[t + 1] += 1
        if not filling:
            indptr = np.cumsum(indptr)
            indices = np.empty(indptr[-1], dtype=np.int32)
    return indptr, indices


@njit(cache=True, nogil=True, inline="always")
def _rise4(a, b, c, d, e, x, gamma):  # type: ignore[no-untyped-def]
    """One backup of all lanes of a state with four moves; tells in how many the value rose.

    Rows are taken out first and the lanes are one plain loop: so the compiler makes vector instructions of it.
    """
    rose = 0
    for j in range(LANES):
        p = a[j] if a[j] > b[j] else b[j]
        q = c[j] if c[j] > d[j] else d[j]
        u = p if p > q else q
        u = u if u > e[j] else e[j]
        new = (1.0 - gamma) * e[j] + gamma * u
        old = x[j]
        rose += 1 if new > old else 0
        x[j] = new if new > old else old
    return rose


@njit(cache=True, nogil=True, inline="always")
def _rise(s, nxt, X, e, x, gamma, best):  # type: ignore[no-untyped-def]
    """The same for any number of moves; `best` is scratch."""
    for j in range(LANES):
        best[j] = e[j]
    for k in range(nxt.shape[1]):
        y = X[nxt[s, k]]
        for j in range(LANES):
            best[j] = y[j] if y[j] > best[j] else best[j]
    rose = 0
    for j in range(LANES):
        new = (1.0 - gamma) * e[j] + gamma * best[j]
        old = x[j]
        rose += 1 if new > old else 0
        x[j] = new if new > old else old
    return rose


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
            rose = 0
            up = forward
            moved = 1
            while moved > 0:
                moved = 0
                for r in range(high - low):
                    s = low + r if up else high - 1 - r
                    if nxt.shape[1] == 4:
                        moved += _rise4(
                            X[nxt[s, 0]], X[nxt[s, 1]], X[nxt[s, 2]], X[nxt[s, 3]], E[s], X[s], gamma
                        )
                    else:
                        moved += _rise(s, nxt, X, E[s], X[s], gamma, best)
                backups += high - low
                rose += moved
                up = not up
            if rose > 0:
                for r in range(indptr[b], indptr[b + 1]):
                    dirty[indices[r]] = 1
        forward = not forward
        waiting = 0
        for b in range(n_blocks):
            waiting += dirty[b]
    return backups


@njit(cache=True, nogil=True)
def gather(potentials, order, E):  # type: ignore[no-untyped-def]
    """Write potentials (m, n) into the first lanes of E (n, LANES), in the order of visiting; zeros beyond."""
    for i in range(len(order)):
        s = order[i]
        for j in range(LANES):
            E[i, j] = potentials[j, s] if j < len(potentials) else 0.0


@njit(cache=True, nogil=True)
def scatter(actions, gains, order, policy, value):  # type: ignore[no-untyped-def]
    """Write lanes (n, LANES) back into the rows of policy and value (m, n), in the states' own numbering."""
    for j in range(len(policy)):
        for i in range(len(order)):
            policy[j, order[i]] = actions[i, j]
            value[j, order[i]] = gains[i, j]


@njit(cache=True, nogil=True, inline="always")
def _gain4(a, b, c, d, e, v):  # type: ignore[no-untyped-def]
    """Value of a state with four moves, in all lanes."""
    for j in range(LANES):
        p = a[j] if a[j] > b[j] else b[j]
        q = c[j] if c[j] > d[j] else d[j]
        gain = (p if p > q else q) - e[j]
        v[j] = gain if gain > 0.0 else 0.0


@njit(cache=True, nogil=True, inline="always")
def _choice4(a, b, c, d, e, limit, narrow, code):  # type: ignore[no-untyped-def]
    """Its action, as a float, so that the lanes stay vectors of one width."""
    for j in range(LANES):
        p = a[j] if a[j] > b[j] else b[j]
        q = c[j] if c[j] > d[j] else d[j]
        top = p if p > q else q
        gain = top - e[j]
        slack = narrow * gain if narrow * gain < limit[j] else limit[j]
        least = top - slack
        k = 3.0
        k = 2.0 if c[j] >= least else k
        k = 1.0 if b[j] >= least else k
        k = 0.0 if a[j] >= least else k
        code[j] = k if gain > limit[j] else -1.0


@njit(cache=True, nogil=True)
def greedy(nxt, E, X, limit, gamma, policy, value):  # type: ignore[no-untyped-def]
    """Policy and value (n, LANES) from the fixed point X (n, LANES); -1 where no action has q > 0.

    Ties within `limit` (LANES,) go to terminate; of equal actions the first is taken. Two actions count as equal
    when they differ by less than that and by less than (1 - gamma) v / 4: the second bound keeps a policy of
    near-best actions from ever turning in a circle.
    """
    n, n_actions = nxt.shape
    narrow = 0.25 * (1.0 - gamma)
    code = np.empty(LANES)
    for s in range(n):
        if n_actions == 4:
            a, b, c, d = X[nxt[s, 0]], X[nxt[s, 1]], X[nxt[s, 2]], X[nxt[s, 3]]
            _gain4(a, b, c, d, E[s], value[s])
            _choice4(a, b, c, d, E[s], limit, narrow, code)
            for j in range(LANES):
                policy[s, j] = np.int64(code[j])
            continue
        for j in range(LANES):
            top = X[nxt[s, 0], j]
            for k in range(1, n_actions):
                top = max(top, X[nxt[s, k], j])
            gain = top - E[s, j]
            value[s, j] = max(gain, 0.0)
            policy[s, j] = -1
            if gain > limit[j]:
                least = top - min(limit[j], narrow * gain)
                for k in range(n_actions):
                    if X[nxt[s, k], j] >= least:
                        policy[s, j] = k
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
