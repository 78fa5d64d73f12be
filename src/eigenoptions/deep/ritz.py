"""Rayleigh-Ritz: the best eigenfunctions in the span of features, and a certificate that needs no ground truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from eigenoptions.deep.dataset import Subset
from eigenoptions.spectra.incidence import find_principal_axes

# Autocorrelation below which a longer lag implies no value: it would be lost in the noise of the sample.
MIN_CORRELATION = 0.3
# Pairs or observations that are processed at a time.
BLOCK = 4096

Array = NDArray[np.float64]
Features = Callable[[NDArray[np.int64]], Array]


@dataclass(frozen=True, eq=False)
class Certificate:
    """How far learned eigenfunctions can be trusted, computed without ground truth.

    Attributes
    ----------
    score
        VAMP-2 score on transitions that were held out of training: the sum of squared autocorrelations, at most `k`.
    best_score
        The same for the transitions of training; a much larger one means that pairs were memorised.
    ritz, implied
        ``(K,)`` eigenvalues per transition: by the Ritz step at lag L, ``1 - c(L)^(1/L)`` with the autocorrelation c,
        and implied by longer ones, ``1 - (c(2M) / c(M))^(1/M)`` with M = L, where observations repeat a multiple of it
        for slow functions. They are equal for a true eigenfunction. Where no observation occurs twice, noise may be
        new in each, and the first is ``1 - (c(L) / c(1))^(1/(L-1))``.
    resolved
        ``(K,)`` whether both agree to a tenth. The constant function is always resolved.
    lag
        The lag L.
    repeating
        Whether observations repeat exactly: then a table of them is exact, and faster.

    Examples
    --------
    >>> Certificate(2.5, 2.6, np.array([0.0, 0.01]), np.array([0.0, 0.02]), 5, False).resolved.tolist()
    [True, False]
    """

    score: float
    best_score: float
    ritz: Array
    implied: Array
    lag: int
    repeating: bool

    @property
    def resolved(self) -> NDArray[np.bool_]:
        """``(K,)`` whether Ritz and implied value agree to a tenth."""
        return find_resolved(self.ritz, self.implied)

    def __str__(self) -> str:
        rows = [f"held-out score {self.score:.3f} (training {self.best_score:.3f})"]
        for i, (ritz, implied, good) in enumerate(
            zip(self.ritz, self.implied, self.resolved, strict=True)
        ):
            note = "" if good else "  not resolved"
            rows.append(f"e{i + 1:<3} Ritz {ritz:.5f}  implied {implied:.5f}{note}")
        return "\n".join(rows)


def find_resolved(ritz: Array, implied: Array) -> NDArray[np.bool_]:
    """Whether values differ by at most a tenth."""
    return np.abs(ritz - implied) <= 0.1 * np.abs(implied)


class Solution(NamedTuple):
    """Ritz values, and eigenfunctions ``vectors (1 + m, K)`` of features with a constant first."""

    values: Array
    vectors: Array


def solve(
    subset: Subset, features: Features, k: int, lag: int, max_pairs: int = 200_000
) -> Solution:
    """The k slowest functions in the span of the features, the constant first, from pairs at a lag.

    `features` maps numbers of observations to their features ``(N, 1 + m)``, of which the first is 1. With the mean
    squares ``C - R`` of their differences, the paper's ``T'T / 2``, and their covariance C as the metric, it solves
    ``(C - R) v = lambda C v``.
    """
    mean, C, R = compute_moments(subset, features, lag, max_pairs)
    mean, C, R = mean[1:], C[1:, 1:], R[1:, 1:]
    size, axes = find_principal_axes(C)
    n = len(size)
    if n == 0 or n < k - 1:
        raise ValueError(
            f"k must be at most {n + 1}, the directions in which features vary, got {k}"
        )
    S = axes / np.sqrt(size)
    values, columns = np.linalg.eigh(S.T @ (C - R) @ S)
    vectors = np.zeros((1 + len(mean), k))
    vectors[0, 0] = 1.0
    vectors[1:, 1:] = S @ columns[:, : k - 1]
    vectors[0, 1:] = -mean @ vectors[1:, 1:]
    # An autocorrelation below 0 has no root: only a lag of 1 shows values above 1.
    c = 1.0 - values[: k - 1]
    values = np.append(
        0.0, 1.0 - (c if lag == 1 else np.clip(c, 0.0, 1.0) ** (1 / lag))
    )
    return Solution(values, vectors)


def remove_noise(
    solution: Solution, subset: Subset, features: Features, lag: int
) -> Solution:
    """The functions in the span of a solution that are slowest by the covariances at lag 1 and at `lag`.

    Noise that is drawn anew for each observation adds to the variance of a function, so that the Ritz step takes
    functions with less noise for slower ones and finds values that are too large. It adds nothing to covariances in
    time: for functions f of the state, ``R(lag) v = mu^(lag - 1) R(1) v`` holds with or without it.
    """
    functions = combine_features(features, solution.vectors[:, 1:])
    near, far = (compute_moments(subset, functions, x)[2] for x in (1, lag))
    try:
        ratio, rotation = eigh(far, near)
    except np.linalg.LinAlgError:
        # Some function has no positive covariance in time: noise only, or too few data.
        return solution
    vectors = np.column_stack(
        [solution.vectors[:, 0], solution.vectors[:, 1:] @ rotation[:, ::-1]]
    )
    values = np.append(0.0, 1.0 - np.clip(ratio[::-1], 0.0, 1.0) ** (1 / (lag - 1)))
    return Solution(values, vectors)


def compute_moments(
    subset: Subset, features: Features, lag: int, max_pairs: int = 200_000
) -> tuple[Array, Array, Array]:
    """Mean, covariance and symmetric covariance in time at a lag of features.

    Where observations repeat exactly, the pairs at a lag are those of the walk that takes each action seen in an
    observation equally often (as the paper counts each transition once), else those of the sample.
    """
    if subset.data.repeating:
        numbers, W = subset.table
        f = features(numbers)
        share = np.asarray(W.sum(axis=1)).ravel()
        mean = share @ f
        f = later = f - mean
        for _ in range(lag):
            later = (W @ later) / share[:, None]
        f_share = f.T * share
        R = f_share @ later
        return mean, f_share @ f, 0.5 * (R + R.T)
    before, after = subset.pairs(lag)
    stride = -(-len(before) // max_pairs) or 1
    before, after = before[::stride], after[::stride]
    total: list[Any] = [0.0, 0.0, 0.0]
    for low in range(0, len(before), BLOCK):
        f, g = (features(side[low : low + BLOCK]) for side in (before, after))
        total[0] += 0.5 * (f + g).sum(axis=0)
        total[1] += 0.5 * (f.T @ f + g.T @ g)
        total[2] += f.T @ g
    mean, C, R = (x / len(before) for x in total)
    outer = mean[:, None] * mean
    return mean, C - outer, 0.5 * (R + R.T) - outer


def find_visible_lag(subset: Subset, features: Features, k: int, lag: int) -> int:
    """The longest lag, at most `lag`, at which the fastest of k functions is still correlated with itself."""
    solution = solve(subset, features, k, 1, max_pairs=20_000)
    values = solution.values
    if not subset.data.repeating:
        # New noise in each observation lowers all autocorrelations alike, but not their decay.
        values = compute_implied_values(
            subset, combine_features(features, solution.vectors), 1
        )
    while lag > 1 and max(1.0 - float(values.max()), 0.0) ** lag < MIN_CORRELATION:
        # Odd lags only: at even ones a function that changes sign in each step looks slow.
        lag -= 1 + lag % 2
    return lag


def compute_implied_values(subset: Subset, functions: Features, lag: int) -> Array:
    """``(K,)`` values per transition that follow from the decay of autocorrelations from a lag to twice it."""
    correlations = []
    for x in (lag, 2 * lag):
        _, C, R = compute_moments(subset, functions, x)
        variance = C.diagonal()
        varies = variance > 1e-9 * variance.max()
        # That of a constant is 1.
        correlations.append(
            np.where(varies, R.diagonal() / np.maximum(variance, 1e-300), 1.0)
        )
    near, far = correlations
    ratio = far / np.where(near == 0, 1e-12, near)
    if subset.data.repeating:
        # Without noise, what is left of an eigenfunction at twice the lag is the square, however small.
        ratio = np.where(
            near < MIN_CORRELATION, np.sign(near) * np.sqrt(np.maximum(far, 0)), ratio
        )
    return 1.0 - (
        np.clip(ratio, 0.0, 1.0) ** (1 / lag) if lag > 1 else np.clip(ratio, -1.0, 1.0)
    )


def compute_long_lag_values(
    subset: Subset, functions: Features, values: Array, lag: int, max_lag: int = 100
) -> Array:
    """``(K,)`` values of slow functions at the longest lags, where what they contain of faster ones has decayed.

    The lag doubles as long as a function is slow compared with it and enough pairs are so long. Where observations
    repeat, pairs are those of a table, and there are enough up to `max_lag`.
    """
    lag = 2 * lag
    while (slow := values[1:] * lag < 0.5).any():
        n_pairs = len(subset.pairs(2 * lag)[0])
        if (
            lag > max_lag
            if subset.data.repeating
            else n_pairs < 0.1 * len(subset.starts)
        ):
            break
        values = np.append(
            0.0,
            np.where(
                slow, compute_implied_values(subset, functions, lag)[1:], values[1:]
            ),
        )
        lag *= 2
    return values


def compute_score(C: Array, R: Array) -> float:
    """VAMP-2 score: the sum of the squared autocorrelations in a span, from its covariances."""
    # Functions that died have none.
    M = np.linalg.solve(C + 1e-9 * np.eye(len(C)), R)
    return float(np.trace(M @ M))


def compute_held_score(train: Array, held: Array, k: int) -> float:
    """VAMP-2 score on held-out outputs ``(2 n, q)`` of the k slowest functions, which are fitted to others."""
    mean = train.mean(axis=0)
    covariances = []
    for f, g in (np.split(outputs - mean, 2) for outputs in (train, held)):
        covariances += [
            (f.T @ f + g.T @ g) / (2 * len(f)),
            (f.T @ g + g.T @ f) / (2 * len(f)),
        ]
    C, R, C_held, R_held = covariances
    size, axes = find_principal_axes(C)
    S = axes / np.sqrt(size)
    S = S @ np.linalg.eigh(S.T @ R @ S)[1][:, ::-1][:, :k]
    return compute_score(S.T @ C_held @ S, S.T @ R_held @ S)


def tabulate_features(encode: Features, n: int) -> Features:
    """Features by number of n observations, each computed once and stored."""
    numbers = np.arange(n)
    blocks = [
        encode(numbers[low : low + BLOCK]).astype(np.float32)
        for low in range(0, n, BLOCK)
    ]
    table = np.concatenate(blocks)
    return lambda numbers: table[numbers].astype(np.float64)


def combine_features(features: Features, vectors: Array) -> Features:
    """Functions ``features @ vectors`` by number of the observation."""
    return lambda numbers: features(numbers) @ vectors
