"""Options files: safetensors with JSON metadata, written to a temporary name and renamed. No pickle.

The metadata of a file has one entry, ``"eigenoptions"``: the digest of the file (see `_compute_digest`), a space, and
a JSON object with the ``kind`` of the file, the version of its ``format`` and what the kind needs beside its arrays.
`save_options` describes the two kinds.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save
from scipy.sparse import csr_array

from eigenoptions.features import Map, features_from_dict, features_to_dict
from eigenoptions.mdp import MDP
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.records import OptionSet, Purpose

FORMAT = 1
Arrays = dict[str, NDArray[Any]]


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file completely or not at all: under a temporary name in the same folder, which is then renamed."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:100]}.{uuid.uuid4().hex}.tmp")
    try:
        if target.exists() and not target.is_file():
            raise OSError(0, "it is not a regular file")
        with open(temporary, "xb") as file:
            file.write(data)
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror}; choose a file in a folder that exists"
        raise type(error)(message) from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def write_arrays(
    path: str | Path, kind: str, header: dict[str, Any], arrays: Arrays
) -> None:
    """Write named arrays and a header of plain values as a file of some kind; `read_arrays` reads it."""
    arrays = {
        k: np.asarray(a, dtype=a.dtype.newbyteorder("="), order="C")
        for k, a in arrays.items()
    }
    header = {**header, "kind": kind, "format": FORMAT}
    # The method turns numbers of NumPy into those of Python, and raises TypeError for what JSON cannot hold.
    text = json.dumps(header, sort_keys=True, allow_nan=False, default=np.generic.item)
    write_atomically(
        path, save(arrays, {"eigenoptions": f"{_compute_digest(text, arrays)} {text}"})
    )


def read_arrays(path: str | Path) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a file that `write_arrays` wrote; ValueError where it is no such file or damaged."""
    data = Path(path).read_bytes()
    try:
        arrays = load(data)
        metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])[
            "__metadata__"
        ]
        digest, _, text = metadata["eigenoptions"].partition(" ")
        if digest != _compute_digest(text, arrays):
            raise ValueError("its content does not match its digest")
        header = json.loads(text)
        version = header["format"]
    except Exception as error:
        raise ValueError(
            f"{path} is not a file of eigenoptions, or damaged: {error!r}"
        ) from None
    if version != FORMAT:
        raise ValueError(
            f"{path} has format {version}, this version reads {FORMAT}: make the file again"
        )
    return header, arrays


def save_options(options: OptionSet | LinearOptionSet, path: str | Path) -> None:
    """Write options as a file.

    Of kind ``"options"``: ``policy`` and ``value`` (n, S), and the MDP with its ``transition`` table in csr format. Of
    kind ``"linear options"``: ``directions`` (n, d), ``threshold`` (n,), ``weights`` (n, A, p) if they are learned, and
    the arrays of the feature maps. The header has the purposes and the provenance.
    """
    names = ("label", "index", "sign", "goal", "eigenvalue")
    fields = [
        {name: getattr(purpose, name) for name in names} for purpose in options.purposes
    ]
    # Without fields that are None or nan.
    purposes = [
        {k: v for k, v in entry.items() if v is not None and v == v} for entry in fields
    ]
    header: dict[str, Any] = {"provenance": options.provenance, "purposes": purposes}
    if isinstance(options, OptionSet):
        mdp = options.mdp
        header["state_space"] = mdp.fingerprint
        header["mdp"] = {
            name: getattr(mdp, name) for name in ("start", "goal", "name", "legend")
        }
        arrays = {"policy": options.policy, "value": options.value}
        for name in ("data", "indices", "indptr"):
            arrays[f"transition.{name}"] = getattr(mdp.transition, name)
        arrays |= {
            f"mdp.{name}": a
            for name in ("coords", "reward")
            if (a := getattr(mdp, name)) is not None
        }
        if mdp.recognition and isinstance(mdp.recognition["by"], str):
            # A key that is a function cannot be written; nor, without it, are the states of any use.
            header["mdp"]["recognition"] = mdp.recognition
            arrays["mdp.states"] = np.frombuffer(
                json.dumps(list(mdp.states or ())).encode(), dtype=np.uint8
            )
        return write_arrays(path, "options", header, arrays)
    header |= {
        name: getattr(options, name)
        for name in ("n_actions", "patience", "stop_chance")
    }
    arrays = {"directions": options.directions, "threshold": options.threshold}
    if options.weights is not None:
        arrays["weights"] = options.weights
    for name in ("features", "basis"):
        features = getattr(options, name)
        header[name] = features_to_dict(features)
        arrays |= {
            f"{name}.{part}": array
            for part, array in getattr(features, "arrays", {}).items()
        }
    return write_arrays(path, "linear options", header, arrays)


