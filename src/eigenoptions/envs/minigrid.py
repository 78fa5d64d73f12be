"""States of MiniGrid: how `from_env` identifies, saves and restores them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEGEND = (
    "four maps, one per heading of the agent: right and down above, left and up below; "
    "0 turn left, 1 turn right, 3 pick up, 4 drop, 5 toggle"
)


class MiniGrid:
    """Key, save and restore for MiniGrid: the grid with its doors, what is carried, position and direction.

    Equal objects have equal codes: if two balls of one colour swap places, the state is the same.
    """

    @staticmethod
    def fits(env: Any) -> bool:
        """Whether an unwrapped environment is one of MiniGrid's."""
        return all(hasattr(env, part) for part in ("grid", "carrying", "agent_pos", "agent_dir", "gen_obs"))

    def __init__(self) -> None:
        self.looks: dict[Any, int] = {None: 0}
        self.grid: Any = None

    def see(self, env: Any) -> None:
        """Read a new grid: each object's code, and its doors (the only objects that change in place)."""
        self.grid = env.grid
        self.codes = {thing: self.code(thing) for thing in env.grid.grid}
        self.doors = [thing for thing in env.grid.grid if hasattr(thing, "is_locked")]
        self.size = (env.grid.height, env.grid.width)

    def code(self, thing: Any) -> int:
        """Number of an object's type, colour and content."""
        look = thing
        if thing is not None:
            inside = self.code(thing.contains) if thing.contains is not None else 0
            look = (thing.type, thing.color, inside)
        return self.looks.setdefault(look, len(self.looks))

    def key(self, env: Any, obs: Any) -> Hashable:
        """Identity of the present state."""
        if env.grid is not self.grid:
            self.see(env)
        codes = self.codes
        try:
            cells = bytes([codes[thing] for thing in env.grid.grid])
        except KeyError:
            # An object that came out of a box.
            codes.update({thing: self.code(thing) for thing in env.grid.grid})
            cells = bytes([codes[thing] for thing in env.grid.grid])
        doors = tuple([(door.is_open, door.is_locked) for door in self.doors])
        x, y = env.agent_pos
        carried = 0 if env.carrying is None else self.code(env.carrying)
        return cells, doors, carried, int(x), int(y), int(env.agent_dir)

    def save(self, env: Any) -> Any:
        """The present state, for `restore`."""
        if env.grid is not self.grid:
            self.see(env)
        doors = [(door.is_open, door.is_locked) for door in self.doors]
        return env.grid.grid.copy(), doors, env.carrying, tuple(env.agent_pos), env.agent_dir

    def restore(self, env: Any, saved: Any) -> None:
        """Return to a saved state."""
        cells, doors, env.carrying, env.agent_pos, env.agent_dir = saved
        env.grid.grid = cells.copy()
        for door, state in zip(self.doors, doors, strict=True):
            door.is_open, door.is_locked = state
        env.step_count = 0

    def places(self, keys: list[Any]) -> tuple[NDArray[np.int_] | None, str]:
        """Four maps, one per heading (right, down, left, up), if every state then has its own place; and a legend."""
        high, wide = self.size
        places = [(y + (high + 1) * (d // 2), x + (wide + 1) * (d % 2)) for *_, x, y, d in keys]
        return (np.array(places), LEGEND) if len(set(places)) == len(places) else (None, "")
