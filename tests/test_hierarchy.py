"""Options over options: a second level over the options of a first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import eigenoptions as eo
from eigenoptions.discovery import discover
from eigenoptions.discovery.experience import TableExperience
from eigenoptions.discovery.hierarchy import second_level, spanned
from eigenoptions.discovery.methods import method
from eigenoptions.options.walks import walk
from tests import reference
from tests.test_mdp import refused
from tests.test_planning import slippery


def test_the_spanned_mdp_jumps_to_the_ends_of_options(four_rooms):
    options = discover(four_rooms, 6)
    wide = spanned(four_rooms, options)
    assert (wide.n_states, wide.n_actions) == (104, 10)
    np.testing.assert_array_equal(wide.successors[:, :4], four_rooms.successors)
    for i, row in enumerate(options.policy):
        ends = [reference.walk(four_rooms.successors, row, s)[1] for s in range(104)]
        assert wide.successors[:, 4 + i].tolist() == ends


def test_the_spanned_mdp_of_stochastic_moves(i_maze):
    mdp = slippery(i_maze)
    options = discover(mdp, 2)
    wide = spanned(mdp, options).transition.toarray().reshape(19, 6, 19)
    for i, row in enumerate(options.policy):
        moves = mdp.transition.toarray().reshape(19, 4, 19)[np.arange(19), np.maximum(row, 0)]
        moves[row < 0] = np.eye(19)[row < 0]
        assert_allclose(wide[:, 4 + i], np.linalg.matrix_power(moves, 5000), atol=1e-9)


def test_the_second_level_has_the_purposes_of_the_spanned_graph(four_rooms):
    first = discover(four_rooms, 8)
    found = second_level(four_rooms, first, 4)
    wide = eo.spectrum(eo.graph(spanned(four_rooms, first)), 3)
    by_hand = eo.solve(four_rooms, eo.eigenpurposes(wide))
    np.testing.assert_array_equal(found.policy, by_hand.policy)
    assert found.provenance["level"] == 2
    assert len(first + found) == 12
    nested = discover(spanned(four_rooms, first), 2)
    assert (nested.policy >= 4).any()  # it calls options
    assert len(second_level(four_rooms, first, method="betweenness")) >= 1
    refused(
        ValueError, lambda: second_level(four_rooms, first, 2, "covering-eigen"), "no purposes of its own"
    )
    with pytest.raises(TypeError, match="method 'eigen' has no setting 'speed'"):
        second_level(four_rooms, first, 2, speed=1)


def test_rewards_of_environments_are_read():
    """CliffWalking costs 1 per step and 100 at the cliff; reward-aware options walk along the other side."""
    mdp = eo.from_env("CliffWalking-v1")
    table = mdp.reward.reshape(mdp.n_states, 4)
    assert set(np.unique(table)) == {-100.0, -1.0, 0.0}
    edge = (table == -100.0).any(axis=1) & (np.arange(48) != mdp.start)
    found = discover("CliffWalking-v1", 4, "reward-aware")
    for label in ("goal 11", "goal 47"):
        row = found[label].policy
        for s in np.flatnonzero(~edge & (row >= 0)):
            while row[s] >= 0:
                s = mdp.successors[s, row[s]]
                assert not edge[s]
    refused(ValueError, lambda: discover("FrozenLake-v1", 2, "reward-aware"), "must be negative", "subtract")


def test_visits_of_sampled_states_are_counted_for_methods_that_ask(i_maze):
    given = []

    def purposes(mdp, n_options, rng, *, visits=None):
        given.append(visits)
        return method("neo").purposes(mdp, n_options, rng, visits=visits)

    batch = walk(i_maze, 400, rng=0)
    past = TableExperience(i_maze.n_states, 4)
    past.add(batch)
    past.options(2, method=replace(method("neo"), purposes=purposes))
    seen = np.flatnonzero(past.seen)
    assert given[0].tolist() == np.bincount(batch.obs, minlength=i_maze.n_states)[seen].tolist()
