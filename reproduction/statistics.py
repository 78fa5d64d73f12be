"""Differences of means with their intervals, and summaries of learning runs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import ttest_ind

from eigenoptions.evaluation.intervals import mean_interval
from reproduction.lab import MARGIN

# Of all intervals of one claim together.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Difference:
    """Difference of two means, with its interval.

    >>> print(Difference(0.25, 0.2, 0.3))
    +0.250 (+0.200 to +0.300)
    """

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ({self.low:+.3f} to {self.high:+.3f})"

    @property
    def better(self) -> bool:
        """Whether the first mean is higher: all of the interval is above zero."""
        return self.low > 0

    @property
    def worse(self) -> bool:
        """Whether the first mean is lower: all of the interval is below zero."""
        return self.high < 0

    def above(self, margin: float = MARGIN) -> bool | None:
        """Whether the first mean is higher by what matters: no below the margin, yes above zero, else open (None).

        >>> [Difference(0.0, low, high).above() for low, high in ((0.01, 0.2), (0.01, 0.02), (-0.2, 0.2))]
        [True, False, None]
        """
        return False if self.high < margin else True if self.low > 0 else None

    def equal(self, margin: float = MARGIN) -> bool | None:
        """Whether both means are equal up to a margin; None where the interval has values inside and outside of it.

        >>> [Difference(0.0, low, high).equal() for low, high in ((-0.01, 0.02), (0.06, 0.1), (0.0, 0.1))]
        [True, False, None]
        """
        if -margin < self.low and self.high < margin:
            return True
        return False if self.low > margin or self.high < -margin else None


def compare_means(a: ArrayLike, b: ArrayLike, n_intervals: int = 1) -> Difference:
    """Mean of `a` minus mean of `b` with Welch's interval, widened (Bonferroni) if it is one of several of a claim.

    >>> compare_means([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).mean
    0.0
    >>> compare_means([1.0, 1.1, 0.9], [0.0, 0.1, -0.1], n_intervals=5).better
    True
    """
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    with warnings.catch_warnings():
        # Equal runs give an interval of width zero, as intended.
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = ttest_ind(x, y, equal_var=False).confidence_interval(
            1 - (1 - CONFIDENCE) / n_intervals
        )
    return Difference(
        float(x.mean() - y.mean()), float(interval.low), float(interval.high)
    )


def summarize_runs(returns: NDArray[Any]) -> pd.DataFrame:
    """One row per run of ``(runs, episodes)`` evaluation returns: the mean of all, and that of the last tenth.

    >>> summarize_runs(np.array([[0, 1]]))["mean_return"].tolist()
    [0.5]
    """
    late = returns[:, -max(1, round(0.1 * returns.shape[1])) :]
    means = {"mean_return": returns.mean(axis=1), "late_return": late.mean(axis=1)}
    return pd.DataFrame({"run": np.arange(len(returns)), **means})


def learning_curve(returns: NDArray[Any], every: int = 5) -> pd.DataFrame:
    """One row per `every` episodes of ``(runs, episodes)`` returns: their mean and its 95% interval over runs.

    >>> learning_curve(np.array([[0, 1], [1, 1]]), every=2)["mean"].tolist()
    [0.75]
    """
    ends = [*range(every, returns.shape[1], every), returns.shape[1]]
    means = np.stack(
        [part.mean(axis=1) for part in np.split(returns, ends[:-1], axis=1)], axis=1
    )
    low, high = np.clip(mean_interval(means), 0.0, 1.0)
    return pd.DataFrame(
        {"episode": ends, "mean": means.mean(axis=0), "low": low, "high": high}
    )
