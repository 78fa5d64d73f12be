"""Spaces that recorded data declare."""

from __future__ import annotations

from typing import Any


def read_spaces(data: Any) -> tuple[Any, int | None]:
    """The space of the observations and the number of actions that data declare.

    Replay buffers and Minari data sets have both. None stands for what is not declared.
    """
    observation_space = getattr(data, "observation_space", None)
    action_space = getattr(data, "action_space", None)

    # Of an agent's choices among actions and options, only actions are counted.
    n_actions = getattr(action_space, "n", None)
    n_actions = getattr(action_space, "n_primitive", n_actions)
    if n_actions is not None:
        n_actions = int(n_actions)
    return observation_space, n_actions


def count_states(space: Any) -> int | None:
    """The number of states of a Discrete space; None for others."""
    is_discrete = hasattr(space, "n") and not space.shape
    return int(space.n) if is_discrete else None


def find_sampled_space(space: Any) -> Any:
    """The space of what is sampled: of goal environments that of "observation"."""
    if hasattr(space, "spaces") and "observation" in space.spaces:
        return space["observation"]
    return space


def is_array_space(space: Any) -> bool:
    """Whether observations are numbers or arrays: Discrete, Box and the like."""
    return any(hasattr(space, attribute) for attribute in ("n", "low", "nvec"))
