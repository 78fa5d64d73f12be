"""Columns that drift, and columns that hold an angle as sine and cosine."""

from __future__ import annotations

import numpy as np

from eigenoptions._types import BoolArray, FloatArray, IndexArray
from eigenoptions.samples.trajectories import Trajectories


def find_drift(
    obs: FloatArray,
    next_obs: FloatArray,
    trajectories: Trajectories,
    monotone: float,
    one_sign: float,
) -> list[str]:
    """Why each column counts as drifting; empty for those that do not.

    Parameters
    ----------
    obs, next_obs : ndarray of shape (N, D)
        Observations before and after each step.
    trajectories : Trajectories
        Which step follows which.
    monotone : float
        Share of trajectories in which the column rises, or falls, steadily.
    one_sign : float
        Or share of the changes that go the same way.
    """
    rises, falls = _find_monotone_shares(obs[trajectories.order], trajectories)
    largest = np.abs(obs).max(axis=0)
    upwards, downwards = _find_sign_shares(next_obs - obs, largest)

    reasons = []
    for column in range(obs.shape[1]):
        reason = ""
        if rises[column] >= monotone:
            reason = f"rises in {rises[column]:.0%} of the trajectories"
        elif falls[column] >= monotone:
            reason = f"falls in {falls[column]:.0%} of the trajectories"
        elif upwards[column] >= one_sign:
            reason = f"{upwards[column]:.0%} of its changes go upwards"
        elif downwards[column] >= one_sign:
            reason = f"{downwards[column]:.0%} of its changes go downwards"
        reasons.append(reason)
    return reasons


def _find_monotone_shares(
    values: FloatArray, trajectories: Trajectories
) -> tuple[FloatArray, FloatArray]:
    """Shares of the trajectories in which each column rises and falls steadily.

    A trajectory is cut into parts, whose means must rise or fall from each to the next,
    and explain half of the variance. Of a few trajectories there are more parts, so
    that a random walk does not pass by chance. Trajectories that are too short for the
    parts are not counted.
    """
    n_columns = values.shape[1]
    lengths = trajectories.n_steps
    n_parts = int(np.clip(32 // len(lengths), 4, 16))
    is_long = lengths >= 2 * n_parts

    # Nothing is said if most of the data are in trajectories that are too short.
    n_long = int(is_long.sum())
    if 2 * lengths[is_long].sum() < lengths.sum():
        return np.zeros(n_columns), np.zeros(n_columns)

    begins = np.cumsum(lengths) - lengths
    fractions = np.arange(n_parts + 1) / n_parts
    edges = begins[is_long, None] + (lengths[is_long, None] * fractions).astype(int)
    centred = values - values.mean(axis=0)
    means = _average_parts(centred, edges)
    squares = _average_parts(centred**2, edges)

    # Waves have parts that differ little beside what varies within them.
    between = means.var(axis=1)
    within = (squares - means**2).mean(axis=1)
    is_steady = between >= within

    tolerance = 1e-9 * np.abs(values).max(axis=0)
    differences = np.diff(means, axis=1)
    is_rising = is_steady & (differences > tolerance).all(axis=1)
    is_falling = is_steady & (differences < -tolerance).all(axis=1)
    return is_rising.sum(axis=0) / n_long, is_falling.sum(axis=0) / n_long


def _average_parts(values: FloatArray, edges: IndexArray) -> FloatArray:
    """``(trajectories, parts, D)`` means of the rows between edges."""
    # Differences of the sums up to each edge are the sums of the parts. Up to the
    # first row there is nothing.
    sum_of_nothing = np.zeros((1, values.shape[1]))
    totals = np.concatenate([sum_of_nothing, np.cumsum(values, axis=0)])
    sums: FloatArray = np.diff(totals[edges], axis=1)
    n_rows = np.diff(edges, axis=1)
    return sums / n_rows[:, :, None]


# A column changes rarely if it does so in fewer steps, or in a smaller share of them.
_MIN_CHANGES = 100
_MIN_SHARE = 0.2

# Standard deviation of the sum of two squares, as a share of that of a square, up to
# which it is constant.
_ANGLE_TOLERANCE = 0.05


def _find_sign_shares(
    changes: FloatArray,
    largest: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Shares of the changes of each column that go upwards and downwards.

    They are zero for a column that changes rarely, such as a door that opens once. A
    change that is rounding beside the `largest` value of its column is none.
    """
    tolerance = 1e-12 * largest
    n_upwards = (changes > tolerance).sum(axis=0)
    n_downwards = (changes < -tolerance).sum(axis=0)
    n_changes = n_upwards + n_downwards

    is_frequent = n_changes >= max(_MIN_CHANGES, _MIN_SHARE * len(changes))
    # Divided by infinity, the shares of a rare column are zero.
    n_counted = np.where(is_frequent, n_changes, np.inf)
    return n_upwards / n_counted, n_downwards / n_counted


def pair_angles(obs: FloatArray, is_constant: BoolArray) -> dict[int, int]:
    """Pairs of columns that are the cosine and the sine of an angle.

    The sum of their squares is constant although each of them varies.

    Parameters
    ----------
    obs : ndarray of shape (N, D)
        Observations.
    is_constant : ndarray of bool of shape (D,)
        Columns that do not vary.

    Returns
    -------
    dict
        Each of the two columns with its partner.
    """
    varying: IndexArray = np.flatnonzero(~is_constant)
    squares = obs[:, varying] ** 2
    spread = squares.std(axis=0)
    # The variance of each sum, from those of its parts. Rounding is checked below.
    covariance = np.cov(squares, rowvar=False, bias=True).reshape(2 * spread.shape)
    variance = spread[:, None] ** 2 + spread**2 + 2 * covariance
    largest = 2 * _ANGLE_TOLERANCE * np.minimum(spread[:, None], spread)
    could_be_pair = variance <= largest**2

    partners: dict[int, int] = {}
    for i, first in enumerate(varying.tolist()):
        if first in partners:
            continue
        for j in np.flatnonzero(could_be_pair[i, i + 1 :]) + i + 1:
            second = int(varying[j])
            smaller = min(spread[i], spread[j])
            # Where the squares vary differently, their sum cannot be constant.
            if second in partners or max(spread[i], spread[j]) > 1.2 * smaller:
                continue
            if (squares[:, i] + squares[:, j]).std() <= _ANGLE_TOLERANCE * smaller:
                partners[first] = second
                partners[second] = first
                break
    return partners
