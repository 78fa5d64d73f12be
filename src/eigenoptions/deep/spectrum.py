"""The spectrum of trained features, and its certificate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eigenoptions._ties import find_first_maximum
from eigenoptions._types import FloatArray
from eigenoptions.deep.certificate import Certificate, find_resolved
from eigenoptions.deep.dataset import Dataset, Subset
from eigenoptions.deep.encoder import Encoder
from eigenoptions.deep.implied import compute_implied_values, compute_long_lag_values
from eigenoptions.deep.moments import (
    NumberedFeatures,
    combine_features,
    compute_moments,
)
from eigenoptions.deep.ritz import find_slow_functions, find_visible_lag, remove_noise
from eigenoptions.deep.scores import compute_score
from eigenoptions.spectra import Spectrum


@dataclass(frozen=True, eq=False, repr=False)
class LearnedSpectrum(Spectrum):
    """A `Spectrum` of trained features, with what is known of its quality.

    Attributes
    ----------
    certificate : Certificate
        How far each of the eigenfunctions can be trusted.
    """

    certificate: Certificate | None = None


def compute_spectrum(
    encoder: Encoder,
    features: NumberedFeatures,
    training: Subset,
    held_out: Subset,
    k: int,
    max_lag: int,
) -> LearnedSpectrum:
    """Compute the spectrum of trained features.

    Parameters
    ----------
    encoder : Encoder
        The trained encoder.
    features : callable
        From numbers of observations to a constant 1 and the encoder's last layer.
    training, held_out : Subset
        The two parts of the transitions.
    k : int
        Number of eigenfunctions, the constant included.
    max_lag : int
        Longest lag of the Ritz step.
    """
    data = training.data
    lag = _choose_lag(data, features, k, max_lag)

    slow = find_slow_functions(data.all, features, k, lag)
    if lag > 1 and not data.repeating:
        slow = remove_noise(slow, data.all, features, lag)

    functions = combine_features(features, slow.vectors)
    if _has_pairs(data, 2 * lag):
        implied = compute_implied_values(data.all, functions, lag)
    else:
        # Nothing to compare with: the certificate trusts no function but the constant.
        implied = np.append(0.0, np.full(k - 1, np.nan))

    # What a slow or unresolved function contains of faster ones has decayed at longer
    # lags, so the value implied there is the better one. Where pairs are exact, the
    # certificate compares with it, too.
    values = slow.values
    if np.isfinite(implied).all():
        long_lag_values = compute_long_lag_values(data.all, functions, implied, lag)
        if data.repeating:
            implied = long_lag_values
        is_fast = slow.values * lag >= 0.5
        is_resolved = find_resolved(slow.values, implied)
        values = np.where(is_fast & is_resolved, slow.values, long_lag_values)

    # The constant stays first.
    order = np.append(0, 1 + np.argsort(values[1:], kind="stable"))

    score, best_score = _compute_scores(training, held_out, features, k, lag)
    certificate = Certificate(
        score=score,
        best_score=best_score,
        ritz=slow.values[order],
        implied=implied[order],
        lag=lag,
        repeating=data.repeating,
    )
    vectors = _fix_signs(slow.vectors[:, order], features, len(data.observations))
    # The functions lie in the span of the last layer. The other features come after it.
    n_others = encoder.n_features - len(vectors)
    vectors = np.pad(vectors, ((0, n_others), (0, 0)))
    return LearnedSpectrum(
        values=values[order],
        vectors=vectors,
        operator="learned",
        n_zero=1,
        features=encoder,
        certificate=certificate,
    )


def _has_pairs(data: Dataset, lag: int) -> bool:
    """Tell whether there are pairs of observations at a lag."""
    # Where observations repeat, pairs are those of a walk on their table.
    return data.repeating or len(data.all.list_pairs(lag)[0]) > 0


def _choose_lag(data: Dataset, features: NumberedFeatures, k: int, max_lag: int) -> int:
    """Choose the lag of the Ritz step: the longest at which all functions are seen."""
    lag = find_visible_lag(data.all, features, k, max_lag)
    if data.repeating:
        return lag
    # Two lags tell noise from signal.
    return max(lag, min(max_lag, 2))


def _compute_scores(
    training: Subset, held_out: Subset, features: NumberedFeatures, k: int, lag: int
) -> tuple[float, float]:
    """Scores on both subsets, held-out first, of functions found in training data."""
    slow = find_slow_functions(training, features, k, lag)
    functions = combine_features(features, slow.vectors[:, 1:])
    held_out_moments = compute_moments(held_out, functions, lag)
    training_moments = compute_moments(training, functions, lag)
    return (
        compute_score(held_out_moments.C, held_out_moments.R),
        compute_score(training_moments.C, training_moments.R),
    )


# Most observations that decide about signs.
_MOST_OBSERVATIONS = 25_000


def _fix_signs(
    vectors: FloatArray, features: NumberedFeatures, n_observations: int
) -> FloatArray:
    """Choose the sign of each function so that its largest value is positive.

    Values within a hundredth of the largest count as equal to it, and the first of them
    decides: what is learned is not exact.
    """
    numbers = np.arange(min(n_observations, _MOST_OBSERVATIONS))
    f = features(numbers) @ vectors
    sizes = np.abs(f)
    peaks = find_first_maximum(sizes, 0.01 * sizes.max(axis=0), axis=0)
    largest = f[peaks, np.arange(f.shape[1])]
    return vectors * np.where(largest < 0, -1.0, 1.0)
