"""Gymnasium: mazes as environments, the exact MDP of an environment, samples of one, and options as actions.

``import eigenoptions`` registers ``eigenoptions/FourRooms-v0``, ``eigenoptions/OpenRoom-v0``, ``eigenoptions/IMaze-v0``
and ``eigenoptions/Maze-v0`` (any map, as text, path or `MDP`).
"""

from __future__ import annotations

from eigenoptions.envs.collection import collect, run_options
from eigenoptions.envs.finite import FixedSeed, Numbered, from_env
from eigenoptions.envs.mazes import MazeEnv
from eigenoptions.envs.recognition import check_dynamics
from eigenoptions.envs.search import StateLimitReached
from eigenoptions.envs.shaping import ShapedReward
from eigenoptions.envs.spaces import OptionsSpace, OptionsVectorSpace
from eigenoptions.envs.vector import OptionsVectorWrapper
from eigenoptions.envs.wrapper import OptionsWrapper, PrimitiveStep

__all__ = [
    "MazeEnv",
    "from_env",
    "Numbered",
    "FixedSeed",
    "StateLimitReached",
    "check_dynamics",
    "collect",
    "OptionsWrapper",
    "OptionsVectorWrapper",
    "OptionsSpace",
    "OptionsVectorSpace",
    "PrimitiveStep",
    "ShapedReward",
    "run_options",
]
