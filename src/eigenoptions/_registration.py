"""Gymnasium ids of our mazes, registered as soon as both packages are imported, in either order.

Gymnasium reads no plug-in entry points, so a package registers at import. ``import eigenoptions`` must not load
Gymnasium for those who do not use it; so if Gymnasium is not loaded yet, registration waits for its import.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
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


def register_when_possible() -> None:
    """Register now, or right after Gymnasium is imported."""
    if "gymnasium" in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _Watch())


class _Watch(MetaPathFinder):
    """Finder that finds Gymnasium as usual, once, and registers the ids after it has loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "gymnasium" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                register()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
