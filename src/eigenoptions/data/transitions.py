"""`Transitions`: samples of an environment, and the kinds of recorded data they can be made from (Section 5.1).

Sources are recognised by their attributes, so none of their packages is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._text import describe
from eigenoptions._validation import Record, readonly

# Names of the parts in dicts: ours, D4RL's, those of CleanRL, Tianshou and RLDS.
NAMES = {
    "obs": ("obs", "observations", "observation", "states"),
    "action": ("action", "actions", "act"),
    "next_obs": (
        "next_obs",
        "next_observations",
        "obs_next",
        "next_observation",
        "next_states",
    ),
    "terminated": (
        "terminated",
        "terminals",
        "terminations",
        "dones",
        "done",
        "is_terminal",
    ),
    "truncated": ("truncated", "timeouts", "truncations", "is_last"),
}


@dataclass(frozen=True, eq=False, repr=False)
class Transitions(Record):
    """A batch of experience: samples of an environment (Section 5.1). Its arrays are read-only.

    Parameters
    ----------
    obs, next_obs : array (N, ...)
        Observations before and after; ``(N,)`` integers are state numbers, strings their names.
    action : array (N,)
        Actions taken.
    terminated : bool array (N,)
        Whether the episode ended there.

    Examples
    --------
    >>> Transitions(np.array([0, 1]), np.array([1, 1]), np.array([1, 2]), np.array([False, True]))
    Transitions(2 steps, 1 end; obs int64 (2,), 0 to 1; action int64 (2,), 1 to 1)
    """

    obs: NDArray[Any]
    action: NDArray[np.int_]
    next_obs: NDArray[Any]
    terminated: NDArray[np.bool_]

    def __post_init__(self) -> None:
        sizes = {name: len(part) for name, part in vars(self).items()}
        if len(set(sizes.values())) != 1:
            raise ValueError(
                f"all parts of Transitions must have one length, got {sizes}"
            )
        for name, part in list(vars(self).items()):
            object.__setattr__(self, name, readonly(part))

    @classmethod
    def of(cls, data: Any, *, continuous: bool = False) -> Transitions:
        """Transitions of recorded data; `discover` accepts the same data.

        Parameters
        ----------
        data
            Arrays ``(obs, action, next_obs, terminated)``, also without the last or with a reward in the middle; a dict
            with the names of D4RL (without ``next_observations``, those of the next row within episodes), CleanRL or
            this class; a replay buffer of Stable-Baselines3, without its decisions for options; a Minari data set; or
            an iterable of such batches or of single steps. Tensors and lists are arrays too.
        continuous : bool, default=False
            Whether actions may be vectors, which stay as they are; otherwise they must be integers.

        Examples
        --------
        >>> Transitions.of({"observations": [0, 1, 2], "actions": [[1], [1], [0]], "terminals": [0, 0, 1]}).next_obs
        array([1, 2])
        """
        if hasattr(data, "iterate_episodes"):
            # Minari: one more observation than actions.
            episodes = [
                (_as_array("observations", e.observations), e)
                for e in data.iterate_episodes()
            ]
            data = [
                (obs[:-1], e.actions, obs[1:], e.terminations) for obs, e in episodes
            ]
        elif hasattr(data, "buffer_size") and hasattr(data, "dones"):
            data = _read_buffer(data)
        elif isinstance(data, Iterable) and not isinstance(
            data, Mapping | tuple | str | np.ndarray
        ):
            data = list(data)
        if isinstance(data, list):
            data = _join_entries(data, continuous)
        if isinstance(data, Transitions):
            data = vars(data)
        elif not isinstance(data, Mapping | tuple):
            kinds = "a tuple or dict of arrays, a list of steps, a replay buffer or a Minari dataset"
            raise TypeError(f"transitions are {kinds}, got {type(data).__name__}")
        columns = _name_columns(data)
        obs, next_obs = (
            _as_observations(name, columns[name]) for name in ("obs", "next_obs")
        )
        terminated, action = (
            columns["terminated"],
            _as_array("action", columns["action"]),
        )
        ends = (
            np.zeros(len(obs))
            if terminated is None
            else _as_array("terminated", terminated)
        )
        if ends.size != len(ends):
            raise ValueError(
                f"terminated must have shape (N,) or (N, 1), got {ends.shape}"
            )
        if action.size == len(action) and (action == np.abs(action).round()).all():
            action = action.reshape(len(action)).astype(np.int64)
        elif not continuous:
            remedy = "collect from gymnasium.wrappers.DiscretizeAction(env, bins=...)"
            raise ValueError(
                f"actions must be integers (N,), got {action.dtype} {action.shape}: {remedy}"
            )
        return cls(obs, action, next_obs, ends.reshape(len(ends)).astype(np.bool_))

    def __len__(self) -> int:
        return len(self.obs)

    def __repr__(self) -> str:
        ends = int(np.sum(self.terminated))
        sizes = (
            f"{len(self)} step{'s' * (len(self) != 1)}, {ends} end{'s' * (ends != 1)}"
        )
        return f"Transitions({sizes}; obs {describe(self.obs)}; action {describe(self.action)})"


def _as_array(name: str, data: Any, kinds: str = "biuf") -> NDArray[Any]:
    """An array of numbers; tensors are moved to memory, rows of different shapes are refused."""
    if isinstance(data, Mapping):
        raise ValueError(
            f"{name} is a dict: flatten it into one array (N, d) (gymnasium.spaces.flatten)"
        )
    if isinstance(data, list | tuple) and len(data) and hasattr(data[0], "detach"):
        data = [_as_array(name, part) for part in data]
    try:
        array = np.asarray(data.detach().cpu() if hasattr(data, "detach") else data)
    except ValueError:
        raise ValueError(
            f"the rows of {name} have different shapes: give one array (N, ...)"
        ) from None
    if array.dtype.kind not in kinds or not array.ndim:
        raise ValueError(
            f"{name} must hold numbers, one row per step, got {array.dtype} {array.shape}"
        )
    return array


def _as_observations(name: str, data: Any) -> NDArray[Any]:
    """Observations as an array; integers of shape ``(N, 1)`` or ``(N,)`` are state numbers, strings names of states."""
    array = _as_array(name, data, "biufU")
    if array.ndim == 2 and array.shape[1] == 1 and array.dtype.kind in "iuU":
        return array[:, 0]
    if array.ndim == 1 and array.dtype.kind == "f":
        integral = bool((np.isfinite(array) & (array == np.round(array))).all())
        return array.astype(np.int64) if integral else array[:, None]
    return array


def _name_columns(data: Mapping[str, Any] | tuple[Any, ...]) -> dict[str, Any]:
    """The parts of a dict or of a tuple of arrays by our names."""
    if isinstance(data, tuple):
        if not 3 <= len(data) <= 5:
            parts = "(obs, action, [reward,] next_obs, [terminated])"
            raise ValueError(f"a tuple has arrays {parts}, got {len(data)} parts")
        obs, action, *_, next_obs, terminated = data if len(data) > 3 else (*data, None)
        return {
            "obs": obs,
            "action": action,
            "next_obs": next_obs,
            "terminated": terminated,
        }
    columns = {
        part: next((data[n] for n in names if n in data), None)
        for part, names in NAMES.items()
    }
    for part in ("obs", "action"):
        if columns[part] is None:
            raise ValueError(
                f"the dict has no {part} ({', '.join(NAMES[part])}), only {', '.join(data)}"
            )
    if columns["next_obs"] is None:
        # The next observation is that of the next row, which at an end belongs to another episode.
        obs, action = (
            _as_array("obs", columns["obs"]),
            _as_array("action", columns["action"]),
        )
        last = np.zeros(len(obs), dtype=np.bool_)
        for end in (columns["terminated"], columns["truncated"]):
            if end is not None:
                last |= _as_array("terminated", end).reshape(len(obs)).astype(np.bool_)
        rows = np.flatnonzero(~last[:-1])
        columns = {
            "obs": obs[rows],
            "action": action[rows],
            "next_obs": obs[rows + 1],
            "terminated": None,
        }
    return columns


def _join_entries(entries: list[Any], continuous: bool) -> Any:
    """A list of columns, of steps, or of batches, whose parts all have one length, as columns or one batch."""
    if not entries:
        raise ValueError("there are no transitions: the sequence is empty")
    first = entries[0]
    if isinstance(first, Mapping | tuple):
        parts = first.values() if isinstance(first, Mapping) else first
        if len({len(part) if np.ndim(part) else None for part in parts} | {None}) != 2:
            if isinstance(first, Mapping):
                return {name: [step[name] for step in entries] for name in first}
            return tuple(zip(*entries, strict=True))
    elif not isinstance(first, Transitions):
        return tuple(entries)
    batches = [
        vars(Transitions.of(entry, continuous=continuous)).values() for entry in entries
    ]
    return Transitions(*map(np.concatenate, zip(*batches, strict=True)))


def _read_buffer(buffer: Any) -> dict[str, Any]:
    """A replay buffer of Stable-Baselines3: arrays ``(steps, environments, ...)``, of which some rows are filled."""
    size, position = int(buffer.buffer_size), int(buffer.pos)
    rows = (np.arange(size) + position) % size if buffer.full else np.arange(position)
    lean, obs = buffer.optimize_memory_usage, _as_array("obs", buffer.observations)
    if lean and buffer.full:
        # The oldest row was overwritten by the next observation of the newest.
        rows = rows[1:]
    done = np.asarray(buffer.dones)[rows].astype(np.bool_)
    columns = {
        "obs": obs[rows],
        "action": np.asarray(buffer.actions)[rows],
        "next_obs": obs[(rows + 1) % size] if lean else buffer.next_observations[rows],
        "terminated": done & ~np.asarray(buffer.timeouts)[rows].astype(np.bool_),
    }
    # Without next observations, the row after the last step of an episode holds the first observation of another one.
    happened = ~done if lean else np.ones_like(done)
    if hasattr(buffer.action_space, "n_primitive"):
        # Decisions for options of several steps are no transitions.
        happened &= (
            columns["action"].reshape(happened.shape) < buffer.action_space.n_primitive
        )
    return {name: column[happened] for name, column in columns.items()}
