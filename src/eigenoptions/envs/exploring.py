"""Breadth-first exploration of a deterministic environment: its exact MDP, where it shows no transition table.

A `Probe` identifies a state (`key`), saves it and restores it. MiniGrid's is built in; other environments are copied,
and their states identified by the observation. `options.lookahead.Clones` also copies environments, but from one state
at a time and without a key.
"""

from __future__ import annotations

import copy
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions.mdp import MDP

log = logging.getLogger("eigenoptions")

Progress = Callable[[int, int], object]
# Of the unwrapped environment and its observation.
Key = Callable[[Any, Any], Hashable]
Save = Callable[[Any], Any]
Restore = Callable[[Any, Any], object]


class StateLimitReached(ValueError):  # noqa: N818 (a public name)
    """Exploration found more than `max_states` states; `mdp` holds the states found.

    Attributes
    ----------
    mdp
        The explored part. States that were found but not expanded stay put under every action.
    expanded
        Number of its states that have their true successors.

    Examples
    --------
    >>> from eigenoptions.envs import from_env
    >>> try:
    ...     from_env("minigrid:MiniGrid-Empty-5x5-v0", max_states=10)
    ... except StateLimitReached as reached:
    ...     print(reached.mdp.n_states, reached.expanded)
    10 5
    """

    def __init__(self, message: str, mdp: MDP, expanded: int) -> None:
        super().__init__(message)
        self.mdp = mdp
        self.expanded = expanded


@dataclass(frozen=True)
class Probe:
    """How states are identified, saved and restored; `coords` places them in a picture, where possible."""

    key: Key
    save: Save
    restore: Restore
    coords: Callable[[list[Any]], NDArray[np.int_] | None] = lambda keys: None


def probe_of(env: Any, key: Key | None, save: Save | None, restore: Restore | None) -> Probe:
    """Probe for an environment: the functions that were given, and built-in ones for the others."""
    name = name_of(env)
    if (save is None) != (restore is None):
        raise ValueError(f"save and restore go together, got only {'save' if restore is None else 'restore'}")
    base = env.unwrapped
    if all(hasattr(base, part) for part in ("grid", "carrying", "agent_pos", "agent_dir", "gen_obs")):
        built_in = _MiniGrid().probe()
    else:
        if key is None and not _finite(env.observation_space):
            raise ValueError(
                f"{name} has no transition table and its observations are not finite ({env.observation_space}): "
                "pass key=, or sample it with collect and use features"
            )
        built_in = Probe(lambda _, obs: _frozen(obs), _copied, _put_back)
    return Probe(
        key or built_in.key,
        save or built_in.save,
        restore or built_in.restore,
        built_in.coords if key is None else _nowhere,
    )


def explore(
    env: Any, probe: Probe, n_actions: int, max_states: int, progress: Progress | None, seed: int | None
) -> tuple[MDP, dict[Hashable, int]]:
    """MDP of the states that can be reached from ``env.reset(seed=seed)``, and the number of each state's key.

    Raises `StateLimitReached` beyond `max_states`, and ValueError where the environment cannot be copied or draws
    random numbers in a step.
    """
    base, name = env.unwrapped, name_of(env)
    obs, _ = env.reset(seed=seed)
    with _silent(base):
        numbers: dict[Hashable, int] = {probe.key(base, obs): 0}
        first = _guarded(name, probe.save, base)
        _rehearse(name, base, probe, first, n_actions)
        queued = {0}
        queue: deque[tuple[int, Any]] = deque([(0, first)])
        rows: dict[int, list[int]] = {}
        full = False
        while queue and not full:
            number, saved = queue.popleft()
            row = []
            for action in range(n_actions):
                probe.restore(base, saved)
                obs, terminated = _taken(name, base, action)
                key = probe.key(base, obs)
                found = numbers.get(key, len(numbers))
                if found == max_states:
                    full = True
                    break
                numbers[key] = found
                row.append(found)
                # An ended episode has no successors.
                if not terminated and found not in queued:
                    queued.add(found)
                    queue.append((found, probe.save(base)))
            else:
                rows[number] = row
            if progress is not None and (len(rows) % 64 == 0 or not queue or full):
                progress(len(rows), len(numbers))
    mdp = MDP(_table(rows, len(numbers), n_actions), coords=probe.coords(list(numbers)), start=0, name=name)
    if full:
        raise StateLimitReached(
            f"{name} has more than max_states={max_states} states: {len(rows)} of the {len(numbers)} found were "
            "expanded; raise max_states, or take the part that was found from .mdp of this error",
            mdp,
            len(rows),
        )
    log.info("%s: %d states found by exploration", name, len(numbers))
    return mdp, numbers


def _table(rows: dict[int, list[int]], n: int, n_actions: int) -> csr_array:
    """Transitions of a deterministic table; states without a row stay put under every action."""
    successors = np.repeat(np.arange(n), n_actions).reshape(n, n_actions)
    for number, row in rows.items():
        successors[number] = row
    size = successors.size
    return csr_array((np.ones(size), successors.ravel(), np.arange(size + 1)), shape=(size, n))


