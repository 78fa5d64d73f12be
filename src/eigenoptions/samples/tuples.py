"""Tuples of arrays: their parts have no names, so there is one order for each number.

What cannot be in that order is refused. Nothing is put into another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.samples.parts import (
    Parts,
    convert_flags,
    convert_numbers,
    convert_states,
)

# By the number of parts; six and seven are (obs, action, *env.step(action)).
ORDERS = {
    3: ("obs", "action", "next_obs"),
    4: ("obs", "action", "next_obs", "terminated"),
    5: ("obs", "action", "reward", "next_obs", "terminated"),
    6: ("obs", "action", "next_obs", "reward", "terminated", "truncated"),
    7: ("obs", "action", "next_obs", "reward", "terminated", "truncated", "info"),
}


def read_tuple(data: Sequence[Any]) -> Parts:
    """Parts of three to five arrays without names."""
    if len(data) in (2, 3, 4, 5):
        _check_no_episode(*data[:2])
    if len(data) == 2:
        raise ValueError(
            "a tuple has arrays (obs, action, [reward,] next_obs, [terminated]), got 2 "
            "parts: give next_obs, or {'obs': ..., 'action': ...} for rows in order; "
            "pairs of nodes are a graph, for from_graph"
        )
    if len(data) not in (3, 4, 5):
        raise ValueError(
            "a tuple has arrays (obs, action, [reward,] next_obs, [terminated]), "
            f"got {len(data)} parts: give a list of steps (obs, action, next_obs), or "
            "one {'obs': ..., 'action': ...} for each episode"
        )

    return order_parts(data)


def order_parts(data: Sequence[Any]) -> Parts:
    """Parts of columns without names, in the order of `ORDERS`."""
    order = ORDERS[len(data)]
    named = dict(zip(order, data, strict=True))
    named.pop("info", None)
    parts = Parts(**named)
    if len(data) > 3:
        parts = parts._replace(
            obs=convert_states("obs", parts.obs),
            next_obs=convert_states("next_obs", parts.next_obs),
        )
        _check_order(parts, order)
    return parts


def _check_no_episode(obs: Any, action: Any) -> None:
    """Raise ValueError for the arrays of an episode, which need their names."""
    if not hasattr(obs, "__len__") or not hasattr(action, "__len__"):
        return
    if len(obs) == len(action) + 1 and len(action) > 1:
        raise ValueError(
            f"{len(obs)} observations and {len(action)} actions are an episode: give "
            "{'obs': ..., 'action': ...}, with 'reward' and 'terminated' if you like"
        )


def _check_order(parts: Parts, order: tuple[str, ...]) -> None:
    """Raise ValueError for parts that cannot be in the order in which they are read."""
    obs = parts.obs
    next_obs = parts.next_obs
    has_one_shape = obs.shape[1:] == next_obs.shape[1:]
    if not has_one_shape or not _could_be_states(obs, next_obs):
        before = f"{obs.dtype} {obs.shape}"
        _refuse(order, f"next_obs is {next_obs.dtype} {next_obs.shape}, obs {before}")

    # States and rewards that are both integers look alike. But a step mostly begins
    # where the one before ended: not so if another part does what next_obs should do.
    if obs.ndim == 1 and obs.dtype.kind in "iuf":
        rival = "reward" if len(order) == 5 else "action"
        other = convert_numbers(rival, getattr(parts, rival)).reshape(len(obs), -1)
        if _follows(obs, other[:, 0]) and not _follows(obs, next_obs):
            _refuse(order, f"most rows begin where the {rival} says")
    if len(order) == 4:
        _check_ends(parts, order)


def _could_be_states(obs: NDArray[Any], next_obs: NDArray[Any]) -> bool:
    """Whether the second part is of a type that the states of the first may have."""
    if obs.dtype.kind == "O" or next_obs.dtype.kind == "O":
        return obs.dtype.kind == next_obs.dtype.kind
    # Rewards are floats, and numbers of states are not.
    if obs.ndim == 1 and obs.dtype.kind in "iu":
        return next_obs.dtype.kind in "iu"
    return True


def _follows(obs: NDArray[Any], part: NDArray[Any]) -> bool:
    """Whether most rows begin where a part says that the one before ended."""
    if len(obs) != len(part) or len(obs) < 2:
        return False
    return bool((part[:-1] == obs[1:]).mean() >= 0.5)


def _check_ends(parts: Parts, order: tuple[str, ...]) -> None:
    """Raise ValueError for ends that are rewards: episodes go on after them."""
    flags = convert_numbers("terminated", parts.terminated)
    if flags.dtype.kind == "b" or len(flags) != len(parts.obs) or len(flags) < 2:
        return
    if not ((flags == 0) | (flags == 1)).all():
        _refuse(
            order, f"{flags.flat[np.argmax((flags != 0) & (flags != 1))]} is no end"
        )
    ends = np.flatnonzero(convert_flags("terminated", flags)[:-1])
    if not len(ends):
        return
    is_equal = parts.next_obs[ends] == parts.obs[ends + 1]
    goes_on = is_equal.reshape(len(ends), -1).all(axis=1)
    if goes_on.mean() > 0.5:
        _refuse(
            order,
            f"{goes_on.sum()} of {len(ends)} episodes go on after a 1, so it may be "
            "the reward",
        )


def _refuse(order: tuple[str, ...], complaint: str) -> None:
    """Raise ValueError, which names the order and what contradicts it."""
    raise ValueError(
        f"{len(order)} parts without names are ({', '.join(order)}), but {complaint}: "
        "give a dict with names, {'obs': ..., 'action': ..., 'next_obs': ...}"
    )
