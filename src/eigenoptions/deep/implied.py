"""Implied values: eigenvalues that follow from how fast functions forget.

The autocorrelation of an eigenfunction at lag L is ``(1 - value)^L``. So its decay from
a lag to twice the lag implies the value, without the spectrum of any operator.
"""

from __future__ import annotations

import numpy as np

from eigenoptions._types import FloatArray
from eigenoptions.deep.dataset import Subset
from eigenoptions.deep.moments import NumberedFeatures, compute_moments

# Where observations repeat, an autocorrelation below it is not divided by: the one at
# twice the lag is its square.
_LEAST_CORRELATION = 0.3

# Longest lag where observations repeat: there pairs are those of a table, and never too
# few.
_LONGEST_LAG = 100

# Elsewhere, the share of steps that must begin a pair at twice the lag.
_LEAST_SHARE = 0.1


def compute_implied_values(
    subset: Subset, functions: NumberedFeatures, lag: int
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
        decay = np.where(near < _LEAST_CORRELATION, root, decay)

    if lag == 1:
        return 1.0 - np.clip(decay, -1.0, 1.0)
    # A decay below 0 has no root.
    return 1.0 - np.clip(decay, 0.0, 1.0) ** (1 / lag)


def compute_long_lag_values(
    subset: Subset,
    functions: NumberedFeatures,
    values: FloatArray,
    lag: int,
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

    Returns
    -------
    array (K,)
        Values at the longest lag that suits each function.
    """
    lag = 2 * lag
    is_slow = values[1:] * lag < 0.5
    while is_slow.any() and _has_enough_pairs(subset, lag):
        implied = compute_implied_values(subset, functions, lag)
        slow_values = np.where(is_slow, implied[1:], values[1:])
        values = np.append(0.0, slow_values)
        lag = 2 * lag
        is_slow = values[1:] * lag < 0.5
    return values


def _has_enough_pairs(subset: Subset, lag: int) -> bool:
    """Tell whether values may be taken at a lag and twice the lag."""
    if subset.data.repeating:
        return lag <= _LONGEST_LAG
    before, _ = subset.list_pairs(2 * lag)
    return len(before) >= _LEAST_SHARE * len(subset.starts)


def _compute_autocorrelations(
    subset: Subset, functions: NumberedFeatures, lag: int
) -> FloatArray:
    """Autocorrelation ``(K,)`` of each function at a lag; that of a constant is 1."""
    moments = compute_moments(subset, functions, lag)
    variance = moments.C.diagonal()
    varies = variance > 1e-9 * variance.max()
    correlation = moments.R.diagonal() / np.maximum(variance, 1e-300)
    return np.where(varies, correlation, 1.0)
