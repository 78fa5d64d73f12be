"""Parts of what is said about columns: groups, their scores, steady rises."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kruskal, rankdata

from eigenoptions.samples.drift import _find_monotone_shares
from eigenoptions.samples.influence import (
    _group_values,
    _rank_columns,
    _score_groups,
    _shift_groups,
    _Test,
)
from eigenoptions.samples.trajectories import Trajectories, find_trajectories


def test_few_values_have_a_group_each_and_many_are_divided_evenly(rng):
    values = rng.integers(0, 6, 500)
    assert (_group_values(values * 0.1, 4) == values).all()
    many = _group_values(rng.random(500), 4)
    assert np.bincount(many).tolist() == [125] * 4


def test_equal_values_have_their_mean_rank(rng):
    values = rng.integers(0, 5, (200, 3)) ** 2 * np.array([1.0, 1e6, 0.0])
    ranks = rankdata(values, axis=0)
    ranks -= ranks.mean(axis=0)
    ranks[:, :2] /= ranks[:, :2].std(axis=0)
    np.testing.assert_allclose(_rank_columns(values), ranks, atol=1e-12)


def test_groups_are_compared_with_so_many_other_times():
    groups = np.arange(20)
    shifted = list(_shift_groups(groups, 19))
    firsts = [int(times[0]) for times in shifted]
    assert firsts == list(range(19, 0, -1))


def test_a_trajectory_begins_at_its_first_step():
    obs = np.array([0, 1, 2, 10, 11])
    ends = np.array([False, False, True, False, True])
    found = find_trajectories(obs, obs + 1, ends)
    assert found.first.tolist() == [0, 0, 0, 3, 3]
    assert found.last.tolist() == [2, 2, 2, 4, 4]


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_score_of_groups_is_that_of_the_statistic_of_kruskal_and_wallis(shift, rng):
    groups = rng.integers(0, 3, 300)
    values = rng.standard_normal((300, 2)) + shift * groups[:, None]
    ranks = rankdata(values, axis=0)
    ranks = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)

    statistics = []
    for column in values.T:
        parts = [column[groups == group] for group in range(3)]
        # The variance of the ranks is divided by n, and not by n - 1.
        statistics.append(kruskal(*parts).statistic * 300 / 299)
    expected = (np.cbrt(max(statistics) / 2) - (1 - 1 / 9)) / np.sqrt(1 / 9)
    assert _score_groups(ranks, groups) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("lengths", "share"), [([300, 300, 20, 20], 1.0), ([100, *[7] * 36], 0.0)]
)
def test_a_rise_counts_where_most_steps_are_in_long_trajectories(lengths, share):
    ends = np.cumsum(lengths)
    begins = ends - lengths
    trajectories = Trajectories(
        order=np.arange(ends[-1]),
        first=np.repeat(begins, lengths),
        last=np.repeat(ends - 1, lengths),
    )
    time = np.arange(ends[-1]) - trajectories.first
    rises, falls = _find_monotone_shares(time[:, None].astype(float), trajectories)
    assert (rises.tolist(), falls.tolist()) == ([share], [0.0])


def test_scores_beyond_places_are_those_of_what_the_places_do_not_say() -> None:
    """All columns at once, as column by column from the residuals."""
    rng = np.random.default_rng(0)
    ranks = rng.standard_normal((200, 6))
    groups = rng.integers(0, 2, 200)
    places = rng.integers(0, 3, 200)
    residuals = ranks.copy()
    for place in range(3):
        residuals[places == place] -= ranks[places == place].mean(axis=0)

    scores = _score_groups(ranks, groups, places)
    cells = 3 * groups + places
    for column in range(3):
        expected = _score_groups(residuals[:, [column, 3 + column]], cells)
        assert scores[column] == pytest.approx(expected)


def test_columns_at_once_are_influenced_as_one_by_one() -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 2000)
    ranks = rng.standard_normal((2000, 8))
    ranks[:, 1] += groups
    ranks[:, 6] -= groups
    test = _Test(n_shifts=19, min_score=4.0)
    both = test.find_influenced(ranks, groups)
    alone = [test.find_influenced(ranks[:, [i, 4 + i]], groups)[0] for i in range(4)]
    assert both.tolist() == alone == [False, True, True, False]
