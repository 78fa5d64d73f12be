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
import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

# Version of the format of files.
_FORMAT = 1

Arrays = dict[str, NDArray[Any]]


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file completely or not at all.

    It is written under a temporary name in the same folder, and then renamed.
    """
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
        raise type(error)(
            f"cannot write {path}: {error.strerror}; "
            "choose a file in a folder that exists"
        ) from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def write_arrays(
    path: str | Path, kind: str, header: dict[str, Any], arrays: Arrays
) -> None:
    """Write named arrays and a header of plain values; `read_arrays` reads them."""
    native: Arrays = {}
    for name, array in arrays.items():
        native[name] = np.asarray(array, array.dtype.newbyteorder("="), order="C")

    # `item` turns numbers of NumPy into those of Python, and raises TypeError for what
    # JSON cannot hold.
    text = json.dumps(
        {**header, "kind": kind, "format": _FORMAT},
        sort_keys=True,
        allow_nan=False,
        default=np.generic.item,
    )
    digest = _compute_digest(text, native)
    write_atomically(path, save(native, {"eigenoptions": f"{digest} {text}"}))


def read_arrays(path: str | Path) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of a file that `write_arrays` wrote.

    Raise ValueError if it is no such file, or damaged.
    """
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
            f"{path} has format {version}, this version reads {_FORMAT}: "
            "make the file again"
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
