"""Environments without a map: the walk to the unknown, and what it found.

``eigenoptions.explore`` is also the function `explore` of the root. The root's
``__init__.py`` says how both have the name.
"""

from __future__ import annotations

from eigenoptions.explore.explorer import Explorer, explore
from eigenoptions.explore.found import Found
from eigenoptions.explore.layouts import (
    MapWrapper,
    Rules,
    draw_until_won,
    load_rules,
)
from eigenoptions.explore.loading import load_found
from eigenoptions.explore.wrappers import Exploring, ExploringVector

__all__ = [
    "explore",
    "Explorer",
    "Exploring",
    "ExploringVector",
    "Found",
    "load_found",
    "MapWrapper",
    "Rules",
    "load_rules",
    "draw_until_won",
]
