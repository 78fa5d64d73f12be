"""Expected steps from every state to every goal, deterministic moves, from one inverse (paper, Appendix B).

With N(s) choices at state s and h(g) = 0, the steps h to goal g obey, for s != g,
``N h(s) - sum h(s') = K(s, g) - sum_o [o's way from s leads through g] h(t_o(g))``, where K is the cost of one
decision, in steps until the choice ends or g is touched. The left side, M h, does not know the goal, and all ways of
option o through g end in one state t_o(g). So one inverse ``Y = (M + 11')^-1`` serves all goals, and each goal adds a
small system in its h(t). The row of g itself is no equation: its entry on the right makes the right side orthogonal
to the stationary weights ``1'Y``, as M h is.

Every answer is proved: M with its ways cut at g is an M-matrix, so a residual of at most ``e K(s, g)`` in every row
means a relative error of at most e in every entry. The residual also refines the answer, as any right side would do.
"""

from __future__ import annotations

import numpy as np
from numba import njit

UNIT = 1.2e-16  # rounding of one operation, a little generously


@njit(cache=True, nogil=True, error_model="numpy")
def add_moves(nxt, M, K):  # type: ignore[no-untyped-def]
    """Add the primitive actions to M and K."""
    n, n_actions = nxt.shape
    for s in range(n):
        for a in range(n_actions):
            M[s, s] += 1.0
            M[s, nxt[s, a]] -= 1.0
        for g in range(n):
            K[s, g] += n_actions


@njit(cache=True, nogil=True, error_model="numpy")
def add_option(step, length, end, M, K):  # type: ignore[no-untyped-def]
    """Add one option to M and K."""
    n = len(step)
    for s in range(n):
        if step[s] >= 0:
            M[s, s] += 1.0
            M[s, end[s]] -= 1.0
            for g in range(n):
                K[s, g] += length[s]
            g = step[s]
            while step[g] >= 0:
                K[s, g] -= length[g]
                g = step[g]


@njit(cache=True, nogil=True, error_model="numpy")
def _below(step, order, V, Q):  # type: ignore[no-untyped-def]
    """Q[g] = sum of V over g and the states whose way leads through g, for each g that has such states."""
    n, width = V.shape
    begun = np.zeros(n, dtype=np.uint8)
    for i in range(n):  # farthest first, so that a state is complete before it is passed on
        s = order[i]
        p = step[s]
        if p < 0:
            break
        if step[p] >= 0:
            x = Q[s] if begun[s] else V[s]
            y = Q[p]
            z = y if begun[p] else V[p]
            for j in range(width):
                y[j] = z[j] + x[j]
            begun[p] = 1


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(G, b):  # type: ignore[no-untyped-def]
    """Solution of ``x G = b`` in b; G is overwritten.

    Without row exchanges: G is the unit matrix plus expected visits, and elimination makes one goal's options stop
    after the other, which only takes visits away. So entries never grow and pivots stay at least 1.
    """
    n = len(b)
    for i in range(0, n - 1, 2):  # two rows at a time: half the traffic
        above, below = G[i], G[i + 1]
        a = 1.0 / above[i]
        f = below[i] * a
        below[i] = f
        x, y = above[i + 1 :], below[i + 1 :]
        for j in range(len(x)):
            y[j] -= f * x[j]
        c = 1.0 / below[i + 1]
        x, y = above[i + 2 :], below[i + 2 :]
        for r in range(i + 2, n):
            row = G[r]
            f = row[i] * a
            g = (row[i + 1] - f * above[i + 1]) * c
            row[i] = f
            row[i + 1] = g
            z = row[i + 2 :]
            for j in range(len(x)):
                z[j] -= f * x[j] + g * y[j]
    for i in range(n):
        b[i] /= G[i, i]
        for j in range(i + 1, n):
            b[j] -= b[i] * G[i, j]
    for i in range(n - 1, -1, -1):
        for j in range(i):
            b[j] -= b[i] * G[i, j]


