"""Maps by rule, of any size: tilings of rooms, perfect mazes, open rooms.

`maze` builds them from a name such as ``"rooms:30x30"``. To add a rule, add an entry to `RULES`. The paper's three
maps are files in `mazes/`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

from eigenoptions._validation import check_int, check_type, make_generator

MAX_CELLS = 50_000_000


def open_map(rows: int, cols: int) -> str:
    """One room without walls.

    >>> open_map(2, 3).split()
    ['...', '...']
    """
    _check_size(rows, cols, 1)
    return "\n".join(["." * cols] * rows)


def rooms_map(
    rows: int, cols: int, size: int = 10, *, centred: bool = False, rng: int | np.random.Generator = 0
) -> str:
    """A tiling of square rooms, with one door between any two neighbours.

    Parameters
    ----------
    rows, cols, size
        Number of rooms down and across, and of cells along the side of a room.
    centred, rng
        Put doors in the middle of each wall, which makes the map symmetric; else the seed or generator places them.

    Examples
    --------
    >>> print(rooms_map(1, 2, size=3, centred=True))
    #########
    #...#...#
    #.......#
    #...#...#
    #########
    """
    rng = make_generator(rng)
    step = check_int("size", size) + 1
    _check_size(rows, cols, step**2)
    grid = np.full((rows * step + 1, cols * step + 1), ".")
    grid[::step] = "#"
    grid[:, ::step] = "#"

    def place() -> int:
        return 1 + (size // 2 if centred else int(rng.integers(size)))

    for y in range(rows):
        for x in range(1, cols):
            grid[y * step + place(), x * step] = "."
    for y in range(1, rows):
        for x in range(cols):
            grid[y * step, x * step + place()] = "."
    return "\n".join("".join(row) for row in grid)


def perfect_map(rows: int, cols: int, *, rng: int | np.random.Generator = 0) -> str:
    """A perfect maze: corridors that form a random spanning tree of ``rows x cols`` crossings.

    >>> print(perfect_map(2, 3))
    #######
    #.....#
    #####.#
    #.....#
    #######
    """
    rng = make_generator(rng)
    _check_size(rows, cols, 4)
    number = np.arange(rows * cols).reshape(rows, cols)
    a = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    b = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    weights = coo_array((1.0 + rng.random(len(a)), (a, b)), shape=(number.size, number.size))
    tree = minimum_spanning_tree(weights.tocsr()).tocoo()
    grid = np.full((2 * rows + 1, 2 * cols + 1), "#")
    grid[1::2, 1::2] = "."
    (ya, xa), (yb, xb) = np.divmod(tree.row, cols), np.divmod(tree.col, cols)
    grid[ya + yb + 1, xa + xb + 1] = "."
    return "\n".join("".join(row) for row in grid)


class Rule(NamedTuple):
    """``build(rows, cols, rng)`` returns the text of a map of `cells` cells per unit of rows times columns."""

    build: Callable[[int, int, int | np.random.Generator], str]
    cells: int


RULES = {
    "rooms": Rule(lambda rows, cols, rng: rooms_map(rows, cols, rng=rng), 121),
    "perfect": Rule(lambda rows, cols, rng: perfect_map(rows, cols, rng=rng), 4),
    "open": Rule(lambda rows, cols, rng: open_map(rows, cols), 1),
}


def by_rule(name: str, rng: int | np.random.Generator = 0) -> str | None:
    """Text of a map by rule, ``kind:ROWSxCOLS``, or None for a name of another form.

    >>> by_rule("open:2x3").split()
    ['...', '...']
    """
    check_type("the name of a map", name, str, "write kind:ROWSxCOLS")
    kind, colon, size = name.partition(":")
    if not colon or kind not in RULES:
        return None
    parts = size.split("x")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"a map made by rule has rows and columns, like {kind}:20x30, got {name!r}")
    rows, cols = map(int, parts)
    _check_size(rows, cols, RULES[kind].cells, name)
    return RULES[kind].build(rows, cols, rng)


def _check_size(rows: int, cols: int, cells: int, name: str = "") -> None:
    """Check the size of a map with so many cells per unit of rows times columns."""
    total = check_int("rows", rows, 0) * check_int("cols", cols, 0) * cells
    if not 1 <= total <= MAX_CELLS:
        given = name or f"one of {rows} x {cols}"
        raise ValueError(f"a map has 1 to {MAX_CELLS:,} cells, {given} has {total:,}: give other numbers")


def of_file(source: str | Path, known: list[str]) -> tuple[str, str]:
    """Name and text of a map in a file; ValueError where there is none, with the nearest of the `known` names."""
    try:
        path = Path(source)
        if path.is_dir():
            raise ValueError("it is a folder; give a file in it")
        if path.is_file():
            return path.stem, path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        what = "a maze is plain text, one character per cell"
        raise ValueError(f"{source} is not a text file: {what}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"cannot read the maze {str(source)[:80]!r}: {reason}") from None
    near = difflib.get_close_matches(str(source), known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"built in are {', '.join(known)}"
    raise ValueError(f"no maze called {str(source)[:80]!r}, and no such file: {hint}")
