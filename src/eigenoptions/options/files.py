"""Files of named arrays: safetensors with JSON metadata, written completely or not at all."""

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


def _compute_digest(text: str, arrays: Arrays) -> str:
    """SHA-256 of the JSON text and, in order of their names, of the name, type, shape and bytes of each array."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        digest.update(arrays[name].data)
    return digest.hexdigest()
