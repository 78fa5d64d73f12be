"""Implied values: eigenvalues that follow from how fast functions forget.

The autocorrelation of an eigenfunction at lag L is ``(1 - value)^L``. So its decay from
a lag to twice the lag implies the value, without the spectrum of any operator.
"""

from __future__ import annotations

import numpy as np

from eigenoptions._types import FloatArray
from eigenoptions.deep.dataset import Subset
from eigenoptions.deep.moments import NumberedFeatures, compute_moments


def compute_implied_values(
    subset: Subset,
    functions: NumberedFeatures,
    lag: int,
    min_correlation: float = 0.3,
) -> FloatArray:
    """Compute values per transition from the decay of autocorrelations.

    Parameters
    ----------
    subset : Subset
        The transitions.
    functions : callable
        From numbers of observations to K functions.
    lag : int
        The shorter lag.
    min_correlation : float, default=0.3
        Where observations repeat, an autocorrelation below it is not divided by: the
        one at twice the lag is its square.

    Returns
    -------
    array (K,)
        ``1 - (c(2 lag) / c(lag))^(1 / lag)``; 0 for a constant function.
    """
    near = _compute_autocorrelations(subset, functions, lag)
    far = _compute_autocorrelations(subset, functions, 2 * lag)

    decay = far / np.where(near == 0, 1e-12, near)
    if subset.data.repeating:
        # Without noise, what is left of an eigenfunction at twice the lag is the
        # square, however small.
        root = np.sign(near) * np.sqrt(np.maximum(far, 0))
        decay = np.where(near < min_correlation, root, decay)

    if lag == 1:
        return 1.0 - np.clip(decay, -1.0, 1.0)
    # A decay below 0 has no root.
    return 1.0 - np.clip(decay, 0.0, 1.0) ** (1 / lag)


def compute_long_lag_values(
    subset: Subset,
    functions: NumberedFeatures,
    values: FloatArray,
    lag: int,
    max_lag: int = 100,
) -> FloatArray:
    """Compute the values of slow functions at long lags.

    What such functions contain of faster ones has decayed there. The lag doubles as
    long as a function is slow compared with it, and enough pairs are so long.

    Parameters
    ----------
    subset : Subset
        The transitions.
    functions : callable
        From numbers of observations to K functions, the constant first.
    values : array (K,)
        Their implied values at the lag.
    lag : int
        The lag from which to go on.
    max_lag : int, default=100
        Longest lag where observations repeat: there pairs are those of a table, and
        never too few.

    Returns
    -------
    array (K,)
        Values at the longest lag that suits each function.
    """
    lag = 2 * lag
    is_slow = values[1:] * lag < 0.5
    while is_slow.any() and _has_enough_pairs(subset, lag, max_lag):
        implied = compute_implied_values(subset, functions, lag)
        slow_values = np.where(is_slow, implied[1:], values[1:])
        values = np.append(0.0, slow_values)
        lag = 2 * lag
        is_slow = values[1:] * lag < 0.5
    return values


def _has_enough_pairs(
    subset: Subset, lag: int, max_lag: int, min_share: float = 0.1
) -> bool:
    """Tell whether values may be taken at a lag and twice the lag."""
    if subset.data.repeating:
        return lag <= max_lag
    before, _ = subset.list_pairs(2 * lag)
    return len(before) >= min_share * len(subset.starts)


def _compute_autocorrelations(
    subset: Subset, functions: NumberedFeatures, lag: int
) -> FloatArray:
    """Autocorrelation ``(K,)`` of each function at a lag; that of a constant is 1."""
    moments = compute_moments(subset, functions, lag)
    variance = moments.C.diagonal()
    varies = variance > 1e-9 * variance.max()
    correlation = moments.R.diagonal() / np.maximum(variance, 1e-300)
    return np.where(varies, correlation, 1.0)
