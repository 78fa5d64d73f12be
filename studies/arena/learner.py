"""Tabular agents, compiled: Q-learning with several ways to explore, and R-max.

The learner is the one that ``docs/agents.md`` shows: values of actions and options,
epsilon-greedy decisions, ties go to actions, exploration by samples of actions and
options, and the true discount of an option. It also learns from the primitive steps
inside options. With `Way.tries` the greedy action is that of R-max (Brafman and
Tennenholtz, 2002): the way to the nearest action that was tried less often.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from eigenoptions._types import BoolArray, FloatArray
from studies.arena.tasks import Task


class Way(NamedTuple):
    """How decisions explore, and how the agent learns."""

    # Probability that a random decision is an option, and that this option stops after
    # each of its steps.
    option_chance: float = 0.0
    stop_chance: float = 0.0
    # Exponent of the number of steps that a random action lasts (epsilon-z-greedy,
    # Dabney et al., 2021); 0: one step.
    zeta: float = 0.0
    # The n-th visit has the reward ``bonus / n ** decay``: of a state, or of a state
    # and action.
    bonus: float = 0.0
    decay: float = 0.5
    counts_pairs: bool = False
    # Values begin at this multiple of ``bonus / (1 - gamma)``.
    optimism: float = 1.0
    # The probability of a random decision falls linearly from the first number to the
    # second, over this share of the steps.
    first_epsilon: float = 1.0
    last_epsilon: float = 0.05
    explore_share: float = 0.5
    alpha: float = 0.5
    gamma: float = 0.99
    # R-max: tries until an action is known; 0: Q-learning.
    tries: int = 0
    planning_gamma: float = 0.95


class Dynamics(NamedTuple):
    """A task as arrays.

    Outcome k of a state and action, for k from ``first[row]`` to ``first[row + 1]``, is
    the state ``after[k]``. Its probability and those of the outcomes before it sum to
    ``cumulative[k]``.
    """

    first: NDArray[np.int64]
    after: NDArray[np.int64]
    cumulative: FloatArray
    ends: BoolArray
    start: int
    limit: int
    n_actions: int


class Agent(NamedTuple):
    """What an agent keeps from step to step."""

    # State, age of the episode, last action, how often it is still repeated, running
    # option (-1: none), and the state in which it began.
    now: NDArray[np.int64]
    # Of the running option: reward so far, discount, and chance to stop.
    running: FloatArray
    # Values of actions and options, ``(S, A + n)``.
    q: FloatArray
    # Visits of states and of their actions, ``(S,)`` and ``(S * A,)``; times of each
    # outcome; and values of the plan, ``(S,)``.
    visits: FloatArray
    tries: FloatArray
    times: FloatArray
    plan: FloatArray
    # Step of the first visit, ``(S,)``; -1: none yet.
    first_visit: NDArray[np.int64]


def make_dynamics(task: Task) -> Dynamics:
    """Return the table of a task as arrays."""
    table = task.mdp.transition
    first = table.indptr.astype(np.int64)
    total = np.cumsum(table.data)
    before_row = np.concatenate([[0.0], total])[first[:-1]]
    cumulative = total - np.repeat(before_row, np.diff(first))
    return Dynamics(
        first=first,
        after=table.indices.astype(np.int64),
        cumulative=cumulative,
        ends=task.ends,
        start=task.start,
        limit=task.limit,
        n_actions=task.mdp.n_actions,
    )


def make_agent(task: Task, way: Way, n_options: int = 0) -> Agent:
    """Return an agent at the start of a task, that has seen nothing else."""
    n_states = task.mdp.n_states
    n_actions = task.mdp.n_actions
    first_value = way.optimism * way.bonus / (1.0 - way.gamma)
    first_visit = np.full(n_states, -1)
    first_visit[task.start] = 0
    return Agent(
        now=np.array([task.start, 0, -1, 0, -1, task.start]),
        running=np.array([0.0, 1.0, 0.0]),
        q=np.full((n_states, n_actions + n_options), first_value),
        visits=np.zeros(n_states),
        tries=np.zeros(n_states * n_actions),
        times=np.zeros(task.mdp.transition.nnz),
        plan=np.ones(n_states),
        first_visit=first_visit,
    )


@njit(cache=True)
def choose_greedy(values, available, rng):  # type: ignore[no-untyped-def]
    """Take a choice with the highest value.

    Of ties, actions come before options, then one is drawn, or the first without `rng`.
    """
    n_actions = len(values) - len(available)
    # No value is negative.
    highest = -1.0
    chosen = -1
    n_ties = 0
    for choice in range(len(values)):
        is_option = choice >= n_actions
        if is_option and not available[choice - n_actions]:
            continue
        if values[choice] > highest:
            highest = values[choice]
            chosen = choice
            n_ties = 1
        elif values[choice] == highest and (chosen >= n_actions or not is_option):
            # The n-th of equal choices replaces the one before with probability 1 / n,
            # so that in the end all are equally likely.
            n_ties += 1
            if rng is not None and rng.random() * n_ties < 1.0:
                chosen = choice
    return chosen


@njit(cache=True)
def draw_outcome(dynamics, row, rng):  # type: ignore[no-untyped-def]
    """Draw what an action does: the number of an outcome."""
    k = dynamics.first[row]
    last = dynamics.first[row + 1] - 1
    # Without a draw where nothing is random.
    if k == last:
        return k
    u = rng.random()
    while k < last and u >= dynamics.cumulative[k]:
        k += 1
    return k


@njit(cache=True)
def draw_option(policy, state, rng):  # type: ignore[no-untyped-def]
    """Draw one of the options that may start in a state; -1 where none may."""
    drawn = -1
    n_available = 0
    for option in range(policy.shape[1]):
        if policy[state, option] < 0:
            continue
        # As in `choose_greedy`: all are equally likely in the end.
        n_available += 1
        if rng.random() * n_available < 1.0:
            drawn = option
    return drawn


@njit(cache=True)
def search_untried(dynamics, agent, state, rng):  # type: ignore[no-untyped-def]
    """Return the first action of the shortest known way to an untried one.

    For tables without chance: each pair has one outcome. An end leads to the start. -1
    where nothing untried is in reach.
    """
    n_states = len(agent.plan)
    n_actions = dynamics.n_actions
    first_action = np.full(n_states, -1)
    queue = np.empty(n_states, dtype=np.int64)
    queue[0] = state
    head = 0
    tail = 1
    order = rng.permutation(n_actions)
    while head < tail:
        s = queue[head]
        head += 1
        for a in order:
            row = s * n_actions + a
            begin = first_action[s]
            if s == state:
                begin = a
            if agent.tries[row] == 0:
                return begin

            t = dynamics.after[dynamics.first[row]]
            if dynamics.ends[t]:
                t = dynamics.start
            if t != state and first_action[t] < 0:
                first_action[t] = begin
                queue[tail] = t
                tail += 1
    return -1


@njit(cache=True)
def plan_action(dynamics, agent, way, row):  # type: ignore[no-untyped-def]
    """Return what R-max expects of the action of a row: the mean of its outcomes.

    An action that was tried less than `Way.tries` times is worth 1.
    """
    if agent.tries[row] < way.tries:
        return 1.0
    total = 0.0
    for k in range(dynamics.first[row], dynamics.first[row + 1]):
        t = dynamics.after[k]
        if dynamics.ends[t]:
            t = dynamics.start
        total += agent.times[k] * agent.plan[t]
    return way.planning_gamma * total / agent.tries[row]


@njit(cache=True)
def sweep_plan(dynamics, agent, way, state, rng, n_sweeps=3):  # type: ignore[no-untyped-def]
    """Return the best action of R-max, whose values are repaired by a few sweeps.

    The plan of the agent is changed.
    """
    n_actions = dynamics.n_actions
    values = np.empty(n_actions)
    for _ in range(n_sweeps):
        for s in range(len(agent.plan)):
            if agent.first_visit[s] < 0 or dynamics.ends[s]:
                continue
            for a in range(n_actions):
                values[a] = plan_action(dynamics, agent, way, s * n_actions + a)
            agent.plan[s] = values.max()

    # Once more the state in which the agent is: these values decide.
    for a in range(n_actions):
        values[a] = plan_action(dynamics, agent, way, state * n_actions + a)
    agent.plan[state] = values.max()
    return choose_greedy(values, np.empty(0, dtype=np.bool_), rng)


@njit(cache=True)
def learn(dynamics, goal, policy, way, agent, steps, budget, rng, n_wanted=-1):  # type: ignore[no-untyped-def]
    """Act and learn from the first of `steps` to the second, and fill in `agent`.

    Parameters
    ----------
    dynamics : Dynamics
        The task.
    goal : ndarray of bool of shape (S,)
        States that give reward 1 and end an episode.
    policy : ndarray of int of shape (S, n)
        Action of each option; -1 where it terminates.
    way : Way
        How to explore.
    agent : Agent
        The agent, which is changed.
    steps : tuple of int
        The first step, and the one before which to stop.
    budget : int
        Steps of the whole run, which schedules follow.
    rng : Generator
        Random numbers.
    n_wanted : int, default=-1
        Number of seen states at which to stop before; -1: never.
    """
    n_actions = dynamics.n_actions
    is_certain = len(dynamics.after) == len(dynamics.first) - 1
    # An agent without values of options explores with them, and never prefers one.
    n_valued = agent.q.shape[1] - n_actions
    s, age, last, left, option, origin = agent.now
    gain, discount, stop_chance = agent.running
    n_seen = (agent.first_visit >= 0).sum()
    decline = way.first_epsilon - way.last_epsilon
    for step in range(steps[0], steps[1]):
        if n_seen == n_wanted:
            break

        # Which action comes next: of the running option, repeated, random, of a plan,
        # or greedy.
        epsilon = way.first_epsilon - decline * step / (way.explore_share * budget)
        if option >= 0:
            a = policy[s, option]
        elif left > 0:
            a = last
            left -= 1
        elif rng.random() < max(way.last_epsilon, epsilon):
            if way.option_chance > 0.0 and rng.random() < way.option_chance:
                option = draw_option(policy, s, rng)
            if option >= 0:
                a = policy[s, option]
                stop_chance = way.stop_chance
            else:
                a = rng.integers(0, n_actions)
                if way.zeta > 0.0:
                    left = min(rng.zipf(way.zeta), 10_000) - 1
            origin = s
            gain = 0.0
            discount = 1.0
        elif way.tries > 0:
            if is_certain:
                a = search_untried(dynamics, agent, s, rng)
            else:
                a = sweep_plan(dynamics, agent, way, s, rng)
            if a < 0:
                a = rng.integers(0, n_actions)
        else:
            a = choose_greedy(agent.q[s], policy[s, :n_valued] >= 0, rng)
            if a >= n_actions:
                option = a - n_actions
                a = policy[s, option]
                origin = s
                gain = 0.0
                discount = 1.0
                stop_chance = 0.0

        # What it does.
        row = s * n_actions + a
        k = draw_outcome(dynamics, row, rng)
        t = dynamics.after[k]
        last = a
        age += 1
        agent.tries[row] += 1.0
        agent.times[k] += 1.0
        agent.visits[t] += 1.0
        if agent.first_visit[t] < 0:
            agent.first_visit[t] = step + 1
            n_seen += 1

        # What is learned from it.
        n = agent.tries[row] if way.counts_pairs else agent.visits[t]
        reward = way.bonus / n**way.decay
        if goal[t]:
            reward += 1.0
        has_ended = goal[t] or dynamics.ends[t]
        best = 0.0
        if not has_ended:
            best = agent.q[t].max()
        agent.q[s, a] += way.alpha * (reward + way.gamma * best - agent.q[s, a])
        is_over = has_ended or age == dynamics.limit
        if option >= 0:
            gain += discount * reward
            discount *= way.gamma
            stops = policy[t, option] < 0 or rng.random() < stop_chance
            if is_over or stops:
                if n_valued > 0:
                    c = n_actions + option
                    error = gain + discount * best - agent.q[origin, c]
                    agent.q[origin, c] += way.alpha * error
                option = -1

        s = t
        if is_over:
            s = dynamics.start
            age = 0
            last = -1
            left = 0
            option = -1
    agent.now[:] = (s, age, last, left, option, origin)
    agent.running[:] = (gain, discount, stop_chance)
    return step


@njit(cache=True)
def follow_greedy(dynamics, goal, policy, q, rng):  # type: ignore[no-untyped-def]
    """Steps of a greedy episode to the goal, or -1 where it does not get there."""
    n_actions = dynamics.n_actions
    s = dynamics.start
    option = -1
    for step in range(dynamics.limit):
        if option < 0 or policy[s, option] < 0:
            a = choose_greedy(q[s], policy[s] >= 0, None)
            # Negative if it is an action.
            option = a - n_actions
        if option >= 0:
            a = policy[s, option]
        k = draw_outcome(dynamics, s * n_actions + a, rng)
        s = dynamics.after[k]
        if goal[s]:
            return step + 1
        if dynamics.ends[s]:
            return -1
    return -1
