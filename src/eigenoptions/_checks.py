"""Checks of numbers and names that callers give: one rule and one wording for the whole package.

Each function returns the value as a plain Python object, or raises ValueError with the limit and the value.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any


def whole(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """`value` as an int from `least` to `most` (None: no upper limit). Booleans and floats are refused.

    >>> whole("n_options", 8)
    8
    >>> whole("k", 200, most=103)
    Traceback (most recent call last):
    ValueError: k must be a whole number in 1..103, got 200
    """
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    if number is not None and least <= number and (most is None or number <= most):
        return number
    limit = f"from {least}" if most is None else f"in {least}..{most}"
    raise ValueError(f"{name} must be a whole number {limit}, got {value!r}")


def number(name: str, value: Any, interval: str = "[0, 1)") -> float:
    """`value` as a float in an interval, by default of a discount; a round bracket excludes its end.

    ``"[0, inf)"`` holds every finite number from 0. NaN lies in no interval.

    >>> number("gamma", 0.9)
    0.9
    >>> number("confidence", 1, "(0, 1)")
    Traceback (most recent call last):
    ValueError: confidence must be in (0, 1), got 1
    """
    low, high = (float(end) for end in interval[1:-1].split(","))
    if isinstance(value, Real) and not isinstance(value, bool):
        x = float(value)
        if (x > low if interval[0] == "(" else x >= low) and (x < high if interval[-1] == ")" else x <= high):
            return x
    raise ValueError(f"{name} must be in {interval}, got {value!r}")


def one_of(name: str, value: Any, allowed: Iterable[str]) -> str:
    """`value`, one of the `allowed` words, for example the keys of a registry.

    >>> one_of("engine", "cloud", ("serial", "ray"))
    Traceback (most recent call last):
    ValueError: engine must be one of serial, ray, got 'cloud'
    """
    words = list(allowed)
    if isinstance(value, str) and value in words:
        return value
    raise ValueError(f"{name} must be one of {', '.join(words)}, got {value!r}")
