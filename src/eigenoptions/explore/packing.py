"""Keys of states and observations as arrays of a file, and back.

Observations of one form become arrays, one for each of their parts: all dicts have the
same names, say. What has no common form is text, JSON, in which each value says what it
is. The *form* says which part is where; it is plain, and stands in the file's header.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.options.files import Arrays

# Types that JSON holds as they are.
_PLAIN = (bool, int, float, str, type(None))
# Kinds of arrays that a file holds: booleans, integers, floats.
_KINDS = "biuf"


def pack_observations(observations: Sequence[Any]) -> tuple[dict[str, Any], Arrays]:
    """Return the form of observations, and their arrays.

    Examples
    --------
    >>> seen = [{"cell": np.array([1, 2]), "a/b": "go"}]
    >>> form, arrays = pack_observations(seen)
    >>> form
    {'names': ['cell', 'a/b'], 'parts': [{'rows': 'obs/0'}, {'text': 'obs/1'}]}
    >>> unpack_observations(form, arrays)
    [{'cell': array([1, 2]), 'a/b': 'go'}]
    """
    arrays: Arrays = {}
    return _pack(list(observations), arrays), arrays


def _pack(column: list[Any], arrays: Arrays) -> dict[str, Any]:
    """Add the arrays of a part of all observations, and return its form."""
    first = column[0]
    if type(first) is dict and _are_alike(column, list):
        names = list(first)
        if all(isinstance(name, str) for name in names):
            parts = [[obs[name] for obs in column] for name in names]
            return {"names": names, "parts": [_pack(part, arrays) for part in parts]}
    if type(first) is tuple and first and _are_alike(column, len):
        parts = [list(part) for part in zip(*column, strict=True)]
        return {"tuple": [_pack(part, arrays) for part in parts]}

    name = f"obs/{len(arrays)}"
    is_number = isinstance(first, np.ndarray | np.generic | bool | int | float)
    if is_number and _are_alike(column, _describe_array):
        stacked = np.array(column)
        # Python's integers may be too large for any kind.
        if stacked.dtype.kind in _KINDS:
            arrays[name] = stacked
            return {"plain" if type(first) in _PLAIN else "rows": name}
    text = json.dumps([_encode(obs) for obs in column])
    arrays[name] = np.frombuffer(text.encode(), dtype=np.uint8)
    return {"text": name}


def _are_alike(column: list[Any], describe: Any) -> bool:
    """Whether values have one type, and a function says the same of all."""
    first = column[0]
    kind = type(first)
    if any(type(value) is not kind for value in column):
        return False
    described = describe(first)
    return all(describe(value) == described for value in column)


def _describe_array(value: Any) -> tuple[Any, ...]:
    return np.shape(value), getattr(value, "dtype", None)


def unpack_observations(form: dict[str, Any], arrays: Arrays) -> list[Any]:
    """Return the observations that `pack_observations` made arrays of."""
    if "names" in form:
        parts = [unpack_observations(part, arrays) for part in form["parts"]]
        names = form["names"]
        rows = zip(*parts, strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]
    if "tuple" in form:
        parts = [unpack_observations(part, arrays) for part in form["tuple"]]
        return list(zip(*parts, strict=True))
    if "plain" in form:
        numbers: list[Any] = arrays[form["plain"]].tolist()
        return numbers
    if "rows" in form:
        return list(arrays[form["rows"]])
    return [_decode(value) for value in json.loads(arrays[form["text"]].tobytes())]


def _encode(value: Any) -> Any:
    """Return a value as JSON holds it: what is not plain says what it is."""
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) in _PLAIN:
        return value
    if type(value) is tuple:
        return {"tuple": [_encode(part) for part in value]}
    if type(value) is list:
        return {"list": [_encode(part) for part in value]}
    if type(value) is dict:
        return {"dict": [[_encode(name), _encode(value[name])] for name in value]}
    if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
        numbers = value.ravel().tolist()
        return {"array": numbers, "shape": value.shape, "dtype": value.dtype.str}
    raise ValueError(
        "observations must be numbers, text, arrays, dicts or tuples of them to be "
        f"saved, got {type(value).__name__}: wrap the environment so that they are"
    )


def _decode(value: Any) -> Any:
    """Return the value that `_encode` made plain."""
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_decode(part) for part in value["tuple"])
    if "list" in value:
        return [_decode(part) for part in value["list"]]
    if "dict" in value:
        return {_decode(name): _decode(part) for name, part in value["dict"]}
    dtype = np.dtype(value["dtype"])
    if dtype.kind not in _KINDS:
        raise ValueError(f"arrays hold numbers, got {dtype}")
    return np.array(value["array"], dtype).reshape(value["shape"])


def pack_keys(keys: Sequence[Hashable]) -> NDArray[np.uint8]:
    """Return the keys of states as JSON; raise ValueError for what it cannot hold."""
    text = json.dumps([_to_lists(key) for key in keys])
    return np.frombuffer(text.encode(), dtype=np.uint8)


def unpack_keys(array: NDArray[np.uint8]) -> list[Hashable]:
    """Return the keys that `pack_keys` made text of."""
    return [_to_tuples(key) for key in json.loads(array.tobytes())]


def _to_lists(key: Any) -> Any:
    """Return a key with lists for tuples, and Python's numbers for those of NumPy."""
    if isinstance(key, tuple):
        return [_to_lists(part) for part in key]
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, _PLAIN):
        return key
    raise ValueError(
        f"keys must be numbers, text or tuples of them to be saved, got {key!r}"
    )


def _to_tuples(value: Any) -> Any:
    """Return lists of JSON as tuples, so that they can be hashed."""
    if isinstance(value, list):
        return tuple(_to_tuples(part) for part in value)
    return value
