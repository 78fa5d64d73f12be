"""Rayleigh-Ritz: the best eigenfunctions in the span of features, and a certificate that needs no ground truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.deep.dataset import Part
from eigenoptions.spectra.gram import Gram

# Share of the largest variance below which a direction of the features is left out.
FLAT = 1e-6
# Most pairs of a Ritz step where observations do not repeat.
MAX_PAIRS = 200_000
# Relative difference between Ritz and implied value from which an eigenfunction counts as not resolved.
MAX_DIFFERENCE = 0.1

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
    effective_rank
        Number of directions that the features of the last hidden layer use: the exponential of the entropy of their
        variances.
    ritz, implied
        ``(K,)`` eigenvalues per transition: by the Ritz step at lag L, ``1 - c(L)^(1/L)`` with the autocorrelation c,
        and implied by twice that lag, ``1 - (c(2L) / c(L))^(1/L)``. They are equal for a true eigenfunction.
    resolved
        ``(K,)`` whether both agree to a tenth. The constant function is always resolved.
    lag
        The lag L.
    repeating
        Whether observations repeat exactly: then a table of them is exact, and faster.

    Examples
    --------
    >>> Certificate(2.5, 2.6, 30.0, np.array([0.0, 0.01]), np.array([0.0, 0.02]), 5, False).resolved.tolist()
    [True, False]
    """

    score: float
    best_score: float
    effective_rank: float
    ritz: Array
    implied: Array
    lag: int
    repeating: bool

    @property
    def resolved(self) -> NDArray[np.bool_]:
        """``(K,)`` whether Ritz and implied value agree to a tenth."""
        return np.abs(self.ritz - self.implied) <= MAX_DIFFERENCE * np.abs(self.implied)

    def __str__(self) -> str:
        rows = [
            f"held-out score {self.score:.3f} (training {self.best_score:.3f}), rank {self.effective_rank:.1f}"
        ]
        for i, (ritz, implied, good) in enumerate(zip(self.ritz, self.implied, self.resolved, strict=True)):
            rows.append(
                f"e{i + 1:<3} Ritz {ritz:.5f}  implied {implied:.5f}{'' if good else '  not resolved'}"
            )
        return "\n".join(rows)


@dataclass(frozen=True, eq=False)
class Solution:
    """Eigenfunctions ``vectors (1 + m, K)`` of features with a constant first, Ritz values, and the features' rank."""

    values: Array
    vectors: Array
    rank: float


def solve(part: Part, features: Features, k: int, lag: int) -> Solution:
    """The k slowest functions in the span of the features, the constant first, from pairs at a lag.

    `features` maps numbers of observations to their features ``(N, 1 + m)``, of which the first is 1. The stream of
    differences is a `Gram` over the whitened features, so that its metric is the identity.
    """
    before, after, weight = grouped(part, lag)
    total = weight.sum()
    # Each distinct observation once, with the number of its occurrences.
    numbers, places = np.unique(np.concatenate([before, after]), return_inverse=True)
    share = np.bincount(places, np.concatenate([weight, weight])) / (2 * total)
    phi = features(numbers)[:, 1:]
    mean = share @ phi
    phi = phi - mean
    size, axes = np.linalg.eigh(phi.T @ (share[:, None] * phi))
    kept = size > FLAT * max(float(size[-1]), 0.0)
    n = int(kept.sum())
    if size[-1] <= 0 or n < k - 1:
        raise ValueError(
            f"features vary in {n if size[-1] > 0 else 0} directions only, too few for k = {k}: observations hardly "
            "differ, or the encoder collapsed; lower k or train longer"
        )
    S = axes[:, kept] / np.sqrt(size[kept])
    root, phi = np.sqrt(weight / total)[:, None], phi @ S
    gram = Gram(n, dedupe=False)
    gram.add(root * phi[places[: len(before)]], root * phi[places[len(before) :]])
    found = gram.spectrum(k - 1, metric=np.eye(n))
    vectors = np.zeros((1 + len(mean), k))
    vectors[0, 0] = 1.0
    vectors[1:, 1:] = S @ found.vectors
    vectors[0, 1:] = -mean @ vectors[1:, 1:]
    variance = size[size > 0] / size[size > 0].sum()
    rank = float(np.exp(-(variance * np.log(variance)).sum()))
    values = np.concatenate([[0.0], 1.0 - np.clip(1.0 - found.values, 0.0, 1.0) ** (1 / lag)])
    return Solution(values, vectors, rank)


def autocorrelations(part: Part, features: Features, vectors: Array, lag: int) -> Array:
    """``(K,)`` autocorrelation at a lag of each function ``features @ vectors`` on the pairs of a part."""
    before, after, weight = grouped(part, lag)
    f, g = features(before) @ vectors, features(after) @ vectors
    total = weight.sum()
    mean = (weight @ f + weight @ g) / (2 * total)
    f, g = f - mean, g - mean
    variance = (weight @ f**2 + weight @ g**2) / (2 * total)
    return np.asarray((weight @ (f * g)) / total / np.maximum(variance, 1e-300))


def score(part: Part, features: Features, vectors: Array, lag: int) -> float:
    """VAMP-2 score of functions on the pairs of a part: the squared autocorrelations in their span."""
    before, after, weight = grouped(part, lag)
    f, g = features(before) @ vectors, features(after) @ vectors
    total = weight.sum()
    mean = (weight @ f + weight @ g) / (2 * total)
    f, g = f - mean, g - mean
    C = (f.T @ (weight[:, None] * f) + g.T @ (weight[:, None] * g)) / (2 * total)
    R = f.T @ (weight[:, None] * g) / total
    # Functions that died on these pairs have no score.
    try:
        L = np.linalg.cholesky(C)
    except np.linalg.LinAlgError:
        return 0.0
    M = np.linalg.solve(L, np.linalg.solve(L, 0.5 * (R + R.T)).T)
    return float((M**2).sum())


def grouped(part: Part, lag: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Pairs of a part at a lag, equal ones once with their number where observations repeat, else at most 200,000."""
    before, after = part.pairs(lag)
    if part.data.repeating:
        n = len(part.data.observations)
        # A pair counts like its reverse.
        low, high = np.minimum(before, after), np.maximum(before, after)
        key, counts = np.unique(low * n + high, return_counts=True)
        return key // n, key % n, counts.astype(np.float64)
    step = -(-len(before) // MAX_PAIRS) or 1
    before, after = before[::step], after[::step]
    return before, after, np.ones(len(before))


def as_features(encode: Any, observations: Any, repeating: bool) -> Features:
    """Features by number of an observation; where observations repeat, each is encoded once."""
    if not repeating:
        return lambda numbers: np.asarray(encode(observations[numbers]))
    table = encode(observations)
    return lambda numbers: np.asarray(table[numbers])
