"""Checks of arguments, and records that nobody can change.

A check returns the checked value, or raises an error that names the limit and the
value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import deepcopy
from dataclasses import fields
from difflib import get_close_matches
from math import inf
from numbers import Real
from reprlib import Repr
from types import UnionType
from typing import Any, Self, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array, issparse

_Scalar = TypeVar("_Scalar", bound=np.generic)

# How values are shown in error messages.
_short_repr = Repr()
_short_repr.maxstring = 80
_short_repr.maxother = 80


def check_int(name: str, value: object, minimum: int = 1, maximum: float = inf) -> int:
    """Check that a value is an integer in ``minimum..maximum``.

    Booleans and floats are refused.

    >>> check_int("n_options", 0)
    Traceback (most recent call last):
    ...
    ValueError: n_options must be an integer >= 1, got 0
    """
    if (
        isinstance(value, int | np.integer)
        and not isinstance(value, bool)
        and minimum <= value <= maximum
    ):
        return int(value)

    limit = f">= {minimum}" if maximum == inf else f"in {minimum}..{maximum}"
    raise ValueError(f"{name} must be an integer {limit}, got {show_value(value)}")


def check_float(
    name: str,
    value: object,
    minimum: float = -inf,
    maximum: float = inf,
    above: float = -inf,
    below: float = inf,
) -> float:
    """Check that a value is a finite number between its limits.

    `minimum` and `maximum` are allowed, `above` and `below` are not.

    >>> check_float("gamma", 1.5, minimum=0, below=1)
    Traceback (most recent call last):
    ...
    ValueError: gamma must be in [0, 1), got 1.5
    """
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            # An integer or a fraction beyond the range of floats.
            number = inf
        # NaN fails every comparison.
        if minimum <= number <= maximum and above < number < below:
            return number

    left = f"[{minimum:g}" if minimum > above else f"({above:g}"
    right = f"{maximum:g}]" if maximum < below else f"{below:g})"
    raise ValueError(f"{name} must be in {left}, {right}, got {show_value(value)}")


def check_memory(
    what: str, n_bytes: float, remedy: str, max_bytes: float = 2**33
) -> None:
    """Check, before anything is allocated, that arrays are not too large.

    >>> check_memory("all eigenvectors of 100,000 states", 4e11, "ask for fewer (k)")
    Traceback (most recent call last):
    ...
    ValueError: all eigenvectors of 100,000 states take 400.0 GB, the limit is 8.6 GB: ask for fewer (k)
    """  # noqa: E501 (the message is one line)
    if n_bytes > max_bytes:
        raise ValueError(
            f"{what} take {n_bytes / 1e9:.1f} GB, the limit is "
            f"{max_bytes / 1e9:.1f} GB: {remedy}"
        )


def check_choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Check that a value is one of the choices.

    >>> check_choice("update", "actoin", ["action", "smdp"])
    Traceback (most recent call last):
    ...
    ValueError: update must be one of action, smdp, got 'actoin', did you mean 'action'?
    """
    allowed = list(choices)
    if isinstance(value, str) and value in allowed:
        return value

    hint = suggest_name(value, allowed)
    raise ValueError(
        f"{name} must be one of {', '.join(allowed)}, got {show_value(value)}{hint}"
    )


def explain_extra(extra: str) -> str:
    """Say how to install an extra, with a clone of the repository and without.

    >>> explain_extra("sb3")
    "pip install 'eigenoptions[sb3]' (in a clone: pip install '.[sb3]')"
    """
    return f"pip install 'eigenoptions[{extra}]' (in a clone: pip install '.[{extra}]')"


def check_type(
    name: str, value: object, expected: type | UnionType, remedy: str
) -> None:
    """Check that a value is an instance of a class; the error ends with a remedy."""
    if not isinstance(value, expected):
        kinds = expected.__args__ if isinstance(expected, UnionType) else (expected,)
        allowed = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(
            f"{name} must be of type {allowed}, got {type(value).__name__}: {remedy}"
        )


def check_state(state: Any, n_states: int) -> int:
    """Check the number of a state; an array of one integer is accepted, too."""
    number = -1
    if hasattr(state, "__index__"):
        # An array of several entries has no number.
        with suppress(TypeError):
            number = int(state.__index__())
    if not 0 <= number < n_states:
        raise IndexError(
            f"state must be an integer in 0..{n_states - 1}, got {show_value(state)}"
        )
    return number


def check_settings(
    owner: str,
    settings: Iterable[str],
    allowed: Iterable[str],
    others: Iterable[str] = (),
) -> None:
    """Check that all settings are allowed.

    The error suggests the nearest name among `allowed` and `others`, which are settings
    elsewhere.
    """
    names = list(allowed)
    for name in settings:
        if name in names:
            continue

        # What other libraries call these settings.
        meant = {"seed": "rng", "n": "n_options"}.get(name, name)
        hint = suggest_name(meant, [*names, *others, "rng", "n_options"]) or "."
        known = ", ".join(names) or "none"
        raise TypeError(f"{owner} has no setting {name!r}{hint} Settings: {known}")


def suggest_name(name: object, names: Iterable[str]) -> str:
    """End of an error message: the most similar of the names, or nothing.

    >>> suggest_name("fourrooms", ["four-rooms", "i-maze"])
    ", did you mean 'four-rooms'?"
    """
    matches = get_close_matches(str(name), list(names), n=1)
    if not matches:
        return ""
    return f", did you mean {matches[0]!r}?"


def make_generator(rng: Any) -> np.random.Generator:
    """Make a NumPy generator from a seed, a SeedSequence or None (a random seed).

    A generator is returned as it is.
    """
    try:
        if isinstance(rng, list | tuple):
            # NumPy would crash on a list that contains itself; this raises.
            np.asarray(rng)
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ValueError(
            "rng must be a non-negative int, SeedSequence or Generator, "
            f"got {show_value(rng)}"
        ) from None


