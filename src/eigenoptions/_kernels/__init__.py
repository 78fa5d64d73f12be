"""All numba code: loops over plain arrays, loaded when they are used. No classes, no fastmath."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from numba import njit

# A function that only kernels call: no interface to Python, which takes as long to compile as the function.
compile_helper = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)


def compile_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function when it is first called, and keep it on disk; damaged files there are compiled again."""
    kernel = njit(cache=True, nogil=True)(function)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return kernel(*arguments)
        except (EOFError, pickle.UnpicklingError):
            for path in Path(kernel.stats.cache_path).glob("*.nb[ci]"):
                path.unlink(missing_ok=True)
            return kernel(*arguments)

    return call
