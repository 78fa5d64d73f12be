"""Vectors cut into cells: goals from logged data, and options of recorded vectors."""

from eigenoptions.vectors.cells import Cells
from eigenoptions.vectors.displacement import Fit
from eigenoptions.vectors.episode import BlockedMove, Episode
from eigenoptions.vectors.goal_options import GoalOption
from eigenoptions.vectors.model import VectorModel
from eigenoptions.vectors.planner import Planner

__all__ = [
    "BlockedMove",
    "Cells",
    "Episode",
    "Fit",
    "GoalOption",
    "Planner",
    "VectorModel",
]
