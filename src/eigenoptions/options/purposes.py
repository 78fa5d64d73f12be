"""Where purposes come from: eigenvectors, goals, and the local maxima of a score."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.sparse import csr_array

from eigenoptions._ties import COMPUTED_TOLERANCE
from eigenoptions._types import FloatArray, IndexArray
from eigenoptions._validation import check_type
from eigenoptions.mdp import MDP
from eigenoptions.options.records import Purpose
from eigenoptions.spectra import Spectrum
from eigenoptions.spectra.spectrum import number_vectors


def eigenpurposes(
    spectrum: Spectrum, *, both_signs: bool = True, skip_zero: bool = True
) -> list[Purpose]:
    """Return the eigenpurposes of a spectrum (Definition 3.1).

    They come in the order of eigenvalues, + before -.

    Parameters
    ----------
    spectrum : Spectrum
        The eigenvectors.
    both_signs : bool, default=True
        Whether each eigenvector is followed by its negation, as in the paper.
    skip_zero : bool, default=True
        Leave out eigenvalue zero, which has no direction. Labels count it as the paper
        does: the first one is ``e2+``. This is also so where a spectrum of features has
        no constant function.

    Returns
    -------
    list of Purpose

    Examples
    --------
    >>> import eigenoptions as eo
    >>> W = eo.graph(eo.maze("four-rooms"))
    >>> [p.label for p in eigenpurposes(eo.spectrum(W, k=3))]
    ['e2+', 'e2-', 'e3+', 'e3-']
    """
    check_type("spectrum", spectrum, Spectrum, "call spectrum(graph(mdp))")
    numbers = number_vectors(spectrum)
    values = spectrum.values.tolist()
    n_skipped = spectrum.n_zero if skip_zero else 0
    signs = (1, -1) if both_signs else (1,)

    purposes = []
    for i in range(n_skipped, len(values)):
        vector = spectrum.vectors[:, i]
        for sign in signs:
            purpose = Purpose(
                sign * vector, index=numbers[i], sign=sign, eigenvalue=values[i]
            )
            purposes.append(purpose)
    return purposes


def make_goal_purposes(mdp: MDP, goals: Iterable[int]) -> list[Purpose]:
    """Return one purpose per goal, whose option takes a shortest path there.

    Its potential is 1 at the goal and 0 elsewhere.

    >>> import eigenoptions as eo
    >>> [p.label for p in make_goal_purposes(eo.maze("S.G"), [2, 0])]
    ['goal 2', 'goal 0']
    """
    states = np.arange(mdp.n_states)
    purposes = []
    for goal in goals:
        indicator = (states == goal).astype(np.float64)
        purposes.append(Purpose(indicator, goal=int(goal), exact=True))
    return purposes


def find_local_maxima(W: csr_array, score: FloatArray) -> IndexArray:
    """Return the states whose score no neighbour exceeds, highest score first.

    Of neighbours with equal scores only the first is a maximum. Scores that differ by
    rounding only are equal.

    >>> import eigenoptions as eo
    >>> W = eo.graph(eo.maze("....."))
    >>> find_local_maxima(W, np.array([1.0, 0.0, 2.0, 2.0 + 1e-15, 0.0])).tolist()
    [2, 0]
    """
    rank = _rank_scores(score)
    states = np.repeat(np.arange(len(score)), np.diff(W.indptr))
    neighbours = W.indices

    is_higher = rank[neighbours] > rank[states]
    is_equal = rank[neighbours] == rank[states]
    is_exceeded = is_higher | (is_equal & (neighbours < states))
    maxima = np.setdiff1d(np.arange(len(score)), states[is_exceeded])
    return maxima[np.argsort(-rank[maxima], kind="stable")]


def _rank_scores(score: FloatArray) -> IndexArray:
    """Return ranks ``(S,)`` from 0 for the lowest score; equal scores share a rank."""
    largest = float(np.abs(score).max(initial=0.0))
    order = np.argsort(score, kind="stable")
    rises = np.diff(score[order]) > COMPUTED_TOLERANCE * max(largest, 1e-300)

    rank = np.empty(len(score), dtype=np.intp)
    rank[order] = np.concatenate([[0], np.cumsum(rises)])
    return rank