@njit(cache=True, nogil=True, error_model="numpy")
def right_sides(step, end, order, Z, share, goals, P, R, room):  # type: ignore[no-untyped-def]
    """Put the h(t) into right sides R (state, goal): then ``Y R`` is the answer, up to a number a goal.

    `Z` is Y transposed, `share` the stationary weights, `P` is ``Y R`` for R as it comes in; `order` (k, S) lists the
    states farthest from the end first. Options are passed twice: first to gather each goal's small system, then to
    spread its answer. Goals are taken in groups whose systems fit in `room` numbers.
    """
    k, n = step.shape
    number = np.full(n, -1, dtype=np.int64)
    for i in range(len(goals)):
        number[goals[i]] = i
    # Only ways that come from elsewhere matter to a goal. Their ends t are its slots; all ends are numbered too.
    inner = np.zeros((k, n), dtype=np.uint8)
    for o in range(k):
        for s in range(n):
            g = step[o, s]
            if g >= 0 and step[o, g] >= 0 and number[g] >= 0:
                inner[o, g] = 1
    column = np.full(n, -1, dtype=np.int32)
    ends = np.empty(n, dtype=np.int32)
    n_ends = 0
    first = np.zeros(len(goals) + 1, dtype=np.int64)
    slot = np.empty((k, n), dtype=np.int32)
    mark = np.full(n, -1, dtype=np.int32)
    target = np.empty(k * len(goals), dtype=np.uint32)  # unsigned: an index that needs no test
    for i in range(len(goals)):
        g = goals[i]
        count = 0
        for o in range(k):
            if inner[o, g]:
                t = end[o, g]
                if column[t] < 0:
                    column[t] = n_ends
                    ends[n_ends] = t
                    n_ends += 1
                if mark[t] < 0:
                    mark[t] = count
                    target[first[i] + count] = column[t]
                    count += 1
                slot[o, g] = mark[t]
        first[i + 1] = first[i] + count
        for j in range(count):
            mark[ends[target[first[i] + j]]] = -1
    # Of Z only the columns of ends matter; the last column is the stationary weight.
    V = np.empty((n, n_ends + 1))
    for s in range(n):
        for j in range(n_ends):
            V[s, j] = Z[s, ends[j]]
        V[s, n_ends] = share[s]
    weight = np.zeros(len(goals))  # stationary weight of R
    for s in range(n):
        for i in range(len(goals)):
            weight[i] += share[s] * R[s, i]
    value = np.empty(first[len(goals)])
    Q = np.empty_like(V)
    here = np.empty(n)
    low = 0
    while low < len(goals):
        high, size = low, 0
        corner = np.zeros(len(goals) - low + 1, dtype=np.int64)
        while high < len(goals) and (high == low or size + (first[high + 1] - first[high]) ** 2 <= room):
            size += (first[high + 1] - first[high]) ** 2
            high += 1
            corner[high - low] = size
        B = np.zeros(
            size
        )  # of each goal: (Y F)(t') - (Y F)(g) in row t, column t', with F the ways that end in t
        mass = np.zeros(first[high] - first[low])  # stationary weight of F
        for o in range(k):
            _below(step[o], order[o], V, Q)
            for g in range(n):
                here[g] = Z[g, g]
            for s in range(n):
                g = step[o, s]
                while g >= 0 and step[o, g] >= 0:
                    here[g] += Z[s, g]
                    g = step[o, g]
            for i in range(low, high):
                g = goals[i]
                if inner[o, g]:
                    f = first[i]
                    count = first[i + 1] - f
                    c = corner[i - low] + slot[o, g] * count
                    x, z, columns = B[c : c + count], Q[g], target[f : f + count]
                    for j in range(count):
                        x[j] += z[columns[j]] - here[g]
                    mass[f - first[low] + slot[o, g]] += z[n_ends]
        for i in range(low, high):
            g = goals[i]
            f = first[i]
            count = first[i + 1] - f
            G = B[corner[i - low] : corner[i - low + 1]].reshape(count, count)
            b = value[f : f + count]
            w = mass[f - first[low] : f - first[low] + count]
            lift = np.empty(count)
            for j in range(count):
                t = ends[target[f + j]]
                lift[j] = (Z[g, t] - Z[g, g]) / share[g]
                b[j] = P[t, i] - P[g, i] - lift[j] * weight[i]
            for r in range(count):
                x = G[r]
                for j in range(count):
                    x[j] -= lift[j] * w[r]
                x[r] += 1.0
            _solve(G, b)
        low = high
    for o in range(k):
        for g in range(n):
            if inner[o, g]:
                here[g] = value[first[number[g]] + slot[o, g]]
        for s in range(n):
            g = step[o, s]
            while g >= 0 and step[o, g] >= 0:
                if number[g] >= 0:
                    R[s, number[g]] -= here[g]
                g = step[o, g]
    weight[:] = 0.0
    for i in range(len(goals)):
        R[goals[i], i] = 0.0
    for s in range(n):
        for i in range(len(goals)):
            weight[i] += share[s] * R[s, i]
    for i in range(len(goals)):
        R[goals[i], i] = -weight[i] / share[goals[i]]


@njit(cache=True, nogil=True, error_model="numpy")
def residuals(nxt, step, end, goals, K, H, left, bound):  # type: ignore[no-untyped-def]
    """Fill what is left of the equations (state, goal), and `bound`: the relative error that no entry of H exceeds.

    K, H and `left` have a column for each of the goals. Where nothing is proved, `bound` is inf.
    """
    n, n_actions = nxt.shape
    k, q = len(step), len(goals)
    number = np.full(n, -1, dtype=np.int64)
    top = np.zeros(q)
    for i in range(q):
        number[goals[i]] = i
        bound[i] = 0.0
    for s in range(n):
        for i in range(q):
            x = abs(H[s, i])
            top[i] = max(top[i], x) if x < np.inf else np.inf
    for s in range(n):
        choices = n_actions
        v = left[s]
        for i in range(q):
            v[i] = 0.0
        for a in range(n_actions):
            x = H[nxt[s, a]]
            for i in range(q):
                v[i] += x[i]
        for o in range(k):
            g = step[o, s]
            if g < 0:
                continue
            choices += 1
            x = H[end[o, s]]
            for i in range(q):
                v[i] += x[i]
            while step[o, g] >= 0:
                if number[g] >= 0:
                    v[number[g]] -= x[number[g]]
                g = step[o, g]
        rounding = (2.0 * choices + 4.0) * 2.0 * choices * UNIT
        for i in range(q):
            v[i] = K[s, i] - (choices * H[s, i] - v[i])
            if goals[i] == s:
                v[i] = 0.0
            else:
                e = (abs(v[i]) + rounding * top[i]) / K[s, i]
                if not e <= bound[i]:  # also where e is not a number
                    bound[i] = e if e < np.inf else np.inf
