"""Lists of steps: tuples or dicts, as a loop around an environment appends them.

Among them are the steps of Gymnasium, which has no recorder of observations itself:
``(obs, action, *env.step(action))``, and what `gymnasium.utils.play` calls back with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eigenoptions.data.arrays import read_dict, read_tuple
from eigenoptions.data.parts import Parts, find_part

# Where a step of so many parts has a reward or an end: one number per step.
_FLAGS = {4: 3, 5: 2, 6: 3, 7: 3}

# Numbers of parts that a step may have.
STEP_SIZES = (3, 4, 5, 6, 7)


def is_step(entry: Any, continuous: bool) -> bool:
    """Whether an entry of a list is a single step, and not a batch of them.

    A reward, an end or an action is one number in a step, and many in a batch. If all
    that there is are vectors, they could be either, and you are asked.
    """
    if isinstance(entry, Mapping):
        flags = [find_part(entry, part) for part in ("reward", "terminated")]
        flags += [find_part(entry, "truncated")]
        known = [flag for flag in flags if flag is not None]
        obs = find_part(entry, "obs")
        action = find_part(entry, "action")
    elif isinstance(entry, tuple | list) and len(entry) in STEP_SIZES:
        entry = _order_parts(entry)
        known = [entry[_FLAGS[len(entry)]]] if len(entry) in _FLAGS else []
        obs = entry[0]
        action = entry[1]
    else:
        return False

    if known:
        return np.ndim(known[0]) == 0
    if obs is None or action is None:
        return False
    if _is_single(obs) or np.ndim(action) == 0:
        return True
    return _is_step_of_vectors(obs, action, continuous)


def _order_parts(step: Sequence[Any]) -> Sequence[Any]:
    """A step whose reward is on the other side of the next observation, as usual.

    ``(s, a, s', r, done)`` and ``(s, a, r, s')`` are as common as the two orders of
    `read_tuple`. Only if states are numbers, nothing but the place tells a state from a
    reward.
    """
    if len(step) not in (4, 5) or not _is_like(step[0], step[0]):
        return step
    obs, action, third, fourth, *end = step
    if len(step) == 5 and _is_like(third, obs) and not _is_like(fourth, obs):
        return obs, action, fourth, third, *end
    if len(step) == 4 and _is_like(fourth, obs) and not _is_like(third, obs):
        return obs, action, third, fourth, False
    return step


def _is_like(part: Any, obs: Any) -> bool:
    """Whether a part of a step is a vector or a name like the observation."""
    if isinstance(obs, str | tuple):
        return isinstance(part, type(obs))
    return np.ndim(obs) > 0 and np.shape(part) == np.shape(obs)


def _is_single(obs: Any) -> bool:
    """Whether an observation is a number or a name."""
    return np.ndim(obs) == 0


def _is_step_of_vectors(obs: Any, action: Any, continuous: bool) -> bool:
    """Whether an observation and an action that both have a length are one step."""
    if len(obs) != len(action):
        if isinstance(obs[0], str | tuple):
            # Several names of states are not one observation.
            return False
        if len(action) > 1 and not continuous:
            # A vector is no action, so these are several.
            return False
        # T + 1 observations and T actions are an episode.
        is_episode = len(obs) == len(action) + 1 and np.ndim(obs) > np.ndim(action)
        return not is_episode
    if np.ndim(obs) > 1 or not continuous:
        return False
    n = len(obs)
    raise ValueError(
        f"an entry with {n} numbers as obs and {n} as action is one step of vectors, "
        f"or a batch of {n} steps between numbered states: add a reward or an end to "
        "each, or give one tuple of arrays (obs, action, next_obs)"
    )


def read_steps(steps: Sequence[Any]) -> Parts:
    """Parts of single steps."""
    first = steps[0]
    if isinstance(first, Mapping):
        return read_dict(_join_dicts(steps))

    for number, step in enumerate(steps):
        if len(step) != len(first):
            raise ValueError(
                f"step {number} has {len(step)} parts, step 0 has {len(first)}: give "
                "all steps the same parts"
            )
    columns = [list(column) for column in zip(*map(_order_parts, steps), strict=True)]
    if len(first) <= 5:
        return read_tuple(tuple(columns))
    return _read_gymnasium(columns)


def _join_dicts(steps: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Steps as a dict of lists."""
    names = list(steps[0])
    for number, step in enumerate(steps):
        missing = [name for name in names if name not in step]
        if missing:
            raise ValueError(
                f"step {number} has no {missing[0]!r}, which step 0 has: give all "
                "steps the same names"
            )
    return {name: [step[name] for step in steps] for name in names}


def _read_gymnasium(columns: Sequence[list[Any]]) -> Parts:
    """Parts of ``(obs, action, next_obs, reward, terminated, truncated[, info])``.

    `gymnasium.utils.play` has the action after both observations.
    """
    obs, second, third, reward, terminated, truncated = columns[:6]
    action = second
    next_obs = third
    obs_shape = np.shape(obs[0])
    if np.shape(second[0]) == obs_shape and np.shape(third[0]) != obs_shape:
        action = third
        next_obs = second
    return Parts(obs, action, next_obs, terminated, reward, truncated)
