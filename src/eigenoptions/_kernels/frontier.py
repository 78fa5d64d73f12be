"""Exploration of a table by the eigenvector that points to what is unknown; see `discovery.frontier`.

What was seen is a list of outcomes per pair of a state and an action. An action that was tried n times leads to the
unknown with chance ``prior / (n + prior)``, so an untried one surely. `nearness` is z(s) = E[gamma^T] for a random walk
that needs T steps to the unknown. It is updated where the walk is, by sweeps over the states around it, the farthest
first, from the values it had before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from eigenoptions._kernels.walking import GOLDEN, land, mix, one_of

# Actions whose values differ by less, relative to the larger one, are equal.
TIE = 1e-9
# States per decision over which the work of an update is spread, where nothing new was seen.
STATES_PER_DECISION = 64


class Known(NamedTuple):
    """What was seen, changed in place.

    Lists of outcomes: entry ``head[s * A + a]`` is the first (-1: none), `link` the next one, `after` the state that it
    leads to and `times` how often it did; `tries` is the number of tries of each row. `queue`, `depth` and `mark` are
    those of the search around a state. `totals` is [states seen, entries, last mark, decisions that may pass before an
    update].
    """

    n_actions: int
    gamma: float
    prior: float
    sweeps: int
    tries: NDArray[np.int64]
    head: NDArray[np.int64]
    link: NDArray[np.int64]
    after: NDArray[np.int64]
    times: NDArray[np.int64]
    nearness: NDArray[np.float64]
    queue: NDArray[np.int64]
    depth: NDArray[np.int64]
    mark: NDArray[np.int64]
    seen: NDArray[np.bool_]
    totals: NDArray[np.int64]


@njit(cache=True, nogil=True)
def note(known, s, a, t):  # type: ignore[no-untyped-def]
    """Record that action a led from s to t."""
    row = s * known.n_actions + a
    known.tries[row] += 1
    for x in (s, t):
        if not known.seen[x]:
            known.seen[x] = True
            known.nearness[x] = known.gamma
            known.totals[0] += 1
    i = known.head[row]
    while i >= 0:
        if known.after[i] == t:
            known.times[i] += 1
            return
        i = known.link[i]
    i = known.totals[1]
    known.after[i], known.times[i] = t, 1
    known.link[i], known.head[row] = known.head[row], i
    known.totals[1] = i + 1
    known.totals[3] = 0


@njit(cache=True, nogil=True)
def worth(known, row):  # type: ignore[no-untyped-def]
    """Nearness of the unknown after an action: 1 if it was never tried."""
    n = known.tries[row]
    if n == 0:
        return 1.0
    total = known.prior
    i = known.head[row]
    while i >= 0:
        total += known.times[i] * known.nearness[known.after[i]]
        i = known.link[i]
    return total / (n + known.prior)


@njit(cache=True, nogil=True)
def around(known, s):  # type: ignore[no-untyped-def]
    """States that s can reach, by distance, up to about twice the distance of the nearest untried action."""
    A = known.n_actions
    known.totals[2] += 1
    stamp = known.totals[2]
    known.queue[0], known.depth[s], known.mark[s] = s, 0, stamp
    first, end = 0, 1
    most = np.int64(-1)
    while first < end:
        x = known.queue[first]
        first += 1
        d = known.depth[x]
        if most >= 0 and d >= most:
            continue
        for row in range(x * A, x * A + A):
            if known.tries[row] == 0 and most < 0:
                most = 2 * d + 2
            i = known.head[row]
            while i >= 0:
                t = known.after[i]
                if known.mark[t] != stamp:
                    known.queue[end], known.depth[t], known.mark[t] = t, d + 1, stamp
                    end += 1
                i = known.link[i]
    return end


@njit(cache=True, nogil=True)
def update(known, s):  # type: ignore[no-untyped-def]
    """Sweep over the states around s, the farthest first and back."""
    A = known.n_actions
    n = around(known, s)
    for k in range(known.sweeps):
        for j in range(n):
            x = known.queue[n - 1 - j] if k % 2 == 0 else known.queue[j]
            total = 0.0
            for row in range(x * A, x * A + A):
                total += worth(known, row)
            known.nearness[x] = known.gamma * total / A
    known.totals[3] = n // STATES_PER_DECISION


@njit(cache=True, nogil=True)
def choose(known, s, x):  # type: ignore[no-untyped-def]
    """The action after which the unknown is nearest, by the random number x among equal ones."""
    A = known.n_actions
    if known.tries[s * A : s * A + A].min() > 0:
        if known.totals[3] <= 0:
            update(known, s)
        known.totals[3] -= 1
    best, count = -1.0, 0
    for a in range(A):
        v = worth(known, s * A + a)
        if v > best + TIE * best:
            best, count = v, 1
        elif v >= best - TIE * best:
            count += 1
    pick = one_of(x, count)
    for a in range(A):
        v = worth(known, s * A + a)
        if v >= best - TIE * best:
            if pick == 0:
                return a
            pick -= 1
    return A - 1


@njit(cache=True, nogil=True)
def decide(known, before, taken, states, counter, actions):  # type: ignore[no-untyped-def]
    """Actions (n,) for states (n,), after recording where the last actions led; `before` may be empty."""
    for j in range(len(before)):
        note(known, before[j], taken[j], states[j])
    z = counter
    for j in range(len(states)):
        z += GOLDEN
        actions[j] = choose(known, states[j], mix(z))


@njit(cache=True, nogil=True)
def roam(moves, known, episodes, counter, state, action, after):  # type: ignore[no-untyped-def]
    """Explore a table for N steps; states, actions and next states go into the arrays (N,)."""
    indptr, indices, cumulative, n_actions = moves
    begin, starts, goal, limit = episodes
    z = counter
    s, age, ended = np.int64(begin), np.int64(0), np.int64(-1)
    for i in range(len(state)):
        if s < 0:
            z += GOLDEN
            s, age = np.int64(starts[one_of(mix(z), len(starts))]), np.int64(0)
            if ended >= 0:
                # A terminal state leads to the next start, whatever the action.
                for a in range(n_actions):
                    note(known, ended, a, s)
        z += GOLDEN
        a = choose(known, s, mix(z))
        row = s * n_actions + a
        t = np.int64(indices[indptr[row]])
        if indptr[row + 1] - indptr[row] > 1:
            z += GOLDEN
            t = np.int64(land(row, indptr, indices, cumulative, mix(z)))
        note(known, s, a, t)
        state[i], action[i], after[i] = s, a, t
        age += 1
        ended = t if t == goal else np.int64(-1)
        s = np.int64(-1) if t == goal or age >= limit else t
