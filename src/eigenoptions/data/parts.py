"""The parts of recorded data: their names, their types, their rows.

Every reader of this folder ends in `Parts`. Data are recognised by their attributes
and shapes, so that no package of others is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

# What a column is called in dicts: by us, by D4RL, CleanRL, Tianshou and RLDS.
NAMES = {
    "obs": ("obs", "observations", "observation", "states"),
    "action": ("action", "actions", "act"),
    "next_obs": (
        "next_obs",
        "next_observations",
        "obs_next",
        "next_observation",
        "next_states",
    ),
    "reward": ("reward", "rewards", "rew"),
    "terminated": (
        "terminated",
        "terminals",
        "terminations",
        "dones",
        "done",
        "is_terminal",
    ),
    "truncated": ("truncated", "timeouts", "truncations", "is_last"),
}


class Parts(NamedTuple):
    """One row per step. The last four are None where the data do not say them."""

    obs: Any
    action: Any
    next_obs: Any
    terminated: Any = None
    reward: Any = None
    truncated: Any = None
    names: tuple[str, ...] | None = None


def convert_parts(parts: Parts, continuous: bool) -> Parts:
    """The same parts as arrays: integers for states and actions where they are whole.

    Parameters
    ----------
    parts : Parts
        Arrays, lists or tensors.
    continuous : bool
        Whether actions may be vectors.
    """
    obs = convert_observations("obs", parts.obs)
    next_obs = convert_observations("next_obs", parts.next_obs)

    terminated = np.zeros(len(obs), dtype=np.bool_)
    if parts.terminated is not None:
        terminated = _convert_column("terminated", parts.terminated, np.bool_)
    reward = None
    if parts.reward is not None:
        reward = _convert_column("reward", parts.reward, np.float64)
    truncated = None
    if parts.truncated is not None:
        truncated = _convert_column("truncated", parts.truncated, np.bool_)

    action = convert_actions(parts.action, continuous)
    return Parts(obs, action, next_obs, terminated, reward, truncated, parts.names)


def _convert_column(name: str, data: Any, dtype: DTypeLike) -> NDArray[Any]:
    """One number per step, of a column ``(N,)`` or ``(N, 1)``."""
    column = convert_numbers(name, data)
    if column.size != len(column):
        raise ValueError(f"{name} must have shape (N,) or (N, 1), got {column.shape}")
    return column.reshape(len(column)).astype(dtype)


def convert_actions(data: Any, continuous: bool) -> NDArray[Any]:
    """Actions as integers ``(N,)``; as vectors, too, where `continuous` allows it."""
    action = convert_numbers("action", data)
    is_column = action.size == len(action)
    if is_column and (action == np.abs(action).round()).all():
        return action.reshape(len(action)).astype(np.int64)
    if continuous:
        return action
    raise ValueError(
        f"actions must be integers (N,), got {action.dtype} {action.shape}: collect "
        "from gymnasium.wrappers.DiscretizeAction(env, bins=...)"
    )


def convert_observations(name: str, data: Any) -> NDArray[Any]:
    """Observations as an array.

    Integers and names of shape ``(N,)`` or ``(N, 1)`` are states ``(N,)``, and so are
    floats ``(N,)`` without a fraction. Other floats ``(N,)`` are vectors ``(N, 1)``.
    """
    array = convert_numbers(name, data, kinds="biufU")
    if array.ndim == 2 and array.shape[1] == 1 and array.dtype.kind in "iuU":
        return array[:, 0]
    if array.ndim != 1 or array.dtype.kind != "f":
        return array

    is_whole = np.isfinite(array) & (array == np.round(array))
    if is_whole.all():
        return array.astype(np.int64)
    return array[:, None]


def convert_numbers(name: str, data: Any, kinds: str = "biuf") -> NDArray[Any]:
    """An array with one row per step, of the kinds of NumPy's types that are allowed.

    Tensors of any device are moved to memory.
    """
    if isinstance(data, Mapping):
        raise ValueError(
            f"{name} is a dict: flatten it into one array (N, d) "
            "(gymnasium.spaces.flatten)"
        )

    # A list of tensors: NumPy would call each of them, number by number.
    if isinstance(data, list | tuple) and len(data) and hasattr(data[0], "detach"):
        data = [convert_numbers(name, part) for part in data]
    if hasattr(data, "detach"):
        data = data.detach().cpu()

    try:
        array = np.asarray(data)
    except ValueError:
        raise ValueError(
            f"the rows of {name} have different shapes: give one array (N, ...)"
        ) from None
    if array.dtype.kind not in kinds or not array.ndim:
        raise ValueError(
            f"{name} must hold numbers, one row per step, "
            f"got {array.dtype} {array.shape}"
        )
    return array
