"""Slow, obvious twins of the kernels, and exact answers: what tests believe."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np

# Random numbers


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


def happens(number, probability):
    """Whether an event of this probability happens; decided by the high 32 bits."""
    return (number >> 32) / 2**32 < probability


def draw_item(number, items):
    """One of several items, all equally likely; decided by the low 32 bits."""
    low_bits = number % 2**32
    return items[low_bits * len(items) // 2**32]


def draw_successor(mdp, state, action, numbers):
    """Where an action leads; a certain move takes no random number."""
    table = mdp.transition
    row = state * mdp.n_actions + action
    successors = table.indices[table.indptr[row] : table.indptr[row + 1]]
    probabilities = table.data[table.indptr[row] : table.indptr[row + 1]]
    if len(successors) == 1:
        return int(successors[0])

    uniform = (next(numbers) >> 11) / 2**53
    total = 0.0
    for successor, probability in zip(successors, probabilities, strict=True):
        total += float(probability)
        if uniform < total:
            return int(successor)
    return int(successors[-1])


# Learning (Section 4.3)


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
    """
    learner = Learner(
        mdp=mdp,
        policy=[[int(action) for action in row] for row in policy],
        update=update,
        max_steps=max_steps,
        alpha=alpha,
        gamma=gamma,
        option_chance=option_chance,
        stop_chance=stop_chance,
        numbers=splitmix(seed),
    )

    learned = []
    evaluated = []
    for _ in range(episodes):
        learned.append(learner.run_episode(explore, is_learning=True))
        evaluated.append(learner.run_episode(epsilon, is_learning=False))

    learning_returns, learning_steps = np.array(learned).T
    returns, evaluation_steps = np.array(evaluated).T
    values = np.array(learner.q)
    return returns, learning_returns, learning_steps, evaluation_steps, values


