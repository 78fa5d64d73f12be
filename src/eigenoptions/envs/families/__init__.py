"""Families of environments: how their states are recognised, one file per family.

A family is one file that adds a record of type `Family` to `families`. `from_env`, the
wrappers and files of options find it there; nothing else has to be edited.
"""

from __future__ import annotations

from eigenoptions.envs.families.family import Family, Key, Places, Recogniser, families
from eigenoptions.envs.families.matching import find_family, use_functions

__all__ = [
    "Family",
    "Key",
    "Places",
    "Recogniser",
    "families",
    "find_family",
    "use_functions",
]
