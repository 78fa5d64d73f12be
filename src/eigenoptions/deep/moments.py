"""Means and covariances of features over pairs of observations in time.

Features are functions of the *number* of an observation in a `Dataset`, so that each
observation is encoded once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import NamedTuple, TypeAlias

import numpy as np

from eigenoptions._types import FloatArray, IndexArray
from eigenoptions.deep.dataset import Subset

# From numbers (N,) of observations to their features (N, m).
NumberedFeatures: TypeAlias = Callable[[IndexArray], FloatArray]


class Moments(NamedTuple):
    """Moments of features f over pairs of observations s, s' at a lag.

    Attributes
    ----------
    mean : array (m,)
        Mean of the features.
    C : array (m, m)
        Their covariance, ``E[f(s) f(s)']``.
    R : array (m, m)
        Their symmetric covariance in time, ``E[f(s) f(s')']``.
    """

    mean: FloatArray
    C: FloatArray
    R: FloatArray


# Rows of features that are computed at a time, which bounds the memory.
_BLOCK_ROWS = 4096


def tabulate_features(
    encode: NumberedFeatures, n_observations: int
) -> NumberedFeatures:
    """Compute the features of all observations once, and look them up from then on.

    They are stored as float32.
    """
    numbers = np.arange(n_observations)
    blocks = []
    for low in range(0, n_observations, _BLOCK_ROWS):
        features = encode(numbers[low : low + _BLOCK_ROWS])
        blocks.append(features.astype(np.float32))
    table = np.concatenate(blocks)

    def look_up(numbers: IndexArray) -> FloatArray:
        return table[numbers].astype(np.float64)

    return look_up


def combine_features(
    features: NumberedFeatures, vectors: FloatArray
) -> NumberedFeatures:
    """Make the functions ``features @ vectors``."""

    def compute_functions(numbers: IndexArray) -> FloatArray:
        return features(numbers) @ vectors

    return compute_functions


def compute_moments(
    subset: Subset, features: NumberedFeatures, lag: int, max_pairs: int = 200_000
) -> Moments:
    """Compute mean, covariance and covariance in time of features.

    Parameters
    ----------
    subset : Subset
        The transitions. Where observations repeat exactly, pairs are those of the walk
        that takes each action seen in an observation equally often, as the paper counts
        each transition once. Else they are those of the data.
    features : callable
        From numbers of observations to features.
    lag : int
        Distance in time of the pairs.
    max_pairs : int, default=200,000
        Evenly spaced pairs are used if the data have more.
    """
    if subset.data.repeating:
        return _compute_walk_moments(subset, features, lag)
    return _compute_data_moments(subset, features, lag, max_pairs)


def _compute_walk_moments(
    subset: Subset, features: NumberedFeatures, lag: int
) -> Moments:
    """Moments of the walk on a table of the observations."""
    numbers, W = subset.table
    # The share of time that the walk spends in each observation.
    share = np.asarray(W.sum(axis=1)).ravel()

    f = features(numbers)
    mean = share @ f
    f = f - mean

    # What the walk expects of f after `lag` steps.
    f_later = f
    for _ in range(lag):
        f_later = (W @ f_later) / share[:, None]

    weighted_f = f.T * share
    R = weighted_f @ f_later
    return Moments(mean, weighted_f @ f, 0.5 * (R + R.T))


def _compute_data_moments(
    subset: Subset,
    features: NumberedFeatures,
    lag: int,
    max_pairs: int,
) -> Moments:
    """Moments of the pairs that the data contain."""
    before, after = subset.list_pairs(lag)
    stride = max(1, ceil(len(before) / max_pairs))
    before = before[::stride]
    after = after[::stride]

    n_features = features(before[:1]).shape[1]
    sum_f = np.zeros(n_features)
    sum_ff = np.zeros((n_features, n_features))
    sum_fg = np.zeros((n_features, n_features))
    for low in range(0, len(before), _BLOCK_ROWS):
        f = features(before[low : low + _BLOCK_ROWS])
        g = features(after[low : low + _BLOCK_ROWS])
        sum_f += 0.5 * (f + g).sum(axis=0)
        sum_ff += 0.5 * (f.T @ f + g.T @ g)
        sum_fg += f.T @ g

    mean = sum_f / len(before)
    C = sum_ff / len(before)
    R = sum_fg / len(before)
    squared_mean = mean[:, None] * mean
    return Moments(mean, C - squared_mean, 0.5 * (R + R.T) - squared_mean)
