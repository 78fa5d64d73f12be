"""Walks through a table over actions and options: slow twin, exact times, bad input."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.mdp.chains import cumulate_rows
from eigenoptions.samples.walking import walk
from tests import reference


@pytest.fixture(params=["four-rooms", "slippery"])
def mdp(request, slippery):
    if request.param == "slippery":
        return slippery.with_task(goal=2)
    return eo.maze(request.param)


@pytest.mark.parametrize(
    ("option_chance", "stop_chance"),
    [(None, 0.0), (0.0, 0.0), (0.3, 0.0), (1.0, 0.0), (None, 0.2), (0.3, 1.0)],
)
@pytest.mark.parametrize("begin", [None, 1])
def test_walk_equals_its_slow_twin(mdp, option_chance, stop_chance, begin):
    options = eo.discover(mdp, n_options=4)
    steps = walk(
        mdp,
        2000,
        options,
        option_chance=option_chance,
        stop_chance=stop_chance,
        begin=begin,
        max_episode_steps=150,
        rng=5,
    )

    starts = [mdp.start]
    if mdp.start is None:
        starts = [state for state in range(mdp.n_states) if state != mdp.goal]
    slow = reference.wander(
        mdp,
        options.policy,
        steps=2000,
        seed=int(np.random.default_rng(5).integers(2**64, dtype=np.uint64)),
        chance=option_chance,
        stop_chance=stop_chance,
        starts=starts,
        begin=begin,
        goal=mdp.goal,
        limit=150,
    )
    fast = np.stack([steps.obs, steps.action, steps.next_obs], axis=1)
    np.testing.assert_array_equal(fast, slow)
    np.testing.assert_array_equal(steps.terminated, steps.next_obs == mdp.goal)


@pytest.mark.parametrize("how", [{}, {"option_chance": 0.1}, {"stop_chance": 0.2}])
def test_walk_takes_as_many_steps_as_the_exact_hitting_time(four_rooms, how):
    options = eo.discover(four_rooms, n_options=64)
    steps = walk(four_rooms, 400_000, options, rng=3, **how)
    lengths = np.diff(np.flatnonzero(steps.terminated))
    times = eo.hitting_times(four_rooms, options, **how)
    exact = times[four_rooms.start, four_rooms.goal]
    standard_error = lengths.std() / np.sqrt(len(lengths))
    assert abs(lengths.mean() - exact) < 4 * standard_error


def test_walk_starts_in_all_states_but_the_goal_where_there_is_no_start():
    mdp = eo.MDP(eo.maze("....").transition, goal=3)
    steps = walk(mdp, 5000, rng=0, max_episode_steps=1)
    shares = np.bincount(steps.obs, minlength=4) / 5000
    np.testing.assert_allclose(shares, [1 / 3, 1 / 3, 1 / 3, 0], atol=0.03)


def test_walk_continues_between_episodes(four_rooms):
    steps = walk(four_rooms, 1000, rng=0, max_episode_steps=30)
    ends = np.flatnonzero(steps.next_obs[:-1] != steps.obs[1:])
    assert set(steps.obs[ends + 1]) == {four_rooms.start}
    assert (np.diff(ends) <= 30).all()


def test_walk_is_drawn_from_its_generator(four_rooms):
    generator = np.random.default_rng(4)
    first = walk(four_rooms, 50, rng=generator)
    second = walk(four_rooms, 50, rng=generator)
    assert not np.array_equal(first.obs, second.obs)
    again = walk(four_rooms, 50, rng=np.random.default_rng(4))
    np.testing.assert_array_equal(first.obs, again.obs)


def test_cumulate_rows_adds_in_order(rng):
    data = rng.random(20)
    indptr = np.array([0, 3, 4, 4, 12, 20])
    sums = cumulate_rows(indptr, data)
    for low, high in pairwise(indptr):
        np.testing.assert_allclose(
            sums[low:high], np.cumsum(data[low:high]), rtol=1e-12
        )


def test_walk_bad_argument_is_named(four_rooms):
    options = eo.discover(four_rooms, 2)
    for mdp, steps, how, word in (
        (four_rooms, 0, {}, "steps"),
        (four_rooms, 5, {"begin": 104}, "begin"),
        (four_rooms, 5, {"max_episode_steps": 0}, "max_episode_steps"),
        (four_rooms, 5, {"option_chance": 2}, "option_chance"),
        (four_rooms, 5, {"stop_chance": float("nan")}, "stop_chance"),
        (eo.maze("i-maze"), 5, {}, "state space"),
    ):
        with pytest.raises(ValueError, match=word):
            walk(mdp, steps, options, **how)
    with pytest.raises(TypeError, match="OptionSet"):
        walk(four_rooms, 5, [1])
