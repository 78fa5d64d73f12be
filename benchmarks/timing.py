"""Time two ways of doing the same thing, in turns, and print the ratio."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the table: seconds of the library and of its rival, or a single number of the library."""

    name: str
    ours: float
    theirs: float | None = None
    rival: str = ""
    unit: str = "s"

    def __str__(self) -> str:
        ratio = "" if self.theirs is None else f"{self.theirs / self.ours:9.2f}x"
        other = "" if self.theirs is None else f"{self.theirs:12.4g}"
        return f"{self.name:58}{self.ours:12.4g} {self.unit:3}{other:>12}{ratio:>10}  {self.rival}"


def measure(work: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(
    name: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    rival: str,
    rounds: int = 5,
    repeat: int = 1,
) -> Row:
    """The best of several rounds in which both are called in turns, ours `repeat` times."""
    pairs = [
        (measure(lambda: [ours() for _ in range(repeat)]) / repeat, measure(theirs))
        for _ in range(rounds)
    ]
    return Row(name, min(a for a, _ in pairs), min(b for _, b in pairs), rival)
