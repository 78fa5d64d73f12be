"""What a column of the observations depends on: the action, other columns, or nothing.

A column is *exogenous* if neither actions nor columns that actions move have an
influence on it (Dietterich et al., 2018: "Discovering and removing exogenous state
variables"): a clock, the weather, the noise of a sensor.

An influence is a difference between groups: changes of the column are ranked, and the
statistic of Kruskal and Wallis says how much the mean ranks of the groups differ. It is
compared with itself after the groups were shifted in time by many steps. A shift keeps
how slowly they vary, and destroys an influence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._types import BoolArray, FloatArray, IndexArray, Progress
from eigenoptions.samples.trajectories import Trajectories


@dataclass(frozen=True, eq=False)
class Changes:
    """Changes of columns over a number of steps, and what was there before.

    Attributes
    ----------
    before : ndarray of shape (n, D)
        Observations before the steps.
    actions : list of ndarray of int of shape (n,)
        Group of the action that was taken first, by each of its components.
    ranks : ndarray of shape (n, 2 D)
        Ranks of the changes of each column, then of their sizes. They have mean 0 and
        variance 1.
    """

    before: FloatArray
    actions: list[IndexArray]
    ranks: FloatArray


# Steps over which changes are looked at. An action may show late: a force first moves a
# velocity, then a position.
_HORIZONS = (1, 4, 16)

# Changes below which a horizon is not looked at.
_MIN_CHANGES = 100

# An influence exceeds that of as many shifts in time, and chance by these standard
# deviations.
_N_SHIFTS = 19
_MIN_SCORE = 4.0


def find_exogenous(
    obs: FloatArray,
    action: NDArray[Any],
    next_obs: FloatArray,
    trajectories: Trajectories,
    candidates: IndexArray,
    *,
    progress: Progress | None = None,
) -> BoolArray:
    """``(D,)`` which columns neither actions nor columns moved by them influence.

    Parameters
    ----------
    obs, next_obs : ndarray of shape (N, D)
        Observations before and after each step.
    action : ndarray of shape (N,) or (N, k)
        Actions.
    trajectories : Trajectories
        Which step follows which.
    candidates : ndarray of int
        Columns that may be exogenous: those that vary.
    progress : callable, default=None
        Called as ``progress(done, total)`` with numbers of columns that the action
        alone does not move.
    """
    test = _Test(_N_SHIFTS, _MIN_SCORE)
    is_moved = np.ones(obs.shape[1], dtype=np.bool_)
    is_moved[candidates] = False
    steps = []
    for horizon in _HORIZONS:
        begins = _find_begins(trajectories, horizon)
        # In rows whose order is lost, no step follows another.
        if len(begins) >= _MIN_CHANGES:
            ends = begins + horizon - 1
            order = trajectories.order
            steps.append(_measure_changes(obs, action, next_obs, order, begins, ends))
    if not steps:
        return np.zeros_like(is_moved)

    # First by the action alone, which is all that most columns need.
    for changes in steps:
        for groups in changes.actions:
            left = np.flatnonzero(~is_moved)
            ranks = _select_ranks(changes, left)
            is_moved[left] = test.find_influenced(ranks, groups)

    # Then by the action together with a column: a turn to the left moves the sine of
    # the heading up or down, depending on the cosine. This takes most of the time.
    changes = steps[0]
    left = np.flatnonzero(~is_moved)
    ranks = _select_ranks(changes, left)
    for n_done, other in enumerate(candidates.tolist(), start=1):
        places = _group_values(changes.before[:, other], 4)
        for groups in changes.actions:
            is_found = test.find_influenced(ranks, groups, places)
            # A copy of the ranks takes longer than to look at them.
            if is_found.any():
                is_moved[left[is_found]] = True
                left = left[~is_found]
                ranks = _select_ranks(changes, left)
        if progress is not None:
            progress(n_done, len(candidates))

    # Then by columns that actions move, and by those that these move.
    movers = candidates[is_moved[candidates]].tolist()
    for mover in movers:
        groups = _group_values(changes.before[:, mover], 8)
        is_found = test.find_influenced(ranks, groups)
        if is_found.any():
            movers.extend(left[is_found].tolist())
            is_moved[left[is_found]] = True
            left = left[~is_found]
            ranks = _select_ranks(changes, left)
    return ~is_moved


@dataclass(frozen=True)
class _Test:
    """Whether groups have an influence on the changes of columns."""

    n_shifts: int
    min_score: float

    def find_influenced(
        self,
        ranks: FloatArray,
        groups: IndexArray,
        places: IndexArray | None = None,
    ) -> BoolArray:
        """``(L,)`` columns whose ranks differ between groups more than by chance.

        Parameters
        ----------
        ranks : ndarray of shape (n, 2 L)
            Ranks of the changes of each column, then of their sizes.
        groups : ndarray of int of shape (n,)
            The group of each row.
        places : ndarray of int of shape (n,), default=None
            What divides each group, and is not shifted in time.
        """
        scores = _score_groups(ranks, groups, places)
        is_influenced: BoolArray = scores >= self.min_score
        n_columns = len(scores)
        for shifted in _shift_groups(groups, self.n_shifts):
            columns = np.flatnonzero(is_influenced)
            if not len(columns):
                break
            both = np.concatenate([columns, n_columns + columns])
            flagged = np.ascontiguousarray(ranks[:, both])
            by_chance = _score_groups(flagged, shifted, places)
            is_influenced[columns] = by_chance < scores[columns]
        return is_influenced


def _find_begins(trajectories: Trajectories, horizon: int) -> IndexArray:
    """Places from which so many steps follow within the trajectory."""
    places = np.arange(len(trajectories.last))
    return np.flatnonzero(places + horizon - 1 <= trajectories.last)


def _measure_changes(
    obs: FloatArray,
    action: NDArray[Any],
    next_obs: FloatArray,
    order: IndexArray,
    begins: IndexArray,
    ends: IndexArray,
) -> Changes:
    """Changes from the beginning of some steps to the end of others."""
    before = obs[order[begins]]
    change = next_obs[order[ends]] - before
    size = np.abs(change - np.median(change, axis=0))
    ranks = _rank_columns(np.concatenate([change, size], axis=1))

    components = action.reshape(len(action), -1)[order[begins]].T
    actions = [_group_values(component, n_groups=8) for component in components]
    return Changes(before, actions, ranks)


def _select_ranks(changes: Changes, columns: IndexArray) -> FloatArray:
    """``(n, 2 L)`` ranks of the changes of L columns, then of their sizes."""
    n_columns = changes.before.shape[1]
    both = np.concatenate([columns, n_columns + columns])
    # Contiguous, or each sum would copy it.
    return np.ascontiguousarray(changes.ranks[:, both])


def _rank_columns(values: FloatArray) -> FloatArray:
    """Mean ranks of each column, with mean 0 and variance 1; 0 if all are equal."""
    ranks = np.zeros(values.shape)
    for column, entries in enumerate(values.T):
        # Values that differ by rounding are equal.
        largest = np.abs(entries).max(initial=0.0)
        rounded = entries
        if largest > 0:
            rounded = np.round(entries / largest, 9)
        # As SciPy's `rankdata`, without the third of a second that its package loads.
        _, number, count = np.unique(rounded, return_inverse=True, return_counts=True)
        mean_rank = np.cumsum(count) - (count - 1) / 2
        ranks[:, column] = mean_rank[number]

    ranks -= ranks.mean(axis=0)
    deviation = ranks.std(axis=0)
    return ranks / np.where(deviation > 0, deviation, 1.0)


def _group_values(values: NDArray[Any], n_groups: int) -> IndexArray:
    """Divide numbers into groups: one per value, or of about equal size if many."""
    distinct, number = np.unique(values, return_inverse=True)
    if len(distinct) > 2 * n_groups:
        edges = np.quantile(values, np.arange(1, n_groups) / n_groups)
        number = np.searchsorted(edges, values, side="right")
    return np.asarray(number, dtype=np.intp)


def _shift_groups(groups: IndexArray, n_shifts: int) -> Iterator[IndexArray]:
    """The groups of other times: shifted by equal parts of the data."""
    for shift in range(1, n_shifts + 1):
        yield np.roll(groups, shift * len(groups) // (n_shifts + 1))


def _score_groups(
    ranks: FloatArray, groups: IndexArray, places: IndexArray | None = None
) -> FloatArray:
    """Kruskal and Wallis: how many standard deviations groups differ above chance.

    The larger one of the changes and of their sizes counts. By chance the statistic has
    a chi-square distribution, whose cube root is nearly normal (Wilson and Hilferty).

    Returns
    -------
    ndarray of shape (L,)
        One score for each column of ``ranks (n, 2 L)``.
    """
    n_groups = int(groups.max(initial=0)) + 1
    n_places = 1
    cells = groups
    if places is not None:
        n_places = int(places.max(initial=0)) + 1
        cells = groups * n_places + places
    sums, counts = _sum_groups(ranks, cells, n_groups * n_places)

    if places is not None:
        # What the place alone says is no influence of the groups.
        sums_of_places = sums.reshape(n_groups, n_places, -1).sum(axis=0)
        counts_of_places = counts.reshape(n_groups, n_places).sum(axis=0)
        means = sums_of_places / np.maximum(counts_of_places, 1)[:, None]
        sums = sums - counts[:, None] * np.tile(means, (n_groups, 1))

    n_columns = ranks.shape[1] // 2
    is_filled = counts > 0
    n_free = int(is_filled.sum()) - 1
    if n_free < 1:
        return np.zeros(n_columns)
    squares = sums[is_filled] ** 2 / counts[is_filled, None]
    statistics = squares.sum(axis=0).reshape(2, n_columns).max(axis=0)
    variance = 2.0 / (9.0 * n_free)
    deviations = np.cbrt(statistics / n_free) - 1.0 + variance
    scores: FloatArray = deviations / np.sqrt(variance)
    return scores


def _sum_groups(
    ranks: FloatArray, groups: IndexArray, n_groups: int
) -> tuple[FloatArray, IndexArray]:
    """Sums of the rows of each group, and their numbers."""
    n_rows = len(groups)
    membership = csr_array(
        (np.ones(n_rows), groups, np.arange(n_rows + 1)), shape=(n_rows, n_groups)
    )
    return membership.T @ ranks, np.bincount(groups, minlength=n_groups)
