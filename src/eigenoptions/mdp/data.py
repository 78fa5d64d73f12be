"""Transitions of data that others recorded: columns, dicts, replay buffers and episodes (`Transitions.of`).

Sources are recognised by their attributes, so none of their packages is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Names of the parts in dicts: ours, D4RL's, those of CleanRL, Tianshou and RLDS.
NAMES = {
    "obs": ("obs", "observations", "observation", "states"),
    "action": ("action", "actions", "act"),
    "next_obs": ("next_obs", "next_observations", "obs_next", "next_observation", "next_states"),
    "terminated": ("terminated", "terminals", "terminations", "dones", "done", "is_terminal"),
    "truncated": ("truncated", "timeouts", "truncations", "is_last"),
}
# Parts of a tuple by its length.
COLUMNS = {
    3: ("obs", "action", "next_obs"),
    4: ("obs", "action", "next_obs", "terminated"),
    5: ("obs", "action", "reward", "next_obs", "terminated"),
}
DISCRETIZE = (
    "only whole actions 0..n-1 are supported: collect from gymnasium.wrappers.DiscretizeAction(env, bins=...), whose "
    "actions are numbers, or round them to such bins"
)


def columns_of(data: Any) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[Any], NDArray[np.bool_]]:
    """Observations, actions, next observations and ends of data of many kinds; see `Transitions.of`."""
    if isinstance(data, Mapping):
        parts = _of_dict(data)
    elif hasattr(data, "iterate_episodes"):
        parts = _of_episodes(data.iterate_episodes())
    elif hasattr(data, "buffer_size") and hasattr(data, "observations"):
        parts = _of_buffer(data)
    elif isinstance(data, Sequence) or (hasattr(data, "__iter__") and hasattr(data, "__len__")):
        parts = _of_sequence(data)
    else:
        raise TypeError(
            f"transitions are a tuple or dict of arrays, a list of steps, a replay buffer or a Minari dataset, "
            f"got {type(data).__name__}"
        )
    obs, next_obs = (_observations(name, parts[name]) for name in ("obs", "next_obs"))
    terminated = parts.get("terminated")
    ended = np.zeros(len(obs)) if terminated is None else _array("terminated", terminated)
    if ended.size != len(ended):
        raise ValueError(f"terminated must have shape (N,) or (N, 1), got {ended.shape}")
    return obs, actions_of(parts["action"]), next_obs, ended.reshape(len(ended)).astype(np.bool_)


def spaces_of(data: Any) -> tuple[Any, int | None]:
    """Space of the observations and number of actions that a replay buffer or a data set declares, or None."""
    action = getattr(data, "action_space", None)
    n_actions = getattr(action, "n_primitive", getattr(action, "n", None))
    return getattr(data, "observation_space", None), None if n_actions is None else int(n_actions)


def actions_of(actions: Any) -> NDArray[np.int64]:
    """Actions ``(N,)`` as whole numbers; a last axis of length 1, as replay buffers have, is dropped.

    >>> actions_of(np.array([[0.0], [2.0]])).tolist()
    [0, 2]
    """
    found = _array("action", actions)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1 or found.dtype.kind not in "iufb":
        raise ValueError(
            f"actions must have shape (N,), got {found.dtype} of shape {found.shape}: {DISCRETIZE}"
        )
    if found.dtype.kind == "f" and not (np.isfinite(found).all() and (found == np.round(found)).all()):
        odd = found[~(np.isfinite(found) & (found == np.round(found)))][0]
        raise ValueError(f"actions must be whole numbers, got {odd}: {DISCRETIZE}")
    return found.astype(np.int64)


def _observations(name: str, given: Any) -> NDArray[Any]:
    """Observations as an array; whole numbers of shape ``(N, 1)`` or ``(N,)`` are the numbers of states."""
    found = _array(name, given)
    if found.ndim == 0:
        raise ValueError(f"{name} must have one row per step, got a single {found.dtype}")
    if found.ndim == 2 and found.shape[1] == 1 and found.dtype.kind in "iu":
        return found[:, 0]
    if found.ndim == 1 and found.dtype.kind == "f":
        whole = bool(np.isfinite(found).all() and (found == np.round(found)).all())
        return found.astype(np.int64) if whole else found[:, None]
    return found


def _array(name: str, given: Any) -> NDArray[Any]:
    """An array of numbers; tensors are moved to memory, rows of different shapes are refused."""
    if hasattr(given, "detach"):
        given = given.detach().cpu().numpy()
    if isinstance(given, Mapping):
        raise ValueError(
            f"{name} is a dict: flatten its parts into one array (N, d) first (gymnasium.spaces.flatten)"
        )
    try:
        if isinstance(given, Sequence) and len(given) and hasattr(given[0], "detach"):
            given = [part.detach().cpu().numpy() for part in given]
        found = np.asarray(given)
    except ValueError:
        raise ValueError(f"the rows of {name} have different shapes: give one array (N, ...)") from None
    if found.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold numbers, got {found.dtype}")
    return found


def _of_dict(data: Mapping[str, Any]) -> dict[str, Any]:
    found = {part: next((data[n] for n in names if n in data), None) for part, names in NAMES.items()}
    for part in ("obs", "action"):
        if found[part] is None:
            known = ", ".join(NAMES[part])
            raise ValueError(
                f"the dict has no {part} (one of {known}); its keys are {', '.join(map(str, data))}"
            )
    if found["next_obs"] is None:
        # The next observation is that of the next row, which at an end belongs to another episode.
        obs = _array("obs", found["obs"])
        over = np.zeros(len(obs), dtype=np.bool_)
        for part in ("terminated", "truncated"):
            if found[part] is not None:
                over |= _array(part, found[part]).reshape(len(obs)).astype(np.bool_)
        rows = np.flatnonzero(~over[:-1])
        action = _array("action", found["action"])[rows]
        return {"obs": obs[rows], "action": action, "next_obs": obs[rows + 1]}
    return found


def _of_sequence(data: Any) -> dict[str, Any]:
    """Columns, or a list of steps, each a tuple of its parts."""
    if not len(data):
        raise ValueError("there are no transitions: the sequence is empty")
    first = next(iter(data))
    if not isinstance(data, tuple) and isinstance(first, Mapping):
        return _of_dict({name: [step[name] for step in data] for name in first})
    if not isinstance(data, tuple) and isinstance(first, tuple):
        data = list(zip(*data, strict=True))
    if len(data) not in COLUMNS:
        raise ValueError(
            "a tuple of arrays is (obs, action, next_obs), (obs, action, next_obs, terminated) or (obs, action, "
            f"reward, next_obs, terminated), got {len(data)} parts"
        )
    return dict(zip(COLUMNS[len(data)], data, strict=True))


def _of_episodes(episodes: Any) -> dict[str, Any]:
    """Episodes of a Minari data set: one more observation than actions."""
    parts: dict[str, list[Any]] = {"obs": [], "action": [], "next_obs": [], "terminated": []}
    for episode in episodes:
        seen = _array("observations", episode.observations)
        parts["obs"].append(seen[:-1])
        parts["next_obs"].append(seen[1:])
        parts["action"].append(_array("actions", episode.actions))
        parts["terminated"].append(np.asarray(episode.terminations, dtype=np.bool_))
    if not parts["obs"]:
        raise ValueError("there are no transitions: the data set has no episode")
    return {name: np.concatenate(pieces) for name, pieces in parts.items()}


def _of_buffer(buffer: Any) -> dict[str, Any]:
    """A replay buffer of Stable-Baselines3: arrays ``(steps, copies, ...)``, of which some rows are filled."""
    size, at = int(buffer.buffer_size), int(buffer.pos)
    rows = (np.arange(size) + at) % size if buffer.full else np.arange(at)
    seen = _array("observations", buffer.observations)
    following = getattr(buffer, "next_observations", None)
    if getattr(buffer, "optimize_memory_usage", False) or following is None:
        # The next observation is kept in the next row; the oldest row of a full buffer is overwritten by it.
        rows = rows[1:] if buffer.full else rows
        after = seen[(rows + 1) % size]
    else:
        after = _array("next_observations", following)[rows]
    ended = np.asarray(buffer.dones)[rows].astype(np.bool_)
    timeouts = getattr(buffer, "timeouts", None)
    if timeouts is not None:
        ended &= ~np.asarray(timeouts)[rows].astype(np.bool_)
    parts = {"obs": seen[rows], "action": np.asarray(buffer.actions)[rows], "next_obs": after}
    found = {name: part.reshape(-1, *part.shape[2:]) for name, part in {**parts, "terminated": ended}.items()}
    first = getattr(buffer.action_space, "n_primitive", None)
    if first is not None:
        # Decisions of several steps are no transitions.
        single = found["action"].reshape(len(found["action"])) < first
        found = {name: part[single] for name, part in found.items()}
    return found
