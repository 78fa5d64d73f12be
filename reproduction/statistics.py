"""Differences of means with their intervals, and summaries of learning runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import ttest_ind

from eigenoptions.evaluation.intervals import mean_interval
from reproduction.thresholds import MARGIN

# Of all intervals of one claim together.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Difference:
    """The difference of two means, with its interval.

    >>> print(Difference(0.25, 0.2, 0.3))
    +0.250 (+0.200 to +0.300)
    """

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ({self.low:+.3f} to {self.high:+.3f})"

    def above(self, margin: float = MARGIN) -> bool | None:
        """Whether the first mean is higher, by at least what matters.

        It is where the interval lies above zero and the difference itself reaches the
        margin. It is not where the interval lies below the margin. Else the sample does
        not decide (None).

        More data decides: a narrower interval around the same difference may settle
        what was open, and never turns one answer into the other.

        >>> Difference(0.06, low=0.01, high=0.11).above()
        True
        >>> Difference(0.03, low=0.02, high=0.04).above()
        False
        >>> Difference(0.03, low=0.005, high=0.055).above() is None
        True
        >>> Difference(0.06, low=-0.01, high=0.13).above() is None
        True
        """
        if self.low > 0 and self.mean >= margin:
            return True
        if self.high < margin:
            return False
        return None

    def below(self, margin: float = MARGIN) -> bool | None:
        """Whether the first mean is lower, by at least what matters: as `above`.

        >>> Difference(-0.06, low=-0.11, high=-0.01).below()
        True
        """
        return Difference(-self.mean, -self.high, -self.low).above(margin)

    def equal(self, margin: float = MARGIN) -> bool | None:
        """Whether both means are equal up to a margin.

        It is not decided (None) where the interval lies partly outside the margin. More
        data decides, as in `above`.

        >>> Difference(0.0, low=-0.01, high=0.02).equal()
        True
        >>> Difference(0.08, low=0.06, high=0.1).equal()
        False
        >>> Difference(0.05, low=0.0, high=0.1).equal() is None
        True
        """
        if -margin < self.low and self.high < margin:
            return True
        if self.low > margin or self.high < -margin:
            return False
        return None


# Whether a difference counts as an improvement.
IsBetter: TypeAlias = Callable[[Difference], bool | None]


def is_above_zero(difference: Difference) -> bool | None:
    """Whether the first mean is higher, by however little: `above` without a margin.

    >>> is_above_zero(Difference(0.015, low=0.01, high=0.02))
    True
    """
    return difference.above(margin=0.0)


def negate(answer: bool | None) -> bool | None:
    """The answer to the opposite question; what is open stays open.

    >>> negate(True), negate(None)
    (False, None)
    """
    if answer is None:
        return None
    return not answer


def compare_means(a: ArrayLike, b: ArrayLike, n_intervals: int = 1) -> Difference:
    """The mean of `a` minus the mean of `b`, with Welch's interval.

    Parameters
    ----------
    a, b : array_like
        The two samples.
    n_intervals : int, default=1
        Number of intervals that hold together: each is widened (Bonferroni).

    Examples
    --------
    >>> compare_means([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).mean
    0.0
    >>> compare_means([1.0, 1.1, 0.9], [0.0, 0.1, -0.1], n_intervals=5).above()
    True
    """
    x = np.asarray(a, dtype=float)
    y = np.asarray(b, dtype=float)
    confidence = 1 - (1 - CONFIDENCE) / n_intervals
    with warnings.catch_warnings():
        # Equal runs give an interval of width zero, as intended.
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = ttest_ind(x, y, equal_var=False).confidence_interval(confidence)

    difference = float(x.mean() - y.mean())
    return Difference(difference, float(interval.low), float(interval.high))


def summarize_runs(returns: NDArray[Any]) -> pd.DataFrame:
    """One row per run: its mean return, and that of the last tenth of its episodes.

    Parameters
    ----------
    returns : array, shape (runs, episodes)
        Evaluation returns.

    Examples
    --------
    >>> summarize_runs(np.array([[0, 1]]))["mean_return"].tolist()
    [0.5]
    """
    n_runs, n_episodes = returns.shape
    n_late = max(1, round(0.1 * n_episodes))
    return pd.DataFrame(
        {
            "run": np.arange(n_runs),
            "mean_return": returns.mean(axis=1),
            "late_return": returns[:, -n_late:].mean(axis=1),
        }
    )


def average_curves(returns: NDArray[Any], every: int = 5) -> pd.DataFrame:
    """The learning curve: the mean return over runs, with its 95% interval.

    Parameters
    ----------
    returns : array, shape (runs, episodes)
        Evaluation returns.
    every : int, default=5
        Episodes that share a row.

    Examples
    --------
    >>> average_curves(np.array([[0, 1], [1, 1]]), every=2)["mean"].tolist()
    [0.75]
    """
    n_episodes = returns.shape[1]
    ends = [*range(every, n_episodes, every), n_episodes]
    parts = np.split(returns, ends[:-1], axis=1)
    means = np.stack([part.mean(axis=1) for part in parts], axis=1)

    low, high = np.clip(mean_interval(means), 0.0, 1.0)
    return pd.DataFrame(
        {"episode": ends, "mean": means.mean(axis=0), "low": low, "high": high}
    )
