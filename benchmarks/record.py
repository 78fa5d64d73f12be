"""What the benchmarks share: clocks, and the rows in which they report their results.

Every benchmark prints its rows. Where ``EIGENOPTIONS_ROWS`` names a file they are written there as well, one JSON
object per line, for the table of ``compare.py``. Times are CPU seconds unless a row states otherwise.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

QUICK = "--quick" in sys.argv  # smaller problems and fewer repeats, for the tests: the numbers mean little
OUT = Path(__file__).resolve().parent.parent / "out" / "bench"

_missed: list[str] = []


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """By numba; as it is in a quick run, whose few steps take less time than the compiler."""
    if QUICK:
        return function
    from numba import njit

    return njit(cache=True)(function)  # type: ignore[no-any-return]


def clock(work: Callable[[], Any], wall: bool = False) -> tuple[float, Any]:
    """Seconds of one call, and its result."""
    now = time.perf_counter if wall else time.process_time
    began = now()
    result = work()
    return max(now() - began, 1e-9), result


def seconds(work: Callable[[], Any], repeat: int = 1) -> tuple[float, Any]:
    """The least CPU time of some calls, and the last result: other processes only ever slow one down."""
    runs = [clock(work) for _ in range(repeat)]
    return min(spent for spent, _ in runs), runs[-1][1]


def race(
    ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int = 3, each: int = 1
) -> tuple[float, float]:
    """The least CPU times of two ways, taken in turns; ours runs `each` times a round."""
    mine, other = np.inf, np.inf
    for _ in range(rounds):
        mine = min(mine, seconds(ours, each)[0])
        other = min(other, seconds(theirs)[0])
    return mine, other


def peak() -> float:
    """The most memory that this process has held so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def say(*words: Any) -> None:
    print(*words, flush=True)


def row(what: str, ours: float, theirs: float, against: str, *, unit: str = "s", note: str = "") -> float:
    """Two measurements of the same work; the ratio is how many times better ours is (below 1: it is worse)."""
    ratio = ours / theirs if unit.endswith("/s") else theirs / ours
    say(f"  {what}: ours {number(ours)} {unit}, {against} {number(theirs)} {unit}: {number(ratio)}x  {note}")
    _keep("row", what=what, ours=ours, theirs=theirs, against=against, unit=unit, ratio=ratio, note=note)
    return ratio


def fact(what: str, value: float, unit: str, note: str = "") -> None:
    """One measurement that stands alone."""
    say(f"  {what}: {number(value)} {unit}  {note}")
    _keep("fact", what=what, value=value, unit=unit, note=note)


def agree(what: str, gap: float, most: float, note: str = "") -> None:
    """Two ways give the same answer; a comparison of different answers would mean nothing, so it ends here."""
    say(f"  same answer: {what}, differ by {gap:.1e}  {note}")
    _keep("agree", what=what, gap=gap, most=most, note=note)
    if not gap <= most:
        raise SystemExit(f"the answers differ: {what} by {gap:.3e}, at most {most:.0e} is allowed")


def point(series: str, x: float, y: float, unit: str = "s") -> None:
    """One size of a growth curve."""
    say(f"  {series}: {x:,.0f}: {number(y)} {unit}")
    _keep("point", series=series, x=x, y=y, unit=unit)


def aim(
    what: str, measured: float, *, least: float | None = None, most: float | None = None, unit: str = "x"
) -> bool:
    """A promise, and whether it is kept; a benchmark that breaks one ends with exit code 1."""
    measured = float(measured)
    met = (least is None or measured >= least) and (most is None or measured <= most)
    bound = f"at least {number(least)}" if least is not None else f"at most {number(most)}"
    say(f"  aim: {what}: {bound} {unit}, measured {number(measured)}: {'met' if met else 'MISSED'}")
    _keep("aim", what=what, aim=f"{bound} {unit}", measured=measured, met=met)
    if not met:
        _missed.append(what)
    return met


def skip(what: str, why: str) -> None:
    say(f"  not measured: {what}: {why}")
    _keep("skip", what=what, why=why)


def verdict() -> int:
    """The exit code: 1 when an aim was missed."""
    return int(bool(_missed))


def exponent(xs: Any, ys: Any) -> float:
    """Slope b of the least-squares line ``log y = a + b log x``."""
    return float(np.polyfit(np.log(xs), np.log(ys), 1)[0])


def tail(points: Any) -> list[tuple[float, float]]:
    """The part of a growth curve that an exponent is fitted to: from 9,000 on, or else its larger half."""
    points = sorted(points)
    large = [p for p in points if p[0] > 9_000]
    return large if len(large) > 1 else points[max(len(points) // 2 - 1, 0) :]


def number(value: float | None) -> str:
    """Three digits, readable at any size."""
    if value is None:
        return ""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:.2e}"


def _keep(kind: str, **entry: Any) -> None:
    path = os.environ.get("EIGENOPTIONS_ROWS")
    if path:
        line = json.dumps({"kind": kind, "part": Path(sys.argv[0]).stem, **entry})
        with open(path, "a", encoding="utf-8") as file:
            file.write(line + "\n")
