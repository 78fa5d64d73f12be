"""Confidence intervals of means."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import ArrayLike, NDArray

_REMEDY = "use others, a smaller option_chance, or a stop_chance"


_TRAPPED = "these options trap the walk"


Chance = float | str | None


Array = NDArray[np.float64]


logger = logging.getLogger("eigenoptions")


def mean_interval(samples: ArrayLike, confidence: float = 0.95) -> tuple[Array, Array]:
    """Lower and upper end of Student's interval for the mean over the first axis; the mean itself for one sample.

    >>> low, high = mean_interval([1.0, 2.0, 3.0])
    >>> print(low.round(2), high.round(2))
    -0.48 4.48
    """
    from scipy.stats import t

    values = np.asarray(samples, dtype=float)
    n, mean = len(values), values.mean(axis=0)
    half = (
        t.ppf((1 + confidence) / 2, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)
        if n > 1
        else 0.0
    )
    return mean - half, mean + half
