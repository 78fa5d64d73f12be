"""Where episodes end: by flags, by numbers of episodes, by counters of steps."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eigenoptions._types import BoolArray
from eigenoptions.samples.names import find_part, find_parts
from eigenoptions.samples.parts import convert_flags, convert_numbers, convert_states

logger = logging.getLogger("eigenoptions")


class Ends(NamedTuple):
    """How steps ended; None where the data do not say it."""

    terminated: BoolArray | None
    truncated: BoolArray | None


def read_ends(data: Mapping[str, Any], n_steps: int) -> Ends:
    """How each step ended, of data that have its next observation."""
    terminated = _join_flags(data, "terminated")
    truncated = _read_timeouts(data)
    done = _join_flags(data, "done")

    # Done is terminated or truncated: what is not the one is the other.
    if done is not None and terminated is not None:
        truncated = _unite(truncated, done & ~terminated)
    elif done is not None and truncated is not None:
        terminated = done & ~truncated
    elif done is not None:
        terminated = done

    is_cut = _find_borders(data, n_steps)
    if is_cut is not None and terminated is not None:
        is_cut &= ~terminated
    return Ends(terminated, _unite(truncated, is_cut))


def mark_last_rows(data: Mapping[str, Any], n_rows: int) -> BoolArray:
    """``(N,)`` rows that the next one does not follow, by all that the data say."""
    is_last = np.zeros(n_rows, dtype=np.bool_)
    for flags in (
        _join_flags(data, "terminated"),
        _join_flags(data, "terminal_obs"),
        _join_flags(data, "done"),
        _read_timeouts(data),
        _find_borders(data, n_rows),
    ):
        if flags is not None:
            is_last |= flags

    _check_episodes_are_whole(data)
    counter = find_part(data, "step")
    if counter is not None:
        is_last[:-1] |= _find_jumps(counter, is_last)
    return is_last


def check_dones(data: Mapping[str, Any]) -> None:
    """Raise ValueError for `dones` of rows without next observations.

    In CleanRL's PPO they say that the observation of the row begins an episode.
    """
    for name, value in find_parts(data, "done").items():
        if name.lower() == "dones" and convert_flags(name, value).any():
            raise ValueError(
                "dones without next_obs may mark the last row of an episode or, as in "
                "CleanRL's PPO, the first: call it is_last or is_first"
            )


def _join_flags(data: Mapping[str, Any], part: str) -> BoolArray | None:
    """Whether any of the names of a part is set in a row; None if there is none."""
    joined: BoolArray | None = None
    for name, value in find_parts(data, part).items():
        joined = _unite(joined, convert_flags(name, value))
    return joined


def _unite(flags: BoolArray | None, others: BoolArray | None) -> BoolArray | None:
    """Rows where either is set; None is set nowhere."""
    if flags is None or others is None:
        return others if flags is None else flags
    return flags | others


def _read_timeouts(data: Mapping[str, Any]) -> BoolArray | None:
    """Where episodes were cut, also by the key that Gym's TimeLimit left in `info`."""
    truncated = _join_flags(data, "truncated")
    infos = data.get("infos", data.get("info"))
    if infos is None or isinstance(infos, Mapping) or not hasattr(infos, "__len__"):
        return truncated
    if not all(isinstance(info, Mapping) for info in infos):
        return truncated
    key = "TimeLimit.truncated"
    if not any(key in info for info in infos):
        return truncated
    return _unite(truncated, convert_flags(key, [info.get(key, 0) for info in infos]))


def _find_borders(data: Mapping[str, Any], n_rows: int) -> BoolArray | None:
    """Rows before the first of another episode; None if nothing tells."""
    borders = _join_flags(data, "last")
    is_first = _join_flags(data, "first")
    if is_first is not None:
        # What comes after the last row is not known.
        borders = _unite(borders, np.append(is_first[1:], False)[:n_rows])
    for labels in _list_labels(data):
        changes = labels[:-1] != labels[1:]
        borders = _unite(borders, np.append(changes, False)[:n_rows])
    return borders


def _list_labels(data: Mapping[str, Any]) -> list[NDArray[Any]]:
    """``(N,)`` numbers or names of episodes, by each column that has some."""
    found = find_parts(data, "episode").items()
    return [convert_states(name, value).reshape(len(value)) for name, value in found]


def _check_episodes_are_whole(data: Mapping[str, Any]) -> None:
    """Raise ValueError for an episode that goes on after another one began."""
    columns = _list_labels(data)
    if not columns:
        return
    is_border = np.any([labels[:-1] != labels[1:] for labels in columns], axis=0)
    begins = np.append(0, np.flatnonzero(is_border) + 1)
    # An episode is known by all of its labels: its number and the agent's, say.
    labels = zip(*(column[begins].tolist() for column in columns), strict=True)

    first_row: dict[tuple[Any, ...], int] = {}
    for label, row in zip(labels, begins.tolist(), strict=True):
        if label in first_row:
            raise ValueError(
                f"the episode of row {first_row[label]} goes on in row {row}, after "
                "others: sort the rows by episode and step, or give next_obs"
            )
        first_row[label] = row


def _find_jumps(counter: Any, is_last: BoolArray) -> BoolArray:
    """``(N - 1,)`` rows after which a counter of steps does not rise by one."""
    steps = convert_numbers("step", counter).reshape(-1)
    if not (steps == np.round(steps)).all():
        row = int(np.argmin(steps == np.round(steps)))
        raise ValueError(
            f"step must count the steps of an episode, got {steps[row]} in row {row}: "
            "leave it out, or count"
        )
    rises = np.diff(steps.astype(np.float64))
    # A counter that falls begins another episode; one that stays or jumps has a gap.
    n_gaps = int(((rises > 1) & ~is_last[:-1]).sum())
    if n_gaps:
        logger.warning(
            "the rows have gaps in %d places, where the step rises by more than 1: no "
            "step leads across them",
            n_gaps,
        )
    is_jump: BoolArray = rises != 1
    return is_jump
