"""`Transitions`: samples of an environment (paper, Section 5.1)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._text import describe
from eigenoptions._types import BoolArray, FloatArray, IndexArray
from eigenoptions._validation import Record, readonly
from eigenoptions.samples.arrays import read_dict
from eigenoptions.samples.batches import is_batch, read_batch
from eigenoptions.samples.buffers import is_replay_buffer, read_buffer
from eigenoptions.samples.episodes import is_episode, read_episode
from eigenoptions.samples.frames import is_frame, read_frame
from eigenoptions.samples.minari import is_minari, read_minari
from eigenoptions.samples.names import find_part
from eigenoptions.samples.parts import (
    Parts,
    Reading,
    convert_actions,
    convert_parts,
    drop_missing,
)
from eigenoptions.samples.steps import STEP_SIZES, is_step, read_steps
from eigenoptions.samples.tuples import read_tuple

logger = logging.getLogger("eigenoptions")


@dataclass(frozen=True, eq=False, repr=False)
class Transitions(Record):
    """A batch of experience (Section 5.1). Its arrays are read-only.

    Parameters
    ----------
    obs : ndarray of shape (N, ...)
        Observations before each step. Integers ``(N,)`` are numbers of states.
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
    states : tuple, default=None
        What the numbered states are, where the data have names or tuples as states.

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
    states: tuple[Any, ...] | None = None

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
                f"all parts of Transitions must have one length, got {lengths}: give "
                "each one row per step"
            )
        for name in ("terminated", "truncated"):
            if name in parts and np.asarray(parts[name]).dtype.kind not in "biuf":
                raise ValueError(
                    f"{name} must be True or False, got {parts[name][0]!r} in row 0"
                )
        for name, part in parts.items():
            object.__setattr__(self, name, readonly(part))

    @classmethod
    def of(
        cls, data: Any, *, continuous: bool = False, missing: str = "raise"
    ) -> Transitions:
        """Transitions of recorded data; `discover` accepts the same data.

        Parameters
        ----------
        data : object
            Arrays ``(obs, action, next_obs)``, ``(obs, action, next_obs, terminated)``
            or ``(obs, action, reward, next_obs, terminated)``; a dict with the names of
            this class, D4RL, RLlib, Tianshou, RLDS or Dreamer (without next
            observations, those of the next row are taken within each episode, and every
            name must be known); a data frame with such names; a replay buffer of
            Stable-Baselines3, without its decisions for options; a Minari data set; a
            batch of Tianshou; a list of steps: dicts, tuples in the order of the
            arrays, or Gymnasium's ``(obs, action, *env.step(action))``; a list of
            episodes, also with one more observation than actions; or an iterable of any
            of these. Lists and tensors are arrays, too. Strings, and tuples of integers
            or strings, are names of states.
        continuous : bool, default=False
            Whether actions may be vectors, which stay as they are. Otherwise they must
            be integers.
        missing : {"raise", "drop"}, default="raise"
            What to do about numbers that are not finite (NaN) and names that are None:
            raise an error, or leave out the steps before and after such a row. The
            steps around are not joined.

        Examples
        --------
        >>> log = {"observations": [0, 1, 2], "actions": [1, 1, 0]}
        >>> Transitions.of(log).next_obs
        array([1, 2])
        >>> Transitions.of([("hall", 0, "room"), ("room", 1, "hall")]).states
        ('hall', 'room')
        """
        if missing not in ("raise", "drop"):
            raise ValueError(f"missing must be 'raise' or 'drop', got {missing!r}")
        parts = _read_parts(data, Reading(continuous, missing == "drop"))
        _tell_what_is_left_out(parts)
        parts, states = _number_states(parts)
        return cls(
            parts.obs,
            parts.action,
            parts.next_obs,
            parts.terminated,
            parts.reward,
            parts.truncated,
            names=parts.names,
            states=states,
        )

    def __len__(self) -> int:
        return len(self.obs)

    def __getitem__(self, rows: slice | IndexArray | BoolArray) -> Transitions:
        """Some of the steps: a slice, their numbers or a mask."""
        reward = None
        if self.reward is not None:
            reward = self.reward[rows]
        truncated = None
        if self.truncated is not None:
            truncated = self.truncated[rows]
        return Transitions(
            self.obs[rows],
            self.action[rows],
            self.next_obs[rows],
            self.terminated[rows],
            reward,
            truncated,
            names=self.names,
            states=self.states,
        )

    def __repr__(self) -> str:
        n_ends = int(np.sum(self.terminated))
        steps = "1 step" if len(self) == 1 else f"{len(self)} steps"
        ends = "1 end" if n_ends == 1 else f"{n_ends} ends"
        return (
            f"Transitions({steps}, {ends}; obs {describe(self.obs)}; "
            f"action {describe(self.action)})"
        )


