"""Tuples and dicts of arrays: what most programs keep, and D4RL's and RLDS's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eigenoptions.samples.episodes import pair_observations
from eigenoptions.samples.orders import order_five_parts, order_four_parts
from eigenoptions.samples.parts import (
    NAMES,
    Parts,
    convert_numbers,
    convert_observations,
    find_part,
    mark_ends,
)


def read_tuple(data: Sequence[Any]) -> Parts:
    """Parts of ``(obs, action, [reward,] next_obs, [terminated])``."""
    if len(data) in (2, 3, 4, 5):
        _check_no_episode(*data[:2])
    if len(data) == 3:
        return Parts(*data)
    if len(data) == 4:
        return order_four_parts(data)
    if len(data) == 5:
        return order_five_parts(data)
    if len(data) == 2:
        raise ValueError(
            "a tuple has arrays (obs, action, [reward,] next_obs, [terminated]), got 2 "
            "parts: give next_obs, or {'obs': ..., 'action': ...} for rows in order; "
            "pairs of nodes are a graph, for from_graph"
        )
    raise ValueError(
        "a tuple has arrays (obs, action, [reward,] next_obs, [terminated]), "
        f"got {len(data)} parts: give a list of steps (obs, action, next_obs), or one "
        "{'obs': ..., 'action': ...} for each episode"
    )


def _check_no_episode(obs: Any, action: Any) -> None:
    """Raise ValueError for the arrays of an episode, which need their names."""
    if not hasattr(obs, "__len__") or not hasattr(action, "__len__"):
        return
    if len(obs) == len(action) + 1 and len(action) > 1:
        raise ValueError(
            f"{len(obs)} observations and {len(action)} actions are an episode: give "
            "{'obs': ..., 'action': ...}, with 'reward' and 'terminated' if you like"
        )


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

    if next_obs is None:
        # An episode has one more observation than actions.
        if len(obs) == len(action) + 1:
            return pair_observations(data)
        return _pair_rows(data)

    truncated = find_part(data, "truncated")
    if truncated is None and find_part(data, "episode") is not None:
        truncated = mark_ends(data, len(obs))
    return Parts(
        obs=obs,
        action=action,
        next_obs=next_obs,
        terminated=find_part(data, "terminated"),
        reward=find_part(data, "reward"),
        truncated=truncated,
    )


def _pair_rows(data: Mapping[str, Any]) -> Parts:
    """Parts of rows in order: the next observation of each is in the row after it.

    The last row of each episode is left out, because another episode's comes next.
    """
    given_obs = find_part(data, "obs")
    obs = convert_observations("obs", given_obs)
    action = convert_numbers("action", find_part(data, "action"))
    reward = find_part(data, "reward")
    _check_lengths(data, len(obs))

    is_last = mark_ends(data, len(obs))
    # The slice allows for no rows at all.
    is_last[-1:] = True
    rows = np.flatnonzero(~is_last)
    if not len(rows):
        raise ValueError(
            "no row is followed by another of its episode, so there are no next "
            "observations: give next_obs, or longer episodes"
        )
    # Without its last row, an episode is cut after the row before.
    is_cut = is_last[rows + 1]

    if reward is not None:
        reward = convert_numbers("reward", reward)[rows]
    names = None
    if hasattr(given_obs, "columns"):
        names = tuple(str(name) for name in given_obs.columns)
    return Parts(
        obs=obs[rows],
        action=action[rows],
        next_obs=obs[rows + 1],
        reward=reward,
        truncated=is_cut,
        names=names,
    )


def _check_lengths(data: Mapping[str, Any], n_rows: int) -> None:
    """Raise ValueError for a part that has not one row for each observation."""
    for part in NAMES:
        value = find_part(data, part)
        n_values = 1 if np.ndim(value) == 0 else len(value)
        if value is not None and n_values != n_rows:
            raise ValueError(
                f"{part} has {n_values} rows and obs {n_rows}: give one row for each "
                "observation, or an episode with one observation more than actions"
            )
