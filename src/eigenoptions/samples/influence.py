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


def find_exogenous(
    obs: FloatArray,
    action: NDArray[Any],
    next_obs: FloatArray,
    trajectories: Trajectories,
    candidates: IndexArray,
    *,
    horizons: tuple[int, ...] = (1, 4, 16),
    n_shifts: int = 19,
    min_score: float = 4.0,
    min_changes: int = 100,
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
    horizons : tuple of int, default=(1, 4, 16)
        Steps over which changes are looked at. An action may show late: a force first
        moves a velocity, then a position.
    n_shifts : int, default=19
        Number of shifts in time. An influence exceeds all of them.
    min_score : float, default=4.0
        Standard deviations by which an influence exceeds chance.
    min_changes : int, default=100
        Number of changes below which a horizon is not looked at.
    progress : callable, default=None
        Called as ``progress(done, total)`` with numbers of columns that the action
        alone does not move.
    """
    test = _Test(n_shifts, min_score)
    is_moved = np.ones(obs.shape[1], dtype=np.bool_)
    is_moved[candidates] = False
    steps = []
    for horizon in horizons:
        begins = _find_begins(trajectories, horizon)
        # In rows whose order is lost, no step follows another.
        if len(begins) >= min_changes:
            ends = begins + horizon - 1
            order = trajectories.order
            steps.append(_measure_changes(obs, action, next_obs, order, begins, ends))
    if not steps:
        return np.zeros_like(is_moved)

    # First by the action alone, which is all that most columns need.
    for changes in steps:
        for column in np.flatnonzero(~is_moved).tolist():
            is_moved[column] = test.finds_action(changes, column)

    # Then by the action together with a column: a turn to the left moves the sine of
    # the heading up or down, depending on the cosine. This takes most of the time.
    changes = steps[0]
    left = np.flatnonzero(~is_moved).tolist()
    for n_done, column in enumerate(left, start=1):
        is_moved[column] = test.finds_interaction(changes, column, candidates)
        if progress is not None:
            progress(n_done, len(left))

    # Then by columns that actions move, until there are no more.
    while True:
        moving = np.flatnonzero(is_moved[candidates])
        moved_now = [
            column
            for column in np.flatnonzero(~is_moved).tolist()
            if test.finds_column(changes, column, candidates[moving])
        ]
        if not moved_now:
            return ~is_moved
        is_moved[moved_now] = True


@dataclass(frozen=True)
class _Test:
    """Whether groups have an influence on the changes of a column."""

    n_shifts: int
    min_score: float

    def finds_action(self, changes: Changes, column: int) -> bool:
        """Whether the action influences a column."""
        ranks = _select_ranks(changes, column)
        return any(self._is_influence(ranks, groups) for groups in changes.actions)

    def finds_interaction(
        self, changes: Changes, column: int, others: IndexArray
    ) -> bool:
        """Whether the action influences a column, in a way that depends on another."""
        ranks = _select_ranks(changes, column)
        for other in others:
            places = _group_values(changes.before[:, other], 4)
            # What the place alone says is no influence of the action.
            beyond_place = ranks - _predict_means(ranks, places)
            for groups in changes.actions:
                if self._is_influence(beyond_place, groups, places):
                    return True
        return False

    def finds_column(self, changes: Changes, column: int, others: IndexArray) -> bool:
        """Whether one of the other columns influences a column."""
        ranks = _select_ranks(changes, column)
        for other in others:
            groups = _group_values(changes.before[:, other], 8)
            if self._is_influence(ranks, groups):
                return True
        return False

    def _is_influence(
        self,
        ranks: FloatArray,
        groups: IndexArray,
        places: IndexArray | None = None,
    ) -> bool:
        """Whether the ranks of groups differ more than by chance.

        With `places`, a group is divided by them; they are not shifted.
        """
        score = _score_groups(ranks, _cross_groups(groups, places))
        if score < self.min_score:
            return False
        for shifted in _shift_groups(groups, self.n_shifts):
            if _score_groups(ranks, _cross_groups(shifted, places)) >= score:
                return False
        return True


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


def _select_ranks(changes: Changes, column: int) -> FloatArray:
    """``(n, 2)`` ranks of the changes of a column and of their sizes."""
    n_columns = changes.before.shape[1]
    return changes.ranks[:, [column, n_columns + column]]


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


def _cross_groups(groups: IndexArray, places: IndexArray | None) -> IndexArray:
    """Groups divided by places."""
    if places is None:
        return groups
    return groups * (int(places.max(initial=0)) + 1) + places


def _shift_groups(groups: IndexArray, n_shifts: int) -> Iterator[IndexArray]:
    """The groups of other times: shifted by equal parts of the data."""
    for shift in range(1, n_shifts + 1):
        yield np.roll(groups, shift * len(groups) // (n_shifts + 1))


def _predict_means(ranks: FloatArray, groups: IndexArray) -> FloatArray:
    """The mean of the group of each row."""
    sums, counts = _sum_groups(ranks, groups)
    means = sums / np.maximum(counts, 1)[:, None]
    return means[groups]


def _score_groups(ranks: FloatArray, groups: IndexArray) -> float:
    """Kruskal and Wallis: how many standard deviations groups differ above chance.

    The larger one of the changes and of their sizes counts. By chance the statistic has
    a chi-square distribution, whose cube root is nearly normal (Wilson and Hilferty).
    """
    sums, counts = _sum_groups(ranks, groups)
    is_filled = counts > 0
    n_free = int(is_filled.sum()) - 1
    if n_free < 1:
        return 0.0
    squares = sums[is_filled] ** 2 / counts[is_filled, None]
    statistic = float(squares.sum(axis=0).max())
    variance = 2.0 / (9.0 * n_free)
    return float((np.cbrt(statistic / n_free) - 1.0 + variance) / np.sqrt(variance))


def _sum_groups(ranks: FloatArray, groups: IndexArray) -> tuple[FloatArray, IndexArray]:
    """Sums of the rows of each group, and their numbers."""
    n_rows = len(groups)
    n_groups = int(groups.max(initial=0)) + 1
    membership = csr_array(
        (np.ones(n_rows), groups, np.arange(n_rows + 1)), shape=(n_rows, n_groups)
    )
    return membership.T @ ranks, np.bincount(groups, minlength=n_groups)