def name_of(env: Any) -> str:
    """The id of an environment, or the name of its class."""
    spec = getattr(env, "spec", None)
    return str(spec.id) if spec is not None else type(env.unwrapped).__name__


def _nowhere(keys: list[Any]) -> None:
    return None


def _rehearse(name: str, base: Any, probe: Probe, saved: Any, n_actions: int) -> None:
    """Take each action twice from the first state, to detect a copy that does not hold the whole state."""
    for action in range(n_actions):
        seen = []
        for _ in range(2):
            _guarded(name, probe.restore, base, saved)
            obs, _ = _taken(name, base, action)
            seen.append(probe.key(base, obs))
        if seen[0] != seen[1]:
            raise ValueError(
                f"{name} cannot be put back: action {action} of the first state led to two different states; "
                "pass save= and restore= that keep its whole state"
            )


def _taken(name: str, base: Any, action: int) -> tuple[Any, bool]:
    """Take an action that must not draw random numbers: the observation, and whether the episode ended."""
    before = _generator_state(base)
    obs, _, terminated, _, _ = base.step(action)
    if _generator_state(base) != before:
        raise ValueError(
            f"{name} draws random numbers in a step: only a deterministic environment can be explored; "
            "sample this one with collect"
        )
    return obs, terminated


def _guarded(name: str, part: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return part(*arguments)
    except Exception as error:
        raise ValueError(
            f"{name} cannot be cloned ({type(error).__name__}: {error}): pass save= and restore=, "
            "or sample it with collect"
        ) from error


def _generator_state(base: Any) -> Any:
    """State of the environment's random generator; None before it has one."""
    generator = getattr(base, "_np_random", None)
    return None if generator is None else generator.bit_generator.state


def _finite(space: Any) -> bool:
    """Whether observations of a space are whole numbers, so that equal states have equal observations."""
    if isinstance(space, spaces.Tuple | spaces.Dict):
        return all(map(_finite, space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces))
    if isinstance(space, spaces.Box):
        return space.dtype is not None and space.dtype.kind in "iub"
    return isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary | spaces.Text)


def _frozen(obs: Any) -> Hashable:
    """An observation as a key of a dictionary."""
    if isinstance(obs, dict):
        return tuple((k, _frozen(obs[k])) for k in sorted(obs))
    if isinstance(obs, tuple | list):
        return tuple(map(_frozen, obs))
    if isinstance(obs, np.ndarray):
        return obs.item() if obs.ndim == 0 else obs.tobytes()
    return obs.item() if isinstance(obs, np.generic) else obs  # type: ignore[no-any-return]


def _copied(base: Any) -> dict[str, Any]:
    return copy.deepcopy(vars(base))


def _put_back(base: Any, saved: dict[str, Any]) -> None:
    vars(base).clear()
    vars(base).update(copy.deepcopy(saved))


@contextmanager
def _silent(base: Any) -> Iterator[None]:
    """Switch rendering off, and MiniGrid's observations, which take most of its time and are not needed."""
    mode, draws = base.render_mode, hasattr(base, "gen_obs")
    base.render_mode = None
    if draws:
        base.gen_obs = dict
    try:
        yield
    finally:
        base.render_mode = mode
        if draws:
            del base.gen_obs


class _MiniGrid:
    """Key, save and restore for MiniGrid: the grid with its doors, what is carried, position and direction.

    Equal objects have equal codes: if two balls of one colour swap places, the state is the same.
    """

    def __init__(self) -> None:
        self.looks: dict[Any, int] = {None: 0}
        self.grid: Any = None

    def probe(self) -> Probe:
        return Probe(self.key, self.save, self.restore, self.coords)

    def see(self, env: Any) -> None:
        """Read a new grid: each object's code, and its doors (the only objects that change in place)."""
        self.grid = env.grid
        self.codes = {thing: self.code(thing) for thing in env.grid.grid}
        self.doors = [thing for thing in env.grid.grid if hasattr(thing, "is_locked")]
        self.size = (env.grid.height, env.grid.width)

    def code(self, thing: Any) -> int:
        look = thing
        if thing is not None:
            inside = self.code(thing.contains) if thing.contains is not None else 0
            look = (thing.type, thing.color, inside)
        return self.looks.setdefault(look, len(self.looks))

    def key(self, env: Any, obs: Any) -> Hashable:
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
        if env.grid is not self.grid:
            self.see(env)
        doors = [(door.is_open, door.is_locked) for door in self.doors]
        return env.grid.grid.copy(), doors, env.carrying, tuple(env.agent_pos), env.agent_dir

    def restore(self, env: Any, saved: Any) -> None:
        cells, doors, env.carrying, env.agent_pos, env.agent_dir = saved
        env.grid.grid = cells.copy()
        for door, state in zip(self.doors, doors, strict=True):
            door.is_open, door.is_locked = state
        env.step_count = 0

    def coords(self, keys: list[Any]) -> NDArray[np.int_] | None:
        """Four maps, one per direction (right, down, left, up), if that gives every state its own place."""
        high, wide = self.size
        places = [(y + (high + 1) * (d // 2), x + (wide + 1) * (d % 2)) for *_, x, y, d in keys]
        return np.array(places) if len(set(places)) == len(places) else None
