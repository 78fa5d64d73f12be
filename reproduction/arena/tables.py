"""Tabular Q-learning on a task: compiled, with every way to explore.

Here is also what a run measures.

The agent is the one that ``docs/agents.md`` shows: values of actions and options,
epsilon-greedy decisions, ties go to actions, exploration by samples of actions and
options, and the true discount of an option. It also learns from the primitive steps
inside options.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from eigenoptions.options.tuning import Exploration, tune_exploration
from reproduction.arena import tasks


class Way(NamedTuple):
    """How decisions explore, and how the agent learns."""

    # Probability that a random decision is an option, and that this option stops after
    # each of its steps.
    option_chance: float = 0.0
    stop_chance: float = 0.0
    # Probability that a random action is the last one again (sticky actions).
    repeat: float = 0.0
    # Exponent of the number of steps that a random action lasts (epsilon-z-greedy,
    # Dabney et al., 2021); 0: one step.
    zeta: float = 0.0
    # The n-th visit of a state has the reward ``bonus / sqrt(n)``, and values begin at
    # ``bonus / (1 - gamma)``.
    bonus: float = 0.0
    # The probability of a random decision goes from 1 to 0.05 linearly over this share
    # of the steps.
    explore_share: float = 0.5
    alpha: float = 0.5
    gamma: float = 0.99


class Moves(NamedTuple):
    """Successors ``(S, A)``, ends ``(S,)``, the start and the limit of an episode."""

    successors: Any
    ends: Any
    start: int
    limit: int


@njit(cache=True)
def choose_greedy(values, available, rng):  # type: ignore[no-untyped-def]
    """Take a choice with the highest value.

    Of ties, actions come before options, then one is drawn, or the first without `rng`.
    """
    n_actions, n_ties, best, choice = len(values) - len(available), 0, -1.0, -1
    for c in range(len(values)):
        if c >= n_actions and not available[c - n_actions]:
            continue
        if values[c] > best:
            best, choice, n_ties = values[c], c, 1
        elif values[c] == best and (choice >= n_actions or c < n_actions):
            n_ties += 1
            if rng is not None and rng.random() * n_ties < 1.0:
                choice = c
    return choice


@njit(cache=True)
def learn(moves, goal, policy, way, first_step, budget, rng, q, first_visit):  # type: ignore[no-untyped-def]
    """Learn from step `first_step` to `budget`.

    Fills the values `q` (S, A + n) and `first_visit` (S,), where -1 means not yet.
    """
    successors, ends, start, limit = moves
    n_actions, counts = successors.shape[1], np.zeros(len(successors))
    q[:] = way.bonus / (1.0 - way.gamma)
    s, age, last, left, option, origin = start, 0, -1, 0, -1, start
    gain, discount, stop_chance = 0.0, 1.0, 0.0
    first_visit[s] = max(first_visit[s], 0)
    for step in range(first_step, budget):
        if option >= 0:
            a = policy[s, option]
        elif left > 0:
            a, left = last, left - 1
        elif rng.random() < max(0.05, 1.0 - 0.95 * step / (way.explore_share * budget)):
            n_available = 0
            if way.option_chance > 0.0 and rng.random() < way.option_chance:
                for o in range(policy.shape[1]):
                    n_available += policy[s, o] >= 0
                    if policy[s, o] >= 0 and rng.random() * n_available < 1.0:
                        option = o
            if option >= 0:
                a, origin = policy[s, option], s
                gain, discount, stop_chance = 0.0, 1.0, way.stop_chance
            elif last < 0 or way.repeat == 0.0 or rng.random() >= way.repeat:
                a = rng.integers(0, n_actions)
                left = min(rng.zipf(way.zeta), 10_000) - 1 if way.zeta > 0.0 else 0
            else:
                a = last
        else:
            c = choose_greedy(q[s], policy[s] >= 0, rng)
            a = c
            if c >= n_actions:
                option, origin, gain, discount, stop_chance = (
                    c - n_actions,
                    s,
                    0.0,
                    1.0,
                    0.0,
                )
                a = policy[s, option]
        t, last = successors[s, a], a
        counts[t] += 1.0
        if first_visit[t] < 0:
            first_visit[t] = step + 1
        reward = (1.0 if goal[t] else 0.0) + way.bonus / np.sqrt(counts[t])
        is_over = goal[t] or ends[t]
        best = 0.0 if is_over else q[t].max()
        q[s, a] += way.alpha * (reward + way.gamma * best - q[s, a])
        age += 1
        if option >= 0:
            gain, discount = gain + discount * reward, discount * way.gamma
            if (
                is_over
                or age == limit
                or policy[t, option] < 0
                or rng.random() < stop_chance
            ):
                c = n_actions + option
                q[origin, c] += way.alpha * (gain + discount * best - q[origin, c])
                option = -1
        s = t
        if is_over or age == limit:
            s, age, last, left, option = start, 0, -1, 0, -1


@njit(cache=True)
def follow_greedy(moves, goal, policy, q):  # type: ignore[no-untyped-def]
    """Steps of the greedy policy to the goal, or -1 where it does not get there."""
    successors, ends, start, limit = moves
    s, option = start, -1
    for step in range(limit):
        if option < 0 or policy[s, option] < 0:
            c = choose_greedy(q[s], policy[s] >= 0, None)
            option = c - q.shape[1] + policy.shape[1]
        a = c if option < 0 else policy[s, option]
        s = successors[s, a]
        if goal[s]:
            return step + 1
        if ends[s]:
            return -1
    return -1


@lru_cache(maxsize=10)
def tune_known_options(task: str) -> Exploration:
    """How options of the known table explore: the defaults of `OptionsWrapper`."""
    options = tasks.get_known_options(task)
    return tune_exploration(options.mdp, options)


def train_table(
    task: str, way: str, seed: int, goals: int, settings: Any
) -> tuple[tasks.Rows, tasks.Rows]:
    """Q-learning on a task with one way to explore.

    It runs toward the native goal, toward random goals, and without a reward.

    Before the goal is reached, values do not depend on where it is. So the run without
    a reward gives the first goal of every state, as the runs with the same seed and
    this goal have it.
    """
    about, known = tasks.make_task(task), tasks.get_known_options(task)
    n_states, settings = about.mdp.n_states, dict(settings)
    first_step, seen = (
        int(settings.pop("discovery", 0) * about.budget),
        np.full(n_states, -1),
    )
    policy = np.zeros((n_states, 0), dtype=np.int64)
    if way in ("options", "found"):
        # Options of an incomplete table explore by the defaults of `cycle`.
        options, exploration = known, Exploration(0.01, 0.05)
        if way == "options":
            exploration = tune_known_options(task)
        else:
            options, seen = tasks.find_options(task, first_step, seed)
        policy = np.ascontiguousarray(options.policy.T, dtype=np.int64)
        settings |= {
            "option_chance": exploration.option_chance,
            "stop_chance": exploration.stop_chance,
        }
    moves = Moves(
        np.asarray(about.mdp.successors, dtype=np.int64),
        about.ends,
        about.mdp.start,
        about.limit,
    )
    q = np.empty((n_states, about.mdp.n_actions + policy.shape[1]))
    key = {"task": task, "agent": "Q-learning", "way": way, "seed": seed}
    rows, measured = [], {}
    # The native goal is -1; -2 is none.
    for goal in [-2, -1, *tasks.draw_goals(about, known, goals, seed).tolist()]:
        is_goal = about.native if goal == -1 else np.arange(n_states) == goal
        first_visit, rng = seen.copy(), np.random.default_rng(seed)
        learn(
            moves,
            is_goal,
            policy,
            Way(**settings),
            first_step,
            about.budget,
            rng,
            q,
            first_visit,
        )
        if goal == -2:
            measured = tasks.measure_coverage(about, first_visit, about.budget)
        else:
            is_learned = follow_greedy(moves, is_goal, policy, q) > 0
            measured_goal = tasks.measure_goal(
                is_goal, first_visit, about.budget, is_learned
            )
            rows.append({**key, "goal": goal, **measured_goal})
    return rows, [{**key, **measured}]
