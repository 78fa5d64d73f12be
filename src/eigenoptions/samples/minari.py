"""Minari data sets: they iterate over their episodes."""

from __future__ import annotations

from typing import Any

from eigenoptions.samples.episodes import read_episode
from eigenoptions.samples.parts import Parts


def is_minari(data: Any) -> bool:
    """Whether this is a Minari data set: it iterates over its episodes."""
    return hasattr(data, "iterate_episodes")


def read_minari(dataset: Any) -> list[Parts]:
    """Parts of each episode."""
    return [read_episode(episode) for episode in dataset.iterate_episodes()]
