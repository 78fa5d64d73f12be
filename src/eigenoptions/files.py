"""Sealed safetensors files: named arrays with a row an item, and a JSON header that vouches for every row.

One row is read without reading the others. A file that was cut short, altered or written by another version is
refused with one clear line. Files are written to a temporary name and renamed, so a path holds a whole file or the
old one. No pickle, ever.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

KEY = "eigenoptions"


def write(
    path: str | Path,
    header: dict[str, Any],
    rows: dict[str, NDArray[Any]],
    whole: dict[str, NDArray[Any]] | None = None,
) -> None:
    """Write `rows` (arrays ``(n, ...)``, each row sealed by itself) and `whole` arrays under a JSON header.

    Raises OSError, naming the path, where it cannot be written; then nothing is left behind.
    """
    target = Path(path)
    whole = {k: _plain(v) for k, v in (whole or {}).items()}
    rows = {k: _plain(v) for k, v in rows.items()}
    n = len(next(iter(rows.values())))
    sealed = dict(header)
    sealed["seals"] = {
        "rows": [_digest(*(rows[k][i] for k in sorted(rows))) for i in range(n)],
        "whole": {k: _digest(v) for k, v in whole.items()},
        "layout": {k: _layout(v) for k, v in rows.items()},
    }
    text = json.dumps(sealed, sort_keys=True, allow_nan=False)
    # One entry: safetensors writes several in an order that changes, and the same options must be the same bytes.
    meta = {KEY: f"{_seal(text)} {text}"}
    if os.path.isdir(target):
        raise IsADirectoryError(f"cannot write {target}: it is a folder; give a file name")
    temporary = target.with_name(f".{os.getpid()}-{threading.get_ident()}.tmp")  # nobody else's name
    try:
        temporary.touch()  # a clear OSError before any work
        mode = temporary.stat().st_mode
        save_file({**rows, **whole}, temporary, metadata=meta)
        temporary.chmod(mode)  # safetensors makes files that only their owner may read
        os.replace(temporary, target)
    except (OSError, SafetensorError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        kind = type(error) if isinstance(error, OSError) else OSError
        message = f"cannot write {target}: {reason}; choose a folder that exists and can be written"
        raise kind(message) from None
    finally:
        with suppress(OSError):  # it was renamed, or never made
            temporary.unlink()


def read(
    path: str | Path, kind: str, version: int, only: int | slice | Sequence[int] | None = None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a file of this kind and version; with `only`, just those rows are read.

    Raises ValueError with one line that says what is wrong with the file.
    """
    source = Path(path)
    if not os.path.isfile(source):
        raise FileNotFoundError(f"no file {source}: give the path of a file that was saved")
    try:
        with safe_open(source, framework="np") as file:
            header = _header(source, file.metadata() or {}, kind, version)
            seals = header.pop("seals")
            n = len(seals["rows"])
            chosen = pick(n, slice(None) if only is None else only)
            arrays = {k: file.get_tensor(k) for k in seals["whole"]}
            names = sorted(set(file.keys()) - set(arrays))
            rows = {
                k: file.get_tensor(k) if only is None or n == 0 else _rows(file, k, chosen) for k in names
            }
    except SafetensorError as error:
        raise ValueError(f"{source} is damaged or no {kind} file: {error}") from None
    except OSError as error:
        raise type(error)(f"cannot read {source}: {error.strerror or error}") from None
    except IndexError:
        raise ValueError(f"{source} holds {n} items: index {only} is out of range") from None
    fits = all(len(v) == len(chosen) for v in rows.values())
    if not fits or {k: _layout(v) for k, v in rows.items()} != seals["layout"]:
        raise ValueError(f"{source} is damaged: its arrays do not match their seal")
    for k, array in arrays.items():
        if _digest(array) != seals["whole"][k]:
            raise ValueError(f"{source} is damaged: {k} does not match its seal")
    for place, i in enumerate(chosen.tolist()):
        if _digest(*(rows[k][place] for k in names)) != seals["rows"][i]:
            raise ValueError(f"{source} is damaged: item {i} does not match its seal")
    header["rows"] = chosen.tolist()
    return header, {**arrays, **rows}


def pick(n: int, index: Any) -> NDArray[np.intp]:
    """Numbers of the items that an index (a number, a slice, numbers, a mask) chooses out of n.

    >>> pick(5, slice(1, None, 2)).tolist(), pick(5, -1).tolist(), pick(5, []).tolist()
    ([1, 3], [4], [])
    """
    if not isinstance(index, slice):
        index = np.atleast_1d(index)
        index = index if index.size else index.astype(np.intp)
    chosen: NDArray[np.intp] = np.arange(n)[index]
    return chosen


def _rows(file: Any, name: str, chosen: NDArray[np.intp]) -> NDArray[Any]:
    """Just these rows of an array in an open file."""
    part = file.get_slice(name)
    return np.concatenate([part[i : i + 1] for i in chosen.tolist()] or [part[:0]])


def _header(source: Path, meta: dict[str, str], kind: str, version: int) -> dict[str, Any]:
    if KEY not in meta:
        raise ValueError(f"{source} is a safetensors file, but not one of eigenoptions")
    seal, _, text = meta[KEY].partition(" ")
    if _seal(text) != seal:
        raise ValueError(f"{source} is damaged: its header does not match its seal")
    header: dict[str, Any] = json.loads(text)
    if header.get("kind") != kind:
        raise ValueError(f"{source} holds {header.get('kind')!r}, not {kind!r}")
    if header.get("format") != version:
        raise ValueError(
            f"{source} has format {header.get('format')}, this version reads {version}: "
            "make the file again, or install the version that wrote it"
        )
    return header


def _seal(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _digest(*parts: NDArray[Any]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def _layout(rows: NDArray[Any]) -> str:
    return f"{rows.dtype.str}{rows.shape[1:]}"


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """In one piece and in this machine's byte order."""
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
