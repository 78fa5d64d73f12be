"""Time two ways of doing the same thing, in turns, and print the ratio."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    name : str
        What was measured.
    ours : float
        The number of the library.
    theirs : float, default=None
        That of its rival, if there is one.
    rival : str, default=""
        What the library is compared with.
    unit : str, default="s"
        Unit of both numbers.
    """

    name: str
    ours: float
    theirs: float | None = None
    rival: str = ""
    unit: str = "s"

    @property
    def ratio(self) -> float | None:
        """How many times as much the rival takes, if there is one."""
        return None if self.theirs is None else self.theirs / self.ours

    def to_dict(self) -> dict[str, str | float | None]:
        """Return what is stored: four digits of each number."""
        numbers = {"ours": self.ours, "theirs": self.theirs, "ratio": self.ratio}
        rounded = {}
        for name, number in numbers.items():
            rounded[name] = None if number is None else float(f"{number:.4g}")
        return {"name": self.name, **rounded, "rival": self.rival, "unit": self.unit}

    def __str__(self) -> str:
        line = f"{self.name:58}{self.ours:12.4g} {self.unit:3}"
        if self.theirs is not None:
            ratio = f"{self.ratio:.2f}x"
            line += f"{self.theirs:12.4g}{ratio:>10}  {self.rival}"
        return line


def measure(work: Callable[[], object]) -> float:
    """Measure the CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def measure_best(work: Callable[[], object], rounds: int) -> float:
    """Measure the CPU seconds of the fastest of several calls."""
    return min(measure(work) for _ in range(rounds))


def compare(
    name: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    rival: str,
    rounds: int = 5,
    repeat: int = 1,
) -> Row:
    """Call both sides in turns, and compare the fastest round of each.

    Parameters
    ----------
    name : str
        What is measured.
    ours, theirs : callable
        The work of the library and that of its rival.
    rival : str
        What the library is compared with.
    rounds : int, default=5
        How often both are measured.
    repeat : int, default=1
        Calls of ours per round, for work that is too short to be measured alone.
    """

    def repeat_ours() -> None:
        for _ in range(repeat):
            ours()

    our_seconds = []
    their_seconds = []
    for _ in range(rounds):
        our_seconds.append(measure(repeat_ours) / repeat)
        their_seconds.append(measure(theirs))
    return Row(name, min(our_seconds), min(their_seconds), rival)