def load_options(
    path: str | Path,
    mdp: MDP | None = None,
    only: int | slice | Sequence[int] | None = None,
    *,
    features: Map | None = None,
    basis: Map | None = None,
) -> Any:
    """Read options that `OptionSet.save` or `LinearOptionSet.save` wrote.

    Parameters
    ----------
    path : str or Path
        The file.
    mdp : MDP, default=None
        The state space that its options must have been computed for; None: not checked.
    only : int, slice, sequence of int or mask, default=None
        Select these options; None: all.
    features, basis : callable, default=None
        The maps phi and psi of a `LinearOptionSet`, where they were functions, which a file cannot hold.

    Returns
    -------
    OptionSet or LinearOptionSet
        ``options.mdp`` is the whole MDP of the options. Their purposes have no potential in a table.

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
    header, arrays = read_arrays(path)
    if header["kind"] not in ("options", "linear options"):
        raise ValueError(f"{path} holds {header['kind']}, not options")
    try:
        if header["kind"] == "options":
            options: Any = _make_options(header, arrays)
        else:
            options = _make_linear_options(header, arrays, features, basis)
    except Exception as error:
        raise ValueError(f"the options of {path} cannot be read: {error}") from None
    if mdp is not None:
        if isinstance(options, LinearOptionSet):
            raise ValueError(
                f"{path} holds options of a feature space, not of an MDP: leave out mdp"
            )
        options.check(mdp)
    if only is None:
        return options
    return options[[only] if isinstance(only, int | np.integer) else only]


def _make_options(header: dict[str, Any], arrays: Arrays) -> OptionSet:
    table = [arrays[f"transition.{name}"] for name in ("data", "indices", "indptr")]
    shape = len(table[2]) - 1, arrays["policy"].shape[1]
    fields: dict[str, Any] = {
        name: arrays.get(f"mdp.{name}") for name in ("coords", "reward")
    }
    if "mdp.states" in arrays:
        fields["states"] = _to_tuples(json.loads(arrays["mdp.states"].tobytes()))
    if not all(
        isinstance(header["mdp"].get(name, ""), str) for name in ("name", "legend")
    ):
        raise ValueError("name and legend must be text")
    if (
        fields["coords"] is not None
        and np.abs(fields["coords"].astype(float)).max() > 2**31
    ):
        raise ValueError("coords must be below 2^31")
    mdp = MDP(csr_array(tuple(table), shape=shape), **header["mdp"], **fields)
    if header.get("state_space", mdp.fingerprint) != mdp.fingerprint:
        raise ValueError("its state space does not match its fingerprint")
    purposes = [Purpose(None, **fields) for fields in header["purposes"]]
    return OptionSet(
        mdp, arrays["policy"], arrays["value"], purposes, header["provenance"]
    )


def _make_linear_options(
    header: dict[str, Any], arrays: Arrays, features: Any, basis: Any
) -> LinearOptionSet:
    maps: dict[str, Any] = {}
    for name, function in (("features", features), ("basis", basis)):
        own = {
            key[len(name) + 1 :]: array
            for key, array in arrays.items()
            if key.startswith(f"{name}.")
        }
        maps[name] = features_from_dict(
            {**header[name], "arrays": own} if own else header[name], function
        )
    pairs = zip(arrays["directions"], header["purposes"], strict=True)
    return LinearOptionSet(
        [Purpose(direction, **fields) for direction, fields in pairs],
        weights=arrays.get("weights"),
        threshold=arrays["threshold"],
        **maps,
        **{
            name: header[name]
            for name in ("n_actions", "provenance", "patience", "stop_chance")
        },
    )


def _compute_digest(text: str, arrays: Arrays) -> str:
    """SHA-256 of the JSON text and, in order of their names, of the name, type, shape and bytes of each array."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        digest.update(arrays[name].data)
    return digest.hexdigest()


def _to_tuples(value: Any) -> Any:
    """JSON lists as tuples, so that a state can be hashed."""
    return tuple(map(_to_tuples, value)) if isinstance(value, list) else value
