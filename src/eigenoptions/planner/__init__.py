"""Goals from logged data."""

from eigenoptions.planner.cells import Cells, make_cells
from eigenoptions.planner.displacement import Fit
from eigenoptions.planner.journey import BlockedMove, Journey
from eigenoptions.planner.places import Place
from eigenoptions.planner.planner import Planner

__all__ = ["BlockedMove", "Cells", "Fit", "Journey", "Place", "Planner", "make_cells"]
