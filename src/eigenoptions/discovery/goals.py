"""Goals of options: local maxima of a score on a graph, and purposes that lead to single states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from eigenoptions.mdp import MDP
from eigenoptions.options import Purpose

# Relative difference up to which two scores are equal: far above rounding, far below true differences.
TIE = 1e-9

Array = NDArray[np.float64]


class TooFewOptionsError(ValueError):
    """A method has fewer options than were asked for; `available` is how many there are."""

    def __init__(self, message: str, available: int) -> None:
        super().__init__(message)
        self.available = available


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
    rises = np.diff(score[order]) > TIE * max(
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


def find_first_maximum(score: Array, scale: float | None = None) -> int:
    """The first state with the highest score; scores that differ by rounding (1e-9 of `scale`) are equal.

    >>> find_first_maximum(np.array([0.0, 1.0, 1.0 + 1e-15]))
    1
    """
    scale = float(np.abs(score).max(initial=0.0)) if scale is None else scale
    return int(np.argmax(score >= score.max() - TIE * scale))


def take_first(
    n_options: int | None,
    candidates: list[Any],
    what: str,
    remedy: str = "ask for fewer",
) -> list[Any]:
    """The first `n_options` candidates, None for all; TooFewOptionsError where there are fewer."""
    if n_options is not None and n_options > len(candidates):
        limit = f"1..{len(candidates)}, the number of {what}"
        raise TooFewOptionsError(
            f"n_options must be in {limit}, got {n_options}; {remedy}", len(candidates)
        )
    return candidates[:n_options]


def find_connected_states(mdp: MDP, W: csr_array, method: str) -> NDArray[np.intp]:
    """The states of the graph that have a neighbour; TooFewOptionsError unless they are connected.

    >>> import eigenoptions as eo
    >>> mdp = eo.maze("...#.")
    >>> find_connected_states(mdp, eo.graph(mdp), "covering").tolist()
    [0, 1, 2]
    """
    component = connected_components(W, directed=False)[1]
    size = np.bincount(component)
    n_components = int((size > 1).sum())
    if n_components != 1:
        raise TooFewOptionsError(
            f"method {method!r} needs a connected graph, but {mdp!r} has {n_components} components of several "
            'states: discover options on each component, or use method="eigen"',
            0,
        )
    return np.flatnonzero(size[component] > 1)
