"""Episodes: dicts or objects with one more observation than actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eigenoptions.samples.ends import read_ends
from eigenoptions.samples.names import FLAGS, NAMES, find_part, find_parts
from eigenoptions.samples.parts import (
    Parts,
    convert_flags,
    convert_numbers,
    convert_states,
)


def is_episode(data: Any) -> bool:
    """Whether this is an object with observations and actions, as Minari's episodes.

    Buffers of agents have them, too, but not of one episode.
    """
    has_parts = hasattr(data, "observations") and hasattr(data, "actions")
    return has_parts and not hasattr(data, "buffer_size")


def read_episode(episode: Any) -> Parts:
    """Parts of an object whose attributes have the names of `NAMES`."""
    data = {}
    for part in ("obs", "action", "reward", *FLAGS):
        for name in NAMES[part]:
            value = getattr(episode, name, None)
            if value is not None:
                data[name] = value

    # A single flag says how the last step ended.
    n_steps = len(find_part(data, "action"))
    for part in FLAGS:
        for name, value in find_parts(data, part).items():
            if np.ndim(value) == 0:
                data[name] = [False] * (n_steps - 1) + [value]
    return pair_observations(data)


def pair_observations(data: Mapping[str, Any]) -> Parts:
    """Parts of an episode of T + 1 observations and T actions.

    Action t leads from observation t to observation t + 1.
    """
    observations = convert_states("observations", find_part(data, "obs"))
    action = find_part(data, "action")
    n_steps = len(action)
    if len(observations) != n_steps + 1:
        raise ValueError(
            f"an episode of {n_steps} actions has {n_steps + 1} observations, "
            f"got {len(observations)}: give the one before each action, and the last"
        )

    _check_one_episode(data)
    flags = {}
    for part in FLAGS:
        for name, value in find_parts(data, part).items():
            # What has a row for each observation says it of the next one.
            flags[name] = value[1:] if len(value) == n_steps + 1 else value
    ends = read_ends(flags, n_steps)
    terminated = ends.terminated
    for name, value in find_parts(flags, "terminal_obs").items():
        terminated = convert_flags(name, value)
    return Parts(
        obs=observations[:-1],
        action=action,
        next_obs=observations[1:],
        terminated=terminated,
        reward=find_part(data, "reward"),
        truncated=ends.truncated,
        rows=np.arange(n_steps),
    )


def _check_one_episode(data: Mapping[str, Any]) -> None:
    """Raise ValueError for data in which an episode ends before the last row."""
    ends_early = False
    for part in FLAGS:
        for name, value in find_parts(data, part).items():
            flags = convert_flags(name, value)
            ends_early |= bool((flags[1:] if part == "first" else flags[:-1]).any())
    for name, value in find_parts(data, "episode").items():
        labels = convert_states(name, value)
        ends_early |= bool((labels[:-1] != labels[1:]).any())
    for name, value in find_parts(data, "step").items():
        counter = convert_numbers(name, value)
        ends_early |= bool((np.diff(counter.astype(np.float64)) != 1).any())
    if ends_early:
        raise ValueError(
            "one observation more than actions is one episode, but the data say that "
            "it ends before the last row: give one dict for each episode"
        )
