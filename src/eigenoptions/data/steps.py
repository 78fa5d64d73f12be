"""Lists: of steps, of batches, or of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def is_step(entry: Any) -> bool:
    """Whether an entry of a list is a single step and not a batch of them.

    A batch has parts of one length. The parts of a step are numbers, or an observation
    beside numbers.
    """
    if isinstance(entry, Mapping):
        parts = list(entry.values())
    elif isinstance(entry, tuple):
        parts = list(entry)
    else:
        return False
    lengths = {len(part) for part in parts if np.ndim(part)}
    return len(lengths) != 1


def join_steps(steps: Sequence[Any]) -> dict[str, list[Any]] | tuple[Any, ...]:
    """Steps, tuples or dicts, as one tuple or dict of columns."""
    first = steps[0]
    if isinstance(first, Mapping):
        return {name: [step[name] for step in steps] for name in first}
    return tuple(zip(*steps, strict=True))
