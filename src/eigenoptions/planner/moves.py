"""Counts of moves between neighbouring cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, hstack
from scipy.sparse.csgraph import connected_components

from eigenoptions.mdp import MDP
from eigenoptions.planner.grid import Grid, mean_rows

Array = NDArray[np.float64]


def count_moves(
    grid: Grid, obs: Array, expected: Array, next_obs: Array, reversible: bool
) -> tuple[MDP, Array]:
    """Table of cells by the neighbour that was aimed at, and the place ``(S, A, d)`` to aim at for each move."""
    S, moves = len(grid.keys), neighbour_moves(obs.shape[1])
    before, after = grid.find(grid.cell(obs)), grid.find(grid.cell(next_obs))
    A, rows = len(moves), np.arange(S * len(moves))
    neighbour = grid.find(grid.corners[:, None] + moves)
    # The number of a move among all, that of staying (A / 2) included.
    aim = (np.clip(grid.cell(expected) - grid.cell(obs), -1, 1) + 1) @ 3 ** np.arange(
        obs.shape[1]
    )[::-1]
    jumped = (np.abs(next_obs - expected) > grid.size).any(axis=1)
    aimed = (aim != A // 2) & ~jumped
    row = (before * A + aim - (aim > A // 2))[aimed]
    counts = csr_array((np.ones(len(row)), (row, after[aimed])), shape=(S * A, S))
    if reversible:
        state, move = np.nonzero(neighbour >= 0)
        to = neighbour[state, move]
        back = np.asarray(counts[to * A + A - 1 - move, state]).ravel()
        counts = csr_array(
            counts + csr_array((back, (state * A + move, to)), shape=counts.shape)
        )
    # Where others crossed the border, on the way there or back: a straight line to it meets no corner of a wall.
    arrived = neighbour.ravel()[row] == after[aimed]
    crossed, forth = np.flatnonzero(aimed)[arrived], row[arrived]
    places = np.concatenate([next_obs[crossed], obs[crossed]])
    number = np.concatenate([forth, after[crossed] * A + A - 1 - forth % A])
    middles = grid.low + (grid.corners[:, None] + moves + 0.5) * grid.size
    seen = (np.bincount(number, minlength=S * A) > 0).reshape(S, A, 1)
    targets = np.where(
        seen, mean_rows(places, number, S * A).reshape(middles.shape), middles
    )
    # A straight line to a diagonal neighbour may lead through a third cell, whose policy leads back: leave the cell
    # where others did, on this way or back. NaN: on other moves there is no border to go by.
    diagonal = (np.abs(moves).sum(axis=1) > 1)[:, None] & seen
    borders = np.where(diagonal, targets[neighbour, np.arange(A)[::-1]], np.nan)
    targets = np.stack([targets, borders], axis=2)
    # One failure more than was seen: a move that succeeded once is not certain, and one never tried stays.
    failure = csr_array((np.ones(S * A), (rows, rows // A)), shape=counts.shape)
    table = csr_array(
        (counts + failure).multiply(1.0 / (counts.sum(axis=1) + 1.0)[:, None])
    )
    n_jumps = np.bincount(before[jumped], minlength=S)
    if n_jumps.any():
        # Adjacent cells with jumps share where these lead: few were seen in each, and luck must not look like a chance.
        state, move = np.nonzero(
            (neighbour >= 0) & (n_jumps > 0)[:, None] & (n_jumps[neighbour] > 0)
        )
        touching = csr_array(
            (np.ones(len(state)), (state, neighbour[state, move])), shape=(S, S)
        )
        region = connected_components(touching, directed=False)[1]
        jumps = csr_array(
            (np.ones(jumped.sum()), (region[before[jumped]], after[jumped])),
            shape=(S, S),
        )
        jumps = csr_array(
            jumps.multiply(1.0 / np.maximum(jumps.sum(axis=1), 1.0)[:, None])
        )[region]
        exits = np.bincount(before[(before != after) | jumped], minlength=S)
        share = (n_jumps / np.maximum(exits, 1))[rows // A, None]
        table = table.multiply(1.0 - share) + jumps[rows // A].multiply(share)
        # The last action goes where others jumped: only a part of the cell may jump.
        jumps = jumps + eye_array(S).multiply((n_jumps == 0)[:, None])
        table = csr_array(hstack([table.reshape(S, A * S), jumps]).reshape(-1, S))
        targets = np.insert(targets, A, np.nan, axis=1)
        targets[:, A, 0] = mean_rows(obs[jumped], before[jumped], S)
    table.eliminate_zeros()
    return MDP(table, coords=grid.coords), targets


def neighbour_moves(d: int) -> NDArray[np.int64]:
    """``(3**d - 1, d)`` the steps to all neighbouring cells; the last one is minus the first one, and so on."""
    if d > 4:
        raise ValueError(
            f"obs may have 4 columns if actions are vectors, got {d}: keep the position"
        )
    moves = np.array(np.meshgrid(*[(-1, 0, 1)] * d, indexing="ij")).reshape(d, -1).T
    return np.delete(moves, len(moves) // 2, axis=0)
