"""The families of this folder, and which one an environment belongs to."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym

from eigenoptions._validation import check_choice
from eigenoptions.envs.families.family import Family, Key
from eigenoptions.envs.families.observation import FAMILY as OBSERVATION
from eigenoptions.options.lookahead import Restore, Save


@cache
def _list_families() -> tuple[Family, ...]:
    """Every family in the folder; that of observations takes the rest, so it is last."""
    folder = Path(__file__).parent
    families = []
    for module in pkgutil.iter_modules([str(folder)]):
        contents = import_module(f"{__package__}.{module.name}")
        if hasattr(contents, "FAMILY"):
            families.append(contents.FAMILY)

    families.remove(OBSERVATION)
    return (*families, OBSERVATION)


def find_family(env: gym.Env[Any, Any]) -> Family:
    """Return the family of an environment."""
    return next(family for family in _list_families() if family.matches(env))


def get_family(name: str) -> Family:
    """Return the family whose key has a name, as a file of options holds it.

    >>> get_family("observation").looks_inside
    False
    """
    families = {family.name: family for family in _list_families() if family.name}
    return families[check_choice("recognition", name, families)]


def use_functions(
    family: Family,
    key: Key | None,
    save: Save | None,
    restore: Restore | None,
) -> Family:
    """Return a family with functions of the user in place of its own.

    The user knows more about the environment than we do, so only its layout and the
    remedies remain. Without a key, the observation identifies a state.
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
        find_obstacle=lambda env: None,
    )
