"""Finite dynamics and their graph (paper, Sections 2 and 3)."""

from eigenoptions.mdp.graphs import distance, from_graph, graph, reachable
from eigenoptions.mdp.mazes import MOVES, maze, mazes
from eigenoptions.mdp.table import MDP

__all__ = [
    "MDP",
    "MOVES",
    "distance",
    "from_graph",
    "graph",
    "maze",
    "mazes",
    "reachable",
]
