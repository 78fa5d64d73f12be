"""Parts of the planner: policies, potentials, progress, columns that are angles."""

from __future__ import annotations

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.vectors.coordinates import _is_angle
from eigenoptions.vectors.policies import GoalPolicy
from studies.potentials import COMPARED


def test_moves_are_ranked_by_what_it_is_worth_to_arrive():
    mdp = eo.maze("four-rooms")
    arrival = np.random.default_rng(0).random(mdp.n_states)
    policy = GoalPolicy(mdp, np.zeros(mdp.n_states, dtype=int), arrival, arrival)
    for state in (1, 50, 103):
        worth = arrival[mdp.successors[state]]
        expected = np.argsort(-worth, kind="stable").tolist()
        assert policy.rank_moves(state) == expected


@pytest.mark.parametrize("kind", COMPARED.values())
def test_potential_is_minus_infinity_where_no_way_leads_to_the_goal(kind):
    """Two rooms without a door, and a way back that nobody has taken."""
    log = ([0, 1, 3, 4], [0, 1, 0, 1], [1, 0, 4, 3])
    planner = eo.Planner(log, potential=kind, reversible=False)
    value = planner.potential(1)
    goal, other_room = value[1], value[3:]
    assert np.isfinite(goal)
    assert (other_room == -np.inf).all()


def test_a_move_that_was_to_stay_makes_progress_and_one_that_was_to_leave_none():
    # In state 0, action 0 stays and action 1 leads to state 1.
    log = ([0, 0, 1, 1] * 9, [0, 1, 0, 1] * 9, [0, 1, 0, 1] * 9)
    planner = eo.Planner(log)
    here = np.zeros(1)
    for action, progress in ((0, 1.0), (1, 0.0)):
        made = planner._controller.measure_progress(here, 0, action, action, here, 0)
        assert made == progress


@pytest.mark.parametrize("low", [-np.pi, 0.0])
def test_a_column_that_wraps_round_is_an_angle(low):
    turn = np.arange(0.0, 20.0, 0.3)
    angle = low + turn % (2 * np.pi)
    assert _is_angle(angle[:-1], angle[1:])
    assert not _is_angle(turn[:-1], turn[1:])
    # Two turns in one column are none.
    assert not _is_angle(2 * angle[:-1], 2 * angle[1:])
