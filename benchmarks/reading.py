"""Reading recorded data: CPU seconds for 100,000 steps of five numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

import eigenoptions as eo
from benchmarks.timing import Row, measure_best

_N_STEPS = 100_000


def time_reading() -> Iterator[Row]:
    """Time `Transitions.of` of several kinds of data, `check_columns`, and a star."""
    for kind, data in _record_steps().items():
        seconds = measure_best(partial(eo.Transitions.of, data), rounds=3)
        yield Row(f"read 100,000 steps, {kind}", seconds)

    for n_steps, n_columns in ((20_000, 5), (100_000, 5), (20_000, 50)):
        steps = _walk(n_steps, n_columns)
        seconds = measure_best(partial(eo.check_columns, steps), rounds=2)
        yield Row(f"check_columns, {n_steps:,} x {n_columns}", seconds)

    star = nx.star_graph(20_000)
    seconds = measure_best(partial(eo.from_graph, star), rounds=3)
    yield Row("from_graph, a star of 20,001 nodes", seconds)


def _walk(n_steps: int, n_columns: int) -> tuple[Any, Any, Any]:
    """Make a random walk: observations, actions, next observations.

    Each of four actions moves one column.
    """
    rng = np.random.default_rng(0)
    actions = rng.integers(4, size=n_steps)
    changes = rng.normal(0, 0.1, (n_steps, n_columns))
    changes[np.arange(n_steps), actions] += 1.0
    places = changes.cumsum(axis=0)
    return places[:-1], actions[1:], places[1:]


def _record_steps() -> dict[str, Any]:
    """Make the same steps as people record them."""
    obs, actions, next_obs = _walk(_N_STEPS + 1, 5)
    frame = pd.DataFrame(obs, columns=[f"obs_{i}" for i in range(5)])
    frame["action"] = actions
    episodes = []
    for begin in range(0, _N_STEPS, 100):
        part = slice(begin, begin + 100)
        episodes.append({"observations": obs[part], "actions": actions[part]})
    tuples = list(zip(obs, actions.tolist(), next_obs, strict=True))
    dicts = [{"obs": o, "action": a, "next_obs": n} for o, a, n in tuples]
    return {
        "arrays": (obs, actions, next_obs),
        "a data frame": frame,
        "1,000 episodes": episodes,
        "tuples": tuples,
        "dicts": dicts,
    }
