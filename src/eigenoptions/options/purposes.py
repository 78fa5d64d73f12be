"""Purposes: eigenvectors, goals, and the local maxima of a score."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._ties import COMPUTED_TOLERANCE
from eigenoptions._validation import check_type
from eigenoptions.mdp import MDP
from eigenoptions.options.records import Purpose
from eigenoptions.spectra import Spectrum
from eigenoptions.spectra.spectrum import number_vectors

Array = NDArray[np.float64]


T = TypeVar("T")


def eigenpurposes(
    spectrum: Spectrum, *, both_signs: bool = True, skip_zero: bool = True
) -> list[Purpose]:
    """Eigenpurposes of a spectrum, in order of eigenvalue, + before - (Definition 3.1).

    Parameters
    ----------
    spectrum : Spectrum
        The eigenvectors.
    both_signs : bool, default=True
        Whether to negate each eigenvector, too, as in the paper.
    skip_zero : bool, default=True
        Leave out eigenvalue zero, which has no direction. Labels count it as the paper does: the first is ``e2+``,
        also where a spectrum of features holds no constant function.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> W = eo.graph(eo.maze("four-rooms"))
    >>> [p.label for p in eigenpurposes(eo.spectrum(W, k=3))]
    ['e2+', 'e2-', 'e3+', 'e3-']
    """
    check_type("spectrum", spectrum, Spectrum, "call spectrum(graph(mdp))")
    numbers = number_vectors(spectrum)
    eigenpairs = list(
        zip(numbers, spectrum.vectors.T, spectrum.values.tolist(), strict=True)
    )
    return [
        Purpose(sign * vector, index=i, sign=sign, eigenvalue=value)
        for i, vector, value in eigenpairs[spectrum.n_zero if skip_zero else 0 :]
        for sign in ((1, -1) if both_signs else (1,))
    ]


def make_goal_purposes(mdp: MDP, goals: Iterable[int]) -> list[Purpose]:
    """The indicator of each goal, as a purpose whose option takes a shortest path there.

    >>> import eigenoptions as eo
    >>> [p.label for p in make_goal_purposes(eo.maze("S.G"), [2, 0])]
    ['goal 2', 'goal 0']
    """
    states = np.arange(mdp.n_states)
    return [
        Purpose((states == goal).astype(np.float64), goal=int(goal), exact=True)
        for goal in goals
    ]


def find_local_maxima(W: csr_array, score: Array) -> NDArray[np.intp]:
    """States whose score no neighbour exceeds, in the order of their scores, highest first.

    Of neighbours with equal scores only the first is a maximum; scores that differ by rounding only are equal.

    >>> import eigenoptions as eo
    >>> find_local_maxima(eo.graph(eo.maze(".....")), np.array([1.0, 0.0, 2.0, 2.0 + 1e-15, 0.0])).tolist()
    [2, 0]
    """
    order = np.argsort(score, kind="stable")
    rises = np.diff(score[order]) > COMPUTED_TOLERANCE * max(
        float(np.abs(score).max(initial=0.0)), 1e-300
    )
    rank = np.empty(len(score), dtype=np.intp)
    rank[order] = np.concatenate([[0], np.cumsum(rises)])
    states = np.repeat(np.arange(len(score)), np.diff(W.indptr))
    neighbours = W.indices
    exceeded = (rank[neighbours] > rank[states]) | (
        (rank[neighbours] == rank[states]) & (neighbours < states)
    )
    maxima = np.setdiff1d(np.arange(len(score)), states[exceeded])
    return maxima[np.argsort(-rank[maxima], kind="stable")]
