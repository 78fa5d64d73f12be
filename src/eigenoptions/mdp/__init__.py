"""Finite dynamics and their graph (paper, Sections 2 and 3): `MDP`, `graph`, `maze`, `from_graph`, `Transitions`."""

from eigenoptions.mdp.graphs import distance, from_graph, reachable
from eigenoptions.mdp.maps import MOVES, maze, mazes
from eigenoptions.mdp.table import MDP, graph
from eigenoptions.mdp.transitions import Transitions

__all__ = [
    "MDP",
    "MOVES",
    "Transitions",
    "distance",
    "from_graph",
    "graph",
    "maze",
    "mazes",
    "reachable",
]
