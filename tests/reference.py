"""Slow, obvious twins of the compiled kernels, and exact answers to compare with: what tests believe."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from eigenoptions.options import solver

# Learning (Section 4.3) -------------------------------------------------------------------------------------


def splitmix(seed):
    """The numbers of SplitMix64, one at a time."""
    state = int(seed)
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        yield mix(state)


def mix(z):
    """The number that SplitMix64 makes of a counter."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def learn(
    mdp,
    policy,
    method,
    *,
    episodes,
    max_steps,
    alpha,
    gamma,
    epsilon,
    explore,
    seed,
    chance=None,
    follow=True,
):
    """One run of a learner with lists and loops; returns, learning returns, steps, evaluation steps, values.

    A choice is a number: primitive action c < A, else option c - A. Without `follow`, an option's first action is taken
    twice.
    """
    S, A = mdp.n_states, mdp.n_actions
    policy = [[int(a) for a in row] for row in policy]
    table = mdp.transition
    numbers = splitmix(seed)
    over_options = method != "q_learning"
    q = [[0.0] * (A + (len(policy) if over_options else 0)) for _ in range(S)]

    def menu(s):
        return [*range(A), *(A + o for o in range(len(policy)) if policy[o][s] >= 0)]

    def one_of(x, things):
        return things[(x % 2**32) * len(things) // 2**32]

    def random_choice(s, x):
        """A choice of the menu; with a chance, the high half of x decides between actions and options."""
        able = menu(s)[A:]
        if chance is None:
            return one_of(x, menu(s))
        return one_of(x, able if able and (x >> 32) / 2**32 < chance else list(range(A)))

    def action(c, s):
        return c if c < A else policy[c - A][s]

    def goes_on(c, s):
        return c >= A and policy[c - A][s] >= 0

    def best(s):
        return max(q[s][c] for c in (menu(s) if over_options else range(A)))

    def greedy(s, random):
        choices = menu(s) if over_options else list(range(A))
        x = next(numbers)
        unknown = over_options and chance is not None and best(s) == 0
        if unknown or (x >> 32) / 2**32 < random:
            # The high half of x is used up: a chance needs another number.
            return random_choice(s, x if chance is None else mix(x)) if over_options else one_of(x, choices)
        return one_of(x, [c for c in choices if q[s][c] == best(s)])

    def step(s, a):
        low, high = table.indptr[s * A + a], table.indptr[s * A + a + 1]
        if high - low == 1:
            return int(table.indices[low])
        u = (next(numbers) >> 11) / 2**53
        total = 0.0
        for r in range(low, high):
            total += float(table.data[r])
            if u < total:
                return int(table.indices[r])
        return int(table.indices[high - 1])

    def behave(s):
        return greedy(s, explore) if over_options else random_choice(s, next(numbers))

    def episode(choose, learning):
        s, taken, c, again = mdp.start, 0, 0, False
        while taken < max_steps and s != mdp.goal:
            if again:
                again = False
            elif taken == 0 or not follow or not goes_on(c, s):
                c = choose(s)
                origin, gain, discount = s, 0.0, 1.0
                a = action(c, s)
                again = not follow and c >= A
            else:
                a = action(c, s)
            t = step(s, a)
            taken += 1
            reward = 1.0 if t == mdp.goal else 0.0
            gain += discount * reward
            discount *= gamma
            if learning and method == "q_learning":
                q[s][a] += alpha * (reward + gamma * best(t) - q[s][a])
            elif learning and method == "intra_option_q_learning":
                targets = {a: best(t)}
                for o in menu(s)[A:]:
                    if action(o, s) == a:
                        targets[o] = q[t][o] if goes_on(o, t) else best(t)
                for o, rest in targets.items():
                    q[s][o] += alpha * (reward + gamma * rest - q[s][o])
            elif learning and (t == mdp.goal or taken == max_steps or not goes_on(c, t)):
                rest = q[t][c] if goes_on(c, t) else best(t)
                q[origin][c] += alpha * (gain + discount * rest - q[origin][c])
            s = t
        return float(s == mdp.goal), taken

    learned, evaluated = [], []
    for _ in range(episodes):
        learned.append(episode(behave, learning=True))
        evaluated.append(episode(lambda s: greedy(s, epsilon), learning=False))
    learned, evaluated = np.array(learned), np.array(evaluated)
    return evaluated[:, 0], learned[:, 0], learned[:, 1], evaluated[:, 1], np.array(q)


def choice_values(mdp, policy, gamma, sweeps=2000):
    """Exact values (S, A + n) of actions and options for reward 1 at the goal, by value iteration.

    An option's own equation is Q(s, o) = sum p(s' | s, o(s)) (r + gamma U(s', o)), with U = Q(s', o) while it
    goes on and max Q(s', .) where it stops. 0 where an option may not start, and at the goal.
    """
    S, A, n = mdp.n_states, mdp.n_actions, len(policy)
    P = mdp.transition.toarray().reshape(S, A, S)
    reward = P[:, :, mdp.goal]
    policy = np.asarray(policy, dtype=int).reshape(n, S)
    q = np.zeros((S, A + n))
    for _ in range(sweeps):
        v = q.max(axis=1)
        new = np.zeros_like(q)
        new[:, :A] = reward + gamma * P @ v
        for o in range(n):
            u = np.where(policy[o] >= 0, q[:, A + o], v)
            for s in np.flatnonzero(policy[o] >= 0):
                new[s, A + o] = reward[s, policy[o, s]] + gamma * P[s, policy[o, s]] @ u
        new[mdp.goal] = 0.0
        if np.array_equal(new, q):
            break
        q = new
    return q


def arrival_probability(mdp, policy, max_steps, chance=None):
    """Chance that the random behaviour over actions and options reaches the goal within `max_steps` steps.

    A state of the chain is (state, option running or none); decisions take no time.
    """
    S, A, n = mdp.n_states, mdp.n_actions, len(policy)
    P = mdp.transition.toarray().reshape(S, A, S)
    policy = np.asarray(policy, dtype=int).reshape(n, S)
    mass = np.zeros((S, n + 1))
    mass[mdp.start, n] = 1.0
    arrived = 0.0
    for _ in range(max_steps):
        new = np.zeros_like(mass)
        for s in range(S):
            able = np.flatnonzero(policy[:, s] >= 0)
            free = mass[s, n] + sum(mass[s, o] for o in range(n) if policy[o, s] < 0)
            action, option = shares(A, len(able), chance)
            new[:, n] += free * float(action) * P[s].sum(axis=0)
            for o in able:
                new[:, o] += (mass[s, o] + free * float(option)) * P[s, policy[o, s]]
        arrived += new[mdp.goal].sum()
        new[mdp.goal] = 0.0
        mass = new
    return arrived


# Samples (Section 5.1) ---------------------------------------------------------------------------------------


def incidence(before, after, *, dedupe=True):
    """T as the paper says it: a tuple in a set for each difference, a list of dense rows."""
    seen, rows = set(), []
    for phi, phi_next in zip(before, after, strict=True):
        row = tuple(float(b) - float(a) + 0.0 for a, b in zip(phi, phi_next, strict=True))
        if any(row) and not (dedupe and row in seen):
            seen.add(row)
            rows.append(row)
    return np.array(rows).reshape(len(rows), -1)


def wander(mdp, policy, *, steps, starts, goal, limit, seed, chance=None, begin=None):
    """Transitions of a walk with options, with lists and loops and the same random numbers as the kernel."""
    table, A = mdp.transition, mdp.n_actions
    numbers = splitmix(seed)
    s, option, age, walked = begin, None, 0, []
    for _ in range(steps):
        if s is None:
            s, option, age = int(starts[(next(numbers) >> 32) * len(starts) >> 32]), None, 0
        if option is not None and policy[option][s] < 0:
            option = None
        if option is None:
            x = next(numbers)
            may = [o for o in range(len(policy)) if policy[o][s] >= 0]
            use = len(may) / (A + len(may)) if chance is None else chance
            if may and (x >> 32) < use * 2**32:
                option = may[(x % 2**32) * len(may) >> 32]
            else:
                a = (x % 2**32) * A >> 32
        if option is not None:
            a = int(policy[option][s])
        low, high = table.indptr[s * A + a], table.indptr[s * A + a + 1]
        r = low
        if high - low > 1:
            u = (next(numbers) >> 11) / 2**53
            sums = np.cumsum(table.data[low:high])
            while r < high - 1 and u >= sums[r - low]:
                r += 1
        t = int(table.indices[r])
        walked.append((s, a, t))
        age += 1
        s = None if t == goal or age >= limit else t
    return np.array(walked)


def shares(n_actions, n_options, chance):
    """Probability of each action, and of each option that may start: of the uniform choice, or with a chance."""
    if chance is None:
        return (Fraction(1, n_actions + n_options),) * 2
    c = Fraction(chance) if n_options else Fraction(0)
    return (1 - c) / n_actions, c / max(n_options, 1)


# Diffusion time (Appendix B) --------------------------------------------------------------------------------


def walk_equations(mdp, policy, goal, chance=None):
    """Equations of the expected steps to `goal`, one for each place of the walk: sparse rows, and right sides.

    Places 0..S-1 are decisions; S + o * S + s is option o running in state s. Probabilities are exact fractions.
    """
    S, A = mdp.n_states, mdp.n_actions
    table = mdp.transition
    rows, sides = {}, {}

    def move(row, s, a, option, weight):
        """Take `weight` times what lies behind action a to the other side; its probabilities sum to 1 exactly."""
        low, high = table.indptr[s * A + a], table.indptr[s * A + a + 1]
        chances = [Fraction(float(p)) for p in table.data[low:high]]
        for t, p in zip(table.indices[low:high].tolist(), chances, strict=True):
            if t != goal:
                place = t if option is None or policy[option][t] < 0 else S + option * S + t
                row[place] = row.get(place, 0) - weight * p / sum(chances)

    for s in range(S):
        if s == goal:
            continue
        running = [o for o in range(len(policy)) if policy[o][s] >= 0]
        action, option = shares(A, len(running), chance)
        rows[s], sides[s] = {s: Fraction(1)}, action * A
        for a in range(A):
            move(rows[s], s, a, None, action)
        for o in running:
            place = S + o * S + s
            rows[s][place] = rows[s].get(place, 0) - option
            rows[place], sides[place] = {place: Fraction(1)}, Fraction(1)
            move(rows[place], s, int(policy[o][s]), o, 1)
    return rows, sides


def exact_hitting_times(mdp, policy, goal, chance=None):
    """Expected steps to `goal` from every state as exact fractions, by elimination of one place after the other."""
    rows, sides = walk_equations(mdp, policy, goal, chance)
    order = sorted(rows, reverse=True)
    mentions = {place: {q for q in rows if place in rows[q]} for place in rows}
    for place in order:
        row = rows[place]
        pivot = row.pop(place)
        rows[place] = row = {q: x / pivot for q, x in row.items() if x}
        sides[place] /= pivot
        for other in mentions[place]:
            if other < place and place in rows[other]:
                f = rows[other].pop(place)
                for q, x in row.items():
                    rows[other][q] = rows[other].get(q, 0) - f * x
                    mentions[q].add(other)
                sides[other] -= f * sides[place]
    for place in reversed(order):
        sides[place] -= sum(x * sides[q] for q, x in rows[place].items())
    return [sides.get(s, Fraction(0)) for s in range(mdp.n_states)]


def hitting_times(mdp, policy, chance=None):
    """Expected steps (start, goal): one LU in double precision a goal, over all places of the walk."""
    S = mdp.n_states
    times = np.zeros((S, S))
    for goal in range(S):
        rows, sides = walk_equations(mdp, policy, goal, chance)
        number = {place: i for i, place in enumerate(sorted(rows))}
        M, c = np.zeros((len(rows), len(rows))), np.zeros(len(rows))
        for place, row in rows.items():
            c[number[place]] = sides[place]
            for q, x in row.items():
                M[number[place], number[q]] = x
        h = np.linalg.solve(M, c)
        for s in range(S):
            if s != goal:
                times[s, goal] = h[number[s]]
    return times


def cover(mdp, policy, start, seed, chance=None):
    """Steps until a walk first touches each state, with lists and loops and the same random numbers as the kernel."""
    table, A = mdp.transition, mdp.n_actions
    numbers = splitmix(seed)
    s, option, steps, touched = start, None, 0, {start: 0}
    while len(touched) < mdp.n_states:
        if option is not None and policy[option][s] < 0:
            option = None
        if option is None:
            x, able = next(numbers), [A + o for o in range(len(policy)) if policy[o][s] >= 0]
            menu = [*range(A), *able]
            if chance is not None:
                menu = able if able and x % 2**32 < chance * 2**32 else list(range(A))
            choice = menu[(x >> 32) * len(menu) >> 32]
            option = None if choice < A else choice - A
        a = choice if option is None else int(policy[option][s])
        low, high = table.indptr[s * A + a], table.indptr[s * A + a + 1]
        r = low
        if high - low > 1:
            u = (next(numbers) >> 11) / 2**53
            sums = np.cumsum(table.data[low:high])
            while r < high - 1 and u >= sums[r - low]:
                r += 1
        s = int(table.indices[r])
        steps += 1
        touched.setdefault(s, steps)
    return [touched[t] for t in range(mdp.n_states)]


# Spectra (Section 2.3) --------------------------------------------------------------------------------------


def dense_laplacian(W, operator):
    """The Laplacian from its definition, entry by entry; a state without neighbours is divided by 1."""
    W = W.toarray() if hasattr(W, "toarray") else np.asarray(W, dtype=float)
    n = len(W)
    degree = [sum(W[i]) for i in range(n)]
    scale = [d if d > 0 else 1.0 for d in degree]
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            entry = (degree[i] if i == j else 0.0) - W[i, j]
            if operator == "normalized":
                entry /= np.sqrt(scale[i]) * np.sqrt(scale[j])
            elif operator == "random-walk":
                entry /= scale[i]
            L[i, j] = entry
    return L


def canonical(rows, tie=1e-7):
    """The canonical basis of the span of orthonormal rows, by the projector on what is left of it."""
    P = rows.T @ rows
    found = []
    for _ in rows:
        reach = P.diagonal()
        peak = np.flatnonzero(reach >= (1 - tie) * reach.max())[0]
        found.append(P[peak] / np.sqrt(reach[peak]))
        P = P - np.outer(found[-1], found[-1])
    return np.array(found)


# Options (Section 3) ----------------------------------------------------------------------------------------


def value_iteration(mdp, potential, gamma):
    """Values q (S, A) and v (S,) of the reward f(s') - f(s) when one may stop for nothing, by plain backups."""
    S, A = mdp.n_states, mdp.n_actions
    P, f = mdp.transition, np.asarray(potential, dtype=float)
    reward = (P @ f).reshape(S, A) - f[:, None]
    v = np.zeros(S)
    while True:
        q = reward + gamma * (P @ v).reshape(S, A)
        new = np.maximum(q.max(axis=1), 0.0)
        rest = np.abs(new - v).max()
        v = new
        if rest <= 1e-11 * (1.0 - gamma) * np.abs(f).max():  # then no value is off by more than 1e-11
            return reward + gamma * (P @ v).reshape(S, A), v


def policy_iteration(mdp, potential, gamma, tol=1e-12):
    """Optimal policy row (-1 where it stops) by exact evaluation and improvement, with lists and loops."""
    S, A = mdp.n_states, mdp.n_actions
    P = mdp.transition.toarray().reshape(S, A, S)
    f = np.asarray(potential, dtype=float)
    limit = tol * np.abs(f).max()
    policy = [-1] * S
    while True:
        M, r = np.eye(S), np.zeros(S)
        for s, a in enumerate(policy):
            if a >= 0:
                M[s] -= gamma * P[s, a]
                r[s] = P[s, a] @ f - f[s]
        v = np.linalg.solve(M, r)
        better = []
        for s in range(S):
            q = [P[s, a] @ (f + gamma * v) - f[s] for a in range(A)]
            now = q[policy[s]] if policy[s] >= 0 else 0.0
            top = max(range(A), key=lambda a: (q[a], -a))
            better.append(top if q[top] > max(now, 0.0) + limit else policy[s])
        if better == policy:
            return np.array(policy)
        policy = better


def climbed(successors, potential, gamma):
    """What arriving is worth, the kernel's fixed point: states one by one, in reading order, until none rises."""
    e = [float(x) for x in potential]
    x = list(e)
    rising = True
    while rising:
        rising = False
        for s, nexts in enumerate(successors.tolist()):
            u = max(e[s], max(x[t] for t in nexts))
            new = (1.0 - gamma) * e[s] + gamma * u
            if new > x[s]:
                x[s], rising = new, True
    return np.array(x)


def planned(successors, potential, gamma, tolerance):
    """Policy row and values of deterministic moves, from the fixed point and the tie rule of `options.solver`."""
    q = climbed(successors, potential, gamma)[successors] - np.asarray(potential)[:, None]
    first, acts = solver.first_best(q, tolerance, gamma)
    return np.where(acts, first, -1), np.maximum(q.max(axis=1), 0.0)


def walk(successors, row, state):
    """Steps and last state of a policy row from a state; None where it goes round for ever."""
    seen = 0
    while row[state] >= 0:
        state = int(successors[state, row[state]])
        seen += 1
        if seen > len(row):
            return None
    return seen, int(state)


def distances(mdp, goal):
    """Fewest steps to a goal from every state, inf where it cannot be reached; for deterministic moves."""
    steps = [np.inf] * mdp.n_states
    steps[goal] = 0
    ring = [goal]
    before = {s: set() for s in range(mdp.n_states)}
    for s, nexts in enumerate(mdp.successors.tolist()):
        for t in nexts:
            before[t].add(s)
    while ring:
        wider = []
        for t in ring:
            for s in before[t]:
                if steps[s] == np.inf:
                    steps[s] = steps[t] + 1
                    wider.append(s)
        ring = wider
    return np.array(steps)


# Rooms (Appendix C) -----------------------------------------------------------------------------------------


def _hops(W, start, without=None):
    """Steps to all states that can be reached from one, as a dictionary, not passing through `without`."""
    steps, ring = {start: 0}, [start]
    while ring:
        wider = []
        for u in ring:
            for v in np.flatnonzero(W[u]).tolist():
                if v != without and v not in steps:
                    steps[v] = steps[u] + 1
                    wider.append(v)
        ring = wider
    return steps


def passages(W, radius):
    """States with two neighbours or more, no two of which are within `radius` steps once the state is gone."""
    W = W.toarray()
    mask = []
    for s in range(len(W)):
        near = np.flatnonzero(W[s]).tolist()
        apart = [_hops(W, u, s).get(v, np.inf) > radius for u in near for v in near if u != v]
        mask.append(len(near) >= 2 and all(apart))
    return np.array(mask)


def betweenness(W, sources):
    """For every state, the share of shortest paths from a source to a third state that pass through it, summed."""
    W = W.toarray()
    n = len(W)
    score = np.zeros(n)

    def paths(u, v, steps):
        if u == v:
            return [[u]]
        back = [w for w in np.flatnonzero(W[v]).tolist() if steps.get(w, -1) == steps[v] - 1]
        return [[*path, v] for w in back for path in paths(u, w, steps)]

    for u in sources:
        steps = _hops(W, u)
        for v in steps:
            if v != u:
                all_paths = paths(u, v, steps)
                for path in all_paths:
                    for w in path[1:-1]:
                        score[w] += 1.0 / len(all_paths)
    return score
