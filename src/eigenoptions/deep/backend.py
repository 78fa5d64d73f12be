"""PyTorch, which is imported when it is first used.

Options files that hold a trained feature map can be read without it, and its import
takes a second. No other module of the package imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from eigenoptions._validation import explain_extra

__all__ = ["Module", "Tensor", "torch", "use_one_core", "use_one_thread"]


class _LazyTorch:
    """Stands for the module torch, and imports it when an attribute is asked for."""

    def __getattr__(self, name: str) -> Any:
        try:
            import torch
        except ImportError as missing:
            raise ImportError(
                f"eigenoptions.deep needs {missing.name}: {explain_extra('deep')}",
                name=missing.name,
            ) from None
        return getattr(torch, name)


if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.nn import Module
else:
    torch = _LazyTorch()
    Tensor = Any
    Module = Any


@contextmanager
def use_one_core() -> Iterator[None]:
    """Restrict torch and the BLAS of NumPy and SciPy to one thread.

    Sums of several threads are rounded differently, and training makes large
    differences of it. And threads that wait for a core that others use wait for long:
    two of them took four times the CPU time of one. It takes a millisecond, so it is
    for long work.
    """
    limit = _get_controller().limit(limits=1, user_api="blas")
    with limit, use_one_thread():
        yield


@cache
def _get_controller() -> Any:
    """What knows the BLAS libraries of this process, found once."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError as missing:
        raise ImportError(
            f"eigenoptions.deep needs {missing.name}: {explain_extra('deep')}",
            name=missing.name,
        ) from None
    return ThreadpoolController()


@contextmanager
def use_one_thread() -> Iterator[None]:
    """Restrict torch to one thread, so that results do not depend on the cores."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
