"""The settings of tabular agents, chosen on the maps and seeds of `tuning_tasks`.

One choice serves all tasks. What explores without a schedule is chosen by its first
visits, the others by how soon they find a goal that they learn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from reproduction.lab import Lab
from studies.arena.tabular_runs import find_task, run_learner
from studies.arena.tuning_tasks import TUNING_SEEDS, TUNING_TASKS

# Settings by name of the way; the grid has all combinations.
Grid = Mapping[str, Sequence[Any]]

_EXPLORE_SHARES = (0.02, 0.5, 1.0)
GRIDS: dict[str, Grid] = {
    "plain": {"explore_share": _EXPLORE_SHARES},
    "epsilon-z": {
        "explore_share": _EXPLORE_SHARES,
        "zeta": (1.25, 1.5, 2.0, 3.0, 5.0),
    },
    "strong count bonus": {
        "bonus": (0.0001,),
        "counts_pairs": (False, True),
        "decay": (0.5, 1.0),
        "optimism": (0.1, 1.0, 10.0, 100.0),
        "alpha": (0.1, 0.5, 1.0),
        "gamma": (0.9, 0.99, 0.999),
        "epsilon": (0.0, 0.05),
    },
    "R-max": {
        "tries": (1, 2, 3, 5),
        "planning_gamma": (0.9, 0.95, 0.99),
        "epsilon": (0.0,),
    },
    "known options": {"explore_share": _EXPLORE_SHARES},
}
# Ways that are chosen by their first visits alone.
_CHOSEN_BY_VISITS = ("strong count bonus", "R-max")


def list_settings(grid: Grid) -> Iterator[dict[str, Any]]:
    """Yield every combination of a grid.

    A constant `epsilon` is the first and the last one.

    >>> list(list_settings({"epsilon": (0.1,), "alpha": (1.0,)}))
    [{'alpha': 1.0, 'first_epsilon': 0.1, 'last_epsilon': 0.1}]
    """
    for values in product(*grid.values()):
        settings = dict(zip(grid, values, strict=True))
        if "epsilon" in settings:
            epsilon = settings.pop("epsilon")
            settings |= {"first_epsilon": epsilon, "last_epsilon": epsilon}
        yield settings


def tune(lab: Lab, ways: Sequence[str]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the scores of all settings, and the best settings of each way."""
    rows = []
    best: dict[str, Any] = {}
    for way in ways:
        lab.describe(f"choosing settings of {way}")
        scores = {}
        candidates = list(list_settings(GRIDS[way]))
        for number, settings in enumerate(candidates):
            scores[number] = _score(lab, way, settings)
            text = ", ".join(f"{name} {value:g}" for name, value in settings.items())
            rows.append({"way": way, "settings": text, "score": scores[number]})
        best[way] = candidates[min(scores, key=lambda number: scores[number])]
    return pd.DataFrame(rows), best


def _score(lab: Lab, way: str, settings: Mapping[str, Any]) -> float:
    """Return the score of settings; lower is better.

    Of first visits, it is the geometric mean over tasks of the share of the budget
    until a state is seen. Otherwise it is the mean share of the budget until the first
    goal, where goals that are not learned count with the whole budget.
    """
    n_goals = 0 if way in _CHOSEN_BY_VISITS else 3
    jobs = []
    for task, seed in product(TUNING_TASKS, TUNING_SEEDS):
        job = {"task": task, "way": way, "seed": seed}
        jobs.append({**job, "n_goals": n_goals, "settings": settings})
    rows = [row for result in lab.pmap(run_learner, jobs) for row in result]

    shares = []
    for row in rows:
        budget = find_task(row["task"]).budget
        if way in _CHOSEN_BY_VISITS:
            shares.append(row["mean_goal"] / budget)
        else:
            is_learned = row["learned"]
            shares.append(is_learned * row["first_goal"] / budget + 1.0 - is_learned)
    if way in _CHOSEN_BY_VISITS:
        by_task = np.reshape(shares, (len(TUNING_TASKS), len(TUNING_SEEDS)))
        return float(np.exp(np.log(by_task.mean(axis=1)).mean()))
    return float(np.mean(shares))
