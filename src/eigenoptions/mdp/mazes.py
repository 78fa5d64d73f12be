"""Mazes: from text, from files, and generated in any size (paper, Figure 1, Section 4).

The paper's three mazes are files in the folder `mazes`. Names such as ``"rooms:30x30"``
belong to a generator; to add one, add an entry to `_GENERATORS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

from eigenoptions._types import IndexArray, Randomness
from eigenoptions._validation import check_int, make_generator, suggest_name
from eigenoptions.mdp.table import MDP

# Row and column offsets of the actions 0 up, 1 right, 2 down, 3 left.
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))

_FOLDER = files("eigenoptions.mdp") / "mazes"


def maze(source: str | Path, *, rng: Randomness = 0) -> MDP:
    r"""MDP of a maze: a name, a generated maze, the text of a map, or a path to one.

    A map has one character per cell: ``#`` or ``X`` for a wall, ``.`` or space for a
    free cell, ``S`` for the start, ``G`` or ``E`` (exit) for the goal. Lines may differ
    in length; missing cells are walls. A first line ``rows,cols``, as in the authors'
    ``.mdp`` files, is accepted.

    States are the free cells in reading order. Actions are 0 up, 1 right, 2 down,
    3 left. A move into a wall leaves the state unchanged.

    Parameters
    ----------
    source : str or Path
        One of `mazes`; ``"rooms:ROWSxCOLS"``, ``"perfect:ROWSxCOLS"`` or
        ``"open:ROWSxCOLS"`` (see `rooms_map`, `perfect_map`, `open_map`); the text of a
        map; or the path to a text file.
    rng : int or Generator, default=0
        Places the doors and corridors of generated mazes.

    Examples
    --------
    >>> maze("four-rooms")
    MDP(four-rooms: 104 states, 4 actions, deterministic, start 94, goal 9)
    >>> maze("rooms:2x3")
    MDP(rooms:2x3: 607 states, 4 actions, deterministic)
    >>> maze("S.#\n#.G").successors.tolist()
    [[0, 1, 0, 0], [1, 1, 2, 0], [1, 3, 2, 2], [3, 3, 3, 2]]
    """
    name, text = _find_map(source, rng)
    cells, first_line = _parse_map(text)
    coords = np.argwhere(cells != "#")
    if not len(coords):
        raise ValueError(
            "the map has no free cell: write . or a space where a state should be"
        )
    return MDP.from_successors(
        _find_successors(cells.shape, coords),
        coords=coords,
        name=name,
        start=_find_letter("S", "start", cells, coords, first_line),
        goal=_find_letter("G", "goal", cells, coords, first_line),
    )


def mazes() -> list[str]:
    """Names of the built-in mazes.

    Examples
    --------
    >>> mazes()
    ['four-rooms', 'i-maze', 'open-room']
    """
    names = [path.name for path in _FOLDER.iterdir()]
    return sorted(name[:-4] for name in names if name.endswith(".txt"))


def open_map(rows: int, cols: int, *, rng: Randomness = 0) -> str:
    """One room without walls. Nothing is drawn from `rng`."""
    _check_size(rows, cols, cells_per_unit=1)
    return "\n".join(["." * cols] * rows)


def rooms_map(
    rows: int,
    cols: int,
    size: int = 10,
    *,
    centred: bool = False,
    rng: Randomness = 0,
) -> str:
    """A tiling of square rooms with one door between any two neighbours.

    Parameters
    ----------
    rows, cols : int
        Numbers of rooms.
    size : int, default=10
        Cells along each side of a room.
    centred : bool, default=False
        Whether doors are in the middle of each wall, which makes the map symmetric.
    rng : int or Generator, default=0
        Places the doors otherwise.

    Examples
    --------
    >>> print(rooms_map(1, 2, size=3, centred=True))
    #########
    #...#...#
    #.......#
    #...#...#
    #########
    """
    generator = make_generator(rng)
    step = check_int("size", size) + 1
    _check_size(rows, cols, cells_per_unit=step**2)

    def choose_door() -> int:
        offset = size // 2 if centred else int(generator.integers(size))
        return 1 + offset

    grid = np.full((rows * step + 1, cols * step + 1), ".")
    grid[::step] = "#"
    grid[:, ::step] = "#"

    # Doors in vertical walls first, then in horizontal ones.
    for row in range(rows):
        for wall in range(1, cols):
            grid[row * step + choose_door(), wall * step] = "."
    for wall in range(1, rows):
        for col in range(cols):
            grid[wall * step, col * step + choose_door()] = "."
    return _join_cells(grid)


def perfect_map(rows: int, cols: int, *, rng: Randomness = 0) -> str:
    """A perfect maze: corridors that form a random spanning tree of crossings.

    Parameters
    ----------
    rows, cols : int
        Numbers of crossings. The map has twice as many rows and columns, and walls.
    rng : int or Generator, default=0
        Draws the tree.
    """
    _check_size(rows, cols, cells_per_unit=4)
    n_crossings = rows * cols
    # SciPy's trees take indices of 32 bits.
    crossing = np.arange(n_crossings, dtype=np.int32).reshape(rows, cols)

    # Every pair of neighbours, side by side and one below the other.
    first = np.concatenate([crossing[:, :-1].ravel(), crossing[:-1].ravel()])
    second = np.concatenate([crossing[:, 1:].ravel(), crossing[1:].ravel()])
    lengths = 1.0 + make_generator(rng).random(len(first))
    pairs = coo_array((lengths, (first, second)), shape=(n_crossings, n_crossings))
    tree = minimum_spanning_tree(pairs.tocsr()).tocoo()

    # Crossing (y, x) is cell (2 y + 1, 2 x + 1); a corridor is the cell between two.
    grid = np.full((2 * rows + 1, 2 * cols + 1), "#")
    grid[1::2, 1::2] = "."
    row_a, col_a = np.divmod(tree.row, cols)
    row_b, col_b = np.divmod(tree.col, cols)
    grid[row_a + row_b + 1, col_a + col_b + 1] = "."
    return _join_cells(grid)


# Functions of rows, columns and rng.
_GENERATORS: dict[str, Callable[..., str]] = {
    "rooms": rooms_map,
    "perfect": perfect_map,
    "open": open_map,
}


def _join_cells(grid: NDArray[np.str_]) -> str:
    """The text of a map from its characters."""
    return "\n".join("".join(row) for row in grid)


def _find_map(source: str | Path, rng: Randomness) -> tuple[str, str]:
    """Name and text of a map; see `maze`."""
    if not isinstance(source, str | Path):
        raise TypeError(
            "a maze is a name, the text of a map or a path, "
            f"got {type(source).__name__}"
        )
    if source in mazes():
        return str(source), (_FOLDER / f"{source}.txt").read_text(encoding="utf-8")

    if isinstance(source, str):
        if re.fullmatch("[#X. SGE]*", source) or "\n" in source:
            return "", source
        kind, _, size = source.partition(":")
        if kind in _GENERATORS:
            return source, _generate_map(kind, size, rng)

    # Devices and pipes are not read.
    reason = "no such file"
    try:
        path = Path(source)
        if path.is_file():
            return path.stem, path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = str(error.args[-1])

    hint = suggest_name(source, mazes()) or f": built in are {', '.join(mazes())}"
    raise ValueError(f"no maze called {str(source)[:80]!r} ({reason}){hint}")


def _generate_map(kind: str, size: str, rng: Randomness) -> str:
    """The text of a generated map, whose size is given as ``ROWSxCOLS``."""
    sides = re.fullmatch(r"(\d{1,9})x(\d{1,9})", size, re.ASCII)
    if sides is None:
        raise ValueError(
            f"a generated maze is {kind}:ROWSxCOLS, like {kind}:20x30, "
            f"got {f'{kind}:{size}'!r}"
        )
    return _GENERATORS[kind](int(sides[1]), int(sides[2]), rng=rng)


def _parse_map(text: str) -> tuple[NDArray[np.str_], int]:
    """The cells of a map and the number of its first line.

    Cells are a rectangle of the characters ``#``, ``.``, ``S`` and ``G``.
    """
    lines = text.rstrip("\r\n").splitlines()
    first = next((y for y, line in enumerate(lines) if line), 0)

    # The authors' files begin with the number of rows and columns.
    size = None
    if lines:
        size = re.fullmatch(r"\s*(\d+)\s*,\s*(\d+)\s*", lines[first])
    if size is not None:
        first += 1

    rows = lines[first:] or [""]
    height = len(rows)
    width = max(len(row) for row in rows)
    if not width:
        raise ValueError(
            "the map is empty: give at least one line with a free cell (.)"
        )
    if size is not None and (height > int(size[1]) or width > int(size[2])):
        raise ValueError(
            f"the first line says {size[0]} but the map has {height} rows and "
            f"{width} columns"
        )

    for y, row in enumerate(rows):
        unknown = re.search("[^#X. SGE]", row)
        if unknown is not None:
            raise ValueError(
                f"unknown character {unknown[0]!r} at line {y + first + 1} column "
                f"{unknown.start() + 1}: use # or X for walls, . or space for free "
                "cells, S start, G or E goal"
            )

    synonyms = str.maketrans("X E", "#.G")
    characters = [list(row.translate(synonyms).ljust(width, "#")) for row in rows]
    return np.array(characters), first + 1


def _find_letter(
    letter: str,
    meaning: str,
    cells: NDArray[np.str_],
    coords: IndexArray,
    first_line: int,
) -> int | None:
    """The state whose cell has a letter, or None; ValueError where several have."""
    letters = cells[tuple(coords.T)]
    states = np.flatnonzero(letters == letter).tolist()
    if len(states) > 1:
        places = [
            f"line {y + first_line} column {x + 1}" for y, x in coords[states[:2]]
        ]
        raise ValueError(
            f"the map has {len(states)} {meaning}s ({letter}), at "
            f"{' and '.join(places)}: keep one"
        )
    return states[0] if states else None


def _find_successors(shape: tuple[int, ...], coords: IndexArray) -> IndexArray:
    """``(S, 4)`` the state that each move leads to; a blocked move stays."""
    states = np.arange(len(coords))

    # Numbers of the states on a map with a border of walls, which are -1.
    state_at = np.full(np.add(shape, 2), -1)
    state_at[tuple(coords.T + 1)] = states

    neighbours = [state_at[tuple((coords + 1 + move).T)] for move in MOVES]
    successors = np.stack(neighbours, axis=1)
    return np.where(successors >= 0, successors, states[:, None])


# Most cells of a generated map, which take 7 GB as an MDP.
_MOST_CELLS = 20_000_000


def _check_size(rows: int, cols: int, cells_per_unit: int) -> None:
    """Check the number of cells of a generated map."""
    n_units = check_int("rows", rows, 0) * check_int("cols", cols, 0)
    n_cells = n_units * cells_per_unit
    if not 1 <= n_cells <= _MOST_CELLS:
        raise ValueError(
            f"a map has 1 to {_MOST_CELLS:,} cells, one of {rows} x {cols} has "
            f"{n_cells:,}"
        )
