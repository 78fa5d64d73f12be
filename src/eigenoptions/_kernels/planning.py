"""Optimal values of many potentials at once, and the policies they give (paper, Section 3).

With u = v + e the Bellman equation with the terminate action reads
``u(s) = max(e(s), max_a sum_s' p(s'|s,a) x(s'))`` where ``x = (1 - gamma) e + gamma u`` is what arriving is worth.
Rounding is monotone, so every order of updates from ``u = e`` climbs to the same least fixed point, bit for bit:
the order (blocks, sweeps, renumbering) is free and chosen for speed only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Potentials advanced together, one cache line of float64. (A sweep over one alone waits for each value before the
# next: half the speed.)
LANES = 8
# States relaxed together until they rest: all of a small table, which takes fewer sweeps.
BLOCK, ONE_BLOCK_UP_TO_STATES = 64, 1024


class Moves(NamedTuple):
    """Deterministic dynamics in the order in which sweeps visit the states; see `moves`.

    Attributes
    ----------
    order
        ``(S,)`` state at each position.
    next
        ``(S, 4 m)`` position after each action; action 0 is repeated up to a multiple of four.
    indptr, indices
        For each block of positions, the other blocks with a move into it.
    block
        Positions per block.
    """

    order: NDArray[np.int32]
    next: NDArray[np.int32]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    block: int


def moves(order: NDArray[np.int32], nxt: NDArray[np.int32], block: int | None = None) -> Moves:
    """Dynamics as `plan` takes them, from an order of the states and the ``(S, A)`` moves between positions in it.

    `block` is the number of positions per block, by default chosen by the size of the table.
    """
    n, n_actions = nxt.shape
    actions = np.arange(-(-n_actions // 4) * 4)
    padded = np.ascontiguousarray(nxt[:, np.where(actions < n_actions, actions, 0)])
    if block is None:
        block = max(n, 1) if n <= ONE_BLOCK_UP_TO_STATES else BLOCK
    n_blocks = -(-n // block)
    if n_blocks <= 1:
        return Moves(order, padded, np.zeros(n_blocks + 1, dtype=np.int64), order[:0], block)
    pairs = np.unique((nxt // block).astype(np.int64) * n_blocks + np.arange(n)[:, None] // block)
    into, origin = np.divmod(pairs, n_blocks)
    into, origin = into[into != origin], origin[into != origin]
    indptr = np.searchsorted(into, np.arange(n_blocks + 1))
    return Moves(order, padded, indptr, origin.astype(np.int32), block)


@njit(cache=True, nogil=True, inline="always")
def _rise(a, b, c, d, e, x, gamma):  # type: ignore[no-untyped-def]
    """One backup of all lanes of a state over four moves; the number of lanes in which the value rose.

    The rows are arguments and the lanes one plain loop: so the compiler emits vector instructions.
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


@njit(cache=True, nogil=True)
def climb(moves, E, X, gamma):  # type: ignore[no-untyped-def]
    """Raise X (n, LANES) to the fixed point for deterministic moves; the number of state backups done.

    Blocks of states are relaxed back and forth until they rest; a block is visited again only when a block
    it can move into has risen.
    """
    nxt = moves.next
    n = len(nxt)
    n_blocks = len(moves.indptr) - 1
    dirty = np.ones(n_blocks, dtype=np.bool_)
    backups = 0
    forward = True
    waiting = True
    while waiting:
        waiting = False
        for i in range(n_blocks):
            b = i if forward else n_blocks - 1 - i
            if not dirty[b]:
                continue
            dirty[b] = False
            low, high = b * moves.block, min(n, (b + 1) * moves.block)
            rose = 0
            up = forward
            moved = 1
            while moved > 0:
                moved = 0
                for r in range(high - low):
                    s = low + r if up else high - 1 - r
                    for k in range(0, nxt.shape[1], 4):
                        moved += _rise(
                            X[nxt[s, k]],
                            X[nxt[s, k + 1]],
                            X[nxt[s, k + 2]],
                            X[nxt[s, k + 3]],
                            E[s],
                            X[s],
                            gamma,
                        )
                backups += high - low
                rose += moved
                up = not up
            if rose > 0:
                for r in range(moves.indptr[b], moves.indptr[b + 1]):
                    dirty[moves.indices[r]] = True
                    waiting = True
        forward = not forward
    return backups


@njit(cache=True, nogil=True, inline="always")
def _most(a, b, c, d, top):  # type: ignore[no-untyped-def]
    """Raise `top` to the largest of four rows."""
    for j in range(LANES):
        p = a[j] if a[j] > b[j] else b[j]
        q = c[j] if c[j] > d[j] else d[j]
        u = p if p > q else q
        top[j] = u if u > top[j] else top[j]


