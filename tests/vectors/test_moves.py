"""Moves between the cells of a planner: what was aimed at, targets, jumps."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.spaces import Discrete

import eigenoptions as eo
from eigenoptions.vectors.displacement import find_directions
from eigenoptions.vectors.grid import Grid
from eigenoptions.vectors.moves import (
    _share_jumps,
    _sort_steps,
    _Steps,
    count_moves,
    neighbour_moves,
)


def test_steps_that_stay_or_jump_aim_at_no_neighbour():
    grid = Grid.over(np.array([[0.0, 0.0], [9.0, 9.0]]), np.ones(2))
    obs = np.array([[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]])
    expected = np.array([[2.1, 2.1], [3.0, 2.0], [3.0, 2.0]])
    next_obs = np.array([[2.1, 2.1], [3.0, 2.0], [8.0, 8.0]])
    steps = _sort_steps(grid, obs, expected, next_obs, np.full(2, 0.5), n_moves=8)
    assert steps.is_aimed.tolist() == [False, True, False]
    assert steps.is_jump.tolist() == [False, False, True]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_targets_of_an_open_room_lie_in_the_neighbour_of_each_move(d):
    """Means of crossings do, because cells are convex."""
    rng = np.random.default_rng(d)
    obs = rng.uniform(0.0, 2.9, size=(20_000, d))
    next_obs = np.clip(obs + rng.uniform(-0.6, 0.6, size=obs.shape), 0.0, 2.9)
    grid = Grid.over(np.concatenate([obs, next_obs]), np.ones(d))
    mdp, targets = count_moves(
        grid,
        obs,
        next_obs,
        next_obs,
        np.zeros(len(obs), dtype=np.bool_),
        np.full(d, 0.6),
        reversible=True,
    )

    neighbour = grid.find(grid.corners[:, None] + neighbour_moves(d))
    has_neighbour = neighbour >= 0
    aims = targets[:, :, 0][has_neighbour]
    assert mdp.n_states == 3**d
    np.testing.assert_array_equal(grid.find(grid.cell(aims)), neighbour[has_neighbour])


def test_adjacent_cells_that_jump_share_where_they_lead():
    """Cells 1 and 2 of four in a row were seen to jump, once each."""
    neighbour = np.array([[-1, 1], [0, 2], [1, 3], [2, -1]])
    before = np.array([1, 2])
    after = np.array([3, 0])
    nothing = np.zeros((2, 1))
    steps = _Steps(
        obs=nothing,
        next_obs=nothing,
        before=before,
        after=after,
        row=before,
        is_aimed=np.array([False, False]),
        is_jump=np.array([True, True]),
    )
    shares = _share_jumps(steps, np.bincount(before, minlength=4), neighbour)
    np.testing.assert_allclose(shares.toarray()[1:3], [[0.5, 0, 0, 0.5]] * 2)


def test_directions_in_the_plane_cover_45_degrees_whatever_their_length():
    degrees = np.array([0, 20, -20, 25, 45, 65, 70, 90])
    angles = np.deg2rad(degrees)
    changes = np.column_stack([np.cos(angles), np.sin(angles)])
    # Directions are digits in base 3: 0 falls, 1 stays, 2 rises.
    right, diagonal, up = 7, 8, 5
    expected = [right] * 3 + [diagonal] * 3 + [up] * 2
    for length in (0.1, 0.5, 3.0):
        found = find_directions(length * changes, np.ones(2))
        assert found.tolist() == expected


def test_a_buffer_says_how_many_states_there_are():
    """Also where its data show only a few of them."""
    buffers = pytest.importorskip("stable_baselines3.common.buffers")
    buffer = buffers.ReplayBuffer(9, Discrete(16), Discrete(4))
    for state in range(3):
        buffer.add(
            np.array([state]),
            np.array([state + 1]),
            np.array([1]),
            np.array([0.0]),
            np.array([False]),
            [{}],
        )
    assert eo.Planner(buffer).mdp.n_states == 16
