"""Gymnasium: environments as MDPs, and options as actions.

``import eigenoptions`` registers ``eigenoptions/FourRooms-v0``,
``eigenoptions/OpenRoom-v0``, ``eigenoptions/IMaze-v0`` and ``eigenoptions/Maze-v0``
(any map, as text, path or `MDP`).
"""

from __future__ import annotations

from eigenoptions.envs.checks import check_dynamics
from eigenoptions.envs.finite import Numbered, from_env
from eigenoptions.envs.fixed_seed import FixedSeed
from eigenoptions.envs.mazes import MazeEnv
from eigenoptions.envs.search import StateLimitReached
from eigenoptions.envs.shaping import ShapedReward
from eigenoptions.envs.spaces import OptionsSpace, OptionsVectorSpace
from eigenoptions.envs.state_number import StateNumber
from eigenoptions.envs.vector import OptionsVectorWrapper
from eigenoptions.envs.wrapper import OptionsWrapper, PrimitiveStep

__all__ = [
    "MazeEnv",
    "from_env",
    "Numbered",
    "StateNumber",
    "FixedSeed",
    "StateLimitReached",
    "check_dynamics",
    "OptionsWrapper",
    "OptionsVectorWrapper",
    "OptionsSpace",
    "OptionsVectorSpace",
    "PrimitiveStep",
    "ShapedReward",
]
