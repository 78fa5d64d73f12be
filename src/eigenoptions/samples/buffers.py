"""Replay buffers of Stable-Baselines3."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions._types import IndexArray
from eigenoptions.samples.parts import Parts, convert_numbers


def is_replay_buffer(data: Any) -> bool:
    """Whether this is a replay buffer: it has a size and knows where episodes ended."""
    return hasattr(data, "buffer_size") and hasattr(data, "dones")


def read_buffer(buffer: Any) -> Parts:
    """Parts of a replay buffer, without its decisions for options.

    Its arrays have shape ``(steps, environments, ...)``, of which some rows are filled.
    """
    rows = _list_filled_rows(buffer)
    done = np.asarray(buffer.dones)[rows].astype(np.bool_)
    is_timeout = np.asarray(buffer.timeouts)[rows].astype(np.bool_)
    action = np.asarray(buffer.actions)[rows]
    obs = convert_numbers("obs", buffer.observations)

    # With `optimize_memory_usage`, next observations are those of the next row. After
    # the last step of an episode, that row belongs to another one.
    if buffer.optimize_memory_usage:
        next_obs = obs[(rows + 1) % int(buffer.buffer_size)]
        is_transition = ~done
    else:
        next_obs = buffer.next_observations[rows]
        is_transition = np.ones_like(done)

    # Decisions for options take several steps: they are no transitions.
    n_primitive = getattr(buffer.action_space, "n_primitive", None)
    if n_primitive is not None:
        is_transition &= action.reshape(done.shape) < n_primitive

    return Parts(
        obs=obs[rows][is_transition],
        action=action[is_transition],
        next_obs=next_obs[is_transition],
        terminated=(done & ~is_timeout)[is_transition],
        reward=np.asarray(buffer.rewards)[rows][is_transition],
        truncated=is_timeout[is_transition],
    )


def _list_filled_rows(buffer: Any) -> IndexArray:
    """Numbers of the rows of a `ReplayBuffer` that hold whole steps, oldest first."""
    size = int(buffer.buffer_size)
    position = int(buffer.pos)
    if not buffer.full:
        return np.arange(position)

    # A full buffer is a ring: the next row to be overwritten is the oldest.
    rows = (np.arange(size) + position) % size
    if buffer.optimize_memory_usage:
        # The next observation of the newest row is stored in the oldest row, whose own
        # observation is lost.
        return rows[1:]
    return rows
