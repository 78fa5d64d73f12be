"""Aggregates over runs and tasks: interquartile means with bootstrap intervals.

The definitions are those of rliable (Agarwal et al., "Deep Reinforcement Learning at
the Edge of the Statistical Precipice", 2021). Scores are arrays ``(runs, tasks)``. Runs
are drawn anew within each task, so that every resample has the same number of runs of
each task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from eigenoptions._types import FloatArray


class Aggregate(NamedTuple):
    """An aggregate score and its bootstrap interval."""

    value: float
    low: float
    high: float

    def is_apart_from(self, other: Aggregate) -> bool:
        """Whether the intervals of two aggregates have no point in common."""
        return self.low > other.high or self.high < other.low

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}–{self.high:.2f})"


def interquartile_mean(scores: ArrayLike) -> float:
    """Return the mean of the middle half of all scores, whatever their task.

    Parameters
    ----------
    scores : array_like of shape (runs, tasks)
        One score per run and task.

    Examples
    --------
    >>> interquartile_mean([[0.0, 1.0], [2.0, 9.0]])
    1.5
    """
    # As `scipy.stats.trim_mean`, at a tenth of its time: the bootstrap calls it often.
    ordered = np.sort(np.ravel(scores))
    n_cut = len(ordered) // 4
    return float(ordered[n_cut : len(ordered) - n_cut].mean())


def geometric_mean(scores: ArrayLike) -> float:
    """Return the geometric mean over tasks of the arithmetic mean over runs.

    Parameters
    ----------
    scores : array_like of shape (runs, tasks)
        One positive score per run and task.

    Examples
    --------
    >>> geometric_mean([[1.0, 4.0], [3.0, 12.0]])
    4.0
    """
    task_means = np.mean(scores, axis=0)
    mean = np.exp(np.log(task_means).mean())
    # Logarithm and exponential differ by machine in the last digits.
    return float(mean.round(12))


def bootstrap(
    scores: ArrayLike,
    statistic: Callable[[FloatArray], float] = interquartile_mean,
    *,
    n_resamples: int = 2000,
    confidence: float = 0.95,
    rng: int = 0,
) -> Aggregate:
    """Return an aggregate with its stratified percentile bootstrap interval.

    Parameters
    ----------
    scores : array_like of shape (runs, tasks)
        One score per run and task.
    statistic : callable, default=interquartile_mean
        Function of such an array.
    n_resamples : int, default=2000
        How often the runs of each task are drawn anew.
    confidence : float, default=0.95
        Of the interval.
    rng : int, default=0
        Seed of the resamples.

    Examples
    --------
    >>> bootstrap([[0.5, 0.5], [0.5, 0.5]], n_resamples=10)
    Aggregate(value=0.5, low=0.5, high=0.5)
    """
    table = _check_scores(scores)
    generator = np.random.default_rng(rng)
    resampled = []
    for _ in range(n_resamples):
        resampled.append(statistic(_draw_runs(table, generator)))

    tail = 100.0 * (1.0 - confidence) / 2.0
    low, high = np.percentile(resampled, [tail, 100.0 - tail])
    return Aggregate(statistic(table), float(low), float(high))


def bootstrap_tasks(
    ratios: ArrayLike,
    *,
    n_resamples: int = 2000,
    confidence: float = 0.95,
    rng: int = 0,
) -> Aggregate:
    """Return the geometric mean of one ratio per task, with an interval over tasks.

    The tasks are drawn anew, not the runs: what another choice of tasks would give.

    Parameters
    ----------
    ratios : array_like of shape (tasks,)
        Positive ratios.
    n_resamples, confidence, rng
        As in `bootstrap`.

    Examples
    --------
    >>> bootstrap_tasks([0.5, 0.5], n_resamples=10)
    Aggregate(value=0.5, low=0.5, high=0.5)
    """
    logs = np.log(np.asarray(ratios, dtype=np.float64))
    generator = np.random.default_rng(rng)
    drawn = generator.integers(len(logs), size=(n_resamples, len(logs)))
    tail = 100.0 * (1.0 - confidence) / 2.0
    low, high = np.percentile(logs[drawn].mean(axis=1), [tail, 100.0 - tail])
    numbers = np.exp([logs.mean(), low, high]).round(12).tolist()
    return Aggregate(*numbers)


def _draw_runs(scores: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw as many runs as there are, with replacement, for each task on its own."""
    runs = rng.integers(len(scores), size=scores.shape)
    drawn: FloatArray = np.take_along_axis(scores, runs, axis=0)
    return drawn


def _check_scores(scores: ArrayLike) -> FloatArray:
    """Return scores as an array; ValueError unless it is (runs, tasks) and finite."""
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"scores must have shape (runs, tasks), got {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError(
            "scores must be finite: give a run that failed its worst score"
        )
    return table
