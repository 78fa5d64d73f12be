"""When two action values count as equal: the one tie rule of all options (paper, Section 3).

An eigenvector f is known up to an error d in each entry, which differs between machines. The discounted rewards of an
option telescope: ``u = v + f`` is a weighted mean of entries of f, and so is what arriving in a state is worth,
``x = (1 - gamma) f + gamma u``. Both are wrong by at most d, whatever gamma; ``q(s, a) = E[x(s')] - f(s)`` and the
difference of two action values by at most 2 d. Truly equal values are found equal on every machine if the tolerance
exceeds 2 d; so that few others come close to it, it lies far above d, and on every maze studied in the empty range
between noise and true differences (1e-12 to 1e-9 of max|f|).

Following an action that is worse than the best by `slack`, the mean of u changes from a state to the next by at least
``(1 - gamma) v(s') - slack``. Around a circle these changes add up to zero, but with ``slack <= (1 - gamma) v / 4``
their sum would be positive. So no option turns in a circle, and in stochastic dynamics each ends with probability 1,
whatever the tolerance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Relative to max|f|. Values of an exact potential (a goal) have rounding errors of 1e-16 only; those of a computed one
# (an eigenvector) have errors of up to 1e-12.
EXACT_FLOOR = 1e-12
COMPUTED_FLOOR = 1e-9
# Tolerance over the bound on the error of an entry. Bounds differ between machines, so where they count (above 1e-10)
# the tolerance rises in steps of a factor.
SAFETY_FACTOR = 10.0
STEP = 100.0


def tolerance(scale: ArrayLike, accuracy: ArrayLike, floor: float | None = None) -> NDArray[np.float64]:
    """Difference up to which values of an option are equal: at least ten times the bound on the error of f.

    `scale` is max|f|, `accuracy` the bound (`Purpose.accuracy`; 0 for an exact potential), one number or one per
    potential; `floor` the least tolerance relative to `scale`, None: 1e-12 for exact potentials, 1e-9 for others.

    >>> [f"{x:.0e}" for x in tolerance([2.0, 2.0, 2.0], [0.0, 1e-14, 1e-9])]
    ['2e-12', '2e-09', '2e-07']
    """
    scale, accuracy = np.asarray(scale, dtype=np.float64), np.asarray(accuracy, dtype=np.float64)
    floors = np.where(accuracy > 0.0, COMPUTED_FLOOR, EXACT_FLOOR) if floor is None else floor
    unit = COMPUTED_FLOOR * np.where(scale > 0.0, scale, 1.0)
    with np.errstate(divide="ignore"):
        steps = np.ceil(np.log(SAFETY_FACTOR * accuracy / unit) / np.log(STEP))
    tolerances: NDArray[np.float64] = np.maximum(floors * scale, unit * STEP**steps)
    return tolerances


def first_best(
    q: NDArray[np.float64], tolerance: ArrayLike, gamma: float = 0.0
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The first of the best actions, and whether it is better than TERMINATE, which is worth 0.

    Values `q` ``(..., A)`` that differ by no more than the `tolerance` (one number, or one per row) are equal. `gamma`
    is their discount; 0 for the gain of a single step or of a look-ahead.

    >>> first, acts = first_best(np.array([[1.0, 1.0 + 1e-12, 0.0], [-1.0, 1e-12, 0.0]]), 1e-9)
    >>> first.tolist(), acts.tolist()
    ([0, 1], [True, False])
    """
    best = q.max(axis=-1)
    acts = best > tolerance
    slack = np.where(acts, np.minimum(tolerance, 0.25 * (1.0 - gamma) * best), tolerance)
    first: NDArray[Any] = (q >= (best - slack)[..., None]).argmax(axis=-1)
    return first, acts
