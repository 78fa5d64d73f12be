"""Goals of options: local maxima of a score on a graph, and purposes that lead to single states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions.mdp import MDP
from eigenoptions.options import Purpose

# Relative difference up to which two scores are equal: far above rounding, far below true differences.
TIE = 1e-9

Array = NDArray[np.float64]


def goal_purposes(mdp: MDP, goals: Iterable[int]) -> list[Purpose]:
    """The indicator of each goal, as a purpose whose option takes a shortest path there.

    >>> import eigenoptions as eo
    >>> [p.label for p in goal_purposes(eo.maze("S.G"), [2, 0])]
    ['goal 2', 'goal 0']
    """
    states = np.arange(mdp.n_states)
    return [Purpose((states == goal).astype(np.float64), goal=int(goal), exact=True) for goal in goals]


def local_maxima(W: csr_array, score: Array) -> NDArray[np.intp]:
    """States whose score no neighbour exceeds, in the order of their scores, highest first.

    Of neighbours with equal scores only the first is a maximum, and so it is in the order.

    >>> import eigenoptions as eo
    >>> local_maxima(eo.graph(eo.maze(".....")), np.array([1.0, 0.0, 2.0, 2.0, 0.0])).tolist()
    [2, 0]
    """
    rank = ranked(score)
    rows = np.repeat(np.arange(len(score)), np.diff(W.indptr))
    beaten = np.zeros(len(score), dtype=np.bool_)
    other = W.indices
    beaten[rows[(rank[other] > rank[rows]) | ((rank[other] == rank[rows]) & (other < rows))]] = True
    found = np.flatnonzero(~beaten)
    return found[np.argsort(-rank[found], kind="stable")]


def ranked(score: Array) -> NDArray[np.intp]:
    """The rank of each score, lowest 0; scores that differ by rounding only have one rank.

    >>> ranked(np.array([0.5, 1.0 + 1e-15, 1.0, 0.0])).tolist()
    [1, 2, 2, 0]
    """
    order = np.argsort(score, kind="stable")
    rises = np.diff(score[order]) > TIE * max(float(np.abs(score).max(initial=0.0)), 1e-300)
    rank = np.empty(len(score), dtype=np.intp)
    rank[order] = np.concatenate([[0], np.cumsum(rises)])
    return rank


def highest(score: Array) -> int:
    """The first state with the highest score, scores that differ by rounding being equal.

    >>> highest(np.array([0.0, 1.0, 1.0 + 1e-15]))
    1
    """
    scale = float(np.abs(score).max(initial=0.0))
    return int(np.argmax(score >= score.max() - TIE * scale))


def enough(n_options: int | None, found: list[Any], what: str, remedy: str = "ask for fewer") -> list[Any]:
    """The first `n_options` of what was found; None for all.

    >>> enough(3, ["a", "b"], "local maxima found", "lower t")
    Traceback (most recent call last):
    ValueError: n_options must be in 1..2, the number of local maxima found, got 3; lower t
    """
    if n_options is not None and n_options > len(found):
        limit = f"1..{len(found)}, the number of {what}"
        raise ValueError(f"n_options must be in {limit}, got {n_options}; {remedy}")
    return found[:n_options]


def connected(mdp: MDP, W: csr_array, method: str) -> NDArray[np.intp]:
    """The states of the graph without those that are alone; ValueError unless they are in one piece.

    >>> import eigenoptions as eo
    >>> mdp = eo.maze("...#.")
    >>> connected(mdp, eo.graph(mdp), "covering").tolist()
    [0, 1, 2]
    """
    from scipy.sparse.csgraph import connected_components

    part = connected_components(W, directed=False)[1]
    size = np.bincount(part)
    pieces = int((size > 1).sum())
    if pieces > 1:
        raise ValueError(
            f"method {method!r} needs a connected graph, but {mdp!r} has {pieces} components: discover options on each "
            'component, or use method="eigen"'
        )
    if pieces == 0:
        raise ValueError(
            f"no action leads from one state of {mdp!r} to another: it has no options by method {method!r}"
        )
    return np.flatnonzero(size[part] > 1)