@dataclass
class Learner:
    """The agent of one run.

    A choice is a number: c < A is a primitive action, any other c is option c - A.
    """

    mdp: Any
    policy: list[list[int]]
    update: str
    max_steps: int
    alpha: float
    gamma: float
    option_chance: float | None
    stop_chance: float
    numbers: Any

    def __post_init__(self):
        self.n_actions = self.mdp.n_actions
        self.actions = list(range(self.n_actions))
        # The paper's update has values of primitive actions only.
        self.has_option_values = self.update != "action"

        n_values = self.n_actions
        if self.has_option_values:
            n_values += len(self.policy)
        self.q = [[0.0] * n_values for _ in range(self.mdp.n_states)]

    def list_options(self, state):
        """The options that may start in a state, as choices."""
        options = range(len(self.policy))
        return [self.n_actions + o for o in options if self.policy[o][state] >= 0]

    def list_valued(self, state):
        """The choices in a state that have a value."""
        if self.has_option_values:
            return self.actions + self.list_options(state)
        return self.actions

    def compute_value(self, state):
        return max(self.q[state][choice] for choice in self.list_valued(state))

    def continues(self, choice, state):
        """Whether a choice is an option that goes on in a state."""
        is_option = choice >= self.n_actions
        return is_option and self.policy[choice - self.n_actions][state] >= 0

    def choose(self, state, epsilon, is_learning):
        """A choice, and whether it was drawn at random."""
        number = next(self.numbers)

        # Where all values are 0, an agent without values of options has no preference.
        has_preference = self.has_option_values or self.compute_value(state) > 0
        if epsilon < 1 and has_preference and not happens(number, epsilon):
            return self.choose_best(state, number), False
        return self.choose_randomly(state, epsilon, is_learning, number), True

    def choose_best(self, state, number):
        """The choice of the highest value; of ties, actions come before options."""
        best = self.compute_value(state)
        ties = [c for c in self.list_valued(state) if self.q[state][c] == best]
        tied_actions = [c for c in ties if c < self.n_actions]
        return draw_item(number, tied_actions or ties)

    def choose_randomly(self, state, epsilon, is_learning, number):
        """A random choice: uniform, or an option with probability `option_chance`."""
        options = []
        if is_learning or self.has_option_values:
            options = self.list_options(state)
        if self.option_chance is None:
            return draw_item(number, self.actions + options)

        # Where the high bits decided that the choice is random, they are used up.
        if self.has_option_values or (is_learning and epsilon < 1):
            number = mix(number)
        if options and happens(number, self.option_chance):
            return draw_item(number, options)
        return draw_item(number, self.actions)

    def run_episode(self, epsilon, is_learning):
        """The return (1 if the goal was reached) and the number of steps."""
        state = self.mdp.start
        n_steps = 0
        is_running = False
        while n_steps < self.max_steps and state != self.mdp.goal:
            if not is_running:
                choice, is_random = self.choose(state, epsilon, is_learning)
                origin = state
                gain = 0.0
                discount = 1.0

            # One step of the environment.
            action = choice
            if choice >= self.n_actions:
                action = self.policy[choice - self.n_actions][state]
            following = draw_successor(self.mdp, state, action, self.numbers)
            reward = float(following == self.mdp.goal)
            n_steps += 1
            gain += discount * reward
            discount *= self.gamma

            # An option that was drawn to explore may be stopped.
            is_running = self.continues(choice, following)
            if is_running and is_random and is_learning and self.stop_chance > 0:
                is_running = not happens(next(self.numbers), self.stop_chance)

            # An option's value is learned where its run ends, for whatever reason.
            is_last = following == self.mdp.goal or n_steps == self.max_steps
            if is_learning and self.update == "action":
                self.learn_action(state, action, reward, following)
            elif is_learning and self.update == "intra-option":
                self.learn_intra_option(state, action, reward, following)
            elif is_learning and (is_last or not is_running):
                self.learn_choice(origin, choice, gain, discount, following)
            state = following
        return float(state == self.mdp.goal), n_steps

    def learn_action(self, state, action, reward, following):
        """Q-learning (Watkins and Dayan, 1992)."""
        target = reward + self.gamma * self.compute_value(following)
        self.move_value(state, action, target)

    def learn_intra_option(self, state, action, reward, following):
        """Update every option that would have taken this action (Sutton et al., 1999).

        All targets are computed before any value changes.
        """
        targets = {action: reward + self.gamma * self.compute_value(following)}
        for option in self.list_options(state):
            if self.policy[option - self.n_actions][state] == action:
                rest = self.compute_rest(option, following)
                targets[option] = reward + self.gamma * rest
        for choice, target in targets.items():
            self.move_value(state, choice, target)

    def learn_choice(self, origin, choice, gain, discount, following):
        """SMDP Q-learning: what a choice earned from where it was made."""
        rest = self.compute_rest(choice, following)
        self.move_value(origin, choice, gain + discount * rest)

    def compute_rest(self, choice, state):
        """What a state is worth to an option that goes on there or ends there."""
        if self.continues(choice, state):
            return self.q[state][choice]
        return self.compute_value(state)

    def move_value(self, state, choice, target):
        self.q[state][choice] += self.alpha * (target - self.q[state][choice])


