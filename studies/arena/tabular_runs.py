"""Runs of tabular agents on one task, each with one seed.

Before a goal is reached, nothing depends on where it is. So one run without a reward
tells when every state is seen first, and thereby the steps to any random goal. Whether
a goal is learned takes a run of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from eigenoptions.discovery import discover
from eigenoptions.explore import Exploring
from eigenoptions.explore.explorer import Explorer
from eigenoptions.explore.found import Found
from eigenoptions.options import Option, OptionSet
from eigenoptions.options.tuning import Exploration, tune_exploration
from studies.arena.learner import (
    Way,
    choose_greedy,
    follow_greedy,
    learn,
    make_agent,
    make_dynamics,
)
from studies.arena.tasks import (
    Rows,
    Task,
    draw_goals,
    make_table_env,
    make_task,
    measure_coverage,
)
from studies.arena.tuning_tasks import make_tuning_task

# Greedy episodes that tell whether a goal is learned, where moves are random.
N_EPISODES = 10


def run_learner(
    task: str, way: str, seed: int, n_goals: int, settings: Mapping[str, Any]
) -> Rows:
    """Run a compiled agent: once without a reward, and once for each random goal.

    The result has one row: of the mean first visit, and of the goals.
    """
    table = find_task(task)
    options = None
    if way == "known options":
        options = discover_known(task)
        exploration = tune_known_options(task)
        settings = {
            **settings,
            "option_chance": exploration.option_chance,
            "stop_chance": exploration.stop_chance,
        }
    chosen = Way(**settings)
    policy = _stack_policies(table, options)
    first_visit = _cover(table, policy, chosen, seed)

    learned = []
    goals = _draw_goals(task, n_goals, seed)
    for goal in goals:
        learned.append(_learn_goal(table, goal, policy, chosen, seed, first_step=0))
    return [_measure(task, way, seed, first_visit, goals, learned)]


def run_explorer(
    task: str, seed: int, n_goals: int, settings: Mapping[str, Any]
) -> Rows:
    """Run the library's `Explorer` without a reward, and use what it finds.

    There are three rows:

    * ``explore``: when it saw each state;
    * ``followed``: for each random goal, the way that `Found.option` has at the moment
      when the goal was seen first, followed by nobody who learns;
    * ``found options``: eigenoptions of the part that was known after ten steps per
      state, with which Q-learning spends the rest of the budget.
    """
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)
    table = find_task(task)
    n_states = len(table.states)
    n_known_steps = 10 * n_states
    goals = _draw_goals(task, n_goals, seed)
    awaited = list(goals)

    # As with ``until="reward"``, which waits for 20 steps.
    n_first_steps = 20
    explorer = Explorer(make_table_env(table), seed=seed, rng=seed)
    followed = dict.fromkeys(goals, 0.0)
    found_early: Found | None = None
    for step in range(1, table.budget + 1):
        explorer.step()
        if step >= n_first_steps:
            for goal in _find_arrivals(explorer, awaited):
                awaited.remove(goal)
                way = find_way(explorer.found, goal)
                followed[goal] = _follow(table, goal, way, seed)
        is_complete = len(explorer.experience.numbers) == n_states
        if found_early is None and (is_complete or step == n_known_steps):
            found_early = explorer.found
        if is_complete:
            break

    first_visit = explorer.found.first_visit
    rows = [
        _measure(task, "explore", seed, first_visit, goals, []),
        _measure(task, "followed", seed, first_visit, goals, list(followed.values())),
    ]
    if found_early is not None:
        rows.append(_learn_with_found(task, found_early, goals, seed, settings))
    return rows


def _find_arrivals(explorer: Explorer, awaited: list[int]) -> list[int]:
    """Return the states that an explorer has seen by now, of those awaited."""
    return [state for state in awaited if state in explorer.experience.numbers]


def find_way(found: Found, goal: int) -> Option:
    """Return the way to a state that was seen, as if every visit were rewarded.

    It is what ``explore(env, until="reward").option()`` gives if this state is the
    goal.
    """
    is_arrival = found.numbers.next_obs == goal
    numbers = replace(found.numbers, reward=is_arrival.astype(np.float64))
    return replace(found, numbers=numbers).option()


def _follow(table: Task, goal: int, way: Option, seed: int) -> float:
    """Return the share of episodes in which an option leads from start to goal."""
    is_goal = np.arange(table.mdp.n_states) == goal
    env = make_table_env(table, is_goal)
    n_episodes = 1 if table.mdp.successors is not None else N_EPISODES
    n_reached = 0
    for episode in range(n_episodes):
        state, _ = env.reset(seed=seed * N_EPISODES + episode)
        reward = 0.0
        is_over = False
        while not is_over and way.policy[state] >= 0:
            state, reward, terminated, truncated, _ = env.step(int(way.policy[state]))
            is_over = terminated or truncated
        n_reached += reward > 0
    return n_reached / n_episodes


def _learn_with_found(
    task: str,
    found: Found,
    goals: list[int],
    seed: int,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the row of Q-learning with eigenoptions of the part that was found.

    What they cost to find is subtracted from its budget.
    """
    table = find_task(task)
    options = discover(found)
    assert isinstance(options, OptionSet)
    exploration = tune_exploration(options.mdp, options)
    way = Way(
        option_chance=exploration.option_chance or 0.0,
        stop_chance=exploration.stop_chance,
        **settings,
    )
    policy = _stack_policies(table, options)

    first_visit = found.first_visit.copy()
    n_found_steps = found.n_steps
    learned = []
    for goal in goals:
        learned.append(
            _learn_goal(table, goal, policy, way, seed, first_step=n_found_steps)
        )
    if (first_visit[table.states] < 0).any():
        later = _cover(table, policy, way, seed, n_found_steps)
        first_visit = np.where(first_visit < 0, later, first_visit)
    return _measure(task, "found options", seed, first_visit, goals, learned)


