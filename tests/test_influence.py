"""Parts of what is said about columns: groups, their scores, steady rises."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kruskal, rankdata

from eigenoptions.data.drift import _find_monotone_shares
from eigenoptions.data.influence import _group_values, _score_groups
from eigenoptions.data.trajectories import Trajectories


def test_few_values_have_a_group_each_and_many_are_divided_evenly(rng):
    values = rng.integers(0, 6, 500)
    assert (_group_values(values * 0.1, 4) == values).all()
    many = _group_values(rng.random(500), 4)
    assert np.bincount(many).tolist() == [125] * 4


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
