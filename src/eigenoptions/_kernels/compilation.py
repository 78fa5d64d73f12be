"""How functions are compiled: kernels, which Python calls, and their helpers."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from numba import njit

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def compile_helper(
    function: Callable[_Parameters, _Result],
) -> Callable[_Parameters, _Result]:
    """Compile a function that only kernels call.

    It gets no interface to Python, which would take as long to compile as the function
    itself.
    """
    helper: Callable[_Parameters, _Result] = njit(
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )(function)
    return helper


def compile_kernel(
    function: Callable[_Parameters, _Result],
) -> Callable[_Parameters, _Result]:
    """Compile a function when it is first called, and keep the result on disk.

    A program that was killed while it wrote there can leave a damaged file, and another
    version of the library one that names types which are gone. Such files are deleted,
    and the function is compiled again.
    """
    kernel = njit(cache=True, nogil=True)(function)

    @wraps(function)
    def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        try:
            result: _Result = kernel(*args, **kwargs)
        except (AttributeError, EOFError, ImportError, pickle.UnpicklingError):
            for path in Path(kernel.stats.cache_path).glob("*.nb[ci]"):
                path.unlink(missing_ok=True)
            result = kernel(*args, **kwargs)
        return result

    return call