def run_exploring(
    task: str, seed: int, n_goals: int, settings: Mapping[str, Any]
) -> Rows:
    """Run a plain Q-learner whose random actions are samples of `Exploring`.

    The learner is that of `learner`, for an environment. Its first visits are those of
    the run for its first goal.
    """
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)
    table = find_task(task)
    goals = _draw_goals(task, n_goals, seed)
    way = Way(**settings)
    no_options = _stack_policies(table, None)

    first_goals = []
    learned = []
    for goal in goals:
        is_goal = np.arange(table.mdp.n_states) == goal
        env = Exploring(make_table_env(table, is_goal), rng=seed)
        q = _learn_in(env, table, way, seed)
        visit = int(env.found.first_visit[goal])
        # A goal that was not seen counts with the budget.
        if visit < 0:
            visit = table.budget
        first_goals.append(visit)
        learned.append(_evaluate(table, goal, no_options, q, seed))

    row = {
        "task": task,
        "way": "Exploring",
        "seed": seed,
        "first_goal": float(np.mean(first_goals)),
        "learned": float(np.mean(learned)),
    }
    return [row]


def _learn_in(
    env: gym.Env[Any, Any], table: Task, way: Way, seed: int
) -> NDArray[np.float64]:
    """Learn the values of actions in an environment, epsilon-greedily."""
    rng = np.random.default_rng(seed)
    q = np.zeros((table.mdp.n_states, table.mdp.n_actions))
    no_options = np.empty(0, dtype=np.bool_)
    decline = way.first_epsilon - way.last_epsilon
    n_exploring = way.explore_share * table.budget

    state, _ = env.reset(seed=seed)
    for step in range(table.budget):
        epsilon = way.first_epsilon - decline * step / n_exploring
        if rng.random() < max(way.last_epsilon, epsilon):
            action = int(env.action_space.sample())
        else:
            action = choose_greedy(q[state], no_options, rng)

        after, reward, terminated, truncated, _ = env.step(action)
        target = float(reward)
        if not terminated:
            target += way.gamma * q[after].max()
        q[state, action] += way.alpha * (target - q[state, action])

        state = after
        if terminated or truncated:
            state, _ = env.reset()
    return q