def _read_parts(data: Any, reading: Reading) -> Parts:
    """The parts of data of any kind, as arrays."""
    # What `explore` found has all steps as transitions.
    if isinstance(getattr(data, "transitions", None), Transitions):
        data = data.transitions
    if isinstance(data, Transitions):
        parts = _list_parts(data)
        if reading.drops_missing:
            parts = drop_missing(parts)
        action = convert_actions(parts.action, reading.continuous)
        return parts._replace(action=action)
    if isinstance(data, Parts):
        return convert_parts(data, reading)
    if isinstance(data, Mapping):
        return convert_parts(read_dict(data), reading)
    if is_batch(data):
        return convert_parts(read_batch(data), reading)
    if is_replay_buffer(data):
        return convert_parts(read_buffer(data), reading)
    if is_frame(data):
        return convert_parts(read_frame(data), reading)
    if is_minari(data):
        return _join_batches(read_minari(data), reading)
    if is_episode(data):
        return convert_parts(read_episode(data), reading)
    if isinstance(data, tuple) and not _looks_like_list(data):
        _check_no_steps(data)
        return convert_parts(read_tuple(data), reading)
    if isinstance(data, Iterable) and not isinstance(data, str | np.ndarray):
        return _read_list(list(data), reading)
    if isinstance(data, np.ndarray) and data.ndim == 2:
        raise TypeError(
            f"ndarray {data.shape} does not say which column is what: give its "
            "columns, as (a[:, 0], a[:, 1], a[:, 2]), or a dict with names"
        )
    if hasattr(data, "step"):
        raise TypeError(
            f"{type(data).__name__} is an environment, which keeps no steps: record "
            "some with collect(env, steps)"
        )
    raise TypeError(
        "transitions are a tuple or dict of arrays, a list of steps or episodes, a "
        "data frame, a replay buffer or a Minari dataset, got "
        f"{type(data).__name__}"
    )


def _tell_what_is_left_out(parts: Parts) -> None:
    """One warning for what was not read, and one for the steps that were left out."""
    if parts.unknown:
        names = ", ".join(repr(name) for name in parts.unknown[:8])
        if len(parts.unknown) > 8:
            names = f"{names} and {len(parts.unknown) - 8} more"
        logger.warning("not read, since no such name is known: %s", names)
    if parts.n_missing:
        logger.warning(
            "%d of %d steps are left out, since a number is missing in them",
            parts.n_missing,
            parts.n_missing + len(parts.obs),
        )


def _list_parts(transitions: Transitions) -> Parts:
    """The parts of transitions, with names of states where they have some."""
    obs = transitions.obs
    next_obs = transitions.next_obs
    if transitions.states is not None:
        labels = np.empty(len(transitions.states), dtype=object)
        labels[:] = transitions.states
        obs = labels[obs]
        next_obs = labels[next_obs]
    return Parts(
        obs=obs,
        action=transitions.action,
        next_obs=next_obs,
        terminated=transitions.terminated,
        reward=transitions.reward,
        truncated=transitions.truncated,
        names=transitions.names,
    )


def _looks_like_list(data: tuple[Any, ...]) -> bool:
    """Whether a tuple is a sequence of steps, because it has too many parts."""
    has_steps = len(data) > 0 and isinstance(data[0], Mapping | tuple)
    return has_steps and len(data) not in (2, 3, 4, 5)


def _check_no_steps(data: tuple[Any, ...]) -> None:
    """Raise ValueError for a few tuples that could be steps, or parts of steps."""
    could_be_steps = len(data) > 0 and all(
        isinstance(entry, tuple) and len(entry) == len(data[0]) for entry in data
    )
    if could_be_steps and len(data[0]) in STEP_SIZES:
        raise ValueError(_ask_for_steps(len(data), len(data[0])))


def _ask_for_steps(n_entries: int, n_parts: int) -> str:
    """The question whether some entries are steps, or the parts of all steps."""
    return (
        f"{n_entries} entries of {n_parts} are {n_entries} steps, or the {n_entries} "
        f"parts of {n_parts} steps: give a list of tuples as steps, or a tuple of "
        "arrays as parts"
    )