def choice_values(mdp, policy, gamma, sweeps=2000):
    """Exact values (S, A + n) of actions and options, by value iteration.

    The reward is 1 at the goal.

    An option's own equation is Q(s, o) = sum p(s' | s, o(s)) (r + gamma U(s', o)), with
    U = Q(s', o) while it goes on and max Q(s', .) where it stops. 0 where an option may
    not start, and at the goal.
    """
    S = mdp.n_states
    A = mdp.n_actions
    n_options = len(policy)
    P = mdp.transition.toarray().reshape(S, A, S)
    reward = P[:, :, mdp.goal]
    policy = np.asarray(policy, dtype=int).reshape(n_options, S)

    q = np.zeros((S, A + n_options))
    for _ in range(sweeps):
        v = q.max(axis=1)
        new = np.zeros_like(q)
        new[:, :A] = reward + gamma * P @ v
        for o in range(n_options):
            u = np.where(policy[o] >= 0, q[:, A + o], v)
            for s in np.flatnonzero(policy[o] >= 0):
                action = policy[o, s]
                new[s, A + o] = reward[s, action] + gamma * P[s, action] @ u
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
    S = mdp.n_states
    A = mdp.n_actions
    n_options = len(policy)
    P = mdp.transition.toarray().reshape(S, A, S)
    policy = np.asarray(policy, dtype=int).reshape(n_options, S)

    # The last column is the probability that no option is running.
    mass = np.zeros((S, n_options + 1))
    mass[mdp.start, n_options] = 1.0
    arrived = 0.0
    for _ in range(max_steps):
        new = np.zeros_like(mass)
        for s in range(S):
            available = np.flatnonzero(policy[:, s] >= 0)
            action_share, option_share = shares(A, len(available), chance)

            # A decision is made where no option runs, or where one ends or is stopped.
            deciding = mass[s, n_options]
            for o in range(n_options):
                if policy[o, s] < 0:
                    deciding += mass[s, o]
                else:
                    deciding += mass[s, o] * stop_chance

            new[:, n_options] += deciding * float(action_share) * P[s].sum(axis=0)
            for o in available:
                running = mass[s, o] * (1 - stop_chance)
                starting = deciding * float(option_share)
                new[:, o] += (running + starting) * P[s, policy[o, s]]

        arrived += new[mdp.goal].sum()
        new[mdp.goal] = 0.0
        mass = new
    return arrived


def shares(n_actions, n_options, chance):
    """Probability of each action, and of each option that may start.

    The choice is uniform, or it is an option with a given chance.
    """
    if chance is None:
        uniform = Fraction(1, n_actions + n_options)
        return uniform, uniform
    if n_options == 0:
        return Fraction(1, n_actions), Fraction(0)
    chance = Fraction(chance)
    return (1 - chance) / n_actions, chance / n_options


# Samples (Section 5.1)


