"""The table of numbered actions, and what untried ones would have done."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from eigenoptions._types import BoolArray, FloatArray, IndexArray
from eigenoptions.mdp import MDP
from eigenoptions.samples import Transitions
from eigenoptions.vectors.grid import Grid

# An action that was taken so often in a cell is not imputed there.
_ENOUGH = 8


def count_actions(
    grid: Grid,
    before: FloatArray,
    action: IndexArray,
    after: FloatArray,
    ended: BoolArray,
    n_actions: int,
) -> MDP:
    """The table of numbered actions between cells.

    Parameters
    ----------
    grid : Grid
        The cells.
    before, after : ndarray of shape (N, d)
        Points before and after each step.
    action : ndarray of int of shape (N,)
        Actions.
    ended : ndarray of bool of shape (N,)
        Which steps ended an episode.
    n_actions : int
        Number of actions.

    Returns
    -------
    MDP
        One state per cell. An action that was never tried near a cell stays. Steps that
        ended an episode where others went on lead to an additional state.
    """
    state = grid.find(grid.cell(before))
    next_state = grid.find(grid.cell(after))

    # Steps of one length lead to many equal distances: rounding errors must not decide.
    points = (before / grid.size).round(9)
    imputed = impute_transitions(points, state, action, n_actions)
    change = after - before
    expected = before[imputed.point] + change[imputed.step]
    expected_state = grid.find(grid.cell(expected))
    # Where there are no data, nothing says that one gets there: it may be a wall.
    stays = expected_state < 0
    expected_state[stays] = state[imputed.point[stays]]

    steps = Transitions(
        np.concatenate([state, state[imputed.point]]),
        np.concatenate([action, action[imputed.step]]),
        np.concatenate([next_state, expected_state]),
        np.concatenate([ended, ended[imputed.step]]),
    )
    return MDP.from_transitions(steps, grid.n_states, n_actions)


@dataclass(frozen=True, eq=False)
class ImputedTransitions:
    """Actions at points where others were taken.

    Attributes
    ----------
    point : array of shape (M,)
        Row of the point.
    step : array of shape (M,)
        Row of the step whose action and change are taken over.
    """

    point: IndexArray
    step: IndexArray


def impute_transitions(
    points: FloatArray, states: IndexArray, action: IndexArray, n_actions: int
) -> ImputedTransitions:
    """What the other actions would have done, by the nearest step with each of them.

    In several dimensions most cells have seen most actions once or twice, or never. But
    a step nearby with the same action tells what it changes.

    Parameters
    ----------
    points : array of shape (N, d)
        Points before each step, in sides of cells. Steps that are farther away than one
        side are not taken over.
    states : array of shape (N,)
        Their cells.
    action : array of shape (N,)
        The action of each step.
    n_actions : int
        Number of actions.

    Returns
    -------
    ImputedTransitions
        At each point, at most one step for each action that is rare in its cell.
    """
    # Which actions were rare in which cells.
    n_states = int(states.max()) + 1
    pairs = states * n_actions + action
    n_taken = np.bincount(pairs, minlength=n_states * n_actions)
    is_rare = (n_taken < _ENOUGH).reshape(n_states, n_actions)

    # The empty arrays stand for nothing imputed.
    points_without = [np.empty(0, dtype=np.intp)]
    steps_with = [np.empty(0, dtype=np.intp)]
    for taken in np.unique(action).tolist():
        has_taken = action == taken
        has_it = np.flatnonzero(has_taken)
        needs_it = np.flatnonzero(is_rare[states, taken] & ~has_taken)
        if not len(has_it) or not len(needs_it):
            continue
        tree = cKDTree(points[has_it])
        distance, nearest = tree.query(points[needs_it], distance_upper_bound=1.0)
        # The distance is infinite where none is within reach.
        is_near = np.isfinite(distance)
        points_without.append(needs_it[is_near])
        steps_with.append(has_it[nearest[is_near]])
    return ImputedTransitions(
        point=np.concatenate(points_without), step=np.concatenate(steps_with)
    )