def check_real(name: str, array: Any) -> Any:
    """Check that the entries of an array, dense or sparse, are numbers or booleans."""
    try:
        checked = array if issparse(array) else np.asarray(array)
    except (TypeError, ValueError):
        # Lists of several lengths, or what cannot be converted.
        raise ValueError(
            f"{name} must be an array of numbers, got {show_value(array)}"
        ) from None
    if checked.dtype.kind not in "buif":
        raise ValueError(f"{name} must be real numbers, got {checked.dtype}")
    return checked


def check_csr(name: str, matrix: Any, nonnegative: bool = False) -> csr_array:
    """Check a matrix, dense or sparse, and copy it to a csr array of floats.

    The entries must be finite. The copy is sorted and has no stored zeros. Its indices
    have 32 bits where these suffice: SciPy's searches of graphs take no others.
    """
    checked = check_real(name, matrix)
    if checked.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, got shape {checked.shape}")
    _check_indices(name, checked)
    n_rows = checked.shape[0]
    remedy = "number rows and columns without gaps"
    check_memory(f"{name} of {n_rows:,} rows", 40.0 * n_rows, remedy)
    n_entries = checked.nnz if issparse(checked) else np.count_nonzero(checked)
    remedy = "use fewer states, or fewer entries that are not zero"
    check_memory(f"{name} with {n_entries:,} entries", 32.0 * n_entries, remedy)

    result = csr_array(checked, dtype=np.float64, copy=True)
    result.sum_duplicates()
    result.eliminate_zeros()
    if max(*result.shape, result.nnz) < 2**31:
        result.indices = result.indices.astype(np.int32, copy=False)
        result.indptr = result.indptr.astype(np.int32, copy=False)

    # Squares of larger numbers overflow; NaN fails the comparison.
    is_wrong = ~(np.abs(result.data) < 1e150)
    limits = "finite"
    if nonnegative:
        is_wrong |= result.data < 0
        limits = "finite, not negative"
    if is_wrong.any():
        raise ValueError(
            f"{name} must be {limits} and below 1e150, got {result.data[is_wrong][0]}"
        )
    return result


def _check_indices(name: str, matrix: Any) -> None:
    """Check the indices of a sparse array: SciPy crashes on those too large."""
    try:
        if issparse(matrix) and matrix.format == "coo":
            np.ravel_multi_index(matrix.coords, matrix.shape)
        elif hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{name} is not a valid sparse array: {error}") from None


def show_value(value: object) -> str:
    """A value in an error message: short, and on one line.

    >>> show_value(np.zeros((3, 3)))
    'array([[0., 0., 0.], [0., 0., 0.], [0., 0., 0.]])'
    >>> show_value(list(range(1000)))
    '[0, 1, 2, 3, 4, 5, ...]'
    """
    return re.sub(r"\s*\n\s*", " ", _short_repr.repr(value))


# The arrays that own memory which `set_readonly` sealed, by their ids.
_SEALED_OWNERS: WeakValueDictionary[int, NDArray[Any]] = WeakValueDictionary()


def set_readonly(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Seal a new array, which nobody else holds: a read-only view, without a copy.

    NumPy lets whoever holds the array that owns the memory switch its flag back. So the
    owner stays hidden behind the view: on the view itself the flag cannot be changed.
    """
    # A view can be reopened while any array below it is writable.
    bases = _list_bases(array)
    for base in bases:
        base.setflags(write=False)

    # By this, `readonly` knows that it may share the array instead of copying it.
    memory_owner = bases[-1]
    _SEALED_OWNERS[id(memory_owner)] = memory_owner
    return array.view()


def readonly(
    array: Any, dtype: DTypeLike | None = None, *, name: str = "an array"
) -> NDArray[Any]:
    """Make an array that nobody can write to: a copy, unless this library sealed it.

    A read-only flag alone proves nothing, because the owner of the memory can reopen
    it. With a `dtype`, the entries must be numbers or booleans; an error gives the
    `name`.
    """
    if dtype is not None:
        array = check_real(name, array)
    result = np.asarray(array, dtype=dtype)
    if _is_sealed(result):
        return result
    return set_readonly(result.copy())


def _is_sealed(value: Any) -> bool:
    """Whether this is an array, dense or sparse, whose memory `set_readonly` sealed."""
    array = value.data if issparse(value) else value
    if not isinstance(array, np.ndarray):
        return False
    memory_owner = _list_bases(array)[-1]
    return _SEALED_OWNERS.get(id(memory_owner)) is memory_owner


def _list_bases(array: NDArray[Any]) -> list[NDArray[Any]]:
    """List an array, the one it is a view of, and so on to the owner of the memory."""
    bases = [array]
    while isinstance(bases[-1].base, np.ndarray):
        bases.append(bases[-1].base)
    return bases


class Record:
    """A frozen dataclass whose copies and pickles are as safe as the original.

    By default, pickle and copy skip the constructor, and NumPy makes the arrays of a
    copy writable. An edit of them would reach compiled code, which then reads out of
    bounds.
    """

    def __copy__(self) -> Self:
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = object.__new__(type(self))
        for name, value in vars(self).items():
            # Sealed arrays are shared: nobody can write to them.
            if not _is_sealed(value):
                value = deepcopy(value, memo)
            vars(twin)[name] = value
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        values = {}
        for field in fields(self):  # type: ignore[arg-type]
            values[field.name] = getattr(self, field.name)
        return _make_record, (type(self), values)


def _make_record(kind: Callable[..., Any], values: dict[str, Any]) -> Any:
    """Make a record from a pickle, checked by its constructor."""
    return kind(**values)
