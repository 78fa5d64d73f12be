"""Gymnasium: mazes as environments, the exact MDP of an environment, samples of one, and options as actions.

Importing this module registers ``eigenoptions/FourRooms-v0``, ``eigenoptions/OpenRoom-v0``, ``eigenoptions/IMaze-v0``
and ``eigenoptions/Maze-v0`` (any map, as text, path or `MDP`). ``import eigenoptions`` alone stays light and does not,
so write ``import eigenoptions.envs``, or name the module: ``gym.make("eigenoptions.envs:eigenoptions/FourRooms-v0")``.
"""

from __future__ import annotations

import gymnasium as gym

from eigenoptions.envs.collecting import CollectionStopped, Recording, collect, load_transitions, stream
from eigenoptions.envs.exploring import StateLimitReached
from eigenoptions.envs.mazes import MazeEnv, MazeVectorEnv
from eigenoptions.envs.tables import Numbered, from_env
from eigenoptions.envs.wrapper import OptionsWrapper

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
]

for _name, _maze in (
    ("FourRooms", "four-rooms"),
    ("OpenRoom", "open-room"),
    ("IMaze", "i-maze"),
    ("Maze", "four-rooms"),
):
    if f"eigenoptions/{_name}-v0" not in gym.registry:
        gym.register(
            f"eigenoptions/{_name}-v0",
            entry_point="eigenoptions.envs.mazes:MazeEnv",
            vector_entry_point="eigenoptions.envs.mazes:MazeVectorEnv",
            kwargs={"maze": _maze},
        )
