"""Gymnasium ids of our mazes, registered as soon as both packages are imported, in either order.

Gymnasium reads no plug-in entry points, so a package registers at import. ``import eigenoptions`` must not load
Gymnasium for those who do not use it; so if Gymnasium is not loaded yet, registration waits for its import: a finder
in ``eigenoptions/__init__.py`` loads this module then.
"""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec
from types import ModuleType

MAZES = {"FourRooms": "four-rooms", "OpenRoom": "open-room", "IMaze": "i-maze", "Maze": "four-rooms"}


def register() -> None:
    """Register ``eigenoptions/FourRooms-v0`` and the others; entry points are names, so nothing else is loaded."""
    import gymnasium as gym

    for name, maze in MAZES.items():
        if f"eigenoptions/{name}-v0" not in gym.registry:
            gym.register(
                f"eigenoptions/{name}-v0",
                entry_point="eigenoptions.envs.mazes:MazeEnv",
                vector_entry_point="eigenoptions.envs.mazes:MazeVectorEnv",
                kwargs={"maze": maze},
            )


def found_and_registered() -> ModuleSpec | None:
    """Gymnasium as it is found usually, with `register` called as soon as it has loaded."""
    spec = importlib.util.find_spec("gymnasium")
    if spec is not None and spec.loader is not None:
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            register()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
    return spec
