"""Dicts of arrays: what most programs keep, and D4RL's and RLDS's files."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.samples.ends import check_dones, mark_last_rows, read_ends
from eigenoptions.samples.episodes import pair_observations
from eigenoptions.samples.index import read_index
from eigenoptions.samples.names import (
    FLAGS,
    NAMES,
    check_all_known,
    find_names,
    find_part,
    find_parts,
    list_unknown,
)
from eigenoptions.samples.parts import (
    Parts,
    convert_flags,
    convert_numbers,
    convert_states,
)

logger = logging.getLogger("eigenoptions")


def read_dict(data: Mapping[str, Any]) -> Parts:
    """Parts of a dict by their names, whichever of `NAMES` it uses."""
    obs = find_part(data, "obs")
    action = find_part(data, "action")
    next_obs = find_part(data, "next_obs")
    for part, value in (("obs", obs), ("action", action)):
        if value is None:
            raise ValueError(
                f"the dict has no {part} ({', '.join(NAMES[part])}), "
                f"only {', '.join(str(name) for name in data)}"
            )

    n_rows = _count_rows("obs", obs)
    if next_obs is not None:
        return _read_pairs(data, n_rows)

    check_all_known(data, n_rows)
    # An episode has one more observation than actions.
    if n_rows == _count_rows("action", action) + 1:
        return pair_observations(data)
    return _pair_rows(data, n_rows)


def _count_rows(part: str, value: Any) -> int:
    """The number of rows of a part."""
    if not hasattr(value, "__len__") or isinstance(value, str):
        raise ValueError(
            f"{part} must hold one row per step, got {type(value).__name__}: for one "
            "step give a list of it"
        )
    return len(value)


def _read_pairs(data: Mapping[str, Any], n_rows: int) -> Parts:
    """Parts of steps that have their next observation."""
    names = find_names(data, "terminal_obs")
    if names:
        raise ValueError(
            f"{names[0]} says of an observation that it is terminal, which is obs or "
            "next_obs: call it terminated if the step ended there, or leave it out"
        )
    _check_lengths(data, n_rows, (*FLAGS, "episode"))
    ends = read_ends(data, n_rows)
    return Parts(
        obs=find_part(data, "obs"),
        action=find_part(data, "action"),
        next_obs=find_part(data, "next_obs"),
        terminated=ends.terminated,
        reward=find_part(data, "reward"),
        truncated=ends.truncated,
        unknown=list_unknown(data, n_rows),
    )


def _pair_rows(data: Mapping[str, Any], n_rows: int) -> Parts:
    """Parts of rows in order: the next observation of each is in the row after it.

    The last row of each episode is left out, because another episode's comes next.
    """
    given_obs = find_part(data, "obs")
    data = {**data, **read_index(data, given_obs)}
    _check_lengths(data, n_rows, tuple(NAMES))
    check_dones(data)
    obs = convert_states("obs", given_obs)
    action = convert_numbers("action", find_part(data, "action"))
    reward = find_part(data, "reward")

    is_last = mark_last_rows(data, n_rows)
    # The slice allows for no rows at all.
    is_last[-1:] = True
    rows = np.flatnonzero(~is_last)
    if not len(rows):
        raise ValueError(
            "no row is followed by another of its episode, so there are no next "
            "observations: give next_obs, or longer episodes"
        )
    # Without its last row, an episode is cut after the row before, unless it is said
    # that the observation of the last row is terminal.
    is_cut = is_last[rows + 1]
    terminated = None
    for name, value in find_parts(data, "terminal_obs").items():
        terminated = convert_flags(name, value)[rows + 1]
        is_cut &= ~terminated

    if reward is not None:
        reward = convert_numbers("reward", reward)
        _note_lost_rewards(reward[is_last])
        reward = reward[rows]
    names = None
    if hasattr(given_obs, "columns"):
        names = tuple(str(name) for name in given_obs.columns)
    return Parts(
        obs=obs[rows],
        action=action[rows],
        next_obs=obs[rows + 1],
        terminated=terminated,
        reward=reward,
        truncated=is_cut,
        names=names,
        rows=rows,
    )


def _note_lost_rewards(rewards: NDArray[Any]) -> None:
    """Say that the last rows of episodes are left out with what they earned."""
    n_lost = int(np.count_nonzero(rewards))
    if n_lost:
        logger.warning(
            "%d of %d last rows of episodes have a reward, which is left out, because "
            "their next observation is not known: give next_obs or, if a reward came "
            "with the observation of its row, move the rewards up by one",
            n_lost,
            len(rewards),
        )


def _check_lengths(data: Mapping[str, Any], n_rows: int, parts: Sequence[str]) -> None:
    """Raise ValueError for a part that has not one row for each observation."""
    for part in parts:
        for value in find_parts(data, part).values():
            n_values = 1 if np.ndim(value) == 0 else len(value)
            if n_values != n_rows:
                raise ValueError(
                    f"{part} has {n_values} rows and obs {n_rows}: give one row for "
                    "each observation, or an episode with one observation more than "
                    "actions"
                )
