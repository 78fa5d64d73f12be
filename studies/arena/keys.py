"""Mazes in which keys open cells: a state is a cell and the keys taken."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eigenoptions._types import BoolArray
from eigenoptions.mdp import MDP


def add_keys(
    rooms: MDP, keys_at: NDArray[np.int64], is_locked: BoolArray
) -> NDArray[np.int64]:
    """Return the successors ``(sets of keys * S, A)`` of a maze with keys.

    State ``keys * S + cell`` has one bit of `keys` for each key that was taken.

    Parameters
    ----------
    rooms : MDP
        The maze, with S cells.
    keys_at : ndarray of int of shape (S,)
        The bit of the key that is taken by entering a cell; 0 where none is.
    is_locked : ndarray of bool of shape (S,)
        Cells that are entered with all keys only.

    Examples
    --------
    The third cell is open once the key in the first one was taken.

    >>> from eigenoptions.mdp import maze
    >>> successors = add_keys(maze("..."), np.array([1, 0, 0]), np.array([0, 0, 1]) > 0)
    >>> successors[:, 1].tolist(), successors[:, 3].tolist()
    ([1, 1, 2, 4, 5, 5], [3, 3, 1, 3, 3, 4])
    """
    assert rooms.successors is not None
    n_cells = rooms.n_states
    n_sets = 1 << np.count_nonzero(keys_at)
    keys, cell = np.divmod(np.arange(n_sets * n_cells), n_cells)

    after = rooms.successors[cell]
    is_refused = is_locked[after] & (keys < n_sets - 1)[:, None]
    after = np.where(is_refused, cell[:, None], after)
    keys_after = keys[:, None] | keys_at[after]
    return np.asarray(keys_after * n_cells + after)
