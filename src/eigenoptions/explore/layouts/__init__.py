"""Layouts never seen: rules of what actions do, maps of episodes, skills of events."""

from __future__ import annotations

from eigenoptions.explore.layouts.beginning import draw_until_won
from eigenoptions.explore.layouts.found import LayoutFound
from eigenoptions.explore.layouts.rules import Rules, load_rules
from eigenoptions.explore.layouts.wrapper import MapWrapper

__all__ = ["MapWrapper", "Rules", "load_rules", "LayoutFound", "draw_until_won"]