@njit(cache=True, nogil=True, inline="always")
def _first(a, b, c, d, k, least, action):  # type: ignore[no-untyped-def]
    """Set `action` to the first of k, k + 1, k + 2, k + 3 that is worth `least`; floats, as wide as the values."""
    for j in range(LANES):
        u = action[j]
        u = k + 3.0 if d[j] >= least[j] else u
        u = k + 2.0 if c[j] >= least[j] else u
        u = k + 1.0 if b[j] >= least[j] else u
        action[j] = k if a[j] >= least[j] else u


@njit(cache=True, nogil=True)
def plan(moves, potentials, tolerance, gamma, policy, value):  # type: ignore[no-untyped-def]
    """Fill policy and value (m, S) for potentials (m, S) and deterministic moves; the number of state backups done.

    The policy is -1 where no action is worth more than `tolerance` (m,), else the first of the best actions.
    """
    nxt = moves.next
    n = len(nxt)
    E, X = np.empty((n, LANES)), np.empty((n, LANES))
    limit, top, least, action = np.zeros((4, LANES))
    narrow = 0.25 * (1.0 - gamma)
    backups = 0
    for first in range(0, len(potentials), LANES):
        count = min(LANES, len(potentials) - first)
        # Loops, since numba takes seconds to compile an assignment of an array to a part of another.
        for j in range(count):
            limit[j] = tolerance[first + j]
        for i in range(n):
            s = moves.order[i]
            for j in range(LANES):
                # lanes without an option hold zeros, which never rise
                E[i, j] = X[i, j] = potentials[first + j, s] if j < count else 0.0
        backups += climb(moves, E, X, gamma)
        for i in range(n):
            s = moves.order[i]
            top[:] = -np.inf
            for k in range(0, nxt.shape[1], 4):
                _most(X[nxt[i, k]], X[nxt[i, k + 1]], X[nxt[i, k + 2]], X[nxt[i, k + 3]], top)
            for j in range(LANES):
                gain = top[j] - E[i, j]
                slack = narrow * gain if narrow * gain < limit[j] else limit[j]
                least[j] = top[j] - slack if gain > limit[j] else np.inf
                action[j] = -1.0
            for k in range(nxt.shape[1] - 4, -1, -4):
                _first(X[nxt[i, k]], X[nxt[i, k + 1]], X[nxt[i, k + 2]], X[nxt[i, k + 3]], k, least, action)
            for j in range(count):
                policy[first + j, s] = np.int64(action[j])
                value[first + j, s] = max(top[j] - E[i, j], 0.0)
    return backups


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
def mean_lengths(nxt, policy, mean):  # type: ignore[no-untyped-def]
    """Fill the mean steps to the end (m,) over the states where each policy row (m, S) starts; inf if it never ends."""
    n = nxt.shape[0]
    length, end = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    for i in range(len(policy)):
        if run(nxt, policy[i], length, end) >= 0:
            mean[i] = np.inf
            continue
        total, starts = 0, 0
        for s in range(n):
            total += length[s]
            starts += 1 if length[s] > 0 else 0
        mean[i] = total / max(starts, 1)


@njit(cache=True, nogil=True)
def climb_stochastic(table, n_actions, E, X, gamma, tolerance, max_sweeps):  # type: ignore[no-untyped-def]
    """Raise X (n, m) for stochastic moves until no entry rises by more than `tolerance`; the number of sweeps.

    `table` is ``(indptr, indices, data)`` of the csr transition matrix.
    """
    indptr, indices, data = table
    n, lanes = E.shape
    best = np.empty(lanes)
    mean = np.empty(lanes)
    for sweep in range(max_sweeps):
        most = 0.0
        for i in range(n):
            s = i if sweep % 2 == 0 else n - 1 - i
            for j in range(lanes):
                best[j] = E[s, j]
            for row in range(s * n_actions, (s + 1) * n_actions):
                mean[:] = 0.0
                for r in range(indptr[row], indptr[row + 1]):
                    for j in range(lanes):
                        mean[j] += data[r] * X[indices[r], j]
                for j in range(lanes):
                    best[j] = max(best[j], mean[j])
            for j in range(lanes):
                x = (1.0 - gamma) * E[s, j] + gamma * best[j]
                most = max(most, x - X[s, j])
                X[s, j] = max(x, X[s, j])
        if most <= tolerance:
            return sweep + 1
    return max_sweeps
