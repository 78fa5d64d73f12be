"""What do eigenvectors add? Options of the known part, derived anew on the way.

Three walkers know nothing at first: random actions, a count bonus, and the planner
R-max. Each takes some of its decisions for options of the part that is known by then:
eigenoptions, options to random known states, or the option to the nearest frontier (a
state with an untried action). Options are derived anew whenever the number of steps has
grown by half.
"""

from __future__ import annotations

import logging
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eigenoptions.discovery import discover
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet, Purpose
from eigenoptions.options.solver import solve
from reproduction.lab import Job, Lab
from studies.arena.learner import Agent, Way, learn, make_agent, make_dynamics
from studies.arena.tasks import Task, make_task, measure_coverage

TASKS = ("FourRooms", "two-keys", "rooms-5x5", "perfect-21x21")
SEEDS = range(200, 205)
WALKERS = {
    "random actions": Way(option_chance=0.1, first_epsilon=1.0, last_epsilon=1.0),
    "count bonus": Way(
        bonus=0.0001, option_chance=1.0, first_epsilon=0.01, last_epsilon=0.01
    ),
    "planner": Way(tries=1, option_chance=1.0, first_epsilon=0.01, last_epsilon=0.01),
}
KINDS = ("none", "eigenoptions", "random known states", "nearest frontier")
N_OPTIONS = 8


def explore_with(task: str, walker: str, kind: str, seed: int) -> float:
    """Return the mean first visit of all states.

    Parameters
    ----------
    task : str
        One of `TASKS`.
    walker : str
        One of `WALKERS`.
    kind : str
        One of `KINDS`.
    seed : int
        Of the walk, and of the random known states.
    """
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)
    table = make_task(task)
    way = WALKERS[walker]
    # Without values of options: they carry the agent, and are not learned.
    agent = make_agent(table, way)
    rng = np.random.default_rng(seed)
    no_goal = np.zeros(table.mdp.n_states, dtype=np.bool_)

    # At first no option is available.
    policy = np.full((table.mdp.n_states, N_OPTIONS), -1)
    step = 0
    n_steps = 100
    while step < table.budget and (agent.first_visit[table.states] < 0).any():
        end = min(step + n_steps, table.budget)
        learn(
            make_dynamics(table),
            no_goal,
            policy,
            way,
            agent,
            (step, end),
            table.budget,
            rng,
            len(table.states),
        )

        # The next round is half as long as all before it.
        step = end
        n_steps = step // 2
        policy = derive_policies(table, agent, kind, rng)
        # An option that was running is another one now.
        agent.now[4] = -1
    return measure_coverage(table, agent.first_visit, table.budget)["mean_goal"]


def derive_policies(
    table: Task, agent: Agent, kind: str, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return ``(S, n)`` actions of options of the known part."""
    policy = np.full((table.mdp.n_states, N_OPTIONS), -1)
    seen = np.flatnonzero((agent.first_visit >= 0) & ~table.ends)
    if kind == "none" or len(seen) < 3:
        return policy
    options = _derive_options(_take_known(table, agent, seen), agent, seen, kind, rng)
    policy[seen, : len(options)] = options.policy.T
    return policy


def _take_known(table: Task, agent: Agent, seen: NDArray[np.intp]) -> MDP:
    """Return the moves that were tried between seen states; others stay put."""
    mdp = table.mdp
    assert mdp.successors is not None
    place = np.full(mdp.n_states, -1)
    place[seen] = np.arange(len(seen))
    after = place[mdp.successors[seen]]
    is_tried = agent.tries.reshape(mdp.n_states, -1)[seen] > 0
    stays = np.arange(len(seen))[:, None]
    return MDP.from_successors(np.where(is_tried & (after >= 0), after, stays))


def _derive_options(
    known: MDP,
    agent: Agent,
    seen: NDArray[np.intp],
    kind: str,
    rng: np.random.Generator,
) -> OptionSet:
    """Return at most `N_OPTIONS` options of the known part."""
    if kind == "eigenoptions":
        n_options = min(N_OPTIONS, known.n_states - 1)
        options = discover(known, n_options)
        assert isinstance(options, OptionSet)
        return options[:N_OPTIONS]
    if kind == "random known states":
        goals = rng.choice(len(seen), min(N_OPTIONS, len(seen)), replace=False)
        purposes = []
        for goal in goals:
            potential = (np.arange(len(seen)) == goal).astype(np.float64)
            purposes.append(Purpose(potential, f"goal {goal}", exact=True))
        return solve(known, purposes)

    # One option to the nearest known states with an untried action.
    n_states = len(agent.first_visit)
    is_untried = agent.tries.reshape(n_states, -1)[seen] == 0
    frontier = is_untried.any(axis=1).astype(np.float64)
    return solve(known, [Purpose(frontier, "frontier", exact=True)])


def run(lab: Lab) -> pd.DataFrame:
    """Return one row per task, walker, kind of options and seed."""
    jobs = []
    tasks = TASKS[1:2] if lab.quick else TASKS
    seeds = SEEDS[:1] if lab.quick else SEEDS
    for task, walker, kind, seed in product(tasks, WALKERS, KINDS, seeds):
        columns: dict[str, Any] = {"task": task, "walker": walker, "kind": kind}
        columns["seed"] = seed
        jobs.append(Job(explore_with, columns, columns))
    lab.describe("what eigenvectors add")
    results = lab.run({"ablation": jobs})["ablation"]
    rows = [{**result.columns, "mean_goal": result.value} for result in results]
    return pd.DataFrame(rows)
