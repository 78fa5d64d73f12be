"""Minari data sets: episodes with one more observation than actions."""

from __future__ import annotations

from typing import Any

from eigenoptions.data.parts import Parts, convert_numbers


def is_minari(data: Any) -> bool:
    """Whether this is a Minari data set: it iterates over its episodes."""
    return hasattr(data, "iterate_episodes")


def read_minari(dataset: Any) -> list[Parts]:
    """Parts of each episode."""
    episodes = []
    for episode in dataset.iterate_episodes():
        observations = convert_numbers("observations", episode.observations)
        columns = Parts(
            obs=observations[:-1],
            action=episode.actions,
            next_obs=observations[1:],
            terminated=episode.terminations,
            reward=getattr(episode, "rewards", None),
            truncated=getattr(episode, "truncations", None),
        )
        episodes.append(columns)
    return episodes
