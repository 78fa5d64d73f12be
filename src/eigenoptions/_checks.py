"""Checks of values that callers give: one rule and one wording for the whole package.

Each function returns the value, numbers and names as plain Python objects, or raises ValueError with the limit and the
value. `Frozen` is the base class of records, whose arrays are checked once and must not change afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from operator import index
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def whole(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """`value` as an int from `least` to `most` (None: no upper limit). Booleans and floats are refused.

    >>> whole("n_options", 8)
    8
    >>> whole("k", 200, most=103)
    Traceback (most recent call last):
    ValueError: k must be a whole number in 1..103, got 200
    """
    known = type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))
    number = int(value) if known else None
    if number is not None and least <= number and (most is None or number <= most):
        return number
    limit = f"from {least}" if most is None else f"in {least}..{most}"
    raise ValueError(f"{name} must be a whole number {limit}, got {value!r}")


def state(obs: Any, n: int) -> int:
    """The number of a state of n, as an action is asked for it.

    >>> state(1000, 104)
    Traceback (most recent call last):
    IndexError: a state is a number in 0..103, got 1000
    """
    try:
        found = index(obs)
    except TypeError:
        raise TypeError(f"a state is a number in 0..{n - 1}, got {obs!r}") from None
    if not 0 <= found < n:
        raise IndexError(f"a state is a number in 0..{n - 1}, got {obs}")
    return found


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


def random_generator(rng: Any) -> np.random.Generator:
    """The generator `rng` itself, or the one that a seed, a SeedSequence or None (a random seed) gives.

    >>> random_generator(-5)
    Traceback (most recent call last):
    ValueError: rng must be a seed of at least 0, a SeedSequence or a Generator, got -5: give rng=0, or any other seed
    """
    import numpy as np

    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        kinds = "a seed of at least 0, a SeedSequence or a Generator"
        raise ValueError(f"rng must be {kinds}, got {rng!r}: give rng=0, or any other seed") from None


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


def nearest(name: Any, known: Iterable[str]) -> str:
    """A hint at the known name that is most like this one; empty if there is none.

    >>> nearest("gama", ["rng", "gamma"])
    "did you mean 'gamma'?"
    """
    from difflib import get_close_matches

    near = get_close_matches(str(name), list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def check_settings(what: str, given: Iterable[str], known: Iterable[str], also: Iterable[str] = ()) -> None:
    """Raise TypeError that names the first of the given settings that is not known, and the nearest name.

    `also` are parameters that the caller has beside the settings, which may be what was meant.

    >>> check_settings("method 'eigen'", {"oprator": "normalized"}, ["operator", "weights"])
    Traceback (most recent call last):
    TypeError: method 'eigen' has no setting 'oprator': did you mean 'operator'? It has operator, weights
    """
    names = list(known)
    for name in given:
        if name not in names:
            have = f"t has {', '.join(names) or 'none'}"
            hint = nearest(name, [*names, *also])
            raise TypeError(f"{what} has no setting {name!r}: {f'{hint} I{have}' if hint else f'i{have}'}")


def kind_of(name: str, value: Any, kind: type, remedy: str) -> None:
    """Raise TypeError with a remedy unless `value` is of this kind.

    >>> kind_of("options", 3, list, "make them with discover")
    Traceback (most recent call last):
    TypeError: options must be of type list, got int: make them with discover
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be of type {kind.__name__}, got {type(value).__name__}: {remedy}")


def printable(text: str) -> str:
    r"""`text` for a terminal: control characters, which could command it, as escape codes.

    >>> print(printable("a\x1b[31mb"))
    a\x1b[31mb
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def real(name: str, array: Any) -> Any:
    """`array`, dense or sparse, if its entries are real numbers or booleans.

    >>> real("weights", [1j])
    Traceback (most recent call last):
    ValueError: weights must be real numbers, got complex128
    """
    import numpy as np

    given = array if hasattr(array, "dtype") else np.asarray(array)
    kind = getattr(given.dtype, "kind", "")
    if kind not in "buif":
        raise ValueError(f"{name} must be real numbers, got {given.dtype}")
    return given


def sparse_rows(name: str, array: Any) -> Any:
    """A sparse array as csr, with every index inside its shape; its entries must be real numbers.

    SciPy checks indices neither when an array is built from its parts nor when it computes with it.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> sparse_rows("the graph", csr_array((np.ones(2), [0, 7], [0, 1, 2]), shape=(2, 2)))
    Traceback (most recent call last):
    ValueError: the graph is not a valid sparse array (indices must be < 2): build it by coo_array((data, (rows, cols)))
    """
    from scipy.sparse import csr_array

    real(name, array)
    if len(array.shape) != 2:
        raise ValueError(f"{name} must have two dimensions, got shape {array.shape}")
    try:
        if array.format in ("csr", "csc", "bsr"):
            array.check_format(full_check=True)
            # SciPy does not look at pointers where the last one is 0 or less.
            if (array.indptr[1:] < array.indptr[:-1]).any():
                raise ValueError("indptr must not decrease")
        elif array.format == "coo":
            for places, size in zip((array.row, array.col), array.shape, strict=True):
                if len(places) != len(array.data) or (
                    len(places) and not 0 <= places.min() <= places.max() < size
                ):
                    raise ValueError(f"coordinates must be in 0..{size - 1}, one pair per entry")
        rows = csr_array(array)
        if array.format != "csr":
            rows.check_format(full_check=True)
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        remedy = "build it by coo_array((data, (rows, cols)))"
        raise ValueError(f"{name} is not a valid sparse array ({error}): {remedy}") from None
    return rows


def frozen(array: Any, dtype: Any = None) -> NDArray[Any]:
    """A read-only array that no caller can change: a copy, unless it is read-only already.

    >>> frozen([1, 2]).flags.writeable
    False
    """
    import numpy as np

    given = np.asarray(array)
    if dtype is not None and given.dtype.kind == "c":
        real("an array", given)
    own = np.asarray(given, dtype=dtype)
    owner = own
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if own.flags.writeable or owner.flags.writeable:
        own = own.copy()
        own.setflags(write=False)
    # The flag of a view cannot be set again.
    return own.view()


class Frozen:
    """Base class of records: a copy, and what was pickled, has read-only arrays as the original has."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        lock(*state.values())
        self.__dict__.update(state)


def locked(*arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """The same arrays, read-only: of new arrays that nobody else holds, so that a record need not copy them.

    >>> import numpy as np
    >>> locked(np.zeros(2))[0].flags.writeable
    False
    """
    lock(*arrays)
    return arrays


def lock(*values: Any) -> None:
    """Make arrays, and those in tuples and sparse arrays, read-only without a copy; other values stay as they are."""
    for value in values:
        if isinstance(value, tuple | list):
            lock(*value)
        elif hasattr(value, "setflags"):
            value.setflags(write=False)
            lock(value.base)
        elif hasattr(value, "indptr"):
            lock(value.data, value.indices, value.indptr)
