"""The parts of recorded data: their names, their types, their rows.

Every reader of this folder ends in `Parts`. Data are recognised by their attributes
and shapes, so that no package of others is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from eigenoptions._types import BoolArray

# What a part is called in dicts and data frames: by us, by D4RL, CleanRL, Tianshou and
# RLDS.
NAMES = {
    "obs": ("obs", "observations", "observation", "states", "state"),
    "action": ("action", "actions", "act"),
    "next_obs": (
        "next_obs",
        "next_observations",
        "obs_next",
        "next_observation",
        "next_states",
        "next_state",
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
    "episode": ("episode", "episodes", "episode_id", "trajectory", "traj_id"),
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


def find_part(data: Mapping[str, Any], part: str) -> Any:
    """A part of a dict under any of its names, or None."""
    for name in NAMES[part]:
        if name in data:
            return data[name]
    return None


def convert_parts(parts: Parts, continuous: bool) -> Parts:
    """The same parts as arrays: integers for states and actions where they are whole.

    Parameters
    ----------
    parts : Parts
        Arrays, lists, tensors, or columns of data frames.
    continuous : bool
        Whether actions may be vectors.
    """
    obs = convert_observations("obs", parts.obs)
    next_obs = convert_observations("next_obs", parts.next_obs)
    obs, next_obs = _match_rows(obs, next_obs)

    terminated = np.zeros(len(obs), dtype=np.bool_)
    if parts.terminated is not None:
        terminated = _convert_column("terminated", parts.terminated, np.bool_)
    reward = None
    if parts.reward is not None:
        reward = _convert_column("reward", parts.reward, np.float64)
    truncated = None
    if parts.truncated is not None:
        truncated = _convert_column("truncated", parts.truncated, np.bool_)

    names = parts.names
    if names is None:
        names = _find_names(parts.obs)
    action = convert_actions(parts.action, continuous)
    return Parts(obs, action, next_obs, terminated, reward, truncated, names)


def _match_rows(
    obs: NDArray[Any], next_obs: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Observations before and after each step, whose rows must be alike."""
    # A column of numbers is no column of states if there is a fraction in either.
    if obs.ndim == 1 and next_obs.shape[1:] == (1,) and obs.dtype.kind in "iu":
        obs = obs[:, None].astype(np.float64)
    elif next_obs.ndim == 1 and obs.shape[1:] == (1,) and next_obs.dtype.kind in "iu":
        next_obs = next_obs[:, None].astype(np.float64)

    if obs.shape[1:] != next_obs.shape[1:]:
        raise ValueError(
            f"rows of next_obs have the shape {next_obs.shape[1:]} and those of obs "
            f"{obs.shape[1:]}: give both the same columns"
        )
    return obs, next_obs


def _find_names(obs: Any) -> tuple[str, ...] | None:
    """Names of the columns of a data frame; None for other data."""
    names = getattr(obs, "columns", None)
    if names is None or np.ndim(obs) != 2:
        return None
    return tuple(str(name) for name in names)


def _convert_column(name: str, data: Any, dtype: DTypeLike) -> NDArray[Any]:
    """One number per step, of a column ``(N,)`` or ``(N, 1)``."""
    column = convert_numbers(name, data)
    if column.size != len(column):
        raise ValueError(f"{name} must have shape (N,) or (N, 1), got {column.shape}")
    column = column.reshape(len(column))
    if dtype is np.bool_:
        is_flag = (column == 0) | (column == 1)
        if not is_flag.all():
            row = int(np.argmin(is_flag))
            raise ValueError(
                f"{name} must be True or False (or 1 and 0), got {column[row]} in row "
                f"{row}: give the reward its own name or place"
            )
    return column.astype(dtype)


def mark_ends(data: Mapping[str, Any], n_rows: int) -> BoolArray:
    """``(N,)`` where episodes end: by flags, and by a column that numbers them."""
    is_end = np.zeros(n_rows, dtype=np.bool_)
    for part in ("terminated", "truncated"):
        flags = find_part(data, part)
        if flags is not None:
            is_end |= _convert_column(part, flags, np.bool_)

    episode = find_part(data, "episode")
    if episode is not None:
        number = convert_states("episode", episode)
        is_end[:-1] |= number[:-1] != number[1:]
    return is_end


def convert_actions(data: Any, continuous: bool) -> NDArray[Any]:
    """Actions as integers from 0 ``(N,)``, which number them.

    Others are vectors, where `continuous` allows them.
    """
    action = convert_numbers("action", data)
    check_finite("action", action)
    # Shape (N,) or (N, 1).
    is_column = action.size == len(action)
    if is_column:
        # A negative number differs from its absolute value, a fraction from its round.
        is_integer = action == np.abs(action).round()
        if is_integer.all():
            return action.reshape(len(action)).astype(np.int64)
    if is_column and action.dtype.kind in "iu":
        row = int(np.argmin(action))
        raise ValueError(
            f"actions are numbered from 0, got {action.flat[row]} in row {row}: add to "
            "each, or give floats if they are vectors of one number"
        )
    if continuous:
        return action
    raise ValueError(
        f"actions must be integers (N,) from 0, got {action.dtype} {action.shape}: "
        "collect from gymnasium.wrappers.DiscretizeAction(env, bins=...), "
        "or make a Planner, which takes vectors"
    )


