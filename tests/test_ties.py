"""The tie rule: the first of all scores that are equal but for rounding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenoptions._ties import find_first_maximum


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.integers(0, 2**32))
def test_rounding_errors_do_not_change_the_maximum(scores, seed):
    exact = np.array(scores, dtype=float)
    noise = 1e-13 * np.random.default_rng(seed).uniform(-1, 1, len(exact))
    assert find_first_maximum(exact) == exact.argmax()
    assert find_first_maximum(exact + noise, 1e-9) == exact.argmax()


def test_differences_above_the_tolerance_count():
    assert find_first_maximum(np.array([1.0, 1.0 + 1e-6])) == 1
    assert find_first_maximum(np.array([1.0, 1.0 + 1e-6]), 1e-5) == 0


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_maxima_along_an_axis_are_those_of_its_rows(axis, rng):
    scores = rng.integers(0, 3, (4, 5, 6)) + 1e-14 * rng.random((4, 5, 6))
    expected = np.apply_along_axis(find_first_maximum, axis, scores)
    np.testing.assert_array_equal(find_first_maximum(scores, axis=axis), expected)
    given_maximum = find_first_maximum(
        scores, 1e-9, axis=axis, maximum=scores.max(axis=axis)
    )
    np.testing.assert_array_equal(given_maximum, expected)


def test_each_maximum_may_have_its_own_tolerance():
    scores = np.array([[1.0, 1.1], [1.0, 1.1]])
    assert find_first_maximum(scores, np.array([0.2, 0.05])).tolist() == [0, 1]
