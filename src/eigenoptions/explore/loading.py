"""`load_found`: what `Found.save` wrote, which is checked before it is used."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, Space

from eigenoptions._validation import check_int, check_memory
from eigenoptions.envs.families import Key
from eigenoptions.envs.recognisers import describe_key, make_recogniser
from eigenoptions.explore.axes import Axes
from eigenoptions.explore.controls import Controls
from eigenoptions.explore.experience import Experience
from eigenoptions.explore.found import About, Found, Log
from eigenoptions.explore.found_vectors import (
    VECTORS,
    VectorFound,
    VectorLog,
    make_vector_found,
)
from eigenoptions.explore.packing import unpack_keys, unpack_observations
from eigenoptions.explore.rows import VectorReader
from eigenoptions.options.files import Arrays, read_arrays

# What the columns of the log hold, as kinds of NumPy.
_KINDS = Log(
    state="iu",
    action="iu",
    next_state="iu",
    reward="f",
    terminated="b",
    truncated="b",
    is_first="b",
)


def load_found(path: str | Path, *, key: Key | None = None) -> Found:
    """Read what `Found.save` wrote.

    Parameters
    ----------
    path : str or Path
        The file.
    key : callable, default=None
        The function ``key(env, obs)`` with which it was found, if it was one of yours.

    Examples
    --------
    >>> import pathlib
    >>> import tempfile
    >>> import eigenoptions as eo
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "found.safetensors"
    >>> eo.explore(eo.maze("S..G"), 50, until="known").save(file)
    >>> load_found(file).mdp
    MDP(MazeEnv: 4 states, 4 actions, deterministic, start 0, goal 3)
    >>> folder.cleanup()
    """
    header, arrays = read_arrays(path)
    if header.get("kind") == VECTORS:
        try:
            return _read_vectors(header, arrays)
        except Exception as error:
            raise ValueError(
                f"{path} is not what explore found, or damaged: {error!r}"
            ) from None
    if header.get("kind") != "found":
        raise ValueError(f"{path} holds {header.get('kind')}, not what explore found")
    written = header.get("by")
    if written is not None and key not in (None, written):
        raise ValueError(
            f"{path} was found by {written!r}, not by {describe_key(key)}: leave out "
            "key"
        )
    by: str | Key | None = key if written is None else written
    if by is None:
        raise ValueError(
            f"{path} was found with a key of yours: give it again, "
            "load_found(path, key=...)"
        )
    try:
        make_recogniser(by)
        return _read_found(header, arrays, by)
    except Exception as error:
        # Whatever stands in a file, reading it fails in one way.
        raise ValueError(
            f"{path} is not what explore found, or damaged: {error!r}"
        ) from None


def _read_found(header: dict[str, Any], arrays: Arrays, by: str | Key) -> Found:
    """Return what a file holds, after it was checked."""
    about = _read_about(header, arrays, by)
    keys = unpack_keys(arrays["keys"])
    observations = unpack_observations(header["observations"], arrays)
    log = Log(*(arrays[name] for name in Log._fields))
    first_visit = arrays["first_visit"]
    given_up = arrays["given_up"]

    n_states = len(keys)
    if not n_states or len(set(keys)) < n_states or len(observations) != n_states:
        raise ValueError("each state needs a key of its own and an observation")
    # First, since memory is taken for so many actions.
    _check_column("given_up", given_up, "u", (n_states, about.n_actions), 2)
    _check_column("first_visit", first_visit, "iu", (n_states,), len(log.state) + 1)
    _check_log(log, n_states, about.n_actions)

    experience = Experience(about, max_states=max(n_states, 1_000_000))
    experience.restore(
        keys,
        observations,
        first_visit.tolist(),
        log,
        [(int(state), int(action)) for state, action in np.argwhere(given_up)],
    )
    return experience.found


def _read_vectors(header: dict[str, Any], arrays: Arrays) -> VectorFound:
    """Return what a file of vectors holds, after it was checked."""
    name = str(header["name"])
    controls = Controls(_read_actions(header["actions"]), name)
    reader = VectorReader(header["form"], name)
    axes = Axes.from_dict(header["axes"])
    log = VectorLog(*(arrays[column] for column in VectorLog._fields))

    n_steps = len(log.reward)
    rows = (n_steps,)
    forms: list[tuple[str, tuple[int, ...]]] = [
        ("f", (n_steps, reader.width)),
        ("f", (n_steps, controls.vectors.shape[1])),
        ("i", rows),
        ("f", (n_steps, reader.width)),
        ("f", rows),
        ("b", rows),
        ("b", rows),
        ("b", rows),
    ]
    for column, (kind, shape) in zip(VectorLog._fields, forms, strict=True):
        array = arrays[column]
        _check_column(column, array, kind, shape, len(controls) if kind == "i" else 2)
        if kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{column} must be finite")
    used = [*axes.columns, *axes.angles, *(j for pair in axes.circles for j in pair)]
    if not n_steps or not 0 <= min(used) <= max(used) < reader.width:
        raise ValueError("there must be steps, and columns of them")
    about = About(
        name=name,
        n_actions=len(controls),
        by="observation",
        seed=check_int("seed", header["seed"], 0),
    )
    return make_vector_found(
        about, controls, reader, log, axes, header["columns"], header["least_reward"]
    )


def _read_actions(actions: dict[str, Any]) -> Space[Any]:
    """Return the space of actions that a file describes."""
    if "n" in actions:
        n_actions = check_int("n_actions", actions["n"])
        check_memory(f"{n_actions:,} actions", 8.0 * n_actions**2, "it is damaged")
        return Discrete(n_actions)
    shape = tuple(check_int("shape", n) for n in actions["shape"])
    low = np.array(actions["low"]).reshape(shape)
    high = np.array(actions["high"]).reshape(shape)
    dtype: Any = np.dtype(actions["dtype"])
    return Box(low.astype(dtype), high.astype(dtype), dtype=dtype)


def _read_about(header: dict[str, Any], arrays: Arrays, by: str | Key) -> About:
    """Return what a header says of the environment."""
    for name in ("name", "legend"):
        if not isinstance(header[name], str):
            raise ValueError(f"{name} must be text, got {header[name]!r}")
    if not isinstance(header["layout"], str | None):
        raise ValueError(f"layout must be text, got {header['layout']!r}")
    n_actions = check_int("n_actions", header["n_actions"])
    coords = arrays.get("coords")

    # JSON has no tuples.
    numbers = None
    if header["numbers"] is not None:
        first, n_states = header["numbers"]
        numbers = (check_int("first number", first, -(2**62)), check_int("n", n_states))
        n_bytes = 32.0 * n_states * n_actions
        check_memory(f"{n_states:,} states", n_bytes, "the file is damaged")
    if coords is not None and (numbers is None or coords.shape != (numbers[1], 2)):
        raise ValueError("there must be two coordinates for each number")

    return About(
        name=header["name"],
        n_actions=n_actions,
        by=by,
        seed=check_int("seed", header["seed"], 0),
        layout=header["layout"],
        is_partial_view=bool(header["is_partial_view"]),
        numbers=numbers,
        coords=coords,
        legend=header["legend"],
    )


def _check_log(log: Log, n_states: int, n_actions: int) -> None:
    """Raise ValueError unless steps are in range, and follow each other."""
    n_steps = len(log.state)
    limits = Log(n_states, n_actions, n_states, np.inf, 2, 2, 2)
    for name, column, kinds, limit in zip(
        Log._fields, log, _KINDS, limits, strict=True
    ):
        _check_column(name, column, kinds, (n_steps,), limit)

    # Of several environments the steps are mixed: how many episodes go on in a state.
    n_open: Counter[int] = Counter()
    for row, entry in enumerate(zip(*(column.tolist() for column in log), strict=True)):
        step = Log(*entry)
        if not step.is_first:
            n_open[step.state] -= 1
            if n_open[step.state] < 0:
                raise ValueError(f"no episode was in the state of step {row}")
        if not (step.terminated or step.truncated):
            n_open[step.next_state] += 1


def _check_column(
    name: str, column: Any, kinds: str, shape: tuple[int, ...], limit: float
) -> None:
    """Raise ValueError unless an array has a kind, a shape, and a range.

    Integers are in 0 to below the limit; floats are no nan.
    """
    if column.dtype.kind not in kinds or column.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {column.shape}")
    if kinds == "f" and np.isnan(column).any():
        raise ValueError(f"{name} must be numbers, got nan")
    if kinds != "f" and column.size and not 0 <= column.min() <= column.max() < limit:
        raise ValueError(f"{name} must be in 0..{limit - 1:g}")
