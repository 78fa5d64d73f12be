"""`load_options`: options from files, on a state space or in a feature space, by the kind that the file states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from eigenoptions import files
from eigenoptions.features import Map, recalled
from eigenoptions.mdp import MDP
from eigenoptions.options import FILE_FORMAT, ORIGIN, OptionSet
from eigenoptions.options.linear import LinearOptionSet

Only = int | slice | Sequence[int] | None


@overload
def load_options(
    path: str | Path,
    mdp: MDP,
    only: Only = None,
    *,
    features: Map | None = None,
    basis: Map | None = None,
) -> OptionSet: ...
@overload
def load_options(
    path: str | Path,
    mdp: MDP | None = None,
    only: Only = None,
    *,
    features: Map | None = None,
    basis: Map | None = None,
) -> Any: ...
def load_options(
    path: str | Path,
    mdp: MDP | None = None,
    only: Only = None,
    *,
    features: Map | None = None,
    basis: Map | None = None,
) -> Any:
    """Read options that `OptionSet.save` or `LinearOptionSet.save` wrote.

    Parameters
    ----------
    path
        The file.
    mdp
        If given, the options must have been computed for this state space.
    only
        Read just these (a number, a slice, or numbers); the others are not read from disk.
    features, basis
        The maps phi and psi of options in a feature space, where they were functions, which a file cannot hold.

    Returns
    -------
    OptionSet or LinearOptionSet
        By the kind of the file.

    Examples
    --------
    >>> import eigenoptions as eo, tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "skills.safetensors"
    >>> eo.discover(eo.maze("i-maze"), n_options=4).save(file)
    >>> eo.load_options(file, only=2)
    OptionSet(1 option on 19 states: e3+)
    >>> folder.cleanup()
    """
    if files.kind(path) == "linear options":
        if mdp is not None:
            raise ValueError(f"{path} holds options of a feature space, not of an MDP: leave out mdp")
        return _linear(path, only, features, basis)
    header, arrays = files.read(path, "options", FILE_FORMAT, only)
    rows = header["rows"]
    with files.understood(path):
        options = OptionSet(
            arrays["policy"],
            header["n_actions"],
            arrays["value"],
            eigenvalues=_floats(header["eigenvalues"], rows),
            mean_length=_floats(header["mean_length"], rows),
            state_space=header["state_space"],
            coords=arrays.get("coords"),
            provenance=header["provenance"],
            **_names(header),
        )
    if mdp is not None:
        options.check(mdp)
    return options


def load_linear_options(
    path: str | Path, *, features: Map | None = None, basis: Map | None = None, only: Only = None
) -> LinearOptionSet:
    """Read options that `LinearOptionSet.save` wrote: `load_options` for files of this kind only.

    Parameters
    ----------
    path, only, features, basis
        As in `load_options`.

    Examples
    --------
    >>> from eigenoptions.features import Raw
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "skills.safetensors"
    >>> LinearOptionSet([[1.0], [-1.0]], Raw(), 3).save(file)
    >>> load_linear_options(file, only=1)
    LinearOptionSet(1 look-ahead option on 1 feature: option 2)
    >>> folder.cleanup()
    """
    return _linear(path, only, features, basis)


def _linear(path: str | Path, only: Only, features: Map | None, basis: Map | None) -> LinearOptionSet:
    header, arrays = files.read(path, "linear options", FILE_FORMAT, only)
    with files.understood(path):
        phi = recalled(header["features"], features)
        if phi is None:
            raise files.DamagedFileError(f"{path} is damaged: it names no features")
        return LinearOptionSet(
            arrays["direction"],
            phi,
            header["n_actions"],
            arrays.get("weights"),
            recalled(header["basis"], basis),
            arrays["threshold"],
            eigenvalues=_floats(header["eigenvalues"], header["rows"]),
            provenance=header["provenance"],
            **_names(header),
        )


def _names(header: dict[str, Any]) -> dict[str, Any]:
    """Labels and origins of the rows that were read; version 0.1 wrote origins as labels only."""
    names = ["labels", *(name for name in ORIGIN.values() if name in header)]
    found: dict[str, Any] = {name: tuple(header[name][i] for i in header["rows"]) for name in names}
    if len(names) == 1:
        origins = [re.fullmatch(r"e(\d+)([+-])", label) for label in found["labels"]]
        found["indices"] = tuple(int(e[1]) if e else None for e in origins)
        found["signs"] = tuple(int(f"{e[2]}1") if e else None for e in origins)
    return found


def _floats(numbers: list[Any], rows: list[int]) -> NDArray[np.float64]:
    """Numbers of a header; None and names such as "inf" stand for those that JSON cannot hold."""
    return np.array([np.nan if numbers[i] is None else float(numbers[i]) for i in rows], dtype=np.float64)
