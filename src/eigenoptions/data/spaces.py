"""Spaces that recorded data declare."""

from __future__ import annotations

from typing import Any


def read_spaces(data: Any) -> tuple[Any, int | None]:
    """Space of the observations and number of actions that a replay buffer or a data set declares, or None."""
    action_space = getattr(data, "action_space", None)
    n_actions = getattr(action_space, "n_primitive", getattr(action_space, "n", None))
    return getattr(data, "observation_space", None), None if n_actions is None else int(
        n_actions
    )


def count_states(space: Any) -> int | None:
    """Number of states of a Discrete space; None for others."""
    return int(space.n) if hasattr(space, "n") and not space.shape else None
