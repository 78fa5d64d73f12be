"""torch, imported when it is first used: options files load without it, and it takes a second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Torch:
    """The module torch; ImportError, naming the extra, where it is not installed."""

    def __getattr__(self, name: str) -> Any:
        try:
            import torch
        except ImportError as missing:
            raise ImportError(
                f"eigenoptions.deep needs {missing.name}: pip install 'eigenoptions[deep]'",
                name=missing.name,
            ) from None
        return getattr(torch, name)


torch: Any = _Torch()


@contextmanager
def use_one_thread() -> Iterator[None]:
    """One thread of torch inside the block: the same bits whatever the number of cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
