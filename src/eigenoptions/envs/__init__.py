"""Gymnasium: mazes as environments, the exact MDP of an environment, samples of one, and options as actions.

``eigenoptions/FourRooms-v0``, ``eigenoptions/OpenRoom-v0``, ``eigenoptions/IMaze-v0`` and ``eigenoptions/Maze-v0`` (any
map, as text, path or `MDP`) are registered by ``import eigenoptions``, so that
``gym.make("eigenoptions/FourRooms-v0")`` works after ``import eigenoptions``, and so does
``gym.make("eigenoptions:eigenoptions/FourRooms-v0")`` without it.
"""

from __future__ import annotations

from eigenoptions.envs.collecting import CollectionStopped, Recording, collect, load_transitions, stream
from eigenoptions.envs.mazes import MazeEnv, MazeVectorEnv
from eigenoptions.envs.running import run_options
from eigenoptions.envs.spaces import OptionsSpace, OptionsVectorSpace
from eigenoptions.envs.tables import Numbered, StateLimitReached, from_env
from eigenoptions.envs.vector import OptionsVectorWrapper
from eigenoptions.envs.wrapper import OptionsWrapper, PrimitiveStep

__all__ = [
    "MazeEnv",
    "MazeVectorEnv",
    "from_env",
    "Numbered",
    "StateLimitReached",
    "collect",
    "stream",
    "Recording",
    "load_transitions",
    "CollectionStopped",
    "OptionsWrapper",
    "OptionsVectorWrapper",
    "OptionsSpace",
    "OptionsVectorSpace",
    "PrimitiveStep",
    "run_options",
]
