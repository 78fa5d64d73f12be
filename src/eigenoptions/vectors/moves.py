"""A table of moves between neighbouring cells, counted in logged steps.

The actions of the table are the neighbours to aim at. A step counts for the neighbour
that the model of displacement expected it to lead to, whether it got there or not:
walls are moves that fail. Steps that leave the model by more than a cell are jumps,
which happen whatever one aims at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, hstack, vstack
from scipy.sparse.csgraph import connected_components

from eigenoptions._types import BoolArray, FloatArray, IndexArray
from eigenoptions.mdp import MDP
from eigenoptions.vectors.grid import Grid, mean_rows


@dataclass(frozen=True, eq=False)
class _Steps:
    """Logged steps on a grid.

    Attributes
    ----------
    obs, next_obs : ndarray of shape (N, d)
        Points before and after.
    before, after : ndarray of shape (N,)
        Their cells.
    row : ndarray of shape (N,)
        Cell and move of each step as a row of the table; only where `is_aimed`.
    is_aimed : ndarray of bool of shape (N,)
        Whether the step aimed at another cell, and did not jump.
    is_jump : ndarray of bool of shape (N,)
        Whether it left the model by more than a cell, and more than two steps.
    """

    obs: FloatArray
    next_obs: FloatArray
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    row: NDArray[np.int64]
    is_aimed: BoolArray
    is_jump: BoolArray


def count_moves(
    grid: Grid,
    obs: FloatArray,
    expected: FloatArray,
    next_obs: FloatArray,
    ended: BoolArray,
    step: FloatArray,
    reversible: bool,
) -> tuple[MDP, FloatArray]:
    """The table of moves, and the points to aim at for each of them.

    Parameters
    ----------
    grid : Grid
        The cells.
    obs, expected, next_obs : ndarray of shape (N, d)
        Points before each step, where the model expects it to lead, and where it led.
    ended : ndarray of bool of shape (N,)
        Which steps ended an episode.
    step : ndarray of shape (d,)
        A large step.
    reversible : bool
        Whether a move that was seen one way is possible the other way, too.

    Returns
    -------
    mdp : MDP
        One state per cell, one action per neighbour, and a last one if there are jumps.
        Steps that ended an episode where others went on lead to an additional state.
    targets : ndarray of shape (S, A, 2, d)
        The point to aim at, and a point on the border to pass on the way (NaN: none).
    """
    moves = neighbour_moves(obs.shape[1])
    neighbour = grid.find(grid.corners[:, None] + moves)
    all_steps = _sort_steps(grid, obs, expected, next_obs, step, len(moves))
    stops = _find_stops(all_steps.before, all_steps.after, ended, grid.n_states)
    steps = replace(
        all_steps,
        is_aimed=all_steps.is_aimed & ~stops,
        is_jump=all_steps.is_jump & ~stops,
    )

    counts = _count_aimed(steps, neighbour.shape)
    if reversible:
        counts = _add_reversed(counts, neighbour)
    table = _add_failures(counts, len(moves))
    targets = _find_targets(grid, steps, moves, neighbour)
    if steps.is_jump.any():
        table, targets = _add_jumps(table, targets, steps, neighbour)
    table.eliminate_zeros()
    if stops.any():
        n_actions = table.shape[0] // grid.n_states
        shares = _measure_stops(all_steps, stops, len(moves), n_actions)
        table = _add_end(table, shares)
        targets = np.append(targets, np.full_like(targets[:1], np.nan), axis=0)
    n_additional = int(stops.any())
    return MDP(table, n_additional=n_additional, is_estimated=True), targets


def _find_stops(
    before: IndexArray, after: IndexArray, ended: BoolArray, n_states: int
) -> BoolArray:
    """``(N,)`` which steps ended an episode in a cell in which others went on."""
    goes_on = np.zeros(n_states, dtype=np.bool_)
    goes_on[before] = True
    goes_on[after[~ended]] = True
    stops: BoolArray = ended & goes_on[after]
    return stops


def _measure_stops(
    steps: _Steps, stops: BoolArray, n_moves: int, n_actions: int
) -> FloatArray:
    """``(S * A,)`` the share of the steps of each move that ended an episode.

    The table may have one action more than moves, for jumps.
    """
    n_states = 1 + int(max(steps.before.max(), steps.after.max()))
    n_rows = n_states * n_actions
    move = steps.row - steps.before * n_moves
    row = steps.before * n_actions + move
    n_steps = np.bincount(row[steps.is_aimed], minlength=n_rows)
    n_stops = np.bincount(row[steps.is_aimed & stops], minlength=n_rows)
    # As in the table, one failure more than was seen.
    shares: FloatArray = n_stops / (n_steps + 1.0)
    return shares


def _add_end(table: csr_array, shares: FloatArray) -> csr_array:
    """The table with an additional state, to which a share of each row leads."""
    n_rows, n_states = table.shape
    n_actions = n_rows // n_states
    goes_on = table.multiply(1.0 - shares[:, None])
    rows = csr_array(hstack([goes_on, csr_array(shares[:, None])]))

    stays = np.zeros((n_actions, n_states + 1))
    stays[:, n_states] = 1.0
    extended = csr_array(vstack([rows, csr_array(stays)]))
    extended.eliminate_zeros()
    return extended


def _count_pairs(
    rows: IndexArray, columns: IndexArray, shape: tuple[int, ...]
) -> csr_array:
    """How often each row comes with each column."""
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def _normalize_rows(counts: csr_array) -> csr_array:
    """Probabilities from counts; a row without any stays empty."""
    total = np.maximum(counts.sum(axis=1), 1.0)
    return csr_array(counts.multiply(1.0 / total[:, None]))


def neighbour_moves(d: int) -> NDArray[np.int64]:
    """``(3**d - 1, d)`` the steps to all neighbouring cells.

    The last one is minus the first one, and so on.
    """
    if d > 4:
        raise ValueError(
            f"obs may have 4 columns if actions are vectors, got {d}: keep the "
            "position, such as columns=[0, 1]"
        )
    axes = [(-1, 0, 1)] * d
    moves = np.array(np.meshgrid(*axes, indexing="ij")).reshape(d, -1).T
    # The one in the middle stays in the cell.
    stay = len(moves) // 2
    return np.delete(moves, stay, axis=0)


def _sort_steps(
    grid: Grid,
    obs: FloatArray,
    expected: FloatArray,
    next_obs: FloatArray,
    step: FloatArray,
    n_moves: int,
) -> _Steps:
    """Cells, moves and jumps of logged steps."""
    before = grid.find(grid.cell(obs))
    after = grid.find(grid.cell(next_obs))
    # A step against a wall leaves the model by one step, and is no jump.
    is_far = np.abs(next_obs - expected) > np.maximum(grid.size, 2.0 * step)
    is_jump = np.asarray(is_far.any(axis=1))

    # The offset to the expected cell, -1, 0 or 1 in each dimension, is a number in base
    # 3. Staying is the middle one, which is not among the moves.
    offset = np.clip(grid.cell(expected) - grid.cell(obs), -1, 1)
    digits = 3 ** np.arange(obs.shape[1])[::-1]
    number = (offset + 1) @ digits
    middle = n_moves // 2
    move = number - (number > middle)
    return _Steps(
        obs=obs,
        next_obs=next_obs,
        before=before,
        after=after,
        row=before * n_moves + move,
        is_aimed=(number != middle) & ~is_jump,
        is_jump=is_jump,
    )


def _count_aimed(steps: _Steps, shape: tuple[int, ...]) -> csr_array:
    """``(S * A, S)`` where steps led that aimed at each neighbour."""
    n_states, n_moves = shape
    row = steps.row[steps.is_aimed]
    after = steps.after[steps.is_aimed]
    return _count_pairs(row, after, (n_states * n_moves, n_states))


def _add_reversed(counts: csr_array, neighbour: NDArray[np.int64]) -> csr_array:
    """Count every move that arrived as one back, too."""
    n_moves = neighbour.shape[1]
    state, move = np.nonzero(neighbour >= 0)
    to = neighbour[state, move]
    # The reverse of a move is at the same place, counted from the end.
    back_row = to * n_moves + n_moves - 1 - move
    back = np.asarray(counts[back_row, state]).ravel()
    reversed_counts = csr_array(
        (back, (state * n_moves + move, to)), shape=counts.shape
    )
    return csr_array(counts + reversed_counts)


def _add_failures(counts: csr_array, n_moves: int) -> csr_array:
    """Probabilities from counts, with one failure more than was seen.

    So a move that succeeded once is not certain, and one that was never tried stays.
    """
    rows = np.arange(counts.shape[0])
    # A move that fails ends in the state where it began.
    own_state = rows // n_moves
    failures = _count_pairs(rows, own_state, counts.shape)
    return _normalize_rows(counts + failures)


def _find_targets(
    grid: Grid,
    steps: _Steps,
    moves: NDArray[np.int64],
    neighbour: NDArray[np.int64],
) -> FloatArray:
    """``(S, A, 2, d)`` the point to aim at for each move, and one on the border.

    A straight line to where others crossed the border, on the way there or back, meets
    no corner of a wall. Without a crossing, the target is where steps ended that slid,
    or the middle of the cell.
    """
    n_moves = neighbour.shape[1]
    has_arrived = steps.is_aimed.copy()
    has_arrived[steps.is_aimed] = (
        neighbour.ravel()[steps.row[steps.is_aimed]] == steps.after[steps.is_aimed]
    )

    # Crossings of a border count for the move there and, reversed, for the move back,
    # which is at the same place, counted from the end.
    rows_forth = steps.row[has_arrived]
    moves_back = n_moves - 1 - rows_forth % n_moves
    rows_back = steps.after[has_arrived] * n_moves + moves_back
    crossings, has_crossing = _average_places(
        np.concatenate([steps.next_obs[has_arrived], steps.obs[has_arrived]]),
        np.concatenate([rows_forth, rows_back]),
        neighbour.shape,
    )

    # Steps that slid along a wall arrived, but elsewhere than they aimed at.
    has_slid = steps.is_aimed & ~has_arrived & (steps.before != steps.after)
    ends, has_end = _average_places(
        steps.next_obs[has_slid], steps.row[has_slid], neighbour.shape
    )

    targets = grid.low + (grid.corners[:, None] + moves + 0.5) * grid.size
    targets = np.where(has_end, ends, targets)
    targets = np.where(has_crossing, crossings, targets)

    # A straight line to a diagonal neighbour may lead through a third cell, whose
    # policy leads back: leave the cell where others did. On other moves there is no
    # border.
    is_diagonal = (np.abs(moves).sum(axis=1) > 1)[:, None]
    reverse = np.arange(n_moves)[::-1]
    crossings_back = targets[neighbour, reverse]
    borders = np.where(is_diagonal & has_crossing, crossings_back, np.nan)
    return np.stack([targets, borders], axis=2)


def _average_places(
    places: FloatArray, rows: IndexArray, shape: tuple[int, ...]
) -> tuple[FloatArray, BoolArray]:
    """``(S, A, d)`` mean place of each row, and ``(S, A, 1)`` whether it has any."""
    n_rows = shape[0] * shape[1]
    means = mean_rows(places, rows, n_rows)
    has_places = np.bincount(rows, minlength=n_rows) > 0
    return means.reshape(*shape, -1), has_places.reshape(*shape, 1)


def _add_jumps(
    table: csr_array,
    targets: FloatArray,
    steps: _Steps,
    neighbour: NDArray[np.int64],
) -> tuple[csr_array, FloatArray]:
    """The table with jumps, and with a last action that goes where they began."""
    n_states, n_moves = neighbour.shape
    before = steps.before[steps.is_jump]
    n_jumps = np.bincount(before, minlength=n_states)
    jumps = _share_jumps(steps, n_jumps, neighbour)

    # Any move may jump, as often as steps that left the cell did.
    is_exit = (steps.before != steps.after) | steps.is_jump
    n_exits = np.bincount(steps.before[is_exit], minlength=n_states)
    state = np.arange(n_states * n_moves) // n_moves
    share = (n_jumps / np.maximum(n_exits, 1))[state, None]
    table = table.multiply(1.0 - share) + jumps[state].multiply(share)

    # The last action goes where others jumped: only a part of the cell may jump.
    jumps = jumps + eye_array(n_states).multiply((n_jumps == 0)[:, None])
    by_state = table.reshape(n_states, n_moves * n_states)
    table = csr_array(hstack([by_state, jumps]).reshape(-1, n_states))
    targets = np.insert(targets, n_moves, np.nan, axis=1)
    targets[:, n_moves, 0] = mean_rows(steps.obs[steps.is_jump], before, n_states)
    return table, targets


def _share_jumps(
    steps: _Steps, n_jumps: NDArray[np.int64], neighbour: NDArray[np.int64]
) -> csr_array:
    """``(S, S)`` where jumps lead; adjacent cells with jumps share what was seen.

    Few jumps were seen in each cell, and luck must not look like a chance.
    """
    n_states = len(n_jumps)
    has_jumps = n_jumps > 0
    both_jump = (neighbour >= 0) & has_jumps[:, None] & has_jumps[neighbour]
    state, move = np.nonzero(both_jump)
    shape = (n_states, n_states)
    touching = _count_pairs(state, neighbour[state, move], shape)
    region = connected_components(touching, directed=False)[1]

    before = steps.before[steps.is_jump]
    after = steps.after[steps.is_jump]
    counts = _count_pairs(region[before], after, shape)
    return _normalize_rows(counts)[region]
