"""Expected steps from every state to every goal, deterministic moves, from one inverse (paper, Appendix B).

Each choice at state s has a weight w; N(s) is their sum. With h(g) = 0, the steps h to goal g obey, for s != g,
``N h(s) - sum w h(s') = K(s, g) - sum_o w [o's way from s leads through g] h(t_o(g))``, where K is the cost of one
decision, in steps until the choice ends or g is touched. The left side, M h, does not depend on the goal, and all ways
of option o through g end in one state t_o(g). So one inverse ``Y = (M + 11')^-1`` serves all goals, and each goal adds
a small system in its h(t). The row of g itself is no equation: its entry on the right makes the right side orthogonal
to the stationary weights ``1'Y``, as M h is.

Every answer is proved: M with its ways cut at g is an M-matrix, so a residual of at most ``e K(s, g)`` in every row
means a relative error of at most e in every entry. The residual is also the right side of a refinement.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Upper bound of the relative rounding error of one operation.
UNIT = 1.2e-16

Array = NDArray[np.float64]
Ints = NDArray[np.int32]


class Ways(NamedTuple):
    """Paths of options, each array ``(k, S)``: next state (-1: stops), end, and states farthest from the end first."""

    step: Ints
    end: Ints
    order: Ints


class _Ends(NamedTuple):
    """Ends of the ways that lead from elsewhere through goals.

    ``slot (k, S)`` numbers the end of each option's way through a goal, equal ends alike; the slots
    of goal i are ``first[i]..first[i+1]-1``. ``target`` maps a slot to a column, and ``ends`` a column to the state.
    Entries of `slot` are negative where no way leads through a goal.
    """

    slot: Ints
    first: NDArray[np.int64]
    target: NDArray[np.uint32]
    ends: NDArray[np.intp]


def hitting(
    nxt: Ints, ways: Ways, weights: tuple[Array, Array], M: Array, K: Array, max_error: float, room: int
) -> tuple[Array, NDArray[np.intp]]:
    """Steps (start, goal) from one inverse for all goals, and the goals for which they cannot be proved.

    `weights` are those of an action and of an option at each state; M is overwritten. Small systems are solved in
    groups of at most `room` numbers, and solutions refined until no relative error exceeds `max_error`.
    """
    n = len(nxt)
    H, goals = np.zeros((n, n)), np.arange(n)
    M += 1.0
    try:
        Z = np.linalg.inv(M.T)
    except np.linalg.LinAlgError:
        return H, goals
    share = Z.sum(axis=1)
    step = max(1, room // max(1, len(ways.step)) ** 2)
    cost, right, worst = K, K.copy(), np.full(n, np.inf)
    while True:
        # An entry that is not a number will not be proved.
        with np.errstate(all="ignore"):
            P = Z.T @ right
            for low in range(0, len(goals), step):
                _right_sides(ways, weights[1], Z, share, goals, P, right, low, min(low + step, len(goals)))
            np.matmul(Z.T, right, out=P)
            P -= P[goals, np.arange(len(goals))]
        if cost is K:
            H = P
        else:
            P += H[:, goals]
            H[:, goals] = P
        bound = np.empty(len(goals))
        residuals(nxt, ways, weights, goals, cost, P, right, bound)
        # A solution that came nearer is refined, by solving for its residual.
        again = (bound > max_error) & (bound < 0.1 * worst[goals])
        worst[goals] = bound
        if not again.any():
            return H, np.flatnonzero(~(worst <= max_error))
        goals, right = goals[again], np.compress(again, right, axis=1)
        cost = K.take(goals, axis=1)


@njit(cache=True, nogil=True, error_model="numpy")
def add_moves(nxt, weight, M, K):  # type: ignore[no-untyped-def]
    """Add the primitive actions to M and K; `weight` is that of one action at each state."""
    n, n_actions = nxt.shape
    for s in range(n):
        for a in range(n_actions):
            M[s, s] += weight[s]
            M[s, nxt[s, a]] -= weight[s]
        for g in range(n):
            K[s, g] += weight[s] * n_actions


@njit(cache=True, nogil=True, error_model="numpy")
def add_option(step, length, end, M, K):  # type: ignore[no-untyped-def]
    """Add one option to M and K, with weight 1."""
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
    # Farthest first, so that a state is complete before it is passed on.
    for i in range(n):
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
    # Two rows at a time: half the memory traffic.
    for i in range(0, n - 1, 2):
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
def _find_ends(step, end, goals):  # type: ignore[no-untyped-def]
    """Number the ends of the ways through goals, those of a goal in the order of the options."""
    k, n = step.shape
    slot = np.full((k, n), -1, dtype=np.int32)
    for o in range(k):
        for s in range(n):
            g = step[o, s]
            if g >= 0 and step[o, g] >= 0:
                slot[o, g] = 0
    column, ends, n_ends = np.full(n, -1, dtype=np.int64), np.empty(n, dtype=np.int64), 0
    last = np.full(n, -1, dtype=np.int64)
    first = np.zeros(len(goals) + 1, dtype=np.int64)
    # Unsigned: an index that needs no test for negative numbers.
    target = np.empty(k * len(goals), dtype=np.uint32)
    for i in range(len(goals)):
        n_slots = first[i]
        for o in range(k):
            if slot[o, goals[i]] == 0:
                t = end[o, goals[i]]
                if column[t] < 0:
                    column[t], ends[n_ends] = n_ends, t
                    n_ends += 1
                if last[t] < first[i]:
                    last[t], target[n_slots] = n_slots, column[t]
                    n_slots += 1
                slot[o, goals[i]] = last[t]
        first[i + 1] = n_slots
    return _Ends(slot, first, target[: first[-1]], ends[:n_ends])


@njit(cache=True, nogil=True, error_model="numpy")
def _stationary(share, R, weight):  # type: ignore[no-untyped-def]
    """Fill the stationary weight of each column of R."""
    weight[:] = 0.0
    for s in range(len(share)):
        for i in range(len(weight)):
            weight[i] += share[s] * R[s, i]


@njit(cache=True, nogil=True, error_model="numpy")
def _gather(ways, found, option_weight, Z, V, goals, corner, B, mass):  # type: ignore[no-untyped-def]
    """Pass all options, and add to the small systems of the goals.

    With F the ways of a goal that end in t, B holds (Y F)(t') - (Y F)(g) in row t and column t' of each goal's
    system, which begins at `corner`; `mass` holds the stationary weight of F.
    """
    step, _, order = ways
    slots, first, target, ends = found
    k, n = step.shape
    n_ends = len(ends)
    Q = np.empty_like(V)
    here = np.empty(n)
    for o in range(k):
        _below(step[o], order[o], V, Q)
        for g in range(n):
            here[g] = option_weight[g] * Z[g, g]
        for s in range(n):
            g = step[o, s]
            while g >= 0 and step[o, g] >= 0:
                here[g] += option_weight[s] * Z[s, g]
                g = step[o, g]
        for i in range(len(goals)):
            g = goals[i]
            slot = slots[o, g]
            if slot >= 0:
                f = first[i]
                count = first[i + 1] - f
                c = corner[i] + (slot - f) * count
                x, z, columns = B[c : c + count], Q[g], target[f : f + count]
                for j in range(count):
                    x[j] += z[columns[j]] - here[g]
                mass[slot] += z[n_ends]


@njit(cache=True, nogil=True, error_model="numpy")
def _solve_goals(found, goals, corner, B, mass, Z, share, P, weight):  # type: ignore[no-untyped-def]
    """h(t) of each goal's slots, from its small system.

    The column of P of a goal is ``Y R`` and `weight` its stationary weight.
    """
    _, first, target, ends = found
    value = np.empty(len(target))
    lift = np.empty(len(target))
    for i in range(len(goals)):
        g, f, last = goals[i], first[i], first[i + 1]
        G = B[corner[i] : corner[i + 1]].reshape(last - f, last - f)
        for j in range(f, last):
            t = ends[target[j]]
            lift[j] = (Z[g, t] - Z[g, g]) / share[g]
            value[j] = P[t, i] - P[g, i] - lift[j] * weight[i]
        for r in range(last - f):
            x = G[r]
            for j in range(last - f):
                x[j] -= lift[f + j] * mass[f + r]
            x[r] += 1.0
        _solve(G, value[f:last])
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def _spread(step, slot, option_weight, goals, value, R):  # type: ignore[no-untyped-def]
    """Pass all options again, and take each goal's h(t) off its right side."""
    k, n = step.shape
    number = np.full(n, -1, dtype=np.int64)
    for i in range(len(goals)):
        number[goals[i]] = i
    here = np.empty(n)
    for o in range(k):
        for g in goals:
            if slot[o, g] >= 0:
                here[g] = value[slot[o, g]]
        for s in range(n):
            g = step[o, s]
            while g >= 0 and step[o, g] >= 0:
                if number[g] >= 0:
                    R[s, number[g]] -= option_weight[s] * here[g]
                g = step[o, g]


@njit(cache=True, nogil=True, error_model="numpy")
def _right_sides(ways, option_weight, Z, share, goals, P, R, low, high):  # type: ignore[no-untyped-def]
    """Put the h(t) into right sides R (state, goal): then ``Y R`` is the solution, up to one number per goal.

    Of the goals, those numbered low..high-1 are treated, all others left as they are.

    `Z` is Y transposed, `share` the stationary weights, `P` is ``Y R`` for the given R. Options are passed twice:
    first to gather each goal's small system, then to spread its solution.
    """
    goals, P, R = goals[low:high], P[:, low:high], R[:, low:high]
    n, q = len(Z), len(goals)
    found = _find_ends(ways.step, ways.end, goals)
    first, ends = found.first, found.ends
    # Of Z only the columns of ends matter; the last column is the stationary weight.
    V = np.empty((n, len(ends) + 1))
    for s in range(n):
        for j in range(len(ends)):
            V[s, j] = option_weight[s] * Z[s, ends[j]]
        V[s, len(ends)] = option_weight[s] * share[s]
    corner = np.zeros(q + 1, dtype=np.int64)
    for i in range(q):
        corner[i + 1] = corner[i] + (first[i + 1] - first[i]) ** 2
    B, mass = np.zeros(corner[q]), np.zeros(first[q])
    _gather(ways, found, option_weight, Z, V, goals, corner, B, mass)
    weight = np.empty(q)
    _stationary(share, R, weight)
    value = _solve_goals(found, goals, corner, B, mass, Z, share, P, weight)
    _spread(ways.step, found.slot, option_weight, goals, value, R)
    for i in range(q):
        R[goals[i], i] = 0.0
    _stationary(share, R, weight)
    for i in range(q):
        R[goals[i], i] = -weight[i] / share[goals[i]]


@njit(cache=True, nogil=True, error_model="numpy")
def residuals(nxt, ways, weights, goals, K, H, left, bound):  # type: ignore[no-untyped-def]
    """Fill the residuals `left` (state, goal), and `bound`: the relative error that no entry of H exceeds.

    `weights` are those of an action and of an option at each state. K, H and `left` have one column per goal. Where
    nothing is proved, `bound` is inf.
    """
    n, n_actions = nxt.shape
    step, end, _ = ways
    action_weight, option_weight = weights
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
        action, option = action_weight[s], option_weight[s]
        v = left[s]
        for i in range(q):
            v[i] = 0.0
        for a in range(n_actions):
            x = H[nxt[s, a]]
            for i in range(q):
                v[i] += action * x[i]
        for o in range(k):
            g = step[o, s]
            if g < 0:
                continue
            choices += 1
            x = H[end[o, s]]
            for i in range(q):
                v[i] += option * x[i]
            while step[o, g] >= 0:
                if number[g] >= 0:
                    v[number[g]] -= option * x[number[g]]
                g = step[o, g]
        total = action * n_actions + option * (choices - n_actions)
        rounding = (2.0 * choices + 4.0) * 2.0 * total * UNIT
        for i in range(q):
            v[i] = K[s, i] - (total * H[s, i] - v[i])
            if goals[i] == s:
                v[i] = 0.0
            else:
                e = (abs(v[i]) + rounding * top[i]) / K[s, i]
                # Also where e is not a number.
                if not e <= bound[i]:
                    bound[i] = e if e < np.inf else np.inf
