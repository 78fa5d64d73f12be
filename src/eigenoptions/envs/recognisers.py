"""How states are recognised: by a family's own key, a named key, or one of the user.

What ``MDP.recognition`` remembers, `by`, is the name of a family, the name of a coarser
key of a family (MiniGrid's ``"pose"``), or a function ``key(env, obs)``.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import gymnasium as gym

from eigenoptions._validation import check_choice
from eigenoptions.envs.families import Family, Key, Recogniser, families, find_family
from eigenoptions.envs.sources import env_name


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
    """Return a new recogniser of a family, of a coarser key of one, or of a function.

    Examples
    --------
    >>> recogniser = make_recogniser("observation")
    >>> recogniser.begin(gym.make("FrozenLake-v1"), 3)
    3
    """
    if not isinstance(by, str):
        return KeyRecogniser(_check_keys(by))
    for family in _list_families():
        if by in family.trackers:
            return family.trackers[by]()
    return KeyRecogniser(families.find(by).identify_state)


def _check_keys(key: Key) -> Key:
    """Return a function of the user that raises TypeError for what has no hash."""

    def identify_state(env: Any, obs: Any) -> Hashable:
        value = key(env, obs)
        try:
            hash(value)
        except TypeError:
            raise TypeError(
                "key(env, obs) must return something hashable (a number, text, or a "
                f"tuple of them), got {type(value).__name__}"
            ) from None
        return value

    return identify_state


def describe_key(by: str | Key) -> str:
    """Return a key in the words of an error message."""
    if isinstance(by, str):
        return repr(by)
    return f"the function {getattr(by, '__name__', 'key')}"


def looks_inside(by: str | Key) -> bool:
    """Whether states are recognised by more than observations and actions."""
    if not isinstance(by, str):
        return True
    if any(by in family.trackers for family in _list_families()):
        return False
    return families.find(by).looks_inside


def choose_recognition(env: gym.Env[Any, Any], key: str | Key | None) -> str | Key:
    """Return how the states of an environment are recognised.

    Parameters
    ----------
    env : gymnasium.Env
        The environment.
    key : str, callable or None
        ``"observation"``, a coarser key of the family by its name (``"pose"``), a
        function ``key(env, obs)``, or None for the family of the environment.
    """
    family = find_family(env)
    if key is None:
        return family.by
    if callable(key):
        return key
    owners = {name: owner for owner in _list_families() for name in owner.trackers}
    chosen = check_choice("key", key, ("observation", *owners))
    if chosen in owners and chosen not in family.trackers:
        raise ValueError(
            f"key={chosen!r} is for environments of the family {owners[chosen].name}, "
            f"got {env_name(env)}: leave out key, or give a function key(env, obs)"
        )
    return chosen


def _list_families() -> list[Family]:
    return [families.find(name) for name in families.names()]
