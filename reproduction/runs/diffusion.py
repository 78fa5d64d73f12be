"""Diffusion times with growing numbers of options (paper, Section 4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

import eigenoptions as eo
from reproduction.lab import Result
from reproduction.runs.options import make_options


def diffuse(
    *, maze: str, options: Mapping[str, Any], counts: Sequence[int] | None = None
) -> pd.DataFrame:
    """Diffusion time of a maze by number of options.

    Parameters
    ----------
    maze : str
        Name of the maze.
    options : mapping
        Arguments of `make_options`.
    counts : sequence of int, optional
        Numbers of options; by default 0, 1, 2, ... up to all of them.
    """
    mdp = eo.maze(maze)
    found = make_options(mdp, **options)
    assert found is not None

    if counts is None:
        times = np.asarray(eo.diffusion_curve(mdp, found))
        counts = range(len(times))
    else:
        times = np.array([_measure_first(mdp, found, n) for n in counts])
    return pd.DataFrame({"n_options": counts, "diffusion_time": times})


def stack_times(results: Sequence[Result]) -> pd.DataFrame:
    """The tables of `diffuse`, one below the other, the jobs' columns first."""
    tables = []
    for columns, times in results:
        names = pd.DataFrame({**columns}, index=times.index)
        tables.append(names.join(times))
    return pd.concat(tables, ignore_index=True)


def _measure_first(mdp: eo.MDP, options: eo.OptionSet, n: int) -> float:
    """Diffusion time with the first n options; without any where n is 0."""
    if n == 0:
        return eo.diffusion_time(mdp)
    return eo.diffusion_time(mdp, options[:n])
