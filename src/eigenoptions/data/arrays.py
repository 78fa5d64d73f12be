"""Tuples and dicts of arrays: what most programs keep, and D4RL's and RLDS's files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eigenoptions._types import BoolArray
from eigenoptions.data.parts import NAMES, Parts, convert_numbers


def read_tuple(data: tuple[Any, ...]) -> Parts:
    """Parts of ``(obs, action, [reward,] next_obs, [terminated])``."""
    if len(data) == 3:
        return Parts(*data)
    if len(data) == 4:
        obs, action, next_obs, terminated = data
        return Parts(obs, action, next_obs, terminated)
    if len(data) == 5:
        obs, action, reward, next_obs, terminated = data
        return Parts(obs, action, next_obs, terminated, reward)
    raise ValueError(
        "a tuple has arrays (obs, action, [reward,] next_obs, [terminated]), "
        f"got {len(data)} parts"
    )


def read_dict(data: Mapping[str, Any]) -> Parts:
    """Parts of a dict by their names, whichever of `NAMES` it uses."""
    columns = {part: _find_column(data, part) for part in NAMES}
    for part in ("obs", "action"):
        if columns[part] is None:
            raise ValueError(
                f"the dict has no {part} ({', '.join(NAMES[part])}), "
                f"only {', '.join(data)}"
            )
    if columns["next_obs"] is None:
        return _pair_rows(**columns)
    return Parts(
        obs=columns["obs"],
        action=columns["action"],
        next_obs=columns["next_obs"],
        terminated=columns["terminated"],
        reward=columns["reward"],
        truncated=columns["truncated"],
    )


def _find_column(data: Mapping[str, Any], part: str) -> Any:
    """The column of a dict under any of its names, or None."""
    for name in NAMES[part]:
        if name in data:
            return data[name]
    return None


def _pair_rows(
    obs: Any,
    action: Any,
    next_obs: None,
    reward: Any,
    terminated: Any,
    truncated: Any,
) -> Parts:
    """Parts of data without next observations: those of the next row.

    The last step of an episode is left out, because the next row is another episode's.
    """
    obs = convert_numbers("obs", obs)
    action = convert_numbers("action", action)

    is_last = _mark_ends(terminated, len(obs)) | _mark_ends(truncated, len(obs))
    rows = np.flatnonzero(~is_last[:-1])
    if reward is not None:
        reward = convert_numbers("reward", reward)[rows]
    return Parts(
        obs=obs[rows], action=action[rows], next_obs=obs[rows + 1], reward=reward
    )


def _mark_ends(ends: Any, n_rows: int) -> BoolArray:
    """``(N,)`` a column of ends as a mask; nothing is marked where there is none."""
    if ends is None:
        return np.zeros(n_rows, dtype=np.bool_)
    return convert_numbers("terminated", ends).reshape(n_rows).astype(np.bool_)
