"""Episodes: dicts or objects with one more observation than actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eigenoptions.samples.parts import NAMES, Parts, convert_observations, find_part


def is_episode(data: Any) -> bool:
    """Whether this is an object with observations and actions, as Minari's episodes.

    Buffers of agents have them, too, but not of one episode.
    """
    has_parts = hasattr(data, "observations") and hasattr(data, "actions")
    return has_parts and not hasattr(data, "buffer_size")


def read_episode(episode: Any) -> Parts:
    """Parts of an object whose attributes have the names of `NAMES`."""
    data = {}
    for names in NAMES.values():
        for name in names:
            if getattr(episode, name, None) is not None:
                data[name] = getattr(episode, name)
    return pair_observations(data)


def pair_observations(data: Mapping[str, Any]) -> Parts:
    """Parts of an episode of T + 1 observations and T actions.

    Action t leads from observation t to observation t + 1.
    """
    observations = convert_observations("observations", find_part(data, "obs"))
    action = find_part(data, "action")
    if len(observations) != len(action) + 1:
        raise ValueError(
            f"an episode of {len(action)} actions has {len(action) + 1} observations, "
            f"got {len(observations)}: give the one before each action, and the last"
        )
    return Parts(
        obs=observations[:-1],
        action=action,
        next_obs=observations[1:],
        terminated=find_part(data, "terminated"),
        reward=find_part(data, "reward"),
        truncated=find_part(data, "truncated"),
    )
