"""Which family an environment belongs to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym

from eigenoptions.envs.families.family import Family, Key, families
from eigenoptions.envs.families.observation import OBSERVATION
from eigenoptions.options.lookahead import Restore, Save


def find_family(env: gym.Env[Any, Any]) -> Family:
    """Return the family of an environment.

    Environments that no family claims are recognised by their observation.

    >>> find_family(gym.make("FrozenLake-v1")).name
    'observation'
    """
    for name in families.names():
        family = families.find(name)
        if family is not OBSERVATION and family.matches(env):
            return family
    return OBSERVATION


def use_functions(
    family: Family,
    key: Key | None,
    save: Save | None,
    restore: Restore | None,
) -> Family:
    """Return a family with functions of the user in place of its own.

    Only its layouts and its remedies remain. Without a key, the observation identifies
    a state.
    """
    if key is None and save is None:
        return family

    general = replace(
        OBSERVATION,
        save=save,
        restore=restore,
        identify_layout=family.identify_layout,
        suggest_sampled=family.suggest_sampled,
    )
    if key is None:
        return general
    return replace(
        general,
        name=None,
        identify_state=key,
        looks_inside=True,
        # A key may make finite what observations do not.
        find_obstacle=lambda env: None,
    )
