"""The probability of an option: diffusion times of other choices than the uniform one, and the best choice."""

from __future__ import annotations

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.evaluation import (
    best_option_chance,
    diffusion_curve,
    diffusion_estimate,
    diffusion_time,
    hitting_times,
)
from tests.tables import make_options
from tests.test_evaluation import toward


def test_a_rare_option_helps_where_a_uniform_choice_hurts(four_rooms):
    """The first options hurt because the paper chooses uniformly, not because they are few."""
    options = eo.discover(four_rooms, n_options=64)
    plain = diffusion_time(four_rooms)
    assert diffusion_time(four_rooms, options, option_chance=0.0) == pytest.approx(plain, rel=1e-9)
    found = [
        diffusion_time(four_rooms, options[:m], option_chance=c)
        for m, c in ((4, None), (4, 0.05), (16, 0.2), (64, None), (32, 0.4))
    ]
    assert found == pytest.approx([13525.0, 267.7, 219.0, 218.4, 195.7], abs=0.05)
    curve = diffusion_curve(four_rooms, options[:6], option_chance=0.05)
    assert curve[0] == pytest.approx(plain, rel=1e-12)
    assert curve[4] == pytest.approx(found[1], rel=1e-12)
    assert (curve[4:] < plain).all()


def test_best_chance_is_the_least_of_all(four_rooms):
    options = eo.discover(four_rooms, n_options=8)
    best = best_option_chance(four_rooms, options)
    truth = [diffusion_time(four_rooms, options, option_chance=c) for c in (best.chance, None, 0.0)]
    assert [best.diffusion_time, best.uniform, best.without] == truth
    others = [diffusion_time(four_rooms, options, option_chance=c) for c in np.linspace(0, 0.95, 39)]
    assert min(others) >= best.diffusion_time
    for shift in (-0.002, 0.002):
        beside = diffusion_time(four_rooms, options, option_chance=best.chance + shift)
        assert beside > best.diffusion_time


def test_best_chance_in_closed_form():
    # Two states, action 0 stays, action 1 and the option of one step change the state: 2 / (1 + c) steps.
    swap = np.stack([np.eye(2), np.eye(2)[::-1]], axis=1)
    mdp, both = eo.MDP(swap), make_options(np.array([[1, -1], [-1, 1]]), 2)
    assert diffusion_time(mdp, both, option_chance=0.6) == pytest.approx(2 / 1.6, rel=1e-12)
    best = best_option_chance(mdp, both)
    assert best.chance > 0.999
    assert best.diffusion_time == pytest.approx(1.0, abs=1e-3)


def test_a_single_option_is_to_be_taken_seldom():
    """A corridor and an option back to its start: the best chance is far below what a uniform choice takes."""
    mdp, calls = eo.maze("." * 24), []
    best = best_option_chance(mdp, toward(mdp, 0), progress=lambda done, most: calls.append((done, most)))
    assert best.chance == pytest.approx(0.0012, abs=5e-5)
    assert best.diffusion_time < 0.91 * best.without < 1e-5 * best.uniform
    assert [done for done, _ in calls] == list(range(1, len(calls) + 1))
    assert all(done <= most for done, most in calls)


def test_chances_beyond_double_precision_are_the_worst():
    mdp = eo.maze("." * 260)
    many = make_options(np.repeat(toward(mdp, 0).policy, 70, axis=0), 4)
    best = best_option_chance(mdp, many)
    assert best.uniform == np.inf
    assert best.diffusion_time <= best.without


def test_the_estimate_has_the_same_chance(i_maze):
    options = eo.discover(i_maze, n_options=4)
    truth = diffusion_time(i_maze, options, option_chance=0.1)
    estimate = diffusion_estimate(i_maze, options, option_chance=0.1, walks=2000)
    assert estimate.low < truth < estimate.high
    assert estimate.high < diffusion_time(i_maze)


@pytest.mark.parametrize("function", [diffusion_time, diffusion_curve, hitting_times, diffusion_estimate])
@pytest.mark.parametrize("chance", [-0.1, 1.0, float("nan")])
def test_impossible_chances(function, chance, i_maze):
    with pytest.raises(ValueError, match=r"option_chance must be in \[0, 1\), got"):
        function(i_maze, eo.discover(i_maze, n_options=2), option_chance=chance)


def test_the_best_chance_of_nothing(i_maze):
    with pytest.raises(ValueError, match="there are no options"):
        best_option_chance(i_maze, None)
