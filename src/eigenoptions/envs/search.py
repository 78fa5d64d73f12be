"""Breadth-first exploration of a deterministic environment by cloning its states.

A `Cloning` identifies a state (`key`), saves it and restores it. MiniGrid's is built in (`minigrid`); other
environments are copied, and their states identified by the observation. A random walk in the environment is compared
with the result: a copy holds the environment's random generator too, so that each action seems to have one outcome even
where it is random.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from eigenoptions.envs.minigrid import identify_layout, is_minigrid
from eigenoptions.envs.recognition import KEYS, Key
from eigenoptions.envs.sources import count_actions, env_name
from eigenoptions.mdp import MDP
from eigenoptions.options.lookahead import copy_env

log = logging.getLogger("eigenoptions")

Progress = Callable[[int, int], object]
Save = Callable[[Any], Any]
Restore = Callable[[Any, Any], object]


class StateLimitReached(ValueError):  # noqa: N818 (a public name)
    """Exploration found more than `max_states` states; `mdp` holds the states found.

    States of `mdp` that were found but not expanded stay put under every action; `expanded` is the number of others.

    >>> from eigenoptions.envs import from_env
    >>> try:
    ...     from_env("minigrid:MiniGrid-Empty-5x5-v0", max_states=10)
    ... except StateLimitReached as reached:
    ...     print(reached.mdp.n_states, reached.expanded)
    10 5
    """

    def __init__(self, message: str, mdp: MDP, expanded: int) -> None:
        super().__init__(message)
        self.mdp, self.expanded = mdp, expanded


@dataclass(frozen=True)
class Cloning:
    """How the states of an environment are identified, saved and restored.

    `env` is stepped; `by` is a key as in `from_env`, or the name of one in `KEYS`; `save` and `restore` are those of
    `from_env`; `place_states` is a function from keys to coordinates and a legend.
    """

    env: Any
    by: str | Key
    save: Save | None = None
    restore: Restore | None = None
    place_states: Callable[[list[Any]], tuple[NDArray[np.int_] | None, str]] = lambda keys: (None, "")

    def key(self, env: Any, obs: Any) -> Hashable:
        """Key of the present state of an unwrapped environment."""
        return (KEYS[self.by] if isinstance(self.by, str) else self.by)(env, obs)

    def save_state(self, env: Any) -> Any:
        """The present state of an environment."""
        return copy_env(env) if self.save is None else self.save(env.unwrapped)

    def restore_state(self, saved: Any) -> Any:
        """An environment in a saved state."""
        if self.restore is None:
            return copy_env(saved)
        self.restore(self.env.unwrapped, saved)
        return self.env

    def step(self, env: Any, action: int) -> tuple[Hashable, bool]:
        """Take an action: key of the next state, and whether the episode ended."""
        obs, _, terminated, _, _ = env.step(action)
        return self.key(env.unwrapped, obs), bool(terminated)


def explore(cloning: Cloning, max_states: int, progress: Progress | None = None, seed: int | None = 0) -> MDP:
    """MDP of the states that can be reached from ``env.reset(seed=seed)``; its `states` are their keys.

    Raises `StateLimitReached` beyond `max_states`, and ValueError where the environment cannot be copied or is not
    deterministic.
    """
    env = cloning.env
    name, n_actions = env_name(env), count_actions(env)
    obs, _ = env.reset(seed=seed)
    first = cloning.key(env.unwrapped, obs)
    layout = identify_layout(env.unwrapped) if is_minigrid(env.unwrapped) else None
    start = cloning.save_state(env)
    walk = record_walk(cloning, start, first, n_actions)
    # Expand states in the order in which they are found; a state where the episode ended has no successors.
    numbers: dict[Hashable, int] = {first: 0}
    successors: dict[int, list[int]] = {}
    endings: set[tuple[int, int]] = set()
    queue, queued, is_full = deque([(0, start)]), {0}, False
    while queue and not is_full:
        state, saved = queue.popleft()
        row: list[int] = []
        for action in range(n_actions):
            env = cloning.restore_state(saved)
            key, terminated = cloning.step(env, action)
            if key not in numbers and len(numbers) == max_states:
                is_full = True
                break
            row.append(numbers.setdefault(key, len(numbers)))
            if terminated:
                endings.add((state, action))
            elif row[-1] not in queued:
                queued.add(row[-1])
                queue.append((row[-1], cloning.save_state(env)))
        else:
            successors[state] = row
        if progress is not None and (len(successors) % 64 == 0 or not queue or is_full):
            progress(len(successors), len(numbers))
    table = np.tile(np.arange(len(numbers))[:, None], n_actions)
    table[list(successors)] = list(successors.values())
    coords, legend = cloning.place_states(list(numbers))
    mdp = MDP.from_successors(
        table,
        coords=coords,
        start=0,
        name=name,
        legend=legend,
        states=list(numbers),
        recognition={"by": cloning.by, "seed": seed, "layout": layout, "partial": is_full},
    )
    if is_full:
        raise StateLimitReached(
            f"{name} has more than max_states={max_states} states: {len(successors)} of the {len(numbers)} found "
            "were expanded; raise max_states, or take the part that was found from .mdp of this error",
            mdp,
            len(successors),
        )
    for (before, action), (after, terminated) in walk.items():
        state = numbers.get(before, -1)
        if numbers.get(after) != table[state, action] or terminated != ((state, action) in endings):
            raise _not_deterministic(env, before, action)
    ambiguous = sum(int(table[end]) in successors for end in endings)
    if ambiguous:
        log.warning(
            "%s: %d actions end the episode in a state where it continues if that is reached otherwise; the table has "
            "states only, so there it continues",
            name,
            ambiguous,
        )
    return mdp


def record_walk(
    cloning: Cloning, start: Any, first: Hashable, n_actions: int, steps: int = 1000
) -> dict[tuple[Hashable, int], tuple[Hashable, bool]]:
    """Outcomes of a random walk by state and action; ValueError where an action has two outcomes in one state.

    Every 250 steps, and where an episode ends, the walk begins again with other random numbers of the environment.
    """
    rng, key, env = np.random.default_rng(0), None, cloning.env
    outcomes: dict[tuple[Hashable, int], tuple[Hashable, bool]] = {}
    for step in range(steps):
        if key is None or step % 250 == 0:
            key, env = first, cloning.restore_state(start)
            env.unwrapped.np_random = np.random.default_rng(step)
        before, action = key, int(rng.integers(n_actions))
        key, terminated = cloning.step(env, action)
        if outcomes.setdefault((before, action), (key, terminated)) != (key, terminated):
            raise _not_deterministic(env, before, action)
        key = None if terminated else key
    return outcomes


def choose_cloning(env: Any, key: Key | None, save: Save | None, restore: Restore | None) -> Cloning:
    """The functions that were given, or copies of an environment with finite observations."""
    if (save is None) != (restore is None):
        raise ValueError(f"save and restore go together, got only {'save' if restore is None else 'restore'}")
    if key is None and not _is_finite(env.observation_space):
        name = env_name(env)
        raise ValueError(
            f"{name} has no transition table and its observations are not finite "
            f"({' '.join(str(env.observation_space).split())}): discover({name!r}) samples it, or give from_env a "
            "function key(env, obs) that returns a state that can be hashed"
        )
    return Cloning(env, key or "observation", save, restore)


def _not_deterministic(env: Any, key: Hashable, action: int) -> ValueError:
    return ValueError(
        f"{env_name(env)} is not deterministic (action {action} in state {str(key)[:80]}): it is random, or "
        "remembers more than its observation (key=) or its copies (save=, restore=) hold; sample it "
        "(discover(env, steps=...), or collect)"
    )


def _is_finite(space: Any) -> bool:
    """Whether observations of a space are integers or text, so that equal states have equal observations."""
    if isinstance(space, spaces.Tuple | spaces.Dict):
        return all(map(_is_finite, space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces))
    if isinstance(space, spaces.Box):
        return space.dtype is not None and space.dtype.kind in "iub"
    return isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary | spaces.Text)
