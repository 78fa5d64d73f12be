"""Hitting times without a subtraction, so that every digit is right however large they are (GTH elimination).

The walk lives on decisions (a state) and on pairs (state, running option). A row says where a place leads, as weights
on other places, and a cost in primitive steps: ``(sum w) h = cost + sum w h``. A place is taken out by putting its row
in the place of every mention of it; the weight it keeps on itself is dropped, and the sum of the others is its
diagonal (Grassmann, Taksar and Heyman, 1985). Sums, products and quotients of positive numbers keep their relative
accuracy, whatever the condition of the system.

A goal ends the walk at its decision and at all its pairs. All goals share their work by halving: to serve one half
take out the states of the other half, and so on down to one goal. States where options end are kept to the last, so
that a running option always leads either to a pair of its own or to such an end.

Arrays are transposed (column, row): taking a column out adds whole, contiguous lines. The last column is the cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Places taken out together, in one pass over memory.
PANEL = 16
# A smaller sum of weights has lost digits to underflow.
SMALLEST = 1e-290

Array = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]


@njit(cache=True, nogil=True, error_model="numpy")
def eliminate(systems, low, high, whole):  # type: ignore[no-untyped-def]
    """Take the places low..high-1 out of each system (column, row), in place; False where the weights underflow.

    Their columns end as zeros. With `whole` their own rows end as their weights (summing to 1) on what is left.
    """
    out = np.empty(PANEL)
    for q in range(len(systems)):
        Z = systems[q]
        cols, rows = Z.shape
        for a in range(low, high, PANEL):
            b = min(a + PANEL, high)
            w = b - a
            # Rows of the panel on [itself | columns before | columns after].
            X = np.empty((w, w + low + cols - b))
            for i in range(w):
                x = X[i]
                for c in range(w):
                    x[c] = Z[a + c, a + i]
                for c in range(low):
                    x[w + c] = Z[c, a + i]
                for c in range(b, cols):
                    x[w + low + c - b] = Z[c, a + i]
            for i in range(w):
                x = X[i, i + 1 :]
                total = 0.0
                for j in range(len(x) - 1):
                    total += x[j]
                if not total > SMALLEST:
                    return False
                out[i] = 1.0 / total
                for r in range(i + 1, w):
                    f = X[r, i] * out[i]
                    if f != 0.0:
                        y = X[r, i + 1 :]
                        for j in range(len(x)):
                            y[j] += f * x[j]
            for i in range(w - 1, -1, -1):
                y = X[i, w:]
                for r in range(i + 1, w):
                    f = X[i, r]
                    if f != 0.0:
                        x = X[r, w:]
                        for j in range(len(y)):
                            y[j] += f * x[j]
                for j in range(len(y)):
                    y[j] *= out[i]
            for j in range(low + cols - b):
                z = Z[j if j < low else b + j - low]
                for i in range(w):
                    f = X[i, w + j]
                    if f != 0.0:
                        x = Z[a + i]
                        for r in range(a if whole else low):
                            z[r] += f * x[r]
                        for r in range(b, rows):
                            z[r] += f * x[r]
                for i in range(w):
                    z[a + i] = X[i, w + j]
            for i in range(a, b):
                for r in range(rows):
                    Z[i, r] = 0.0
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _pour(chains, drop, e, first, m, decisions, Z, W):  # type: ignore[no-untyped-def]
    """Put the rows of e dropped pairs of each option in the place of every mention in Z; W takes the sums.

    Columns of a chain: pairs, ends, cost. Of Z: decisions (ends first), pairs option by option, cost; W has m pairs.
    """
    k, cols, b = chains.shape
    for o in range(k):
        for c in range(m + cols - b):
            z = W[decisions + o * m + c if c < m else (c - m if c < m + cols - b - 1 else -1)]
            for i in range(drop, drop + e):
                f = chains[o, first + c if c < m else b + c - m, i]
                if f != 0.0:
                    x = Z[decisions + o * b + i]
                    for r in range(len(z)):
                        z[r] += f * x[r]


@njit(cache=True, nogil=True, error_model="numpy")
def _chain(indptr, indices, data, n_actions, policy, place, spot, chain):  # type: ignore[no-untyped-def]
    """Fill the chain of one option: where each pair leads in one step, on [pairs | ends | cost]."""
    n = len(policy)
    for c in range(len(chain)):
        for i in range(n):
            chain[c, i] = 0.0
    for s in range(n):
        i = spot[s]
        if policy[s] < 0:
            # Nothing leads to this pair: any row will do.
            chain[n, i] = 1.0
            continue
        chain[-1, i] = 1.0
        q = s * n_actions + policy[s]
        for x in range(indptr[q], indptr[q + 1]):
            t = indices[x]
            chain[spot[t] if policy[t] >= 0 else n + place[t], i] += data[x]


def hitting(
    table: tuple[Ints, Ints, Array], policy: Ints, weights: tuple[Array, Array], goals: Ints, start: Array
) -> Array | None:
    """Expected steps ``(r, len(goals))`` from each start to each goal, or None where weights underflow.

    Parameters
    ----------
    table
        ``indptr, indices, data`` of the transitions ``(S * A, S)``.
    policy
        ``(k, S)``; every option ends from everywhere.
    weights
        ``(S,)`` weight of each action and of each option that may start, at each state.
    goals
        States to reach.
    start
        ``(r, S)`` distributions to start from.
    """
    policy = policy[(policy >= 0).any(axis=1)]
    k, n = policy.shape
    n_actions = (len(table[0]) - 1) // n
    origin, action = np.divmod(np.repeat(np.arange(n * n_actions), np.diff(table[0])), n_actions)
    moves = np.zeros((n, n))
    np.add.at(moves, (origin, table[1]), table[2])
    moves *= weights[0][:, None]
    is_end = np.zeros(n, dtype=bool)
    for row in policy:
        reached = table[1][row[origin] == action]
        is_end[reached[row[reached] < 0]] = True
    ends = np.flatnonzero(is_end)
    m, tau = len(goals), len(ends)
    e = n - m
    place = np.full(n, -1)
    place[ends] = np.arange(tau)
    wanted = np.zeros(n, dtype=bool)
    wanted[goals] = True
    # Pairs: the goals come last.
    order = np.concatenate([np.flatnonzero(~wanted), goals])
    spot = np.empty(n, dtype=np.int64)
    spot[order] = np.arange(n)
    free = order[place[order] < 0]
    # Decisions: first the ends; the goals come last.
    row = np.concatenate([ends, free])
    gap = int((~wanted[free]).sum())
    Z = np.zeros((n + k * m + 1, n + len(start)))
    Z[:n, :n] = moves[np.ix_(row, row)].T
    Z[:n, n:] = start[:, row].T
    Z[-1, :n] = n_actions * weights[0][row]
    rank = np.empty(n, dtype=np.int64)
    rank[row] = np.arange(n)
    R = np.empty((k, m + tau + 1, m))
    chain = np.empty((1, n + tau + 1, n))
    for o in range(k):
        _chain(*table, n_actions, policy[o], place, spot, chain[0])
        if not eliminate(chain, 0, e, True):
            return None
        R[o] = chain[0, e:, e:]
        running = policy[o, order[:e]] >= 0
        states = order[:e][running]
        rows = rank[states]
        through = weights[1][states] * chain[0, e:, :e][:, running]
        Z[n + o * m : n + (o + 1) * m, rows] += through[:m]
        Z[:tau, rows] += through[m:-1]
        Z[-1, rows] += through[-1]
        here = np.flatnonzero(policy[o, goals] >= 0)
        Z[n + o * m + here, rank[goals[here]]] += weights[1][goals[here]]
    return _shared(R, Z, tau, tau + gap, place[goals], start.shape[0])


def _shared(R: Array, Z: Array, tau: int, gap: int, place: Ints, starts: int) -> Array | None:
    """Halve the goals until each stands alone; see `hitting`.

    The first elimination takes the decisions tau..gap-1 out, which no goal needs.
    """
    if not eliminate(Z[None], tau, gap, False):
        return None
    k, m = len(R), len(place)
    out = np.empty((starts, m))
    stack = [(0, m, R, _cut(Z, tau, gap))]
    while stack:
        low, high, R, Z = stack.pop()
        free = place[low:high] < 0
        decisions = tau + int(free.sum())
        if high - low == 1:
            me = tau if free[0] else int(place[low])
            Z[me] += Z[decisions:-1].sum(axis=0)
            Z[decisions:-1] = 0.0
            if not (eliminate(Z[None], 0, me, False) and eliminate(Z[None], me + 1, decisions, False)):
                return None
            out[:, low] = Z[-1, decisions:]
            continue
        b = high - low
        half = b // 2
        left = tau + int(free[:half].sum())
        for drop, e, first, lost in ((half, b - half, 0, (left, decisions)), (0, half, half, (tau, left))):
            kept = slice(first, first + b - e)
            chains = R.copy()
            if not eliminate(chains, drop, drop + e, True):
                return None
            pairs = Z[decisions:-1].reshape(k, b, Z.shape[1])[:, kept].reshape(k * (b - e), Z.shape[1])
            W = np.concatenate([Z[:decisions], pairs, Z[-1:]])
            _pour(chains, drop, e, first, b - e, decisions, Z, W)
            if not eliminate(W[None], *lost, False):
                return None
            rest = np.concatenate([chains[:, kept, kept], chains[:, b:, kept]], axis=1)
            stack.append((low + first, low + first + b - e, rest, _cut(W, *lost)))
    return out


def _cut(Z: Array, low: int, high: int) -> Array:
    """Copy of Z without the rows and columns low..high-1."""
    top = np.concatenate([Z[:low], Z[high:]])
    return np.concatenate([top[:, :low], top[:, high:]], axis=1)
