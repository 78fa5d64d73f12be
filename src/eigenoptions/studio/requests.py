"""Requests of the page: one record of a maze and settings, parsed from JSON and checked before anything is computed.

Malformed, unknown or too large input raises ValueError with one line that names the limit, the value and the remedy.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from eigenoptions._validation import check_choice, check_float, check_int
from eigenoptions.discovery.methods import methods
from eigenoptions.mdp.maps import GENERATORS
from eigenoptions.spectra import OPERATORS

MAX_BODY_BYTES = 256 * 1024
# Longest JSON text of a value that is not a map.
MAX_VALUE_LENGTH = 60
# Rows or columns of a maze.
MAX_CELLS = 64
MAX_EIGENVECTORS = 64
MAX_OPTIONS = 128
# Largest mazes whose diffusion times and sampled spectra are computed while the user waits.
MAX_MEASURED_STATES = 700
MAX_SAMPLED_STATES = 1000


@dataclass(frozen=True)
class Request:
    """A maze and how to look at it.

    Attributes
    ----------
    map
        Text of the maze; see `maze`.
    operator, gamma
        Settings of `spectrum` and `solve`.
    shown
        Number of eigenvectors to show beyond those of eigenvalue zero, each with the options of both signs.
    n_options
        Number of options to measure, race, learn and compare with.
    option_chance
        Probability that a decision is for an option; None: a uniform choice over actions and options, the paper's.
    method
        Discovery method whose options are compared.
    seed
        Seed of everything random.
    kind, rows, cols
        Rule and size of a random maze.
    """

    map: str = ""
    operator: str = "normalized"
    gamma: float = 0.9
    shown: int = 16
    n_options: int = 32
    option_chance: float | None = None
    method: str = "eigen"
    seed: int = 0
    kind: str = "rooms"
    rows: int = 15
    cols: int = 15


def parse(body: bytes, *names: str) -> Request:
    """The request in a body, which may hold these fields of `Request` and no others.

    >>> parse(b'{"map": "S..G", "gamma": 0.5}', "map", "gamma").gamma
    0.5
    >>> parse(b'{"gamma": 2}', "map", "gamma")
    Traceback (most recent call last):
    ...
    ValueError: gamma must be in [0, 0.999], got 2
    """
    try:
        given = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("the body is nested too deeply: send one flat JSON object") from None
    except ValueError as error:
        raise ValueError(f"the body is not JSON: {str(error)[:MAX_VALUE_LENGTH]}") from None
    if not isinstance(given, dict):
        raise ValueError(f"the body must be a JSON object, got {type(given).__name__}")
    for name, value in given.items():
        if name not in names:
            raise ValueError(
                f"unknown field {name[:MAX_VALUE_LENGTH]!r}: this address takes {', '.join(names)}"
            )
        length = len(json.dumps(value))
        if length > MAX_VALUE_LENGTH and not (name == "map" and isinstance(value, str)):
            raise ValueError(
                f"{name} must have at most {MAX_VALUE_LENGTH} characters, got {length}: shorten it"
            )
    return Request(**{name: _CHECKS[name](name, value) for name, value in given.items()})


def _map_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, got {value!r}")
    lines = value.splitlines()
    rows, cols = len(lines), max(map(len, lines), default=0)
    # A map may have two more lines: its size above, and an empty one at the end.
    if rows > MAX_CELLS + 2 or cols > MAX_CELLS:
        raise too_large(rows, cols)
    return value


def too_large(rows: int, cols: int) -> ValueError:
    """The error that a maze is larger than the page draws."""
    return ValueError(
        f"the studio draws mazes of at most {MAX_CELLS} x {MAX_CELLS} cells, got {rows} x {cols}: "
        "use the library in Python for larger ones"
    )


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "map": _map_text,
    "operator": lambda name, value: check_choice(name, value, OPERATORS),
    "gamma": lambda name, value: check_float(name, value, minimum=0, maximum=0.999),
    "shown": lambda name, value: check_int(name, value, 1, MAX_EIGENVECTORS),
    "n_options": lambda name, value: check_int(name, value, 1, MAX_OPTIONS),
    "option_chance": lambda name, value: (
        None if value is None else check_float(name, value, minimum=0, maximum=0.999)
    ),
    "method": lambda name, value: check_choice(name, value, methods()),
    "seed": lambda name, value: check_int(name, value, 0, 2**32 - 1),
    "kind": lambda name, value: check_choice(name, value, GENERATORS),
    "rows": lambda name, value: check_int(name, value, 3, MAX_CELLS),
    "cols": lambda name, value: check_int(name, value, 3, MAX_CELLS),
}
