"""The tie rule: near-ties are ties, and of equal scores the first one wins.

Scores are computed in floating point. Two machines, two BLAS builds or two numbers of
threads round them differently, so scores that are equal in exact arithmetic differ in
their last bits, and a plain ``argmax`` picks one of them by accident. On a symmetric
maze that happens in many states. Everything in this library that takes a maximum of
computed scores therefore asks `find_first_maximum`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions._types import FloatArray

# Scores that differ by no more than this, relative to the largest, are equal. Scores
# that follow from exact numbers (the indicator of a goal) have rounding errors of 1e-16
# only; those of an eigenvector have errors of up to 1e-12.
EXACT_TOLERANCE = 1e-12
COMPUTED_TOLERANCE = 1e-9


def find_first_maximum(
    scores: FloatArray,
    tolerance: float | FloatArray | None = None,
    *,
    axis: int = -1,
    maximum: FloatArray | None = None,
) -> Any:
    """Return the index of the first score that is the maximum, or nearly so.

    Parameters
    ----------
    scores : array
        Finite numbers.
    tolerance : float or array, default=None
        Scores that are smaller than the maximum by no more than this count as maxima.
        An array has one number per maximum. None: 1e-9 of the largest absolute score.
    axis : int, default=-1
        The axis along which to take the maximum.
    maximum : array, default=None
        The maxima ``scores.max(axis)``, if you have them already.

    Returns
    -------
    integer or array of integers
        One index per maximum, as `numpy.argmax` returns it.

    Examples
    --------
    >>> scores = np.array([0.0, 1.0, 1.0 + 1e-15])
    >>> int(scores.argmax()), int(find_first_maximum(scores))
    (2, 1)
    """
    if maximum is None:
        maximum = scores.max(axis=axis)
    if tolerance is None:
        tolerance = COMPUTED_TOLERANCE * np.abs(scores).max(axis=axis)
    threshold = np.asarray(maximum - tolerance)
    return (scores >= np.expand_dims(threshold, axis)).argmax(axis=axis)
