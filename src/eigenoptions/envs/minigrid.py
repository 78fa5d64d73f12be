"""States of MiniGrid: how `from_env` identifies, saves and restores them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Attributes in which BabyAI's instructions remember what has been done.
MEMORY = ("a_done", "b_done", "preCarrying", "lastStepMatch")
LEGEND = (
    "four maps, one per heading of the agent: right and down above, left and up below; "
    "0 turn left, 1 turn right, 3 pick up, 4 drop, 5 toggle"
)


class MiniGrid:
    """Key, save and restore for MiniGrid: the grid with its doors, what is carried, position and direction.

    BabyAI's instructions remember what has been done ("open the red door, then the blue one"): part of the state.
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
        done = tuple([self.done(value) for part in _instructions(env) for value in _memory(part).values()])
        return cells, doors, carried, done, int(x), int(y), int(env.agent_dir)

    def done(self, value: Any) -> int:
        """What an instruction remembers, as a number: an object by its code, else whether it was a success."""
        return self.code(value) if hasattr(value, "color") else int(value in (True, "success"))

    def save(self, env: Any) -> Any:
        """The present state, for `restore`."""
        if env.grid is not self.grid:
            self.see(env)
        doors = [(door.is_open, door.is_locked) for door in self.doors]
        memory = [_memory(part) for part in _instructions(env)]
        return env.grid.grid.copy(), doors, env.carrying, tuple(env.agent_pos), env.agent_dir, memory

    def restore(self, env: Any, saved: Any) -> None:
        """Return to a saved state."""
        cells, doors, env.carrying, env.agent_pos, env.agent_dir, memory = saved
        for part, values in zip(_instructions(env), memory, strict=True):
            vars(part).update(values)
        env.grid.grid = cells.copy()
        for door, state in zip(self.doors, doors, strict=True):
            door.is_open, door.is_locked = state
        env.step_count = 0

    def places(self, keys: list[Any]) -> tuple[NDArray[np.int_] | None, str]:
        """Four maps, one per heading (right, down, left, up), if every state then has its own place; and a legend."""
        high, wide = self.size
        places = [(y + (high + 1) * (d // 2), x + (wide + 1) * (d % 2)) for *_, x, y, d in keys]
        return (np.array(places), LEGEND) if len(set(places)) == len(places) else (None, "")


def _instructions(env: Any) -> list[Any]:
    """BabyAI's instruction and the parts it consists of; none in other environments."""
    found = [env.instrs] if hasattr(env, "instrs") else []
    for part in found:
        found += [getattr(part, name) for name in ("instr_a", "instr_b") if hasattr(part, name)]
    return found


def _memory(instruction: Any) -> dict[str, Any]:
    """Attributes of an instruction that change while it is carried out."""
    return {name: value for name, value in vars(instruction).items() if name in MEMORY}
