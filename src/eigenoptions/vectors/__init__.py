"""Vectors cut into cells: goals from logged data, and options of recorded vectors."""

from eigenoptions.vectors.cells import Cells
from eigenoptions.vectors.displacement import Fit
from eigenoptions.vectors.journey import BlockedMove, Journey
from eigenoptions.vectors.model import VectorModel
from eigenoptions.vectors.places import Place
from eigenoptions.vectors.planner import Planner

__all__ = ["BlockedMove", "Cells", "Fit", "Journey", "Place", "Planner", "VectorModel"]
