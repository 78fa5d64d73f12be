"""MiniGrid's states: how exploration identifies, saves and restores them."""

from __future__ import annotations

import hashlib
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


def is_minigrid(env: Any) -> bool:
    """Whether an unwrapped environment is one of MiniGrid's."""
    return all(
        hasattr(env, part)
        for part in ("grid", "carrying", "agent_pos", "agent_dir", "gen_obs")
    )


def identify_state(env: Any) -> Hashable:
    """Key of the present state: the grid with its doors, what is carried, the instructions, position and direction.

    Equal objects have equal keys: if two balls of one colour swap places, the state is the same.
    """
    # Walls and floors do not change; without them keys are short.
    things = tuple(
        [
            (cell, *_describe_object(thing))
            for cell, thing in enumerate(env.grid.grid)
            if thing is not None and thing.type not in ("wall", "floor")
        ]
    )
    done = tuple(
        [
            _describe_memory(value)
            for part in _list_instructions(env)
            for value in _read_memory(part).values()
        ]
    )
    size, position = (
        (env.grid.height, env.grid.width),
        map(int, (*env.agent_pos, env.agent_dir)),
    )
    return things, _describe_object(env.carrying), done, *size, *position


def identify_layout(env: Any) -> str | None:
    """Digest of what does not change in an episode: the walls and floors. None where this is not MiniGrid's."""
    if not is_minigrid(env):
        return None
    fixed = [
        (cell, thing.type)
        for cell, thing in enumerate(env.grid.grid)
        if thing is not None and thing.type in ("wall", "floor")
    ]
    return hashlib.blake2b(
        repr((env.grid.width, fixed)).encode(), digest_size=8
    ).hexdigest()


def save_state(env: Any) -> Any:
    """The present state, for `restore_state`."""
    doors = [
        (door, door.is_open, door.is_locked)
        for door in env.grid.grid
        if hasattr(door, "is_locked")
    ]
    memory = [_read_memory(part) for part in _list_instructions(env)]
    return (
        env.grid.grid.copy(),
        doors,
        env.carrying,
        tuple(env.agent_pos),
        env.agent_dir,
        memory,
    )


def restore_state(env: Any, saved: Any) -> None:
    """Return to a saved state."""
    cells, doors, env.carrying, env.agent_pos, env.agent_dir, memory = saved
    for part, values in zip(_list_instructions(env), memory, strict=True):
        vars(part).update(values)
    env.grid.grid = cells.copy()
    for door, is_open, is_locked in doors:
        door.is_open, door.is_locked = is_open, is_locked
    env.step_count = 0


def place_states(keys: list[Any]) -> tuple[NDArray[np.int_] | None, str]:
    """Four maps, one per heading (right, down, left, up), if every state then has its own place; and a legend."""
    places = [
        (y + (height + 1) * (heading // 2), x + (width + 1) * (heading % 2))
        for *_, height, width, x, y, heading in keys
    ]
    return (np.array(places), LEGEND) if len(set(places)) == len(places) else (None, "")


def _describe_object(thing: Any) -> tuple[Hashable, ...]:
    """Type, colour, content and, of a door, state of an object; empty for None."""
    if thing is None:
        return ()
    door = getattr(thing, "is_open", None), getattr(thing, "is_locked", None)
    return thing.type, thing.color, _describe_object(thing.contains), *door


def _describe_memory(value: Any) -> Hashable:
    """What an instruction remembers: an object, or whether it was a success."""
    return (
        _describe_object(value)
        if hasattr(value, "color")
        else value in (True, "success")
    )


def _list_instructions(env: Any) -> list[Any]:
    """BabyAI's instruction and the parts it consists of; none in other environments."""
    parts = [env.instrs] if hasattr(env, "instrs") else []
    for part in parts:
        parts += [
            getattr(part, name)
            for name in ("instr_a", "instr_b")
            if hasattr(part, name)
        ]
    return parts


def _read_memory(instruction: Any) -> dict[str, Any]:
    """Attributes of an instruction that change while it is carried out."""
    return {name: value for name, value in vars(instruction).items() if name in MEMORY}