def incidence(before, after, *, dedupe=True):
    """T as the paper says it: differences as tuples in a set, then dense rows."""
    seen = set()
    rows = []
    for phi, phi_next in zip(before, after, strict=True):
        # Adding zero turns -0.0 into 0.0.
        pairs = zip(phi, phi_next, strict=True)
        row = tuple(float(new) - float(old) + 0.0 for old, new in pairs)

        is_repeated = dedupe and row in seen
        if any(row) and not is_repeated:
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
    numbers = splitmix(seed)
    state = begin
    option = None
    age = 0
    transitions = []
    for _ in range(steps):
        if state is None:
            high_bits = next(numbers) >> 32
            state = int(starts[high_bits * len(starts) // 2**32])
            option = None
            age = 0

        # An option ends where its policy says so, or is stopped by chance.
        if option is not None:
            has_ended = policy[option][state] < 0
            if not has_ended and stop_chance > 0:
                has_ended = happens(next(numbers), stop_chance)
            if has_ended:
                option = None

        if option is None:
            option, action = draw_decision(mdp, policy, state, chance, next(numbers))
        if option is not None:
            action = int(policy[option][state])

        following = draw_successor(mdp, state, action, numbers)
        transitions.append((state, action, following))

        # An episode ends at the goal and at its limit.
        age += 1
        state = following
        if following == goal or age >= limit:
            state = None
    return np.array(transitions)


def draw_decision(mdp, policy, state, chance, number):
    """An option and no action, or no option and an action."""
    available = [o for o in range(len(policy)) if policy[o][state] >= 0]
    if chance is None:
        chance = len(available) / (mdp.n_actions + len(available))
    if available and happens(number, chance):
        return draw_item(number, available), None
    return None, draw_item(number, range(mdp.n_actions))


# Spectra (Section 2.3)


def dense_laplacian(W, operator):
    """The Laplacian by definition; a state without neighbours is divided by 1."""
    if hasattr(W, "toarray"):
        W = W.toarray()
    W = np.asarray(W, dtype=float)
    n = len(W)
    degree = np.array([sum(W[i]) for i in range(n)])
    scale = np.where(degree > 0, degree, 1.0)

    L = np.diag(degree) - W
    for i in range(n):
        for j in range(n):
            if operator == "normalized":
                L[i, j] /= np.sqrt(scale[i]) * np.sqrt(scale[j])
            elif operator == "random-walk":
                L[i, j] /= scale[i]
    return L


def canonical(rows, tie=1e-7):
    """The canonical basis of the span of orthonormal rows, by projection.

    Each vector is found with the projector on what is left of the span.
    """
    projector = rows.T @ rows
    basis = []
    for _ in rows:
        # The first state that the span reaches best.
        reach = projector.diagonal()
        peak = np.flatnonzero(reach >= (1 - tie) * reach.max())[0]

        vector = projector[peak] / np.sqrt(reach[peak])
        basis.append(vector)
        projector = projector - np.outer(vector, vector)
    return np.array(basis)


# Options (Section 3)


def value_iteration(mdp, potential, gamma):
    """Values q (S, A) and v (S,) by plain backups.

    The reward is f(s') - f(s), and one may stop for nothing.
    """
    S = mdp.n_states
    A = mdp.n_actions
    P = mdp.transition
    f = np.asarray(potential, dtype=float)
    reward = (P @ f).reshape(S, A) - f[:, None]

    # Once a backup changes values by no more than this, none is off by over 1e-11.
    tolerance = 1e-11 * (1.0 - gamma) * np.abs(f).max()
    v = np.zeros(S)
    change = np.inf
    while change > tolerance:
        q = reward + gamma * (P @ v).reshape(S, A)
        new = np.maximum(q.max(axis=1), 0.0)
        change = np.abs(new - v).max()
        v = new
    return reward + gamma * (P @ v).reshape(S, A), v


def climbed(successors, potential, gamma):
    """What arriving is worth: the fixed point of the kernel.

    States are visited one by one, in reading order, until none rises.
    """
    e = [float(x) for x in potential]
    arrival = list(e)
    is_rising = True
    while is_rising:
        is_rising = False
        for s, following in enumerate(successors.tolist()):
            best = max(e[s], max(arrival[t] for t in following))
            new = (1.0 - gamma) * e[s] + gamma * best
            if new > arrival[s]:
                arrival[s] = new
                is_rising = True
    return np.array(arrival)


def walk(successors, row, state):
    """Steps and last state of a policy from a state; None where it never ends."""
    n_steps = 0
    while row[state] >= 0:
        state = int(successors[state, row[state]])
        n_steps += 1
        if n_steps > len(row):
            return None
    return n_steps, int(state)


def distances(mdp, goal):
    """Fewest steps to a goal from every state, inf where no path leads there.

    For deterministic moves.
    """
    backward = nx.DiGraph()
    for state, following in enumerate(mdp.successors.tolist()):
        backward.add_edges_from((successor, state) for successor in following)
    steps = nx.single_source_shortest_path_length(backward, goal)
    return np.array([steps.get(state, np.inf) for state in range(mdp.n_states)])


# Rooms (Appendix C)


def passages(W, radius):
    """States whose neighbours are far apart once the state is gone.

    A state has two neighbours or more, and no two of them are within `radius` steps.
    """
    graph = nx.from_scipy_sparse_array(W)
    mask = []
    for state in graph:
        neighbours = list(graph[state])
        rest = graph.subgraph(set(graph) - {state})

        are_apart = True
        for one, other in combinations(neighbours, 2):
            steps = nx.single_source_shortest_path_length(rest, one)
            if steps.get(other, np.inf) <= radius:
                are_apart = False
        mask.append(len(neighbours) >= 2 and are_apart)
    return np.array(mask)


def betweenness(W):
    """Betweenness: for every state, the share of shortest paths that pass through it.

    It is summed over all pairs of other states, both ways.
    """
    graph = nx.from_scipy_sparse_array(W)
    scores = nx.betweenness_centrality(graph, normalized=False)
    return 2.0 * np.array([scores[state] for state in range(W.shape[0])])
