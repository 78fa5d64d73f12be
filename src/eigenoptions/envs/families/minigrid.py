"""MiniGrid and BabyAI: a state is what the grid holds, not the agent's partial view.

The package need not be installed: an environment is recognised by its attributes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from eigenoptions._types import IndexArray
from eigenoptions.envs.families.family import Family, Places, families
from eigenoptions.envs.families.windows import Names, Surroundings, Task
from eigenoptions.envs.poses import PoseTracker
from eigenoptions.envs.sources import PASSIVE_WRAPPERS
from eigenoptions.options.lookahead import copy_env

_ATTRIBUTES = ("grid", "carrying", "agent_pos", "agent_dir", "gen_obs")

# Attributes in which BabyAI's instructions remember what has been done.
_MEMORY = ("a_done", "b_done", "preCarrying", "lastStepMatch")

# Objects that never change within an episode.
_FIXED = ("wall", "floor")

# States of the objects, such as an open door, that are drawn beside each other.
_MAX_MAPS = 16

_LEGEND = "one map per heading of the agent (right, down, left, up)"


class _SavedState(NamedTuple):
    """All that changes within an episode."""

    cells: list[Any]
    # Each door, whether it is open, and whether it is locked.
    doors: list[tuple[Any, bool, bool]]
    carrying: Any
    position: tuple[int, ...]
    heading: int
    # What each part of BabyAI's instructions remembers.
    memory: list[dict[str, Any]]


def _is_minigrid(env: gym.Env[Any, Any]) -> bool:
    return all(hasattr(env.unwrapped, name) for name in _ATTRIBUTES)


def _identify_state(env: Any, obs: Any) -> Hashable:
    """Return the objects with their places, what is carried and done, and the agent.

    Equal objects have equal keys: if two balls of one colour swap places, the state is
    the same.
    """
    # Walls and floors do not change; without them keys are short.
    objects = tuple(
        [
            (cell, *_describe_object(thing))
            for cell, thing in enumerate(env.grid.grid)
            if thing is not None and thing.type not in _FIXED
        ]
    )
    carried = _describe_object(env.carrying)
    done = tuple(
        [
            _describe_memory(value)
            for part in _list_instructions(env)
            for value in _read_memory(part).values()
        ]
    )
    x, y = env.agent_pos
    size = (env.grid.height, env.grid.width)
    agent = (int(x), int(y), int(env.agent_dir))
    return (objects, carried, done, *size, *agent)


def _identify_layout(env: Any) -> str:
    """Return a digest of what does not change in an episode: the walls and floors."""
    fixed = [
        (cell, thing.type)
        for cell, thing in enumerate(env.grid.grid)
        if thing is not None and thing.type in _FIXED
    ]
    text = repr((env.grid.width, fixed))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _save_state(env: Any) -> _SavedState:
    doors = [
        (thing, thing.is_open, thing.is_locked)
        for thing in env.grid.grid
        if hasattr(thing, "is_locked")
    ]
    return _SavedState(
        cells=env.grid.grid.copy(),
        doors=doors,
        carrying=env.carrying,
        position=tuple(env.agent_pos),
        heading=env.agent_dir,
        memory=[_read_memory(part) for part in _list_instructions(env)],
    )


def _restore_state(env: Any, saved: _SavedState) -> None:
    env.grid.grid = saved.cells.copy()
    for door, is_open, is_locked in saved.doors:
        door.is_open = is_open
        door.is_locked = is_locked

    env.carrying = saved.carrying
    env.agent_pos = saved.position
    env.agent_dir = saved.heading
    for part, memory in zip(_list_instructions(env), saved.memory, strict=True):
        vars(part).update(memory)

    # The time limit is no part of a state.
    env.step_count = 0


def _place_states(keys: Sequence[Any]) -> Places:
    """Place states on maps, one per heading and state of the objects.

    They are not placed if the objects have more than `_MAX_MAPS` states.
    """
    numbers: dict[Hashable, int] = {}
    arrangements = []
    for key in keys:
        # Objects, what is carried, and what was done, in the order of the search.
        arrangements.append(numbers.setdefault(key[:3], len(numbers)))
    if len(numbers) > _MAX_MAPS:
        return None, ""

    x, y, heading = np.array([key[-3:] for key in keys]).T
    # The part of the grid that the agent enters, with its walls.
    column = x - x.min() + 1
    row = y - y.min() + 1
    width = int(column.max()) + 2
    height = int(row.max()) + 2

    # The maps of one heading fill a square. Of these squares, those of right and down
    # are above, left and up below.
    n_columns = math.ceil(math.sqrt(len(numbers)))
    n_rows = math.ceil(len(numbers) / n_columns)
    arrangement = np.array(arrangements)
    rows = row + (height + 1) * (arrangement // n_columns + n_rows * (heading // 2))
    columns = column + (width + 1) * (
        arrangement % n_columns + n_columns * (heading % 2)
    )
    legend = _LEGEND
    if len(numbers) > 1:
        legend += " and per state of the objects"
    return np.stack([rows, columns], axis=1), legend


def _find_headings(keys: Sequence[Any]) -> IndexArray:
    """Find where the agent looks: MiniGrid's numbers are those of `MDP.headings`."""
    return np.array([key[-1] for key in keys], dtype=np.int64)


