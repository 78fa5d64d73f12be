"""The tie rule: the first of all scores that are equal but for rounding.

And places that must follow it, where rounding differs from machine to machine.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eigenoptions as eo
from eigenoptions._ties import find_first_maximum
from eigenoptions.samples.features import Raw
from eigenoptions.vectors import planner as planner_module
from eigenoptions.vectors.cells import Cells
from eigenoptions.vectors.policies import GoalPolicy, find_most_likely, rank


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


@pytest.mark.parametrize(
    ("features", "purpose", "tie", "difference"),
    [
        # Fitted values have the errors of a regression, those of cells of rounding.
        (Raw(), [1.0], 1e-7, 1e-5),
        (Cells((0.0,), (1.0,), (0,), {"corners": [[0]]}), [1.0], 1e-11, 1e-7),
    ],
)
def test_options_of_features_take_the_first_of_equal_actions(
    features, purpose, tie, difference
):
    purposes = [eo.Purpose(purpose, "up")]
    for more, action in ((tie, 0), (difference, 1)):
        weights = [[[1.0], [1.0 + more]]]
        options = eo.LinearOptionSet(purposes, features, 2, weights=weights)
        assert options.actions([[1.0]]).tolist() == [[action]]


def test_moves_of_a_plan_are_ranked_with_the_first_of_equals_first():
    assert rank(np.array([0.5, 1.0, 1.0 + 1e-13])) == [1, 2, 0]


def test_a_plan_goes_through_the_first_of_equally_likely_states():
    # In floating point, 0.1 + 0.2 is larger than 0.3.
    chances = [0.4, 0.3, 0.1 + 0.2, 0.0]
    to_goal = [0.0, 0.0, 0.0, 1.0]
    mdp = eo.MDP(np.array([chances, to_goal, to_goal, to_goal])[:, None])
    policy = GoalPolicy(mdp, np.array([0, 0, 0, -1]), np.zeros(4), np.zeros(4))
    assert find_most_likely(mdp, policy, 0, 3) == [0, 1, 3]


def test_landmarks_of_symmetric_graphs_do_not_depend_on_rounding(monkeypatch, rng):
    states, actions = np.indices((8, 8)).reshape(2, -1)
    ring = np.repeat(np.arange(12), 2)
    steps = np.tile([1, -1], 12)
    for log in ((states, actions, actions), (ring, steps < 0, (ring + steps) % 12)):
        planner = eo.Planner(log)
        expected = planner.options(4).goals
        with monkeypatch.context() as patch:
            patch.setattr(planner_module, "spectrum", _make_noisy_spectrum(rng))
            for _ in range(5):
                assert planner.options(4).goals == expected


def _make_noisy_spectrum(rng):
    """`spectrum` with the rounding errors of another machine."""

    def compute(W, k):
        exact = eo.spectrum(W, k)
        noise = 1e-13 * rng.standard_normal(exact.vectors.shape)
        return replace(exact, vectors=exact.vectors + noise)

    return compute
