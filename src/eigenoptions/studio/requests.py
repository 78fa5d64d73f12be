"""What the page may ask: one record of a maze and settings, read from JSON and checked before anything is computed.

Whatever is malformed, unknown or too large is a ValueError in one line that names the limit, the value and the remedy.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from eigenoptions.spectra import OPERATORS

MOST_BYTES = 256 * 1024  # of a request's body
MOST_CELLS = 64  # rows or columns of a maze
MOST_SHOWN = 64  # eigenvectors in one answer
MOST_OPTIONS = 128
MOST_MEASURED = 700  # states whose diffusion times are computed while one looks on
MOST_SAMPLED = 1000  # states in the sampled view
KINDS = ("rooms", "perfect", "open")


@dataclass(frozen=True)
class Ask:
    """A request: the text of a maze, and how to look at it.

    Attributes
    ----------
    map
        Text of a maze; see `maze`.
    operator, gamma
        Of `spectrum` and `solve`.
    shown
        Eigenvectors to show beyond those of eigenvalue zero, each with the options of both its signs.
    n_options
        Options to measure, race and learn with.
    seed
        Of everything random.
    kind, rows, cols
        Of a random maze.
    """

    map: str = ""
    operator: str = "normalized"
    gamma: float = 0.9
    shown: int = 16
    n_options: int = 32
    seed: int = 0
    kind: str = "rooms"
    rows: int = 15
    cols: int = 15


def read(body: bytes, *names: str) -> Ask:
    """The request in a body, which may hold these fields of `Ask` and no others.

    >>> read(b'{"map": "S..G", "gamma": 0.5}', "map", "gamma").gamma
    0.5
    >>> read(b'{"gamma": 2}', "map", "gamma")
    Traceback (most recent call last):
    ...
    ValueError: gamma must be a number in 0..0.999, got 2
    """
    try:
        asked = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("the body is nested too deeply: send one flat JSON object") from None
    except ValueError as error:
        raise ValueError(f"the body is not JSON: {_short(str(error))}") from None
    if not isinstance(asked, dict):
        raise ValueError(f"the body must be a JSON object, got {type(asked).__name__}")
    for name in asked:
        if name not in names:
            raise ValueError(f"unknown field {_short(name)!r}: this address takes {', '.join(names)}")
    return Ask(**{name: _FIELDS[name](name, value) for name, value in asked.items()})


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, got {_short(value)}")
    lines = value.splitlines()
    high, wide = len(lines), max(map(len, lines), default=0)
    if high > MOST_CELLS + 2 or wide > MOST_CELLS:  # two lines more: a head, and an empty one at the end
        raise ValueError(
            f"the studio draws mazes of at most {MOST_CELLS} x {MOST_CELLS} cells, got {high} x {wide}: "
            "use the library in Python for larger ones"
        )
    return value


def _whole(low: int, high: int) -> Callable[[str, Any], int]:
    def check(name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"{name} must be a whole number in {low}..{high}, got {_short(value)}")
        return value

    return check


def _gamma(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 0.999:
        raise ValueError(f"{name} must be a number in 0..0.999, got {_short(value)}")
    return float(value)


def _one_of(*words: str) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"{name} must be one of {', '.join(words)}, got {_short(value)}")
        return value

    return check


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _short(value: Any) -> str:
    """A value in few enough characters for one line."""
    if isinstance(value, float) and not math.isfinite(value):
        return "a number beyond all limits"
    if isinstance(value, int) and abs(value) > 10**12:
        return "a huge number"
    words = " ".join((value if isinstance(value, str) else json.dumps(value)).split())
    return words if len(words) <= 60 else words[:57] + "..."


_FIELDS: dict[str, Callable[[str, Any], Any]] = {
    "map": _text,
    "operator": _one_of(*OPERATORS),
    "gamma": _gamma,
    "shown": _whole(1, MOST_SHOWN),
    "n_options": _whole(1, MOST_OPTIONS),
    "seed": _whole(0, 2**32 - 1),
    "kind": _one_of(*KINDS),
    "rows": _whole(3, MOST_CELLS),
    "cols": _whole(3, MOST_CELLS),
}
