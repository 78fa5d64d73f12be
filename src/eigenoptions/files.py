"""Files: safetensors with a JSON header and checksums, and the one way in which this package writes a file.

A file holds named arrays with one row per item. Each row has a checksum in the header, and the header has one too, so
a single row is read and verified without the others. Damaged files raise `DamagedFileError`, one line. No pickle.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

KEY = "eigenoptions"
# Beginning of the names of temporary files; machine, process and thread follow.
TEMPORARY = ".eigenoptions-tmp-"


class DamagedFileError(ValueError):
    """A file that was cut short or altered, or that another program wrote."""


@contextmanager
def understood(path: str | Path) -> Iterator[None]:
    """A block that builds something from a file; where its content is none of ours, one `DamagedFileError`.

    Checksums find damage, not intent: whoever writes a file can give it any header and any arrays with valid checksums.
    """
    try:
        yield
    except (LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        what = f"{type(error).__name__}: {error}"
        raise DamagedFileError(f"{path} is damaged: its content is not one of ours ({what})") from None


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary file beside `path`, to be written inside the block; at the end it takes the place of `path`.

    So `path` holds either the old file or the whole new one. Symbolic links are followed, and only regular files
    are replaced. Raises OSError, naming the path, where it cannot be written; then nothing is left behind.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f"{TEMPORARY}{platform.node()}-{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        if target.is_dir():
            raise IsADirectoryError(f"cannot write {path}: it is a folder; give a file name")
        if target.exists() and not target.is_file():
            raise FileExistsError(f"cannot write {path}: it is not a regular file; give another name")
        remove_leftovers(target.parent)
        temporary.touch()
        mode = (target if target.exists() else temporary).stat().st_mode
        yield temporary
        # safetensors creates files that only their owner may read.
        temporary.chmod(mode)
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, target)
    except OSError as error:
        if error.strerror is None:
            raise
        message = f"cannot write {path}: {error.strerror}; choose a folder that exists and can be written"
        raise type(error)(message) from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files of processes of this machine that were killed while they wrote into a folder."""
    for path in folder.glob(f"{TEMPORARY}{platform.node()}-*.tmp"):
        process = path.name.removeprefix(f"{TEMPORARY}{platform.node()}-").partition("-")[0]
        if process.isdecimal() and not _runs(int(process)):
            with suppress(OSError):
                path.unlink()


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file by `replacing`: the whole file, or nothing."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write(
    path: str | Path,
    header: dict[str, Any],
    rows: dict[str, NDArray[Any]],
    whole: dict[str, NDArray[Any]] | None = None,
) -> None:
    """Write `rows` (arrays ``(n, ...)``, one checksum per row) and `whole` arrays (one checksum each) under a header.

    ``header["kind"]`` and ``header["format"]`` state what the file holds; see `kind` and `read`.
    """
    rows = {name: _plain(array) for name, array in rows.items()}
    whole = {name: _plain(array) for name, array in (whole or {}).items()}
    seals = {
        "rows": [_digest(*(rows[k][i] for k in sorted(rows))) for i in range(len(next(iter(rows.values()))))],
        "whole": {name: _digest(array) for name, array in whole.items()},
        "layout": {name: _layout(array) for name, array in rows.items()},
    }
    text = json.dumps({**header, "seals": seals}, sort_keys=True, allow_nan=False)
    with replacing(path) as temporary:
        try:
            # One entry: safetensors writes several in an order that changes, and equal options must be equal bytes.
            save_file({**rows, **whole}, temporary, metadata={KEY: f"{_seal(text)} {text}"})
        except SafetensorError as error:
            raise OSError(0, str(error)) from None


def kind(path: str | Path) -> str:
    """What a file holds, from its verified header: ``"options"``, ``"linear options"``, ``"gram"``, ..."""
    with _opened(path) as (header, _):
        return str(header["kind"])


def read(
    path: str | Path, expected: str, version: int, only: int | slice | Sequence[int] | None = None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a file of the `expected` kind and format version; `only` selects the rows to be read.

    The header gains ``"rows"``, their numbers. Raises ValueError, one line, if anything is wrong with the file.
    """
    with _opened(path) as (header, file):
        if header["kind"] != expected:
            raise ValueError(f"{path} holds {header['kind']!r}, not {expected!r}")
        if header["format"] != version:
            raise ValueError(
                f"{path} has format {header['format']}, this version reads {version}: "
                "make the file again, or install the version that wrote it"
            )
        seals = header.pop("seals")
        n = len(seals["rows"])
        try:
            chosen = pick(n, slice(None) if only is None else only)
        except IndexError:
            raise ValueError(f"{path} holds {n} items: index {only} is out of range") from None
        whole = {name: file.get_tensor(name) for name in seals["whole"]}
        names = sorted(set(file.keys()) - set(whole))
        every = only is None or n == 0
        rows = {k: file.get_tensor(k) if every else _rows(file.get_slice(k), chosen) for k in names}
        layout = {name: _layout(array) for name, array in rows.items()}
        if {len(array) for array in rows.values()} != {len(chosen)} or layout != seals["layout"]:
            raise DamagedFileError(f"{path} is damaged: its arrays do not match their checksum")
        for name, array in whole.items():
            if _digest(array) != seals["whole"][name]:
                raise DamagedFileError(f"{path} is damaged: {name} does not match its checksum")
        for place, i in enumerate(chosen.tolist()):
            if _digest(*(rows[name][place] for name in names)) != seals["rows"][i]:
                raise DamagedFileError(f"{path} is damaged: item {i} does not match its checksum")
        return {**header, "rows": chosen.tolist()}, {**whole, **rows}


def pick(n: int, index: Any) -> NDArray[np.intp]:
    """Numbers of the items that an index (a number, a slice, numbers, a mask) selects out of n.

    >>> pick(5, slice(1, None, 2)).tolist(), pick(5, -1).tolist(), pick(5, []).tolist()
    ([1, 3], [4], [])
    """
    if not isinstance(index, slice):
        index = np.atleast_1d(index)
        index = index if index.size else index.astype(np.intp)
    chosen: NDArray[np.intp] = np.arange(n)[index]
    return chosen


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[dict[str, Any], Any]]:
    """The verified header of a file, and its arrays to be read inside the block."""
    # A number would be taken for an open file.
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"the path of a file must be text or a Path, got {path!r}")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"no file {path}: give the path of a file that was saved")
    try:
        with understood(path), safe_open(path, framework="np") as file:
            seal, _, text = (file.metadata() or {}).get(KEY, "").partition(" ")
            if not seal:
                raise ValueError(f"{path} is a safetensors file, but not one of eigenoptions")
            if _seal(text) != seal:
                raise DamagedFileError(f"{path} is damaged: its header does not match its checksum")
            yield json.loads(text), file
    except SafetensorError as error:
        raise DamagedFileError(f"{path} is damaged or no eigenoptions file: {error}") from None
    except OSError as error:
        raise type(error)(f"cannot read {path}: {error.strerror or error}") from None
    except BaseException as error:
        # safetensors panics where it gets no memory.
        if type(error).__module__ != "pyo3_runtime":
            raise
        raise MemoryError(f"{path} does not fit into memory: read a part of it (only=...)") from None


def _rows(part: Any, chosen: NDArray[np.intp]) -> NDArray[Any]:
    """Only these rows of an array in an open file."""
    return np.concatenate([part[i : i + 1] for i in chosen.tolist()] or [part[:0]])


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
    """The array in C order and in the byte order of this machine."""
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
