"""`Certificate`: how far learned eigenfunctions can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eigenoptions._types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Certificate:
    """How far learned eigenfunctions can be trusted, computed without ground truth.

    Attributes
    ----------
    score : float
        VAMP-2 score on transitions that were held out of training: the sum of squared
        autocorrelations, at most ``k - 1``.
    best_score : float
        The same for the transitions of training. If it is much larger, pairs were
        memorised.
    ritz : array (K,)
        Eigenvalues per transition by the Ritz step at lag L, ``1 - c(L)^(1/L)`` with
        the autocorrelation c. Where no observation occurs twice, noise may be new in
        each, and they are ``1 - (c(L) / c(1))^(1/(L-1))``.
    implied : array (K,)
        Eigenvalues that longer lags imply, ``1 - (c(2M) / c(M))^(1/M)`` with M = L or,
        for slow functions of observations that repeat, a multiple of it. For a true
        eigenfunction both values are equal. nan where no trajectory is 2 L long: then
        nothing can be said, and no function counts as resolved.
    lag : int
        The lag L.
    repeating : bool
        Whether observations repeat exactly: then a table of them is exact, and faster.

    Examples
    --------
    >>> certificate = Certificate(
    ...     score=2.5,
    ...     best_score=2.6,
    ...     ritz=np.array([0.0, 0.01]),
    ...     implied=np.array([0.0, 0.02]),
    ...     lag=5,
    ...     repeating=False,
    ... )
    >>> certificate.resolved.tolist()
    [True, False]
    """

    score: float
    best_score: float
    ritz: FloatArray
    implied: FloatArray
    lag: int
    repeating: bool

    @property
    def resolved(self) -> BoolArray:
        """Whether both values agree to a tenth ``(K,)``; those of the constant do."""
        return find_resolved(self.ritz, self.implied)

    @property
    def unresolved_labels(self) -> list[str]:
        """Labels of the functions that are not resolved, such as ``"e4"``."""
        return [f"e{i + 1}" for i in np.flatnonzero(~self.resolved)]

    def __str__(self) -> str:
        lines = [f"held-out score {self.score:.3f} (training {self.best_score:.3f})"]
        rows = zip(self.ritz, self.implied, self.resolved, strict=True)
        for number, (ritz, implied, is_resolved) in enumerate(rows, start=1):
            line = f"e{number:<3} Ritz {ritz:.5f}  implied {implied:.5f}"
            if not is_resolved:
                line += "  not resolved"
            lines.append(line)
        return "\n".join(lines)


def find_resolved(ritz: FloatArray, implied: FloatArray) -> BoolArray:
    """Find the values that differ by at most a tenth."""
    return np.abs(ritz - implied) <= 0.1 * np.abs(implied)
