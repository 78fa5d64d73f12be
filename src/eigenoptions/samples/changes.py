"""How much observations change in one step."""

from __future__ import annotations

import numpy as np

from eigenoptions._types import FloatArray

# Changes that are so much smaller than the largest of a column are rounding errors.
_ROUNDING = 1e-9


def measure_step(change: FloatArray, quantile: float = 0.9) -> FloatArray:
    """``(d,)`` a large step: the 0.9 quantile of the changes that are not zero.

    A robot that turns more often than it drives stays where it is in most steps. So
    steps in which a column does not change say nothing about how far it goes in others.

    Parameters
    ----------
    change : ndarray of shape (N, d)
        What steps changed.
    quantile : float, default=0.9
        0.5 gives a typical step.

    Returns
    -------
    ndarray of shape (d,)
        0 for a column that never changes.

    Examples
    --------
    >>> measure_step(np.array([[0.0, 0.0], [0.4, 0.0], [-0.4, 0.0]])).tolist()
    [0.4, 0.0]
    """
    steps = np.zeros(change.shape[1])
    for j, column in enumerate(np.abs(change.T)):
        is_moving = column > _ROUNDING * column.max(initial=0.0)
        if is_moving.any():
            steps[j] = np.quantile(column[is_moving], quantile)
    return steps


def measure_unit(before: FloatArray, after: FloatArray) -> FloatArray:
    """``(d,)`` a large step as a unit of each column, which is never 0.

    Of a column that never changes, such as a door, the unit is a quarter of its extent.

    Parameters
    ----------
    before, after : ndarray of shape (N, d)
        Vectors before and after each step.
    """
    step = measure_step(after - before)
    extent = np.ptp(np.concatenate([before, after]), axis=0)
    fallback = np.where(extent > 0.0, extent / 4.0, 1.0)
    return np.where(step > 0.0, step, fallback)
