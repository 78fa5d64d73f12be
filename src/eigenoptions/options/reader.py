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
Maybe = Map | None


@overload
def load_options(
    path: str | Path, mdp: MDP, only: Only = None, *, features: Map | None = None, basis: Map | None = None
) -> OptionSet: ...
@overload
def load_options(
    path: str | Path, mdp: None = None, only: Only = None, *, features: Maybe = None, basis: Maybe = None
) -> Any: ...
def load_options(
    path: str | Path,
    mdp: MDP | None = None,
    only: Only = None,
    *,
    features: Maybe = None,
    basis: Maybe = None,
) -> Any:
    """Read options that `OptionSet.save` or `LinearOptionSet.save` wrote.

    Parameters
    ----------
    path, mdp
        The file, and the state space that its options must have been computed for; None: not checked.
    only
        Read just these (a number, a slice, or numbers); the others are not read from disk.
    features, basis
        The maps phi and psi of a `LinearOptionSet`, where they were functions, which a file cannot hold.

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
        return load_linear_options(path, features=features, basis=basis, only=only)
    header, arrays = files.read(path, "options", FILE_FORMAT, only)
    with files.understood(path):
        fields: dict[str, Any] = {**arrays, **_fields(header, "n_actions", "state_space", "provenance")}
        # Version 0.1 wrote no legend.
        legend = header.get("legend", "")
        options = OptionSet(mean_length=_floats(header, "mean_length"), legend=legend, **fields)
    if mdp is not None:
        options.check(mdp)
    return options


def load_linear_options(
    path: str | Path, *, features: Map | None = None, basis: Map | None = None, only: Only = None
) -> LinearOptionSet:
    """Read options that `LinearOptionSet.save` wrote: `load_options` for files of this kind only.

    >>> from eigenoptions.features import Raw
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "skills.safetensors"
    >>> LinearOptionSet([[1.0], [-1.0]], Raw(), 3).save(file)
    >>> load_linear_options(file, only=1)
    LinearOptionSet(1 look-ahead option on 1 feature: option 2)
    >>> folder.cleanup()
    """
    header, arrays = files.read(path, "linear options", FILE_FORMAT, only)
    with files.understood(path):
        phi = recalled(_map(header, arrays, "features"), features)
        if phi is None:
            raise files.DamagedFileError(f"{path} is damaged: it names no features")
        fields: dict[str, Any] = {name: a for name, a in arrays.items() if "." not in name}
        fields |= _fields(header, "n_actions", "provenance")
        psi = recalled(_map(header, arrays, "basis"), basis)
        # Version 0.1 wrote no guards.
        fields |= {name: header[name] for name in ("patience", "stop_chance") if name in header}
        return LinearOptionSet(features=phi, basis=psi, model=None, **fields)


def _map(header: dict[str, Any], arrays: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Record of a feature map, and the arrays that the file holds for it."""
    own = {key.removeprefix(f"{name}."): a for key, a in arrays.items() if key.startswith(f"{name}.")}
    return {**header[name], "arrays": own} if own else header[name]


def _fields(header: dict[str, Any], *plain: str) -> dict[str, Any]:
    """Fields of a set for the rows that were read; version 0.1 wrote origins as labels only."""
    names = ["labels", *(name for name in ORIGIN.values() if name in header)]
    found: dict[str, Any] = {name: tuple(header[name][i] for i in header["rows"]) for name in names}
    if len(names) == 1:
        origins = [re.fullmatch(r"e(\d+)([+-])", label) for label in found["labels"]]
        found["indices"] = tuple(int(e[1]) if e else None for e in origins)
        found["signs"] = tuple(int(f"{e[2]}1") if e else None for e in origins)
    found |= {name: header[name] for name in plain}
    return {**found, "eigenvalues": _floats(header, "eigenvalues")}


def _floats(header: dict[str, Any], name: str) -> NDArray[np.float64]:
    """Numbers of the rows; None and names such as "inf" stand for those that JSON cannot hold."""
    numbers = [header[name][i] for i in header["rows"]]
    return np.array([np.nan if x is None else float(x) for x in numbers], dtype=np.float64)
