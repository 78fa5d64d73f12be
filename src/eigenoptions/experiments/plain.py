"""Plain data as JSON and bytes: arrays, numbers, text, bytes, None, and dicts, lists and tuples of these.

What comes back has the same types and the same bytes; numbers that are not finite, and arrays of any dtype that needs
no pickle, are no exception.
"""

from __future__ import annotations

import struct
from math import isfinite
from typing import Any

import numpy as np


def encode(value: Any) -> tuple[Any, list[bytes]]:
    r"""Turn plain data into JSON and bytes.

    Raises ValueError for anything else.

    >>> encode({"lengths": (1, 2.5), "stops": np.array([3], dtype=np.int8)})
    ({'lengths': {'~tuple': [1, 2.5]}, 'stops': {'~array': ['|i1', [1], 'C']}}, [b'\x03'])
    """
    parts: list[bytes] = []
    return _encode(value, parts), parts


def decode(tree: Any, data: bytes) -> Any:
    """Give back what `encode` was given: the same types, the same bytes.

    >>> decode({"~tuple": [1, {"~array": ["<f4", [2], "C"]}]}, bytes(8))
    (1, array([0., 0.], dtype=float32))
    """
    value, end = _decode(tree, data, 0)
    assert end == len(data)
    return value


def _encode(value: Any, parts: list[bytes]) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if isfinite(value) else {"~float": struct.pack(">d", value).hex()}
    if kind is list:
        return [_encode(v, parts) for v in value]
    if kind is tuple:
        return {"~tuple": [_encode(v, parts) for v in value]}
    if kind is dict:
        if all(type(k) is str and not k.startswith("~") for k in value):
            return {k: _encode(v, parts) for k, v in value.items()}
        return {"~dict": [[_encode(k, parts), _encode(v, parts)] for k, v in value.items()]}
    if kind is bytes:
        parts.append(value)
        return {"~bytes": len(value)}
    scalar = isinstance(value, np.generic)
    if scalar or kind in (np.ndarray, np.memmap):
        dtype = value.dtype
        if dtype.hasobject or dtype != np.dtype(dtype.str):
            raise ValueError(f"an array of dtype {dtype} cannot be kept: give arrays of numbers or text")
        order = "F" if value.flags.fnc else "C"  # sums depend on it in their last bits
        parts.append(value.tobytes(order))
        return {"~scalar": dtype.str} if scalar else {"~array": [dtype.str, list(value.shape), order]}
    raise ValueError(
        f"{kind.__module__}.{kind.__qualname__} cannot be kept: "
        "give arrays, numbers, text, None, and dicts, lists and tuples of these"
    )


def _decode(tree: Any, data: bytes, at: int) -> tuple[Any, int]:
    """A value, and where in the data the next one begins."""
    if isinstance(tree, list):
        items = []
        for t in tree:
            item, at = _decode(t, data, at)
            items.append(item)
        return items, at
    if not isinstance(tree, dict):
        return tree, at
    tag, *more = tree or ("",)
    if more or not tag.startswith("~"):
        named = {}
        for k, t in tree.items():
            named[k], at = _decode(t, data, at)
        return named, at
    what = tree[tag]
    if tag == "~float":
        return struct.unpack(">d", bytes.fromhex(what))[0], at
    if tag == "~tuple":
        items, at = _decode(what, data, at)
        return tuple(items), at
    if tag == "~dict":
        pairs, at = _decode(what, data, at)
        return dict(pairs), at
    if tag == "~bytes":
        return data[at : at + what], at + what
    dtype, shape, order = (what, [], "C") if tag == "~scalar" else what
    array = np.ndarray(shape, dtype, data, at, order=order)
    at += array.nbytes
    return (array[()] if tag == "~scalar" else array.copy("K")), at