def _is_empty(batch: Any) -> bool:
    """Whether an entry is an episode without a step."""
    if isinstance(batch, list):
        return not batch
    if isinstance(batch, Mapping):
        action = find_part(batch, "action")
        return hasattr(action, "__len__") and not len(action)
    return False


def _read_list(entries: list[Any], reading: Reading) -> Parts:
    """The parts of a list: of steps, of batches or episodes, or of the parts."""
    # The first entry that is not empty says what all are.
    first = next((entry for entry in entries if not _is_empty(entry)), None)
    if first is None:
        raise ValueError("there are no transitions: the sequence is empty")
    if all(_is_list_of_steps(entry) or _is_empty(entry) for entry in entries):
        return _join_batches(entries, reading)

    # Lists are steps only where all have the length of one; see `_is_row`.
    may_be_step = not isinstance(first, list) or _is_row(entries)
    if may_be_step and is_step(first, reading.continuous):
        return convert_parts(read_steps(entries), reading)
    is_batch = isinstance(first, Transitions | Mapping | tuple)
    if is_batch or is_frame(first) or is_episode(first):
        return _join_batches(entries, reading)
    return convert_parts(read_tuple(entries), reading)


def _is_list_of_steps(entry: Any) -> bool:
    """Whether this is a list of tuples or dicts: an episode of steps."""
    if not isinstance(entry, list) or not entry:
        return False
    step = entry[0]
    if isinstance(step, tuple):
        return len(step) in STEP_SIZES
    return isinstance(step, Mapping)


def _is_row(entries: list[Any]) -> bool:
    """Whether lists are steps, as JSON has them, and not the parts of all steps.

    There are three to five parts, and a step has three to seven.
    """
    could_be_steps = all(
        isinstance(entry, list) and len(entry) in STEP_SIZES for entry in entries
    )
    if could_be_steps and len(entries) in (3, 4, 5):
        raise ValueError(_ask_for_steps(len(entries), len(entries[0])))
    return could_be_steps


def _join_batches(batches: Sequence[Any], reading: Reading) -> Parts:
    """The parts of several batches or episodes, one after the other."""
    if not batches:
        raise ValueError("there are no transitions: the sequence is empty")
    read: list[Parts] = []
    for number, batch in enumerate(batches):
        if _is_empty(batch):
            continue
        try:
            parts = _read_parts(batch, reading)
        except ValueError as error:
            raise ValueError(f"in entry {number}: {error}") from None
        if read and len(parts.obs) and parts.obs.shape[1:] != read[0].obs.shape[1:]:
            raise ValueError(
                f"observations must have one shape, got {read[0].obs.shape[1:]} first "
                f"and {parts.obs.shape[1:]} in entry {number}"
            )
        if len(parts.obs):
            read.append(parts)
    if not read:
        raise ValueError("there are no transitions: all entries are empty")

    joined: dict[str, Any] = {}
    for name in ("obs", "action", "next_obs", "terminated", "reward", "truncated"):
        pieces = [getattr(parts, name) for parts in read]
        # A part that one batch lacks is not known of all.
        is_known = all(piece is not None for piece in pieces)
        joined[name] = np.concatenate(pieces) if is_known else None
    unknown = dict.fromkeys(name for parts in read for name in parts.unknown)
    return Parts(
        **joined,
        names=read[0].names,
        unknown=tuple(unknown),
        n_missing=sum(parts.n_missing for parts in read),
    )


def _number_states(parts: Parts) -> tuple[Parts, tuple[Any, ...] | None]:
    """Replace names of states by numbers; return the names in order, too.

    None for states without names, which stay as they are.
    """
    has_names = "O" in (parts.obs.dtype.kind, parts.next_obs.dtype.kind)
    if not has_names:
        return parts, None

    # Names of one kind are sorted. A mixture is kept in the order of first visits.
    labels = [*parts.obs.tolist(), *parts.next_obs.tolist()]
    states = list(dict.fromkeys(labels))
    kinds = {type(state) for state in states}
    if len(kinds) == 1:
        states = _sort_states(states)

    number = {state: i for i, state in enumerate(states)}
    numbers = np.array([number[label] for label in labels], dtype=np.int64)
    obs, next_obs = np.split(numbers, [len(parts.obs)])
    return parts._replace(obs=obs, next_obs=next_obs), tuple(states)


def _sort_states(states: list[Any]) -> list[Any]:
    """States in order, where they have one: tuples of names and numbers may not."""
    try:
        return sorted(states)
    except TypeError:
        return states
