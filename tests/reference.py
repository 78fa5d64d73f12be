"""Slow, obvious twins of the compiled kernels, and exact answers to compare with: what tests believe."""

from __future__ import annotations

import numpy as np

# Learning (Section 4.3) -------------------------------------------------------------------------------------


def splitmix(seed):
    """The numbers of SplitMix64, one at a time."""
    mask = 2**64 - 1
    state = int(seed)
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield z ^ (z >> 31)


def learn(mdp, policy, method, *, episodes, max_steps, alpha, gamma, epsilon, explore, seed):
    """One run of a learner with lists and loops; returns, learning returns, steps, evaluation steps, values.

    A choice is a number: primitive action c < A, else option c - A.
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

    def action(c, s):
        return c if c < A else policy[c - A][s]

    def goes_on(c, s):
        return c >= A and policy[c - A][s] >= 0

    def best(s):
        return max(q[s][c] for c in (menu(s) if over_options else range(A)))

    def greedy(s, chance):
        choices = menu(s) if over_options else list(range(A))
        x = next(numbers)
        if (x >> 32) / 2**32 < chance:
            return one_of(x, choices)
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
        return greedy(s, explore) if over_options else one_of(next(numbers), menu(s))

    def episode(choose, learning):
        s, taken, c = mdp.start, 0, 0
        while taken < max_steps and s != mdp.goal:
            if taken == 0 or not goes_on(c, s):
                c = choose(s)
                origin, gain, discount = s, 0.0, 1.0
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


def arrival_probability(mdp, policy, max_steps):
    """Chance that the uniform behaviour over actions and options reaches the goal within `max_steps` steps.

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
            share = free / (A + len(able))
            new[:, n] += share * P[s].sum(axis=0)
            for o in able:
                new[:, o] += (mass[s, o] + share) * P[s, policy[o, s]]
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


def wander(mdp, policy, *, steps, starts, goal, limit, seed):
    """Transitions of a walk with options, with lists and loops and the same random numbers as the kernel."""
    table, A = mdp.transition, mdp.n_actions
    numbers = splitmix(seed)
    s, option, age, walked = None, None, 0, []
    for _ in range(steps):
        if s is None:
            s, option, age = int(starts[(next(numbers) >> 32) * len(starts) >> 32]), None, 0
        if option is not None and policy[option][s] < 0:
            option = None
        if option is None:
            menu = [*range(A), *(A + o for o in range(len(policy)) if policy[o][s] >= 0)]
            choice = menu[(next(numbers) >> 32) * len(menu) >> 32]
            option = None if choice < A else choice - A
        a = choice if option is None else int(policy[option][s])
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
