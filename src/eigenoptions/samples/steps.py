"""Lists of steps: tuples or dicts, as a loop around an environment appends them.

Among them are the steps of Gymnasium, which has no recorder of observations itself:
``(obs, action, *env.step(action))``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eigenoptions.samples.arrays import read_dict
from eigenoptions.samples.names import FLAGS, find_names, find_part, is_harmless
from eigenoptions.samples.parts import Parts
from eigenoptions.samples.tuples import ORDERS, order_parts

# Numbers of parts that a step may have.
STEP_SIZES = tuple(ORDERS)


def is_step(entry: Any, continuous: bool) -> bool:
    """Whether an entry of a list is a single step, and not a batch of them.

    A reward, an end or an action is one number in a step, and many in a batch. If all
    that there is are vectors, they could be either, and you are asked.
    """
    if isinstance(entry, Mapping):
        flags = [find_part(entry, part) for part in ("reward", *FLAGS)]
        flags = [flag for flag in flags if flag is not None]
        obs = find_part(entry, "obs")
        action = find_part(entry, "action")
    elif isinstance(entry, tuple | list) and len(entry) in STEP_SIZES:
        obs, action, *others = entry
        # One of more than three parts is a reward or an end.
        flags = others if len(entry) > 3 else []
    else:
        return False

    if flags:
        return any(_is_single(flag) for flag in flags)
    if obs is None or action is None:
        return False
    if _is_single(obs) or _is_single(action):
        return True
    return _is_step_of_vectors(obs, action, continuous)


def _is_single(part: Any) -> bool:
    """Whether a part is one number or name, and not several."""
    return not isinstance(part, list | tuple) and np.ndim(part) == 0


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
    columns = [list(column) for column in zip(*steps, strict=True)]
    return order_parts(columns)


def _join_dicts(steps: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Steps as a dict of lists.

    An end need not be said in every step: where it is not said, there is none.
    """
    names = steps[0].keys()
    if all(step.keys() == names for step in steps):
        joined = {name: [step[name] for step in steps] for name in names}
    else:
        joined = _join_different_dicts(steps)

    # RecordEpisodeStatistics puts its summary under this name when an episode is over.
    summaries = joined.get("episode", [])
    if any(isinstance(summary, Mapping) for summary in summaries):
        del joined["episode"]
        joined["is_last"] = [summary is not None for summary in summaries]
    return joined


def _join_different_dicts(steps: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Steps that have not all the same names as a dict of lists."""
    joined = {}
    for name in dict.fromkeys(name for step in steps for name in step):
        column = [step.get(name) for step in steps]
        is_flag = any(find_names({name: True}, part) for part in FLAGS)
        if is_flag:
            column = [False if value is None else value for value in column]
        elif name != "episode" and not is_harmless(name):
            _check_all_have(name, steps)
        joined[name] = column
    return joined


def _check_all_have(name: str, steps: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError for a name that some steps have, and others do not."""
    has_name = [name in step for step in steps]
    if not all(has_name):
        raise ValueError(
            f"step {has_name.index(False)} has no {name!r}, which step "
            f"{has_name.index(True)} has: give all steps the same names"
        )
