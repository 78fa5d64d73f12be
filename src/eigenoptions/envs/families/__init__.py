"""Families of environments: how their states are recognised, one file per family.

A family is one file that defines `FAMILY`, a record of type `Family`. `from_env`, the
wrappers and files of options find it by its folder; nothing else has to be edited.
"""

from __future__ import annotations

from eigenoptions.envs.families.family import Family, Key, Places
from eigenoptions.envs.families.registry import (
    find_family,
    get_family,
    use_functions,
)

__all__ = ["Family", "Key", "Places", "find_family", "get_family", "use_functions"]