def _leave_out_observations(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Leave out observations, which take most of the time of a step: no key reads them.

    Other wrappers, such as those that change actions, stay.
    """
    layer = env
    while isinstance(layer, gym.Wrapper) and isinstance(
        layer, (*PASSIVE_WRAPPERS, gym.ObservationWrapper)
    ):
        layer = layer.env
    if layer is not env.unwrapped:
        return layer

    # A copy: the user's environment keeps its observations.
    silent = copy_env(layer)
    silent.gen_obs = dict  # type: ignore[attr-defined]
    return silent


def _suggest_sampled(env: gym.Env[Any, Any]) -> str:
    return "minigrid.wrappers.ImgObsWrapper(env)"


def _describe_object(thing: Any) -> tuple[Hashable, ...]:
    """Return type, colour, content and, of a door, state; empty for None."""
    if thing is None:
        return ()
    content = _describe_object(thing.contains)
    is_open = getattr(thing, "is_open", None)
    is_locked = getattr(thing, "is_locked", None)
    return thing.type, thing.color, content, is_open, is_locked


def _describe_memory(value: Any) -> Hashable:
    """Return what an instruction remembers: an object, or whether it succeeded."""
    if hasattr(value, "color"):
        return _describe_object(value)
    return value in (True, "success")


def _list_instructions(env: Any) -> list[Any]:
    """List BabyAI's instruction and its parts; none in other environments."""
    if not hasattr(env, "instrs"):
        return []
    parts = [env.instrs]
    # The list grows while it is read: parts may consist of parts.
    for part in parts:
        for name in ("instr_a", "instr_b"):
            if hasattr(part, name):
                parts.append(getattr(part, name))
    return parts


def _read_memory(instruction: Any) -> dict[str, Any]:
    """Return the attributes of an instruction that change while it is carried out."""
    return {name: value for name, value in vars(instruction).items() if name in _MEMORY}


_NAMES = Names(
    actions=("left", "right", "forward", "pick up", "drop", "toggle", "done"),
    channels=("kind", "colour", "state"),
    values=(
        dict(
            enumerate(
                (
                    "unseen",
                    "empty",
                    "wall",
                    "floor",
                    "door",
                    "key",
                    "ball",
                    "box",
                    "goal",
                    "lava",
                    "agent",
                )
            )
        ),
        dict(enumerate(("red", "green", "blue", "purple", "yellow", "grey"))),
        dict(enumerate(("open", "closed", "locked"))),
    ),
)
_UNSEEN = 0


def _find_surroundings(env: gym.Env[Any, Any]) -> Surroundings | None:
    """Return how the agent's view is a window; None where wrappers changed it."""
    size = getattr(env.unwrapped, "agent_view_size", 0)
    space = env.observation_space
    if isinstance(space, gym.spaces.Dict):
        size = getattr(_find_view_wrapper(env), "agent_view_size", size)
        space = space.spaces.get("image", space)
    if space.shape != (size, size, 3):
        return None
    return Surroundings(_read_window, (size - 1, size // 2), _NAMES, _read_mission)


def _find_view_wrapper(env: Any) -> Any:
    """Return the outermost layer that says how large the view is."""
    while not hasattr(env, "agent_view_size") and hasattr(env, "env"):
        env = env.env
    return env


def _read_window(obs: Any) -> tuple[Any, Any]:
    """Return the view with the agent at the bottom, and what it carries.

    MiniGrid's image has the columns first, and shows what is carried in the agent's
    own cell, so that what lies there is not seen.
    """
    image = obs["image"] if isinstance(obs, dict) else obs
    window = np.asarray(image).swapaxes(0, 1).astype(np.int64)
    size = len(window)
    hand = tuple(window[-1, size // 2].tolist())
    window[window[..., 0] == _UNSEEN] = -1
    window[-1, size // 2] = -1
    return window, hand


def _read_mission(obs: Any) -> Task:
    """Read a mission about one thing as its verb and that thing; others as text."""
    if not isinstance(obs, dict):
        return Task()
    mission = str(obs.get("mission", ""))
    words = mission.split()
    codes = [_NAMES.find_code(word, n_channels=3) for word in words]
    things = [code for code in codes if code is not None and code[0] >= 0]
    if len(things) != 1:
        return Task(mission)
    named = np.array([code for code in codes if code is not None]).max(axis=0)
    verb = " ".join(w for w, code in zip(words, codes, strict=True) if code is None)
    return Task(verb, tuple(named.tolist()))


MINIGRID = Family(
    name="minigrid",
    matches=_is_minigrid,
    identify_state=_identify_state,
    save=_save_state,
    restore=_restore_state,
    identify_layout=_identify_layout,
    place_states=_place_states,
    find_headings=_find_headings,
    prepare_search=_leave_out_observations,
    suggest_sampled=_suggest_sampled,
    trackers={"pose": PoseTracker},
    find_surroundings=_find_surroundings,
)
families.add("minigrid", MINIGRID)
