"""Slow, obvious twins of the kernels, and exact answers: what tests believe."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np

# Learning (Section 4.3)
# -------------------------------------------------------------------------------------


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
    update,
    *,
    episodes,
    max_steps,
    alpha,
    gamma,
    epsilon,
    explore,
    seed,
    option_chance=None,
    stop_chance=0.0,
):
    """One run of `q_learning` with lists and loops.

    Gives returns, learning returns, steps, evaluation steps and values.

    A choice is a number: primitive action c < A, else option c - A.
    """
    S, A = mdp.n_states, mdp.n_actions
    policy = [[int(a) for a in row] for row in policy]
    table, numbers, over_options = mdp.transition, splitmix(seed), update != "action"
    q = [[0.0] * (A + (len(policy) if over_options else 0)) for _ in range(S)]

    def available(s):
        return [A + o for o in range(len(policy)) if policy[o][s] >= 0]

    def draw(x, choices):
        return choices[(x % 2**32) * len(choices) // 2**32]

    def best(s):
        return max(
            q[s][c] for c in [*range(A), *(available(s) if over_options else [])]
        )

    def choose(s, random, learning):
        """A choice, and whether it was drawn at random."""
        x = next(numbers)
        greedy = (
            random < 1 and (over_options or best(s) > 0) and (x >> 32) / 2**32 >= random
        )
        if greedy:
            choices = [*range(A), *(available(s) if over_options else [])]
            ties = [c for c in choices if q[s][c] == best(s)]
            return draw(x, [c for c in ties if c < A] or ties), False
        options = available(s) if over_options or learning else []
        if option_chance is None:
            return draw(x, [*range(A), *options]), True
        if over_options or (learning and random < 1):
            x = mix(x)
        takes_option = options and (x >> 32) / 2**32 < option_chance
        return draw(x, options if takes_option else list(range(A))), True

    def step(s, a):
        low, high = table.indptr[s * A + a], table.indptr[s * A + a + 1]
        if high - low == 1:
            return int(table.indices[low])
        u, total = (next(numbers) >> 11) / 2**53, 0.0
        for r in range(low, high):
            total += float(table.data[r])
            if u < total:
                return int(table.indices[r])
        return int(table.indices[high - 1])

    def continues(c, s):
        return c >= A and policy[c - A][s] >= 0

    def run_episode(random, learning):
        s, taken, runs = mdp.start, 0, False
        while taken < max_steps and s != mdp.goal:
            if not runs:
                c, drawn = choose(s, random, learning)
                origin, gain, discount = s, 0.0, 1.0
            a = c if c < A else policy[c - A][s]
            t = step(s, a)
            taken += 1
            reward = 1.0 if t == mdp.goal else 0.0
            gain, discount = gain + discount * reward, discount * gamma
            runs = continues(c, t)
            if runs and drawn and learning and stop_chance > 0:
                runs = (next(numbers) >> 32) / 2**32 >= stop_chance
            if learning and update == "action":
                q[s][a] += alpha * (reward + gamma * best(t) - q[s][a])
            elif learning and update == "intra-option":
                targets = {a: best(t)}
                for o in available(s):
                    if policy[o - A][s] == a:
                        targets[o] = q[t][o] if continues(o, t) else best(t)
                for o, rest in targets.items():
                    q[s][o] += alpha * (reward + gamma * rest - q[s][o])
            elif learning and (t == mdp.goal or taken == max_steps or not runs):
                rest = q[t][c] if continues(c, t) else best(t)
                q[origin][c] += alpha * (gain + discount * rest - q[origin][c])
            s = t
        return float(s == mdp.goal), taken

    learned, evaluated = [], []
    for _ in range(episodes):
        learned.append(run_episode(explore, learning=True))
        evaluated.append(run_episode(epsilon, learning=False))
    learned, evaluated = np.array(learned), np.array(evaluated)
    return evaluated[:, 0], learned[:, 0], learned[:, 1], evaluated[:, 1], np.array(q)


def choice_values(mdp, policy, gamma, sweeps=2000):
    """Exact values (S, A + n) of actions and options, by value iteration.

    The reward is 1 at the goal.

    An option's own equation is Q(s, o) = sum p(s' | s, o(s)) (r + gamma U(s', o)), with
    U = Q(s', o) while it goes on and max Q(s', .) where it stops. 0 where an option may
    not start, and at the goal.
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


def arrival_probability(mdp, policy, max_steps, chance=None, stop_chance=0.0):
    """Probability that the random behaviour reaches the goal within `max_steps` steps.

    The behaviour chooses among actions and options.

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
            free = mass[s, n] + sum(
                mass[s, o] * (1 if policy[o, s] < 0 else stop_chance) for o in range(n)
            )
            action, option = shares(A, len(able), chance)
            new[:, n] += free * float(action) * P[s].sum(axis=0)
            for o in able:
                new[:, o] += (
                    mass[s, o] * (1 - stop_chance) + free * float(option)
                ) * P[s, policy[o, s]]
        arrived += new[mdp.goal].sum()
        new[mdp.goal] = 0.0
        mass = new
    return arrived


# Samples (Section 5.1)
# --------------------------------------------------------------------------------------


def incidence(before, after, *, dedupe=True):
    """T as the paper says it: differences as tuples in a set, then dense rows."""
    seen, rows = set(), []
    for phi, phi_next in zip(before, after, strict=True):
        row = tuple(
            float(b) - float(a) + 0.0 for a, b in zip(phi, phi_next, strict=True)
        )
        if any(row) and not (dedupe and row in seen):
            seen.add(row)
            rows.append(row)
    return np.array(rows).reshape(len(rows), -1)


def wander(
    mdp,
    policy,
    *,
    steps,
    starts,
    goal,
    limit,
    seed,
    chance=None,
    stop_chance=0.0,
    begin=None,
):
    """Transitions of a walk with options, by lists and loops.

    The random numbers are those of the kernel.
    """
    table, A = mdp.transition, mdp.n_actions
    numbers = splitmix(seed)
    s, option, age, walked = begin, None, 0, []
    for _ in range(steps):
        if s is None:
            s, option, age = (
                int(starts[(next(numbers) >> 32) * len(starts) >> 32]),
                None,
                0,
            )
        if option is not None and policy[option][s] >= 0 and stop_chance > 0:
            option = None if (next(numbers) >> 32) < stop_chance * 2**32 else option
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
    """Probability of each action, and of each option that may start.

    The choice is uniform, or it is an option with a given chance.
    """
    if chance is None:
        return (Fraction(1, n_actions + n_options),) * 2
    c = Fraction(chance) if n_options else Fraction(0)
    return (1 - c) / n_actions, c / max(n_options, 1)


# Spectra (Section 2.3)
# --------------------------------------------------------------------------------------


def dense_laplacian(W, operator):
    """The Laplacian by definition; a state without neighbours is divided by 1."""
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
    """The canonical basis of the span of orthonormal rows, by projection.

    Each vector is found with the projector on what is left of the span.
    """
    P = rows.T @ rows
    found = []
    for _ in rows:
        reach = P.diagonal()
        peak = np.flatnonzero(reach >= (1 - tie) * reach.max())[0]
        found.append(P[peak] / np.sqrt(reach[peak]))
        P = P - np.outer(found[-1], found[-1])
    return np.array(found)


# Options (Section 3)
# --------------------------------------------------------------------------------------


def value_iteration(mdp, potential, gamma):
    """Values q (S, A) and v (S,) by plain backups.

    The reward is f(s') - f(s), and one may stop for nothing.
    """
    S, A = mdp.n_states, mdp.n_actions
    P, f = mdp.transition, np.asarray(potential, dtype=float)
    reward = (P @ f).reshape(S, A) - f[:, None]
    v = np.zeros(S)
    while True:
        q = reward + gamma * (P @ v).reshape(S, A)
        new = np.maximum(q.max(axis=1), 0.0)
        rest = np.abs(new - v).max()
        v = new
        if (
            rest <= 1e-11 * (1.0 - gamma) * np.abs(f).max()
        ):  # then no value is off by more than 1e-11
            return reward + gamma * (P @ v).reshape(S, A), v


def climbed(successors, potential, gamma):
    """What arriving is worth: the fixed point of the kernel.

    States are visited one by one, in reading order, until none rises.
    """
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


def walk(successors, row, state):
    """Steps and last state of a policy from a state; None where it never ends."""
    seen = 0
    while row[state] >= 0:
        state = int(successors[state, row[state]])
        seen += 1
        if seen > len(row):
            return None
    return seen, int(state)


def distances(mdp, goal):
    """Fewest steps to a goal from every state, inf where no path leads there.

    For deterministic moves.
    """
    backward = nx.DiGraph(
        (t, s) for s, nexts in enumerate(mdp.successors.tolist()) for t in nexts
    )
    steps = nx.single_source_shortest_path_length(backward, goal)
    return np.array([steps.get(s, np.inf) for s in range(mdp.n_states)])


# Rooms (Appendix C)
# --------------------------------------------------------------------------------------


def passages(W, radius):
    """States whose neighbours are far apart once the state is gone.

    A state has two neighbours or more, and no two of them are within `radius` steps.
    """
    graph, mask = nx.from_scipy_sparse_array(W), []
    for s in graph:
        near, rest = list(graph[s]), graph.subgraph(set(graph) - {s})
        steps = [nx.single_source_shortest_path_length(rest, u) for u in near]
        apart = [
            ring.get(v, np.inf) > radius
            for u, ring in zip(near, steps, strict=True)
            for v in near
            if u != v
        ]
        mask.append(len(near) >= 2 and all(apart))
    return np.array(mask)


def betweenness(W):
    """Betweenness: for every state, the share of shortest paths that pass through it.

    It is summed over all pairs of other states, both ways.
    """
    scores = nx.betweenness_centrality(nx.from_scipy_sparse_array(W), normalized=False)
    return 2.0 * np.array([scores[s] for s in range(W.shape[0])])
