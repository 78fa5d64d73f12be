"""Checks of arguments: one rule and one wording for the whole package.

Each function returns the checked value as a plain Python object, or raises an error that names the limit and the value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array


def check_int(name: str, value: Any, minimum: int = 1, maximum: int | None = None) -> int:
    """`value` as an int in ``minimum..maximum`` (None: no upper limit). Booleans and floats are refused.

    >>> check_int("k", 200, maximum=103)
    Traceback (most recent call last):
    ValueError: k must be an integer in 1..103, got 200
    """
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
    """`value` as a finite float, ``minimum <= value <= maximum`` and ``above < value < below``.

    >>> check_float("gamma", 1.0, minimum=0, below=1)
    Traceback (most recent call last):
    ValueError: gamma must be in [0, 1), got 1.0
    """
    if isinstance(value, Real) and not isinstance(value, bool):
        x = float(value)
        if minimum <= x <= maximum and above < x < below and math.isfinite(x):
            return x
    left = f"[{minimum:g}" if minimum > above else f"({above:g}"
    right = f"{maximum:g}]" if maximum < below else f"{below:g})"
    raise ValueError(f"{name} must be in {left}, {right}, got {value!r}")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """`value`, which must be one of `choices`.

    >>> check_choice("update", "fast", ("action", "smdp"))
    Traceback (most recent call last):
    ValueError: update must be one of action, smdp, got 'fast'
    """
    allowed = list(choices)
    if isinstance(value, str) and value in allowed:
        return value
    raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def check_type(name: str, value: Any, expected: type, remedy: str) -> None:
    """Raise TypeError with a remedy unless `value` is an instance of `expected`.

    >>> check_type("options", 3, list, "make them with discover")
    Traceback (most recent call last):
    TypeError: options must be of type list, got int: make them with discover
    """
    if not isinstance(value, expected):
        raise TypeError(f"{name} must be of type {expected.__name__}, got {type(value).__name__}: {remedy}")


def check_state(state: Any, n_states: int) -> int:
    """The number of a state in ``0..n_states - 1``.

    >>> check_state(1000, 104)
    Traceback (most recent call last):
    IndexError: state must be in 0..103, got 1000
    """
    if not isinstance(state, Integral):
        try:
            state = state.__index__()
        except (AttributeError, TypeError):
            raise TypeError(f"state must be an integer in 0..{n_states - 1}, got {state!r}") from None
    if not 0 <= state < n_states:
        raise IndexError(f"state must be in 0..{n_states - 1}, got {state}")
    return int(state)


def check_settings(
    owner: str, settings: Iterable[str], allowed: Iterable[str], others: Iterable[str] = ()
) -> None:
    """Raise TypeError for the first setting that is not allowed, with the nearest name among `allowed` and `others`.

    >>> check_settings("method 'eigen'", {"oprator": "normalized"}, ["operator", "weights"])
    Traceback (most recent call last):
    TypeError: method 'eigen' has no setting 'oprator', did you mean 'operator'? Settings: operator, weights
    """
    names = list(allowed)
    for name in settings:
        if name not in names:
            hint = suggest_name(name, [*names, *others])
            raise TypeError(f"{owner} has no setting {name!r}{hint} Settings: {', '.join(names) or 'none'}")


def suggest_name(name: Any, names: Iterable[str]) -> str:
    """End of an error message: the most similar of `names`, or a full stop if there is none.

    >>> suggest_name("gama", ["rng", "gamma"])
    ", did you mean 'gamma'?"
    """
    matches = get_close_matches(str(name), list(names), n=1)
    return f", did you mean {matches[0]!r}?" if matches else "."


def make_generator(rng: Any) -> np.random.Generator:
    """A NumPy generator from a seed, a SeedSequence, None (random seed) or a generator, which is returned as it is.

    >>> make_generator(-5)
    Traceback (most recent call last):
    ValueError: rng must be a non-negative int, a SeedSequence or a Generator, got -5
    """
    import numpy as np

    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ValueError(
            f"rng must be a non-negative int, a SeedSequence or a Generator, got {rng!r}"
        ) from None


def check_real(name: str, array: Any) -> Any:
    """`array`, dense or sparse, whose entries must be real numbers or booleans.

    >>> check_real("weights", [1j])
    Traceback (most recent call last):
    ValueError: weights must be real numbers, got complex128
    """
    import numpy as np

    checked = array if hasattr(array, "dtype") else np.asarray(array)
    if getattr(checked.dtype, "kind", "") not in "buif":
        raise ValueError(f"{name} must be real numbers, got {checked.dtype}")
    return checked


def check_csr(name: str, array: Any) -> csr_array:
    """A sparse array as csr, with real entries and every index inside its shape, which SciPy does not check itself.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> check_csr("the graph", csr_array((np.ones(2), [0, 7], [0, 1, 2]), shape=(2, 2)))
    Traceback (most recent call last):
    ValueError: the graph is not a valid sparse array: indices must be < 2
    """
    from scipy.sparse import csr_array

    check_real(name, array)
    try:
        if array.format == "coo":
            # Converting checks nothing and may write outside its memory.
            for indices, size in zip(array.coords, array.shape, strict=True):
                if len(indices) and not 0 <= indices.min() <= indices.max() < size:
                    raise ValueError(f"indices must be in 0..{size - 1}")
        else:
            array.check_format(full_check=True)
            if (array.indptr[1:] < array.indptr[:-1]).any():
                raise ValueError("indptr must not decrease")
        rows = csr_array(array)
        rows.check_format(full_check=True)
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"{name} is not a valid sparse array: {error}") from None
    return rows


def readonly(array: Any, dtype: Any = None) -> NDArray[Any]:
    """A read-only array: a copy, unless it is read-only and owns its memory already.

    >>> readonly([1, 2]).flags.writeable
    False
    """
    import numpy as np

    result = np.asarray(array)
    if dtype is not None and result.dtype.kind == "c":
        check_real("an array", result)
    result = np.asarray(result, dtype=dtype)
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
        parts = (array.data, array.indices, array.indptr) if hasattr(array, "indptr") else (array,)
        for part in parts:
            part.setflags(write=False)
    return arrays
