"""Aggregates of the arena: closed forms, strata, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import trim_mean

from studies.arena.aggregates import (
    Aggregate,
    bootstrap,
    bootstrap_tasks,
    geometric_mean,
    interquartile_mean,
)


def test_interquartile_mean_is_that_of_the_middle_half() -> None:
    scores = np.random.default_rng(0).permutation(16.0 + np.arange(16.0))
    middle = 16.0 + np.arange(4.0, 12.0)
    assert_allclose(interquartile_mean(scores.reshape(4, 4)), middle.mean())


@pytest.mark.parametrize("n_runs", [1, 2, 3, 5, 10])
def test_interquartile_mean_is_the_trimmed_mean_of_scipy(n_runs: int) -> None:
    scores = np.random.default_rng(n_runs).normal(size=(n_runs, 3))
    assert_allclose(interquartile_mean(scores), trim_mean(scores.ravel(), 0.25))


def test_runs_are_drawn_within_their_task() -> None:
    """Tasks without spread have no interval, however far they are apart."""
    scores = np.tile([1.0, 5.0, 100.0], (6, 1))
    # Of 18 sorted scores, the first and the last four are left out.
    middle = (2 * 1.0 + 6 * 5.0 + 2 * 100.0) / 10
    assert_allclose(bootstrap(scores), middle)
    assert_allclose(bootstrap(scores, geometric_mean).low, geometric_mean(scores))


def test_interval_narrows_with_the_runs() -> None:
    rng = np.random.default_rng(1)
    few = bootstrap(rng.normal(size=(5, 4)), n_resamples=300)
    many = bootstrap(rng.normal(size=(80, 4)), n_resamples=300)
    assert few.low < few.value < few.high
    assert many.high - many.low < 0.5 * (few.high - few.low)


def test_interval_covers_the_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    n_covered = 0
    for number in range(100):
        scores = rng.normal(size=(20, 2))
        interval = bootstrap(scores, np.mean, n_resamples=200, rng=number)
        n_covered += interval.low <= 0.0 <= interval.high
    assert 85 <= n_covered <= 100


def test_interval_over_tasks_is_that_of_the_geometric_mean() -> None:
    ratios = np.random.default_rng(3).uniform(0.1, 0.7, size=20)
    ratio = bootstrap_tasks(ratios)
    assert_allclose(ratio.value, geometric_mean(ratios[None]))
    assert ratio.low < ratio.value < ratio.high
    # As wide as the central limit theorem says.
    logs = np.log(ratios)
    width = 2 * 1.96 * logs.std() / np.sqrt(20)
    assert_allclose(np.log(ratio.high / ratio.low), width, rtol=0.1)
    assert ratio.is_apart_from(Aggregate(1.0, 0.9, 1.1))
    assert not ratio.is_apart_from(ratio)


@pytest.mark.parametrize(
    ("scores", "word"),
    [([1.0, 2.0], "shape"), (np.empty((0, 3)), "shape"), ([[np.nan]], "finite")],
)
def test_bad_scores_are_refused(scores: object, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        bootstrap(scores)  # type: ignore[arg-type]
