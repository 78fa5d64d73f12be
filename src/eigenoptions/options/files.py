"""Files of named arrays: safetensors with JSON metadata. No pickle.

A file is written completely or not at all. Its metadata have one entry,
``"eigenoptions"``: the digest of the content, a space, and a JSON object, the *header*.
The header has the ``kind`` of the file, the version of its ``format``, and what the
kind needs beside its arrays.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from eigenoptions._text import printable
from eigenoptions._validation import check_type

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

# Version of the format of files.
_FORMAT = 1

# Names of files that are being written: see `_write_and_rename`.
_TEMPORARY_NAME = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")

Arrays = dict[str, NDArray[Any]]


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file completely or not at all.

    It is written under a temporary name in the same folder, and then renamed. What
    killed processes left under such names in this folder is removed.
    """
    check_type("path", path, str | Path, "give the name of a file")
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            raise OSError(0, "it is not a regular file")
        _remove_abandoned_files(target.parent)
        _write_and_rename(target, data)
    except OSError as error:
        raise type(error)(
            f"cannot write {path}: {error.strerror}; "
            "choose a file in a folder that exists"
        ) from None
    except ValueError as error:
        # Names with characters that no file can have.
        raise ValueError(f"cannot write {str(path)!r}: {error}") from None


def _write_and_rename(target: Path, data: bytes) -> None:
    """Write to a temporary file, which is locked meanwhile, and rename it."""
    temporary = target.with_name(f".{target.name[:100]}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            _try_lock(file)
            file.write(data)
            file.flush()
            if target.exists():
                shutil.copymode(target, temporary)
            if fcntl is None:
                # Windows does not rename files that are open.
                file.close()
            os.replace(temporary, target)
    finally:
        with suppress(OSError):
            temporary.unlink()


def _remove_abandoned_files(folder: Path) -> None:
    """Remove temporary files whose writers were killed.

    A writer holds a lock on its file, and the system releases it when the process ends.
    """
    for temporary in folder.glob(".*.tmp"):
        if not _TEMPORARY_NAME.fullmatch(temporary.name):
            continue
        # Others may remove it at the same time, or it may belong to somebody else.
        with suppress(OSError), open(temporary, "rb+") as file:
            if _try_lock(file):
                temporary.unlink()


def _try_lock(file: IO[bytes]) -> bool:
    """Lock a file, unless another process holds its lock; say whether it succeeded.

    Where the system has no such locks (Windows), nothing is locked: False.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def write_arrays(
    path: str | Path, kind: str, header: dict[str, Any], arrays: Arrays
) -> None:
    """Write named arrays and a header of plain values; `read_arrays` reads them."""
    native: Arrays = {}
    for name, array in arrays.items():
        native[name] = np.asarray(array, array.dtype.newbyteorder("="), order="C")

    text = json.dumps(
        {**header, "kind": kind, "format": _FORMAT},
        sort_keys=True,
        allow_nan=False,
        default=_convert_number,
    )
    digest = _compute_digest(text, native)
    write_atomically(path, save(native, {"eigenoptions": f"{digest} {text}"}))


def _convert_number(value: object) -> Any:
    """Return a number of NumPy as one of Python, which JSON can hold."""
    if not isinstance(value, np.generic):
        raise TypeError(
            f"a file cannot hold a value of type {type(value).__name__} in its "
            "description (provenance, for example): use text, numbers, lists and dicts"
        )
    return value.item()


def read_arrays(path: str | Path) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of a file that `write_arrays` wrote.

    Raise ValueError if it is no such file, or damaged.
    """
    check_type("path", path, str | Path, "give the name of a file")
    # Reading a pipe or a device could wait forever.
    if Path(path).exists() and not Path(path).is_file():
        raise ValueError(f"{path} is not a regular file: give a file of options")
    data = Path(path).read_bytes()
    try:
        arrays = load(data)
        digest, _, text = _read_metadata(data)["eigenoptions"].partition(" ")
        if digest != _compute_digest(text, arrays):
            raise ValueError("its content does not match its digest")
        header = json.loads(text)
        version = header["format"]
    except Exception as error:
        raise ValueError(
            f"{path} is not a file of eigenoptions, or damaged: {error!r}"
        ) from None
    if version != _FORMAT:
        raise ValueError(
            f"{path} has format {printable(str(version))}, this version reads "
            f"{_FORMAT}: make the file again"
        )
    return header, arrays


def _read_metadata(data: bytes) -> dict[str, str]:
    """Return the metadata of a safetensors file.

    The file begins with the length of a JSON object in 8 bytes, and the object itself.
    """
    length = int.from_bytes(data[:8], "little")
    metadata: dict[str, str] = json.loads(data[8 : 8 + length])["__metadata__"]
    return metadata


def _compute_digest(text: str, arrays: Arrays) -> str:
    """Return the SHA-256 of a header and of arrays, in the order of their names."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()