def find_task(name: str) -> Task:
    """Return a task by its name, also one that settings are chosen on."""
    if name.startswith("tuning "):
        return make_tuning_task(name)
    return make_task(name)


@lru_cache(maxsize=32)
def discover_known(task: str) -> OptionSet:
    """Return options of the known table, by the library's defaults."""
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)
    options = discover(make_table_env(find_task(task)))
    assert isinstance(options, OptionSet)
    return options


@lru_cache(maxsize=32)
def tune_known_options(task: str) -> Exploration:
    """Return how options of the known table explore: as in `OptionsWrapper`."""
    options = discover_known(task)
    return tune_exploration(options.mdp, options)


def _draw_goals(task: str, n_goals: int, seed: int) -> list[int]:
    """Draw goals away from the ends of the known table's options."""
    if n_goals == 0:
        return []
    goals = draw_goals(find_task(task), discover_known(task), n_goals, seed)
    return [int(goal) for goal in goals]


def _stack_policies(table: Task, options: OptionSet | None) -> NDArray[np.int64]:
    """Return ``(S, n)`` the action of each option in each state."""
    if options is None:
        return np.empty((table.mdp.n_states, 0), dtype=np.int64)
    return np.ascontiguousarray(options.policy.T, dtype=np.int64)


def _cover(
    table: Task, policy: NDArray[np.int64], way: Way, seed: int, first_step: int = 0
) -> NDArray[np.int64]:
    """Return ``(S,)`` the step at which each state is seen first, without a reward.

    -1 for states that are not seen. The run ends with the budget, or when all are seen.
    """
    agent = make_agent(table, way, policy.shape[1])
    no_goal = np.zeros(table.mdp.n_states, dtype=np.bool_)
    steps = (first_step, table.budget)
    rng = np.random.default_rng(seed)
    n_wanted = len(table.states)
    # Fills in the agent.
    learn(
        make_dynamics(table),
        no_goal,
        policy,
        way,
        agent,
        steps,
        table.budget,
        rng,
        n_wanted,
    )
    return agent.first_visit


def _learn_goal(
    table: Task,
    goal: int,
    policy: NDArray[np.int64],
    way: Way,
    seed: int,
    first_step: int,
) -> float:
    """Return the share of greedy episodes that reach a goal after learning."""
    is_goal = np.arange(table.mdp.n_states) == goal
    agent = make_agent(table, way, policy.shape[1])
    steps = (first_step, table.budget)
    rng = np.random.default_rng(seed)
    # Fills in the agent.
    learn(make_dynamics(table), is_goal, policy, way, agent, steps, table.budget, rng)
    return _evaluate(table, goal, policy, agent.q, seed)


def _evaluate(
    table: Task,
    goal: int,
    policy: NDArray[np.int64],
    q: NDArray[np.float64],
    seed: int,
) -> float:
    """Return the share of greedy episodes that reach a goal: one if moves are sure."""
    is_goal = np.arange(table.mdp.n_states) == goal
    rng = np.random.default_rng(seed)
    n_episodes = 1 if table.mdp.successors is not None else N_EPISODES
    n_reached = 0
    for _ in range(n_episodes):
        n_steps = follow_greedy(make_dynamics(table), is_goal, policy, q, rng)
        n_reached += n_steps > 0
    return n_reached / n_episodes


def _measure(
    task: str,
    way: str,
    seed: int,
    first_visit: NDArray[np.int64],
    goals: list[int],
    learned: list[float],
) -> dict[str, Any]:
    """Return the row of a run."""
    table = find_task(task)
    row: dict[str, Any] = {"task": task, "way": way, "seed": seed}
    row |= measure_coverage(table, first_visit, table.budget)
    if goals:
        visits = first_visit[goals]
        row["first_goal"] = float(np.where(visits < 0, table.budget, visits).mean())
    if learned:
        row["learned"] = float(np.mean(learned))
    return row
