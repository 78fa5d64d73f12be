"""Data frames of pandas, polars and others: one row per step, columns with names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eigenoptions.samples.arrays import read_dict
from eigenoptions.samples.index import read_index
from eigenoptions.samples.names import NAMES, find_names, is_harmless
from eigenoptions.samples.parts import Parts

# What comes before the names of the columns of an observation, and of the next one.
_PREFIXES = (
    ("obs_", ("next_obs_", "obs_next_", "new_obs_")),
    ("observation_", ("next_observation_",)),
    ("state_", ("next_state_",)),
    ("s_", ("next_s_",)),
)


def is_frame(data: Any) -> bool:
    """Whether this is a data frame: a table whose columns have names."""
    is_table = hasattr(data, "columns") and hasattr(data, "to_numpy")
    return is_table and len(getattr(data, "shape", ())) == 2


def read_frame(frame: Any) -> Parts:
    """Parts of a data frame by the names of its columns.

    One column may hold the observation (``obs``). Or its columns are known by a prefix
    (``obs_x``, ``obs_y``), or because each has a twin (``x`` and ``next_x``). Nothing
    else is guessed.
    """
    names = [str(name) for name in frame.columns]
    _check_distinct(names)
    table = {name: frame[name] for name in names}
    if find_names(table, "obs"):
        return read_dict(table)

    before, after = _find_observation(names)
    if not before:
        _ask_for_columns(names)
    others = {name: table[name] for name in names if name not in {*before, *after}}
    others["obs"] = _join_columns(frame, before)
    if after:
        others["next_obs"] = _join_columns(frame, after)
    elif not find_names(others, "next_obs"):
        others = {**others, **read_index(others, frame)}
    parts = read_dict(others)
    return parts._replace(names=tuple(_remove_prefix(name) for name in before))


def _check_distinct(names: Sequence[str]) -> None:
    """Raise ValueError for a column whose name stands twice."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"{names.count(name)} columns are called {name!r}: rename or drop all "
                "but one"
            )


def _find_observation(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names of the columns of the observation, and of the next one, if there are."""
    for prefix, next_prefixes in _PREFIXES:
        next_prefix = next_prefixes[0]
        for candidate in next_prefixes:
            if any(name.startswith(candidate) for name in names):
                next_prefix = candidate
        after = [name for name in names if name.startswith(next_prefix)]
        before = [
            name for name in names if name.startswith(prefix) and name not in after
        ]
        if not before:
            continue
        if not after:
            return before, []
        wanted = [next_prefix + name.removeprefix(prefix) for name in before]
        if set(wanted) != set(after):
            name = sorted(set(wanted) ^ set(after))[0]
            complaint = "is missing" if name in wanted else f"has no {prefix} column"
            raise ValueError(
                f"{name!r} {complaint}: give each column of the observation its next "
                "one, or leave it out"
            )
        return before, wanted

    others = _leave_out_parts(names)
    twins = [name for name in others if f"next_{name}" in names]
    return twins, [f"next_{name}" for name in twins]


def _leave_out_parts(names: Sequence[str]) -> list[str]:
    """Names of the columns that are not the action, the reward or another part."""
    names_of_parts = {name for known in NAMES.values() for name in known}
    return [
        name
        for name in names
        if name.lower() not in names_of_parts and not is_harmless(name)
    ]


def _ask_for_columns(names: Sequence[str]) -> None:
    """Raise ValueError, which asks for the columns of the observation."""
    others = _leave_out_parts(names)
    if not others:
        raise ValueError(
            f"no column can be the observation, got {', '.join(names) or 'none'}: add "
            "columns called obs_..."
        )
    raise ValueError(
        f"which of the columns {', '.join(others)} are the observation? Call them "
        'obs_..., or give {"obs": frame[[...]], "action": frame[...], "episode": '
        "frame[...]} with the columns of each"
    )


def _join_columns(frame: Any, names: Sequence[str]) -> Any:
    """Some columns of a frame as an array ``(N, d)``."""
    columns = [np.asarray(frame[name]) for name in names]
    for name, column in zip(names, columns, strict=True):
        if column.dtype.kind not in "biuf":
            raise ValueError(
                f"column {name!r} must hold numbers, got {column.dtype} "
                f"({column.flat[0]!r:.40} in row 0): leave it out, or number it"
            )
    return np.stack(columns, axis=1)


def _remove_prefix(name: str) -> str:
    """The name of a column without the prefix of observations."""
    for prefix, _ in _PREFIXES:
        name = name.removeprefix(prefix)
    return name
