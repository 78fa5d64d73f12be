"""Trajectories of recorded transitions: which step follows which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._types import BoolArray, IndexArray


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Transitions sorted by trajectory.

    Attributes
    ----------
    order : ndarray of int of shape (N,)
        Numbers of the transitions: those of one trajectory follow each other. A *place*
        is an index into it.
    first, last : ndarray of int of shape (N,)
        For each place, the places at which its trajectory begins and ends.
    """

    order: IndexArray
    first: IndexArray
    last: IndexArray

    @property
    def n_steps(self) -> IndexArray:
        """Number of steps of each trajectory."""
        ends = np.unique(self.last)
        return np.diff(ends, prepend=-1)


def find_trajectories(
    obs: NDArray[Any], next_obs: NDArray[Any], ends: BoolArray
) -> Trajectories:
    """Sort transitions by trajectory.

    Two transitions belong to one trajectory if the second begins with the observation
    with which the first ends. Transitions of several environments may be interleaved,
    as `eigenoptions.collect` returns them.

    Parameters
    ----------
    obs, next_obs : ndarray of shape (N, ...)
        Observations before and after each step.
    ends : ndarray of bool of shape (N,)
        Whether an episode ended with the step.

    Examples
    --------
    >>> obs = np.array([0, 7, 1, 8])
    >>> found = find_trajectories(obs, obs + 1, np.zeros(4, dtype=bool))
    >>> found.order.tolist(), found.last.tolist()
    ([0, 2, 1, 3], [1, 1, 3, 3])
    """
    n_rows = len(obs)
    before = obs.reshape(n_rows, -1)
    after = next_obs.reshape(n_rows, -1)
    n_envs = _count_interleaved(before, after)
    strands = [np.arange(first, n_rows, n_envs) for first in range(n_envs)]
    order = np.concatenate(strands)

    is_linked = (after[order[:-1]] == before[order[1:]]).all(axis=1)
    is_linked &= ~ends[order[:-1]]
    # The last step of one environment and the first of the next are not linked.
    is_linked &= np.diff(order) == n_envs

    last_places = np.append(np.flatnonzero(~is_linked), n_rows - 1)
    first_places = np.append(0, last_places[:-1] + 1)
    trajectory = np.searchsorted(last_places, np.arange(n_rows))
    return Trajectories(order, first_places[trajectory], last_places[trajectory])


# Most environments whose steps are taken to be interleaved, and rows that show it.
_MAX_ENVS = 64
_MAX_ROWS = 2048


def _count_interleaved(before: NDArray[Any], after: NDArray[Any]) -> int:
    """Count the environments whose steps are interleaved.

    With n environments, the step after row i is row i + n. So n is the stride at which
    the largest share of steps follow each other, in the first rows.
    """
    before = before[:_MAX_ROWS]
    after = after[:_MAX_ROWS]
    max_stride = min(_MAX_ENVS, len(before) - 1)
    if max_stride < 1:
        return 1

    # Also where most steps follow each other a longer stride may do better: views of
    # different environments are often equal.
    shares = []
    for stride in range(1, max_stride + 1):
        is_linked = (after[:-stride] == before[stride:]).all(axis=1)
        shares.append(is_linked.mean())
    # Of strides that are about equally good the shortest wins.
    return 1 + int(np.argmax(np.round(shares, 3)))
