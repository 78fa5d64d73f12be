"""Confidence intervals of means."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from eigenoptions._types import FloatArray
from eigenoptions._validation import check_float, check_real


def mean_interval(
    samples: ArrayLike, confidence: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Compute Student's confidence interval for a mean.

    Parameters
    ----------
    samples : array_like (n, ...)
        Independent samples along the first axis, at least one.
    confidence : float, default=0.95
        Probability that the interval contains the true mean.

    Returns
    -------
    low, high : array (...)
        The ends of the interval. If there is only one sample, both are that sample:
        this is no certainty, its spread is unknown.

    Examples
    --------
    >>> low, high = mean_interval([1.0, 2.0, 3.0])
    >>> print(low.round(2), high.round(2))
    -0.48 4.48
    """
    # SciPy's statistics take long to load, and few users need an interval.
    from scipy import stats

    confidence = check_float("confidence", confidence, above=0, below=1)
    values = check_real("samples", samples).astype(float)
    n_samples = len(values) if values.ndim else 0
    if n_samples == 0:
        raise ValueError("an interval needs at least one sample, got none")
    mean = values.mean(axis=0)
    if n_samples == 1:
        # The spread is unknown, so there is no interval. A curve of one run is drawn
        # without a band.
        return mean, mean

    quantile = stats.t.ppf((1 + confidence) / 2, n_samples - 1)
    half_width = quantile * values.std(axis=0, ddof=1) / np.sqrt(n_samples)
    return mean - half_width, mean + half_width
