"""Betweenness: how many shortest paths pass through each state of a graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from eigenoptions._types import FloatArray, IndexArray, Progress, Randomness

# Most states from which shortest paths start: in larger graphs they are a sample.
_MOST_STARTS = 2_000

# Number of starts whose levels are one sparse matrix ``(starts, S)``.
_STARTS_TOGETHER = 256


def compute_betweenness(
    W: csr_array,
    rng: Randomness = 0,
    *,
    max_bytes: float = 2**30,
    progress: Progress | None = None,
) -> FloatArray:
    """``(S,)`` betweenness of every state of a graph (Brandes, 2001).

    Shortest paths from each start are counted level by level. On the way back, each
    state passes the paths that depend on it on to the states before it.

    Parameters
    ----------
    W : csr_array of shape (S, S)
        The graph; only which entries are stored matters.
    rng : int or Generator, default=0
        Draws 2,000 starts, if there are more states.
    max_bytes : float, default=2**30
        Largest size of the levels of a block: in a large graph, blocks have fewer
        starts.
    progress : callable, default=None
        Called with the numbers of pairs of a start and a state that are done and in
        all, there and back.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> compute_betweenness(eo.graph(eo.maze("....."))).tolist()
    [0.0, 6.0, 8.0, 6.0, 0.0]
    """
    n = W.shape[0]
    A = csr_array((np.ones(W.nnz), W.indices, W.indptr), shape=W.shape)
    starts = np.arange(n)
    if n > _MOST_STARTS:
        drawn = np.random.default_rng(rng).choice(n, _MOST_STARTS, replace=False)
        starts = np.sort(drawn)

    # A state of a level takes an index, a number and a mark, twice while it is made.
    block_size = max(1, min(_STARTS_TOGETHER, int(max_bytes / (40 * n))))
    total = 2 * n * len(starts)
    betweenness = np.zeros(n)
    for first in range(0, len(starts), block_size):
        block = starts[first : first + block_size]

        def report(n_pairs: int, done: int = 2 * n * first) -> None:
            if progress is not None:
                progress(done + n_pairs, total)

        levels = _count_paths(A, block, report)
        betweenness += _sum_dependencies(A, levels, report)
        report(2 * n * len(block))
    return betweenness


def _count_paths(
    A: csr_array, starts: IndexArray, report: Callable[[int], None]
) -> list[csr_array]:
    """Numbers of shortest paths to the states of each level, ``(starts, S)`` each.

    Level i holds the states at distance i from each start.
    """
    n_starts = len(starts)
    shape = (n_starts, A.shape[0])
    paths = csr_array((np.ones(n_starts), starts, np.arange(n_starts + 1)), shape=shape)
    is_visited = np.zeros(shape, dtype=np.bool_)
    levels = []
    n_reached = 0
    while paths.nnz:
        levels.append(paths)
        n_reached += paths.nnz
        report(n_reached)
        is_visited[paths.nonzero()] = True

        # Paths of the next level, without states that were reached before.
        paths = csr_array(paths @ A)
        row = np.repeat(np.arange(n_starts), np.diff(paths.indptr))
        paths.data[is_visited[row, paths.indices]] = 0.0
        paths.eliminate_zeros()
    return levels


def _sum_dependencies(
    A: csr_array, levels: list[csr_array], report: Callable[[int], None]
) -> FloatArray:
    """``(S,)`` the share of all shortest paths that pass through each state."""
    n_starts, n = levels[0].shape
    total = np.zeros(n)
    dependency = csr_array((n_starts, n))

    # From the last level to the second: paths do not pass through their start.
    n_done = n_starts * n
    for depth in range(len(levels) - 1, 1, -1):
        paths = levels[depth]
        previous = levels[depth - 1]
        share = paths.power(-1)
        dependency = csr_array(((share + dependency * share) @ A) * previous)
        total += dependency.sum(axis=0)
        n_done += paths.nnz
        report(n_done)
    return total
