"""`Transitions`: samples of an environment (paper, Section 5.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._text import describe
from eigenoptions._types import BoolArray, FloatArray, IndexArray
from eigenoptions._validation import Record, readonly
from eigenoptions.data.arrays import read_dict, read_tuple
from eigenoptions.data.buffers import is_replay_buffer, read_buffer
from eigenoptions.data.minari import is_minari, read_minari
from eigenoptions.data.parts import Parts, convert_parts
from eigenoptions.data.steps import is_step, join_steps


@dataclass(frozen=True, eq=False, repr=False)
class Transitions(Record):
    """A batch of experience (Section 5.1). Its arrays are read-only.

    Parameters
    ----------
    obs : ndarray of shape (N, ...)
        Observations before each step. Integers ``(N,)`` are states, and strings are
        names of states.
    action : ndarray of shape (N,) or (N, k)
        Actions taken.
    next_obs : ndarray of shape (N, ...)
        Observations after each step.
    terminated : ndarray of bool of shape (N,)
        Whether the episode ended there.
    reward : ndarray of shape (N,), default=None
        Rewards of the steps; None where the data do not say them.
    truncated : ndarray of bool of shape (N,), default=None
        Whether the episode was cut there, by a time limit say; None likewise.
    names : tuple of str, default=None
        Names of the columns of vectors, where the data have some (data frames).

    Examples
    --------
    >>> ends = np.array([False, True])
    >>> Transitions(np.array([0, 1]), np.array([1, 1]), np.array([1, 2]), ends)
    Transitions(2 steps, 1 end; obs int64 (2,), 0 to 1; action int64 (2,), 1 to 1)
    """

    obs: NDArray[Any]
    action: NDArray[Any]
    next_obs: NDArray[Any]
    terminated: BoolArray
    reward: FloatArray | None = None
    truncated: BoolArray | None = None
    _: KW_ONLY
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        parts = {
            "obs": self.obs,
            "action": self.action,
            "next_obs": self.next_obs,
            "terminated": self.terminated,
        }
        if self.reward is not None:
            parts["reward"] = self.reward
        if self.truncated is not None:
            parts["truncated"] = self.truncated
        lengths = {name: len(part) for name, part in parts.items()}
        if len(set(lengths.values())) != 1:
            raise ValueError(
                f"all parts of Transitions must have one length, got {lengths}"
            )
        for name, part in parts.items():
            object.__setattr__(self, name, readonly(part))

    @classmethod
    def of(cls, data: Any, *, continuous: bool = False) -> Transitions:
        """Transitions of recorded data; `discover` accepts the same data.

        Parameters
        ----------
        data : object
            Arrays ``(obs, action, next_obs, terminated)``, also without the last one or
            with a reward in the middle; a dict with the names of D4RL, CleanRL or this
            class (without next observations, those of the next row are taken within
            each episode); a replay buffer of Stable-Baselines3, without its decisions
            for options; a Minari data set; or an iterable of such batches or of single
            steps. Lists and tensors are arrays, too.
        continuous : bool, default=False
            Whether actions may be vectors, which stay as they are. Otherwise they must
            be integers.

        Examples
        --------
        >>> log = {"observations": [0, 1, 2], "actions": [1, 1, 0]}
        >>> Transitions.of(log).next_obs
        array([1, 2])
        """
        parts = _read_parts(data, continuous)
        return cls(**parts._asdict())

    def __len__(self) -> int:
        return len(self.obs)

    def __getitem__(self, rows: slice | IndexArray | BoolArray) -> Transitions:
        """Some of the steps: a slice, their numbers or a mask."""
        return Transitions(
            self.obs[rows],
            self.action[rows],
            self.next_obs[rows],
            self.terminated[rows],
            None if self.reward is None else self.reward[rows],
            None if self.truncated is None else self.truncated[rows],
            names=self.names,
        )

    def __repr__(self) -> str:
        n_ends = int(np.sum(self.terminated))
        steps = "1 step" if len(self) == 1 else f"{len(self)} steps"
        ends = "1 end" if n_ends == 1 else f"{n_ends} ends"
        return (
            f"Transitions({steps}, {ends}; obs {describe(self.obs)}; "
            f"action {describe(self.action)})"
        )


def _read_parts(data: Any, continuous: bool) -> Parts:
    """The columns of data of any kind, as arrays."""
    if isinstance(data, Transitions):
        return Parts(
            obs=data.obs,
            action=data.action,
            next_obs=data.next_obs,
            terminated=data.terminated,
            reward=data.reward,
            truncated=data.truncated,
            names=data.names,
        )
    if isinstance(data, Parts):
        return convert_parts(data, continuous)
    if isinstance(data, Mapping):
        return convert_parts(read_dict(data), continuous)
    if isinstance(data, tuple):
        return convert_parts(read_tuple(data), continuous)
    if is_replay_buffer(data):
        return convert_parts(read_buffer(data), continuous)
    if is_minari(data):
        return _join_batches(read_minari(data), continuous)
    if isinstance(data, Iterable) and not isinstance(data, str | np.ndarray):
        return _read_list(list(data), continuous)
    raise TypeError(
        "transitions are a tuple or dict of arrays, a list of steps, a replay buffer "
        f"or a Minari dataset, got {type(data).__name__}"
    )


def _read_list(entries: list[Any], continuous: bool) -> Parts:
    """The columns of a list of steps, of batches, or of the columns themselves."""
    if not entries:
        raise ValueError("there are no transitions: the sequence is empty")
    first = entries[0]
    if is_step(first):
        return _read_parts(join_steps(entries), continuous)
    if isinstance(first, Transitions | Mapping | tuple):
        return _join_batches(entries, continuous)
    return convert_parts(read_tuple(tuple(entries)), continuous)


def _join_batches(batches: Sequence[Any], continuous: bool) -> Parts:
    """The columns of several batches, one after the other."""
    if not batches:
        raise ValueError("there are no transitions: the sequence is empty")
    read = [_read_parts(batch, continuous) for batch in batches]
    joined = {}
    for name in Parts._fields[:-1]:
        pieces = [getattr(parts, name) for parts in read]
        # A part that one batch lacks is not known of all.
        is_known = all(piece is not None for piece in pieces)
        joined[name] = np.concatenate(pieces) if is_known else None
    return Parts(**joined, names=read[0].names)
