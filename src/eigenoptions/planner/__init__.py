"""Goals from logged data."""

from eigenoptions.planner.planner import Planner

__all__ = ["Planner"]
