"""Tabular agents on the tasks of the arena: who sees and learns what, how soon.

Ways are in the order of the page: first those that know nothing in advance. `SETTINGS`
were chosen by `tuning`, on other maps and seeds; the count bonus has the form and the
settings that the arena has always had, and its strong form was chosen among 288.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import pandas as pd

from reproduction.lab import Job, Lab
from studies.arena.fresh_tasks import FRESH_SEEDS, FRESH_TASKS
from studies.arena.tabular_runs import run_explorer, run_exploring, run_learner
from studies.arena.tasks import TASKS, make_task


class Column(NamedTuple):
    """A way to explore: what it is, and what it knows in advance."""

    about: str
    knows: str = "nothing"


WAYS = {
    "plain": Column("epsilon-greedy Q-learning"),
    "epsilon-z": Column("the same, random actions last n steps (epsilon-z-greedy)"),
    "count bonus": Column("Q-learning with a reward of 0.0001 / sqrt(n) per visit"),
    "strong count bonus": Column("the best of 288 forms of it"),
    "R-max": Column("plans to the nearest untried action (random outcomes: two tries)"),
    "explore": Column("the option to the unknown, `eo.explore`"),
    "Exploring": Column("epsilon-greedy Q-learning in `eo.Exploring(env)`"),
    "found options": Column("explore, then Q-learning with `discover(found)`"),
    "followed": Column("explore, then `found.option()`, without learning"),
    "known options": Column("Q-learning with `discover(env)`", knows="the table"),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {"explore_share": 1.0},
    "epsilon-z": {"explore_share": 1.0, "zeta": 5.0},
    "count bonus": {"explore_share": 0.02, "bonus": 0.0001},
    "strong count bonus": {
        "bonus": 0.0001,
        "decay": 1.0,
        "alpha": 1.0,
        "gamma": 0.999,
        "first_epsilon": 0.0,
        "last_epsilon": 0.0,
    },
    "R-max": {
        "tries": 2,
        "planning_gamma": 0.99,
        "first_epsilon": 0.0,
        "last_epsilon": 0.0,
    },
    "found options": {"explore_share": 1.0},
    "Exploring": {"explore_share": 0.5},
    "known options": {"explore_share": 1.0},
}
LEARNERS = (
    "plain",
    "epsilon-z",
    "count bonus",
    "strong count bonus",
    "R-max",
    "known options",
)
# Of runs on the ten tasks of `tasks`.
SEEDS = range(10)
# What is slow has fewer runs: a walk of the explorer takes 100 seconds on DoorKey, and
# learning in Python is left out above 2,000 states.
_FEWER_SEEDS = {"DoorKey": 4}
_MAX_STATES = 2000


def run(lab: Lab, tasks: Sequence[str]) -> pd.DataFrame:
    """Return one row per task, way and seed."""
    n_goals = 2 if lab.quick else 5
    seeds_of = {task: _list_seeds(task) for task in tasks}
    if lab.quick:
        seeds_of = {task: seeds[:2] for task, seeds in seeds_of.items()}
    groups = {
        "learners": list(_list_learners(seeds_of, n_goals)),
        "explorers": list(_list_explorers(seeds_of, n_goals)),
        "Exploring": list(_list_exploring(seeds_of)),
    }
    rows = []
    for name, jobs in groups.items():
        lab.describe(name)
        for result in lab.run({name: jobs})[name]:
            # A job returns the rows of one run, or of several.
            rows += result.value
    return pd.DataFrame(rows)


def _list_seeds(task: str) -> range:
    """Return the seeds of the runs on a task."""
    return FRESH_SEEDS if task in FRESH_TASKS else SEEDS


def _list_learners(seeds_of: dict[str, range], n_goals: int) -> Iterator[Job]:
    for task, way in product(seeds_of, LEARNERS):
        # R-max explores, and learns no goal.
        n_learned = 0 if way == "R-max" else n_goals
        for seed in seeds_of[task]:
            arguments = {"task": task, "way": way, "seed": seed, "n_goals": n_learned}
            yield Job(run_learner, {**arguments, "settings": SETTINGS[way]})


def _list_explorers(seeds_of: dict[str, range], n_goals: int) -> Iterator[Job]:
    for task, seeds in seeds_of.items():
        for seed in seeds[: _FEWER_SEEDS.get(task)]:
            arguments = {"task": task, "seed": seed, "n_goals": n_goals}
            settings = SETTINGS["found options"]
            yield Job(run_explorer, {**arguments, "settings": settings})


def _list_exploring(seeds_of: dict[str, range]) -> Iterator[Job]:
    for task, seeds in seeds_of.items():
        if len(make_task(task).states) > _MAX_STATES:
            continue
        for seed in seeds:
            arguments = {"task": task, "seed": seed, "n_goals": 1}
            yield Job(run_exploring, {**arguments, "settings": SETTINGS["Exploring"]})


ALL_TASKS = (*TASKS, *FRESH_TASKS)
