"""Checks of arguments. Each returns the checked value, or raises an error that names the limit and the value."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def check_int(name: str, value: Any, minimum: int = 1, maximum: int | None = None) -> int:
    """`value` as an int in ``minimum..maximum`` (None: no upper limit). Booleans and floats are refused."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if is_integer and minimum <= value and (maximum is None or value <= maximum):
        return int(value)
    limit = f">= {minimum}" if maximum is None else f"in {minimum}..{maximum}"
    raise ValueError(f"{name} must be an integer {limit}, got {value!r}")


def check_float(
    name: str,
    value: Any,
    *,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
) -> float:
    """`value` as a finite float, ``minimum <= value <= maximum`` and ``above < value < below``."""
    if isinstance(value, Real) and not isinstance(value, bool):
        x = float(value)
        if minimum <= x <= maximum and above < x < below and math.isfinite(x):
            return x
    left = f"[{minimum:g}" if minimum > above else f"({above:g}"
    right = f"{maximum:g}]" if maximum < below else f"{below:g})"
    raise ValueError(f"{name} must be in {left}, {right}, got {value!r}")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """`value`, which must be one of `choices`."""
    allowed = list(choices)
    if isinstance(value, str) and value in allowed:
        return value
    hint = suggest_name(value, allowed)
    raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}{hint}")


def check_type(name: str, value: Any, expected: type, remedy: str) -> None:
    """Raise TypeError with a remedy unless `value` is an instance of `expected`."""
    if not isinstance(value, expected):
        raise TypeError(f"{name} must be of type {expected.__name__}, got {type(value).__name__}: {remedy}")


def check_state(state: Any, n_states: int) -> int:
    """The number of a state in ``0..n_states - 1``; also an array of one integer."""
    try:
        number = int(state.__index__())
    except (AttributeError, TypeError):
        raise TypeError(f"state must be an integer in 0..{n_states - 1}, got {state!r}") from None
    if not 0 <= number < n_states:
        raise IndexError(f"state must be in 0..{n_states - 1}, got {number}")
    return number


def check_settings(
    owner: str, settings: Iterable[str], allowed: Iterable[str], others: Iterable[str] = ()
) -> None:
    """Raise TypeError for the first setting that is not allowed, with the nearest name among `allowed` and `others`."""
    names = list(allowed)
    for name in settings:
        if name not in names:
            hint = suggest_name(name, [*names, *others]) or "."
            raise TypeError(f"{owner} has no setting {name!r}{hint} Settings: {', '.join(names) or 'none'}")


def suggest_name(name: Any, names: Iterable[str]) -> str:
    """End of an error message: the most similar of `names`, or nothing.

    >>> suggest_name("gama", ["rng", "gamma"])
    ", did you mean 'gamma'?"
    """
    matches = get_close_matches(str(name), list(names), n=1)
    return f", did you mean {matches[0]!r}?" if matches else ""


def make_generator(rng: Any) -> np.random.Generator:
    """A NumPy generator from a seed, a SeedSequence, None (random seed) or a generator, which is returned as it is."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        kinds = "a non-negative int, a SeedSequence or a Generator"
        raise ValueError(f"rng must be {kinds}, got {rng!r}") from None


def check_real(name: str, array: Any) -> Any:
    """`array`, dense or sparse, whose entries must be real numbers or booleans."""
    checked = array if hasattr(array, "dtype") else np.asarray(array)
    if getattr(checked.dtype, "kind", "") not in "buif":
        raise ValueError(f"{name} must be real numbers, got {checked.dtype}")
    return checked


def check_csr(name: str, array: Any) -> csr_array:
    """A sparse array as csr, with real entries and every index inside its shape, which SciPy does not check itself."""
    from scipy.sparse import csr_array

    check_real(name, array)
    try:
        if array.format == "coo" and any(
            index.size and not 0 <= index.min() <= index.max() < size
            for index, size in zip(array.coords, array.shape, strict=True)
        ):
            raise ValueError(f"an index is outside the shape {array.shape}")
        if hasattr(array, "check_format"):
            array.check_format(full_check=True)
            if (np.diff(array.indptr) < 0).any():
                raise ValueError("indptr must not decrease")
        return csr_array(array)
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{name} is not a valid sparse array: {error}") from None


def readonly(array: Any, dtype: Any = None) -> NDArray[Any]:
    """A read-only array: a copy, unless it is read-only and owns its memory already."""
    result = np.asarray(array if dtype is None else check_real("an array", array), dtype=dtype)
    memory = result
    while isinstance(memory.base, np.ndarray):
        memory = memory.base
    if result.flags.writeable or memory.flags.writeable or memory.base is not None:
        result = result.copy()
        result.setflags(write=False)
    return result


def set_readonly(*arrays: Any) -> tuple[Any, ...]:
    """The same new arrays, which nobody else holds, made read-only without a copy; also those of a csr array."""
    for array in arrays:
        for part in (array.data, array.indices, array.indptr) if hasattr(array, "indptr") else (array,):
            part.setflags(write=False)
    return arrays
