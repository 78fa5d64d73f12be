"""Breadth-first exploration of a deterministic environment by cloning its states.

A state is identified by a key, saved and restored. A random walk in the environment is compared with the result: a copy
holds the environment's random generator too, so that each action seems to have one outcome even where it is random.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Hashable
from typing import Any

import numpy as np
from gymnasium import spaces

from eigenoptions._validation import Progress
from eigenoptions.envs.minigrid import identify_layout, is_minigrid, place_states
from eigenoptions.envs.recognition import KEYS, Key
from eigenoptions.envs.sources import count_actions, env_name
from eigenoptions.mdp import MDP
from eigenoptions.options.lookahead import copy_env

log = logging.getLogger("eigenoptions")

# Key of the next state, and whether the episode ended.
Outcome = tuple[Hashable, bool]


class StateLimitReached(ValueError):  # noqa: N818 (a public name)
    """Exploration found more than `max_states` states; `mdp` holds the states found.

    States that were found but not expanded stay put under every action; `expanded` is the number of others.
    """

    def __init__(self, message: str, mdp: MDP, expanded: int) -> None:
        super().__init__(message)
        self.mdp, self.expanded = mdp, expanded


def explore(
    env: Any,
    by: str | Key,
    save: Any,
    restore: Any,
    *,
    max_states: int,
    progress: Progress | None,
    seed: Any,
) -> MDP:
    """MDP of the states that can be reached from ``env.reset(seed=seed)``; its `states` are their keys.

    `by` is a key as in `from_env`, or the name of one in `KEYS`. Raises `StateLimitReached` beyond `max_states`, and
    ValueError where the environment cannot be copied or is not deterministic.
    """
    name, n_actions = env_name(env), count_actions(env)
    identify = KEYS[by] if isinstance(by, str) else by

    def save_state(stepped: Any) -> Any:
        return copy_env(stepped) if save is None else save(stepped.unwrapped)

    def restore_state(saved: Any) -> Any:
        if restore is None:
            return copy_env(saved)
        restore(env.unwrapped, saved)
        return env

    def take_step(stepped: Any, action: int) -> Outcome:
        obs, _, terminated, _, _ = stepped.step(action)
        return identify(stepped.unwrapped, obs), bool(terminated)

    obs, _ = env.reset(seed=seed)
    first, layout, start = (
        identify(env.unwrapped, obs),
        identify_layout(env.unwrapped),
        save_state(env),
    )
    # A random walk, to compare. Every 250 steps, and where an episode ends, it begins again with other random numbers.
    rng, before, walk = (
        np.random.default_rng(0),
        None,
        dict[tuple[Hashable, int], Outcome](),
    )
    for step in range(1000):
        if before is None or step % 250 == 0:
            before, clone = first, restore_state(start)
            clone.unwrapped.np_random = np.random.default_rng(step)
        action = int(rng.integers(n_actions))
        key, terminated = take_step(clone, action)
        if walk.setdefault((before, action), (key, terminated)) != (key, terminated):
            raise _not_deterministic(env, before, action)
        before = None if terminated else key
    # Expand states in the order in which they are found; a state where the episode ended has no successors.
    numbers: dict[Hashable, int] = {first: 0}
    successors: dict[int, list[int]] = {}
    endings: set[tuple[int, int]] = set()
    queue, queued, is_full = deque([(0, start)]), {0}, False
    while queue and not is_full:
        state, saved = queue.popleft()
        row: list[int] = []
        for action in range(n_actions):
            clone = restore_state(saved)
            key, terminated = take_step(clone, action)
            if key not in numbers and len(numbers) == max_states:
                is_full = True
                break
            row.append(numbers.setdefault(key, len(numbers)))
            if terminated:
                endings.add((state, action))
            elif row[-1] not in queued:
                queued.add(row[-1])
                queue.append((row[-1], save_state(clone)))
        else:
            successors[state] = row
        if progress is not None and (len(successors) % 64 == 0 or not queue or is_full):
            progress(len(successors), len(numbers))
    table = np.tile(np.arange(len(numbers))[:, None], n_actions)
    table[list(successors)] = list(successors.values())
    coords, legend = place_states(list(numbers)) if by == "minigrid" else (None, "")
    recognition = {"by": by, "seed": seed, "layout": layout, "partial": is_full}
    fields: Any = {"coords": coords, "legend": legend, "start": 0, "name": name}
    mdp = MDP.from_successors(
        table, states=list(numbers), recognition=recognition, **fields
    )
    if is_full:
        counts = f"{len(successors)} of the {len(numbers)} found were expanded"
        remedy = (
            "raise max_states, or take the part that was found from .mdp of this error"
        )
        message = (
            f"{name} has more than max_states={max_states} states: {counts}; {remedy}"
        )
        raise StateLimitReached(message, mdp, len(successors))
    for (before, action), (after, terminated) in walk.items():
        state = numbers.get(before, -1)
        if numbers.get(after) != table[state, action] or terminated != (
            (state, action) in endings
        ):
            raise _not_deterministic(env, before, action)
    ambiguous = sum(int(table[end]) in successors for end in endings)
    if ambiguous:
        text = "%s: %d actions end the episode in a state where it continues if reached otherwise; the table continues"
        log.warning(text, name, ambiguous)
    return mdp


def _not_deterministic(env: Any, key: Hashable, action: int) -> ValueError:
    is_nested = isinstance(env.observation_space, spaces.Tuple | spaces.Dict)
    sampled = "gymnasium.wrappers.FlattenObservation(env)" if is_nested else "env"
    sampled = (
        "minigrid.wrappers.ImgObsWrapper(env)"
        if is_minigrid(env.unwrapped)
        else sampled
    )
    return ValueError(
        f"{env_name(env)} is not deterministic (action {action} in state {str(key)[:80]}): it is random, or remembers "
        f"more than its observation (key=) or its copies (save=, restore=) hold; sample it: discover({sampled}, "
        "steps=...)"
    )


def is_finite(space: Any) -> bool:
    """Whether observations of a space are integers or text, so that equal states have equal observations."""
    if isinstance(space, spaces.Tuple | spaces.Dict):
        return all(
            map(
                is_finite,
                space.spaces.values()
                if isinstance(space, spaces.Dict)
                else space.spaces,
            )
        )
    if isinstance(space, spaces.Box):
        return space.dtype is not None and space.dtype.kind in "iub"
    return isinstance(
        space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary | spaces.Text
    )