def convert_observations(name: str, data: Any) -> NDArray[Any]:
    """Observations as an array.

    Integers and names of shape ``(N,)`` or ``(N, 1)`` are states ``(N,)``, and so are
    floats ``(N,)`` without a fraction, and tuples of integers or names. Other floats
    ``(N,)`` are vectors ``(N, 1)``.
    """
    array = convert_states(name, data)
    if array.dtype.kind == "f":
        check_finite(name, array)
    if array.ndim == 2 and array.shape[1] == 1 and array.dtype.kind in "iu":
        return array[:, 0]
    if array.ndim != 1 or array.dtype.kind != "f":
        return array

    is_whole = array == np.round(array)
    if is_whole.all():
        return array.astype(np.int64)
    return array[:, None]


def check_finite(name: str, array: NDArray[Any]) -> None:
    """Raise ValueError for the first row that has a number which is not finite."""
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return
    rows = array.reshape(len(array), -1)
    row, column = np.argwhere(~np.isfinite(rows))[0]
    raise ValueError(
        f"{name} must be finite, got {rows[row, column]} in row {row}, column "
        f"{column}: leave that row out, or fill it"
    )


def convert_states(name: str, data: Any) -> NDArray[Any]:
    """Numbers as an array; names and tuples as an array of objects ``(N,)``."""
    if hasattr(data, "to_numpy"):
        data = data.to_numpy()
    entries = data
    if isinstance(data, np.ndarray):
        if data.ndim == 2 and data.shape[1] == 1 and data.dtype.kind in "UO":
            data = data[:, 0]
        if data.ndim != 1 or data.dtype.kind not in "UO":
            return convert_numbers(name, data)
        entries = data.tolist()
    if not isinstance(entries, list | tuple) or not entries:
        return convert_numbers(name, data)

    is_name = [_is_state_name(entry) for entry in entries]
    if not any(is_name):
        return convert_numbers(name, entries)
    is_state = [
        named or isinstance(entry, int | np.integer)
        for named, entry in zip(is_name, entries, strict=True)
    ]
    if not all(is_state):
        row = is_state.index(False)
        raise ValueError(
            f"{name} holds names of states, but row {row} holds "
            f"{type(entries[row]).__name__}: give all states names"
        )
    labels = np.empty(len(entries), dtype=object)
    labels[:] = entries
    return labels


def _is_state_name(entry: Any) -> bool:
    """Whether this names a state: a string, or a tuple of strings and integers.

    A tuple with a fraction in it is a vector.
    """
    if isinstance(entry, tuple):
        return all(isinstance(part, int | str | np.integer | tuple) for part in entry)
    return isinstance(entry, str)


def convert_numbers(name: str, data: Any) -> NDArray[Any]:
    """An array of numbers with one row per step.

    Tensors of any device are moved to memory.
    """
    if isinstance(data, Mapping):
        raise ValueError(
            f"{name} is a dict: flatten it into one array (N, d) "
            "(gymnasium.spaces.flatten)"
        )
    if hasattr(data, "to_numpy"):
        data = data.to_numpy()

    # A list of tensors: NumPy would call each of them, number by number.
    if isinstance(data, list | tuple) and len(data) and hasattr(data[0], "detach"):
        data = [convert_numbers(name, part) for part in data]
    if hasattr(data, "detach"):
        data = data.detach().cpu()
    # A column of a data frame with an array in each row.
    if isinstance(data, np.ndarray) and data.dtype.kind == "O":
        data = data.tolist()

    try:
        array = np.asarray(data)
    except ValueError:
        row = _find_other_shape(data)
        raise ValueError(
            f"the rows of {name} have different shapes, {np.shape(data[0])} in row 0 "
            f"and {_describe_shape(data[row])} in row {row}: give one array (N, ...)"
        ) from None
    if not array.ndim:
        raise ValueError(
            f"{name} must hold numbers, one row per step, got {type(data).__name__}"
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must hold numbers, got {_describe_first(data)}: number what has "
            "a name (np.unique(..., return_inverse=True)), flatten what is a record"
        )
    return array


def _find_other_shape(rows: Sequence[Any]) -> int:
    """Number of the first row whose shape is not that of row 0."""
    first = _describe_shape(rows[0])
    for number, row in enumerate(rows):
        if _describe_shape(row) != first:
            return number
    return 0


def _describe_shape(row: Any) -> str:
    """The shape of a row in an error message."""
    try:
        return str(np.shape(row))
    except ValueError:
        return "a mixed one"


def _describe_first(data: Sequence[Any]) -> str:
    """The first entry of some rows that is no number, in an error message."""
    for row, entry in enumerate(data):
        # As objects: NumPy makes strings of the numbers beside a string.
        for value in np.asarray(entry, dtype=object).ravel().tolist():
            if not isinstance(value, int | float | np.number):
                return f"{value!r:.40} in row {row}"
    return type(data).__name__
