"""Rayleigh-Ritz: the best eigenfunctions in the span of features.

The features of a network span a space of functions. In it the slowest functions, which
approximate eigenfunctions of the Laplacian best, solve one generalized eigenproblem.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from eigenoptions._types import FloatArray
from eigenoptions.deep.dataset import Subset
from eigenoptions.deep.implied import compute_implied_values
from eigenoptions.deep.moments import (
    NumberedFeatures,
    combine_features,
    compute_moments,
)
from eigenoptions.samples.incidence import find_principal_axes


class SlowFunctions(NamedTuple):
    """Functions ``features @ vectors``, the constant first.

    Attributes
    ----------
    values : array (K,)
        Their eigenvalues per transition.
    vectors : array (1 + m, K)
        Their coefficients; the first feature is 1.
    """

    values: FloatArray
    vectors: FloatArray


def find_slow_functions(
    subset: Subset,
    features: NumberedFeatures,
    k: int,
    lag: int,
    max_pairs: int = 200_000,
) -> SlowFunctions:
    """Find the slowest functions in the span of features, from pairs at a lag.

    It solves ``(C - R) v = lambda C v``. The mean squares ``C - R`` of differences of
    features are the paper's ``T'T / 2``, and the covariance C is the metric.

    Parameters
    ----------
    subset : Subset
        The transitions.
    features : callable
        From numbers of observations to features ``(N, 1 + m)``; the first is 1.
    k : int
        Number of functions, the constant included.
    lag : int
        Distance in time of the pairs.
    max_pairs : int, default=200,000
        Largest number of pairs.
    """
    moments = compute_moments(subset, features, lag, max_pairs)
    mean = moments.mean[1:]
    C = moments.C[1:, 1:]
    R = moments.R[1:, 1:]

    # In these coordinates the features have variance 1 in all directions.
    variances, axes = find_principal_axes(C)
    n_directions = len(variances)
    if n_directions == 0 or n_directions < k - 1:
        raise ValueError(
            f"k must be at most {n_directions + 1}, "
            f"the directions in which features vary, got {k}"
        )
    whitening = axes / np.sqrt(variances)
    ritz_values, rotation = np.linalg.eigh(whitening.T @ (C - R) @ whitening)

    vectors = np.zeros((1 + len(mean), k))
    vectors[0, 0] = 1.0
    vectors[1:, 1:] = whitening @ rotation[:, : k - 1]
    # The constant feature makes the mean of each function zero.
    vectors[0, 1:] = -mean @ vectors[1:, 1:]

    # Per transition: the root of the autocorrelation at the lag. One below 0 has no
    # root, so only a lag of 1 shows values above 1.
    correlation = 1.0 - ritz_values[: k - 1]
    if lag > 1:
        correlation = np.clip(correlation, 0.0, 1.0) ** (1 / lag)
    values = np.append(0.0, 1.0 - correlation)
    return SlowFunctions(values, vectors)


def remove_noise(
    slow: SlowFunctions, subset: Subset, features: NumberedFeatures, lag: int
) -> SlowFunctions:
    """Find the functions that are slowest by their covariances at lag 1 and at `lag`.

    Noise that is new in each observation adds to the variance of a function. So the
    Ritz step takes functions with less noise for slower ones, and its values are too
    large. But noise adds nothing to covariances in time: for functions of the state,
    ``R(lag) v = mu^(lag - 1) R(1) v`` holds with or without it.

    Parameters
    ----------
    slow : SlowFunctions
        The result of `find_slow_functions`, in whose span the functions are found.
    subset : Subset
        The transitions.
    features : callable
        From numbers of observations to features.
    lag : int
        The longer lag, at least 2.
    """
    functions = combine_features(features, slow.vectors[:, 1:])
    R_near = compute_moments(subset, functions, 1).R
    R_far = compute_moments(subset, functions, lag).R
    try:
        ratios, rotation = eigh(R_far, R_near)
    except np.linalg.LinAlgError:
        # Some function has no positive covariance in time: noise only, or too few data.
        return slow

    # Slowest first.
    ratios = ratios[::-1]
    rotation = rotation[:, ::-1]
    decay = np.clip(ratios, 0.0, 1.0) ** (1 / (lag - 1))
    constant = slow.vectors[:, 0]
    vectors = np.column_stack([constant, slow.vectors[:, 1:] @ rotation])
    return SlowFunctions(np.append(0.0, 1.0 - decay), vectors)


# An autocorrelation below it would be lost in the noise of the data.
_LEAST_VISIBLE = 0.3


def find_visible_lag(
    subset: Subset, features: NumberedFeatures, k: int, max_lag: int
) -> int:
    """Find the longest lag at which the fastest of k functions can still be seen.

    Parameters
    ----------
    subset : Subset
        The transitions.
    features : callable
        From numbers of observations to features.
    k : int
        Number of functions, the constant included.
    max_lag : int
        Longest lag.
    """
    if max_lag == 1:
        return 1

    slow = find_slow_functions(subset, features, k, 1, max_pairs=20_000)
    values = slow.values
    if not subset.data.repeating:
        # New noise in each observation lowers all autocorrelations, not their decay.
        functions = combine_features(features, slow.vectors)
        values = compute_implied_values(subset, functions, 1)

    fastest = max(1.0 - float(values.max()), 0.0)
    lag = max_lag
    while lag > 1 and fastest**lag < _LEAST_VISIBLE:
        # The next odd lag: at even ones a function that changes its sign in each step
        # looks slow.
        lag -= 1 + lag % 2
    return lag
