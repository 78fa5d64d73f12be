"""The parts of recorded data: their types and their rows.

Every reader of this folder ends in `Parts`. Data are recognised by their attributes
and shapes, so that no package of others is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eigenoptions._types import BoolArray, IndexArray

# What has one row per step.
_COLUMNS = ("obs", "action", "next_obs", "terminated", "reward", "truncated", "rows")


class Parts(NamedTuple):
    """One row per step. What follows `next_obs` is None where the data do not say it.

    Attributes
    ----------
    names : tuple of str
        Names of the columns of the observations.
    rows : ndarray of int of shape (N,)
        The rows of the data that the steps come from, where the next observation is
        that of the row below.
    unknown : tuple of str
        Names of what is not read.
    n_missing : int
        Number of steps that were left out because numbers are missing.
    """

    obs: Any
    action: Any
    next_obs: Any
    terminated: Any = None
    reward: Any = None
    truncated: Any = None
    names: tuple[str, ...] | None = None
    rows: IndexArray | None = None
    unknown: tuple[str, ...] = ()
    n_missing: int = 0


@dataclass(frozen=True)
class Reading:
    """How data are read.

    Attributes
    ----------
    continuous : bool
        Whether actions may be vectors.
    drops_missing : bool
        Whether steps in which a number is missing are left out, instead of an error.
    """

    continuous: bool = False
    drops_missing: bool = False


def convert_parts(parts: Parts, reading: Reading) -> Parts:
    """The same parts as arrays: integers for states and actions where they are whole.

    Parameters
    ----------
    parts : Parts
        Arrays, lists, tensors, or columns of data frames.
    reading : Reading
        How they are read.
    """
    names = parts.names
    if names is None:
        names = _find_names(parts.obs)
    reward = None
    if parts.reward is not None:
        reward = _convert_column("reward", parts.reward).astype(np.float64)
    truncated = None
    if parts.truncated is not None:
        truncated = convert_flags("truncated", parts.truncated)

    parts = parts._replace(
        obs=convert_states("obs", parts.obs),
        action=convert_numbers("action", parts.action),
        next_obs=convert_states("next_obs", parts.next_obs),
        reward=reward,
        truncated=truncated,
        names=names,
    )
    terminated = np.zeros(len(parts.obs), dtype=np.bool_)
    if parts.terminated is not None:
        terminated = convert_flags("terminated", parts.terminated)
    parts = parts._replace(terminated=terminated)

    # Before states are read: a number that is missing makes floats of integers.
    if reading.drops_missing:
        parts = drop_missing(parts)
    _check_complete(parts)

    obs, next_obs = _match_rows(
        convert_observations("obs", parts.obs),
        convert_observations("next_obs", parts.next_obs),
    )
    action = convert_actions(parts.action, reading.continuous)
    return parts._replace(obs=obs, action=action, next_obs=next_obs)


def drop_missing(parts: Parts) -> Parts:
    """Leave out the steps in which a number or a name is missing.

    What is left is not joined: an episode is cut before each step that is left out.
    """
    columns = [parts.obs, parts.action, parts.next_obs]
    if parts.reward is not None:
        columns.append(parts.reward)
    n_steps = len(parts.obs)
    is_missing = np.zeros(n_steps, dtype=np.bool_)
    for column in columns:
        # Parts of different lengths are refused later.
        if len(column) == n_steps:
            is_missing |= _find_missing(column).reshape(n_steps, -1).any(axis=1)
    if not is_missing.any():
        return parts

    is_cut = np.append(is_missing[1:], False)
    if parts.truncated is not None:
        is_cut |= parts.truncated
    parts = parts._replace(truncated=is_cut & ~parts.terminated)
    kept: dict[str, Any] = {}
    for name in _COLUMNS:
        column = getattr(parts, name)
        kept[name] = None if column is None else column[~is_missing]
    n_missing = parts.n_missing + int(is_missing.sum())
    return parts._replace(**kept, n_missing=n_missing)


def _find_missing(array: NDArray[Any]) -> BoolArray:
    """Where a number is not finite, or a name is missing."""
    is_missing = np.zeros(array.shape, dtype=np.bool_)
    if array.dtype.kind == "f":
        is_missing = ~np.isfinite(array)
    # Most columns hold entries of one type: then there is nothing to look for.
    elif array.dtype.kind == "O" and len(set(map(type, array.tolist()))) > 1:
        is_missing[:] = [_is_missing(entry) for entry in array]
    return is_missing


def _is_missing(entry: object) -> bool:
    """Whether an entry is None, NaN or the NA of pandas."""
    if isinstance(entry, float):
        return entry != entry
    return entry is None or type(entry).__name__ in ("NAType", "NaTType")


def _check_complete(parts: Parts) -> None:
    """Raise ValueError for the first row in which a number or a name is missing."""
    for name in ("obs", "next_obs", "action", "reward"):
        array = getattr(parts, name)
        if array is None:
            continue
        is_missing = _find_missing(array)
        if not is_missing.any():
            continue
        step, *place = np.argwhere(is_missing.reshape(len(array), -1))[0].tolist()
        value = array.reshape(len(array), -1)[step, place[0]]
        row = step
        # Of rows that follow each other, the next observation is the row below.
        if parts.rows is not None:
            row = int(parts.rows[step]) + int(name == "next_obs")
            name = name.removeprefix("next_")
        raise ValueError(
            f"{name} must be finite, got {value} in row {row}, column {place[0]}: fill "
            'it, or leave out the steps there with Transitions.of(data, missing="drop")'
        )


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


def _convert_column(name: str, data: Any) -> NDArray[Any]:
    """One number per step, of a column ``(N,)`` or ``(N, 1)``."""
    column = convert_numbers(name, data)
    if column.size != len(column):
        raise ValueError(f"{name} must have shape (N,) or (N, 1), got {column.shape}")
    return column.reshape(len(column))


def convert_flags(name: str, data: Any) -> BoolArray:
    """One truth value per step: booleans, or zeros and ones."""
    column = _convert_column(name, data)
    is_flag = (column == 0) | (column == 1)
    if not is_flag.all():
        row = int(np.argmin(is_flag))
        raise ValueError(
            f"{name} must be True or False (or 1 and 0), got {column[row]} in row "
            f"{row}: give a dict with names if this is the reward"
        )
    return column.astype(np.bool_)


def convert_actions(data: Any, continuous: bool) -> NDArray[Any]:
    """Actions as integers from 0 ``(N,)``, which number them.

    Others are vectors, where `continuous` allows them.
    """
    action = convert_numbers("action", data)
    # Shape (N,) or (N, 1).
    is_column = action.size == len(action)
    if is_column:
        # A negative number differs from its absolute value, a fraction from its round.
        is_integer = action == np.abs(action).round()
        if is_integer.all():
            _check_range("action", action)
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
    if array.dtype.kind == "u" and array.shape in ((len(array),), (len(array), 1)):
        _check_range(name, array)
    if array.ndim == 2 and array.shape[1] == 1 and array.dtype.kind in "iu":
        return array[:, 0]
    if array.ndim != 1 or array.dtype.kind != "f":
        return array

    is_whole = array == np.round(array)
    if is_whole.all():
        _check_range(name, array)
        return array.astype(np.int64)
    return array[:, None]


def _check_range(name: str, numbers: NDArray[Any]) -> None:
    """Raise ValueError for the first number that is none of 64 bits."""
    # As floats: the largest integer of 64 bits has no float of its own.
    is_large = np.abs(numbers.astype(np.float64)) >= 2.0**63
    if is_large.any():
        row = int(np.argmax(is_large))
        raise ValueError(
            f"{name} must number states or actions below 2**63, got "
            f"{numbers.flat[row]} in row {row}: number what there is (np.unique(..., "
            "return_inverse=True)), or give vectors (N, 1) that are no integers"
        )


def convert_states(name: str, data: Any) -> NDArray[Any]:
    """Numbers as an array; names and tuples as an array of objects ``(N,)``."""
    if hasattr(data, "to_numpy"):
        data = data.to_numpy()
    _check_unmasked(name, data)
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
    # What is missing is left out or complained about later.
    is_state = [
        named or isinstance(entry, int | np.integer) or _is_missing(entry)
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
    _check_unmasked(name, data)

    # A list of tensors: NumPy would call each of them, number by number.
    if isinstance(data, list | tuple) and len(data) and hasattr(data[0], "detach"):
        data = [convert_numbers(name, part) for part in data]
    if hasattr(data, "detach"):
        data = data.detach().cpu()
        # NumPy has no such numbers.
        if str(data.dtype) == "torch.bfloat16":
            data = data.float()
    # A column of a data frame with an array in each row.
    if isinstance(data, np.ndarray) and data.dtype.kind == "O":
        data = data.tolist()

    try:
        array = np.asarray(data)
        if array.dtype.kind == "O":
            array = _fill_missing(array)
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


def _check_unmasked(name: str, data: Any) -> None:
    """Raise ValueError for the first masked entry, whose number means nothing."""
    if np.ma.is_masked(data):
        row = int(np.argwhere(np.ma.getmaskarray(data))[0][0])
        raise ValueError(
            f"{name} is masked in row {row}: give floats, {name}.filled(np.nan), with "
            'Transitions.of(data, missing="drop")'
        )


def _fill_missing(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers with NaN for what is missing; unchanged if not all are numbers."""
    numbers = np.empty(array.shape)
    for place, entry in enumerate(array.flat):
        if _is_missing(entry):
            numbers.flat[place] = np.nan
        elif isinstance(entry, int | float | np.number):
            numbers.flat[place] = entry
        else:
            return array
    return numbers


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
