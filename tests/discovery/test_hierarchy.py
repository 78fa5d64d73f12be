"""Options over options: a second level over the options of a first."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import eigenoptions as eo
from eigenoptions.discovery import discover
from eigenoptions.discovery.hierarchy import mdp_with_options
from tests import reference
from tests.tables import make_slippery


def test_mdp_with_options_jumps_to_their_ends(four_rooms):
    options = discover(four_rooms, 6)
    wide = mdp_with_options(four_rooms, options)
    assert wide.n_states == 104
    assert wide.n_actions == 10
    np.testing.assert_array_equal(wide.successors[:, :4], four_rooms.successors)
    for i, row in enumerate(options.policy):
        ends = [reference.walk(four_rooms.successors, row, s)[1] for s in range(104)]
        assert wide.successors[:, 4 + i].tolist() == ends


def test_mdp_with_options_of_stochastic_moves_is_a_power_of_them(i_maze):
    mdp = make_slippery(i_maze)
    options = discover(mdp, 2)
    wide = mdp_with_options(mdp, options).transition.toarray().reshape(19, 6, 19)
    table = mdp.transition.toarray().reshape(19, 4, 19)
    for i, row in enumerate(options.policy):
        # Where the option terminates, it stays.
        moves = table[np.arange(19), np.maximum(row, 0)]
        moves[row < 0] = np.eye(19)[row < 0]
        ends = np.linalg.matrix_power(moves, 5000)
        assert_allclose(wide[:, 4 + i], ends, atol=1e-9)


def test_second_level_options_call_options_or_actions(four_rooms):
    first = discover(four_rooms, 8)
    wide = mdp_with_options(four_rooms, first)
    second = discover(wide, 4)
    assert (second.policy >= 4).any()
    assert len(first + eo.solve(four_rooms, second.purposes)) == 12
    assert len(discover(wide, method="betweenness")) >= 1


def test_mdp_with_options_bad_arguments_raise(four_rooms):
    with pytest.raises(TypeError, match="options"):
        mdp_with_options(four_rooms, 3)
