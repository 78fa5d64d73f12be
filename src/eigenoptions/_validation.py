"""Checks of arguments. Each returns the checked value, or raises an error that names the limit and the value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import fields
from difflib import get_close_matches
from math import inf, nan
from numbers import Real
from typing import Any, Self
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

# Called with how much of the work is done, and how much there is.
Progress = Callable[[int, int], object]


def check_int(name: str, value: Any, minimum: int = 1, maximum: float = inf) -> int:
    """`value` as an int in ``minimum..maximum``. Booleans and floats are refused."""
    if (
        isinstance(value, int | np.integer)
        and not isinstance(value, bool)
        and minimum <= value <= maximum
    ):
        return int(value)
    limit = f">= {minimum}" if maximum == inf else f"in {minimum}..{maximum}"
    raise ValueError(f"{name} must be an integer {limit}, got {value!r}")


def check_float(
    name: str,
    x: Any,
    minimum: float = -inf,
    maximum: float = inf,
    above: float = -inf,
    below: float = inf,
) -> float:
    """`x` as a finite float, ``minimum <= x <= maximum`` and ``above < x < below``."""
    number = float(x) if isinstance(x, Real) and not isinstance(x, bool) else nan
    if minimum <= number <= maximum and above < number < below:
        return number
    left = f"[{minimum:g}" if minimum > above else f"({above:g}"
    right = f"{maximum:g}]" if maximum < below else f"{below:g})"
    raise ValueError(f"{name} must be in {left}, {right}, got {x!r}")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """`value`, which must be one of `choices`."""
    allowed = list(choices)
    if not isinstance(value, str) or value not in allowed:
        hint = suggest_name(value, allowed)
        raise ValueError(
            f"{name} must be one of {', '.join(allowed)}, got {value!r}{hint}"
        )
    return value


def check_type(name: str, value: Any, expected: type, remedy: str) -> None:
    """Raise TypeError with a remedy unless `value` is an instance of `expected`."""
    if not isinstance(value, expected):
        raise TypeError(
            f"{name} must be of type {expected.__name__}, got {type(value).__name__}: {remedy}"
        )


def check_state(state: Any, n_states: int) -> int:
    """The number of a state in ``0..n_states - 1``; also an array of one integer."""
    number = int(state.__index__()) if hasattr(state, "__index__") else -1
    if not 0 <= number < n_states:
        raise IndexError(
            f"state must be an integer in 0..{n_states - 1}, got {state!r}"
        )
    return number


def check_settings(
    owner: str, settings: Iterable[str], allowed: Iterable[str], others: Any = ()
) -> None:
    """Raise TypeError for the first setting that is not allowed, with the nearest name among `allowed` and `others`."""
    names = list(allowed)
    for name in settings:
        if name not in names:
            other_name = {"seed": "rng", "n": "n_options"}.get(name, name)
            hint = (
                suggest_name(other_name, [*names, *others, "rng", "n_options"]) or "."
            )
            raise TypeError(
                f"{owner} has no setting {name!r}{hint} Settings: {', '.join(names) or 'none'}"
            )


def suggest_name(name: Any, names: Iterable[str]) -> str:
    """End of an error message: the most similar of `names`, or nothing."""
    matches = get_close_matches(str(name), list(names), n=1)
    return f", did you mean {matches[0]!r}?" if matches else ""


def make_generator(rng: Any) -> np.random.Generator:
    """A NumPy generator from a seed, a SeedSequence, None (random seed) or a generator, which is returned as it is."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ValueError(
            f"rng must be a non-negative int, SeedSequence or Generator, got {rng!r}"
        ) from None


def check_real(name: str, array: Any) -> Any:
    """`array`, dense or sparse, whose entries must be real numbers or booleans."""
    checked = array if issparse(array) else np.asarray(array)
    if checked.dtype.kind not in "buif":
        raise ValueError(f"{name} must be real numbers, got {checked.dtype}")
    return checked


def check_csr(name: str, matrix: Any, nonnegative: bool = False) -> csr_array:
    """A copy of a matrix, dense or sparse, as a csr array of finite floats, sorted and without stored zeros."""
    checked = check_real(name, matrix)
    if checked.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, got shape {checked.shape}")
    try:
        # SciPy crashes on indices that are too large.
        if issparse(checked) and checked.format == "coo":
            np.ravel_multi_index(checked.coords, checked.shape)
        elif hasattr(checked, "check_format"):
            checked.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{name} is not a valid sparse array: {error}") from None
    result = csr_array(checked, dtype=np.float64, copy=True)
    result.sum_duplicates()
    result.eliminate_zeros()
    # Squares of larger numbers overflow.
    wrong = ~(np.abs(result.data) < 1e150) | (nonnegative & (result.data < 0))
    if wrong.any():
        sign = ", not negative" * nonnegative
        raise ValueError(
            f"{name} must be finite{sign} and below 1e150, got {result.data[wrong][0]}"
        )
    return result


# The arrays that own memory which `set_readonly` sealed, by their ids.
_SEALED_OWNERS: WeakValueDictionary[int, NDArray[Any]] = WeakValueDictionary()


def set_readonly(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view of a new array, which nobody else holds, without a copy.

    NumPy lets whoever holds the array that owns the memory switch its flag back. So the
    owner stays hidden behind the view: on the view itself the flag cannot be changed.
    """
    # A view can be reopened while any array below it is writable.
    owners = _list_owners(array)
    for owner in owners:
        owner.setflags(write=False)
    _SEALED_OWNERS[id(owners[-1])] = owners[-1]
    return array.view()


def readonly(array: Any, dtype: Any = None) -> NDArray[Any]:
    """A read-only array that nobody can write to: a copy, unless this library sealed it.

    A read-only flag alone proves nothing, because the owner of the memory can reopen it.
    """
    if dtype is not None:
        array = check_real("an array", array)
    result = np.asarray(array, dtype=dtype)
    if _is_sealed(result):
        return result
    return set_readonly(result.copy())


def _is_sealed(value: Any) -> bool:
    """Whether this is an array, dense or sparse, whose memory `set_readonly` sealed."""
    array = value.data if issparse(value) else value
    if not isinstance(array, np.ndarray):
        return False
    owner = _list_owners(array)[-1]
    return _SEALED_OWNERS.get(id(owner)) is owner


def _list_owners(array: NDArray[Any]) -> list[NDArray[Any]]:
    """An array, the one that it is a view of, and so on to the one that owns the memory."""
    owners = [array]
    while isinstance(owners[-1].base, np.ndarray):
        owners.append(owners[-1].base)
    return owners


class Record:
    """A frozen dataclass whose copies and pickles are as safe as the original.

    By default, pickle and copy skip the constructor, and NumPy makes the arrays of a copy
    writable. An edit of them would reach compiled code, which then reads out of bounds.
    """

    def __copy__(self) -> Self:
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # Sealed arrays are shared: nobody can write to them.
        twin = object.__new__(type(self))
        for name, value in vars(self).items():
            vars(twin)[name] = value if _is_sealed(value) else deepcopy(value, memo)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return _make_record, (type(self), values)


def _make_record(kind: Callable[..., Any], values: dict[str, Any]) -> Any:
    """A record from a pickle, checked by its constructor."""
    return kind(**values)
