"""Recognisers: from the course of an episode to a key of each of its states.

Most keys need only the present observation, or a look inside the environment. A pose by
dead reckoning needs the action, too, so a recogniser follows an episode from its first
state on. Each environment needs one of its own.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

import gymnasium as gym

from eigenoptions._validation import check_choice
from eigenoptions.envs.families import Key, families, find_family
from eigenoptions.envs.poses import PoseTracker
from eigenoptions.envs.sources import env_name


class Recogniser(Protocol):
    """What gives each state of an episode its key."""

    def begin(self, env: gym.Env[Any, Any], obs: Any) -> Hashable:
        """Return the key of the first state of an episode."""

    def follow(self, env: gym.Env[Any, Any], obs: Any, action: int) -> Hashable:
        """Return the key of the state that an action led to."""


class KeyRecogniser:
    """States by a function of the unwrapped environment and the observation."""

    def __init__(self, key: Key) -> None:
        self._key = key

    def begin(self, env: gym.Env[Any, Any], obs: Any) -> Hashable:
        """Return the key of the first state of an episode."""
        return self._key(env.unwrapped, obs)

    def follow(self, env: gym.Env[Any, Any], obs: Any, action: int) -> Hashable:
        """Return the key of the state that an action led to."""
        return self._key(env.unwrapped, obs)


def make_recogniser(by: str | Key) -> Recogniser:
    """Return a new recogniser of a family, of poses (``"pose"``), or of a key.

    Examples
    --------
    >>> recogniser = make_recogniser("observation")
    >>> recogniser.begin(gym.make("FrozenLake-v1"), 3)
    3
    """
    if by == "pose":
        return PoseTracker()
    if isinstance(by, str):
        return KeyRecogniser(families.find(by).identify_state)
    return KeyRecogniser(by)


def choose_recognition(env: gym.Env[Any, Any], key: str | Key | None) -> str | Key:
    """Return how the states of an environment are recognised.

    Parameters
    ----------
    env : gymnasium.Env
        The environment.
    key : str, callable or None
        ``"observation"``, ``"pose"``, a function ``key(env, obs)``, or None for the
        family of the environment.
    """
    family = find_family(env)
    if key is None:
        return family.by
    if callable(key):
        return key
    chosen = check_choice("key", key, ("observation", "pose"))
    if chosen == "pose" and family.name != "minigrid":
        raise ValueError(
            f'key="pose" is for MiniGrid and BabyAI, got {env_name(env)}: leave out '
            "key, or give a function key(env, obs)"
        )
    return chosen
