"""Mazes: from text, from files, and generated in any size (paper, Figure 1 and Section 4).

`maze` also takes names such as ``"rooms:30x30"``. To add such a generator, add an entry to `GENERATORS`. The paper's
three mazes are files in `mazes/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

from eigenoptions._validation import check_int, make_generator, suggest_name
from eigenoptions.mdp.table import MDP

# Row and column offsets of the actions 0 up, 1 right, 2 down, 3 left.
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
FOLDER = files("eigenoptions.mdp") / "mazes"


def maze(source: str | Path, *, rng: int | np.random.Generator = 0) -> MDP:
    r"""MDP of a maze: a name, a generated maze, the text of a map, or a path to one (Figure 1, Section 4).

    A map has one character per cell: ``#`` or ``X`` wall, ``.`` or space free, ``S`` start, ``G`` or ``E`` (exit) goal.
    Lines may differ in length; missing cells are walls. A first line ``rows,cols`` (the authors' ``.mdp`` files) is
    accepted. States are the free cells in reading order. Actions are 0 up, 1 right, 2 down, 3 left; a move into a wall
    leaves the state unchanged.

    Parameters
    ----------
    source : str or Path
        One of `mazes`; ``"rooms:ROWSxCOLS"``, ``"perfect:ROWSxCOLS"`` or ``"open:ROWSxCOLS"`` (see `rooms_map`,
        `perfect_map`, `open_map`); the text of a map; or the path to a text file.
    rng : int or Generator, default 0
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
    task: dict[str, int] = {}
    for letter, field in (("S", "start"), ("G", "goal")):
        places = np.flatnonzero(cells[tuple(coords.T)] == letter).tolist()
        if len(places) > 1:
            where = " and ".join(
                f"line {y + first_line} column {x + 1}" for y, x in coords[places[:2]]
            )
            raise ValueError(
                f"the map has {len(places)} {field}s ({letter}), at {where}: keep one"
            )
        if places:
            task[field] = places[0]

    # Numbers of the states in a map with a border of walls (-1).
    states = np.arange(len(coords))
    state_at = np.full(np.add(cells.shape, 2), -1)
    state_at[tuple(coords.T + 1)] = states
    successors = np.stack(
        [state_at[tuple((coords + 1 + move).T)] for move in MOVES], axis=1
    )
    successors = np.where(successors >= 0, successors, states[:, None])
    return MDP.from_successors(successors, coords=coords, name=name, **task)


def mazes() -> list[str]:
    """Names of the built-in mazes.

    >>> mazes()
    ['four-rooms', 'i-maze', 'open-room']
    """
    return sorted(
        path.name[:-4] for path in FOLDER.iterdir() if path.name.endswith(".txt")
    )


def open_map(rows: int, cols: int, *, rng: int | np.random.Generator = 0) -> str:
    """One room without walls; nothing is drawn from `rng`."""
    _check_size(rows, cols, 1)
    return "\n".join(["." * cols] * rows)


def rooms_map(
    rows: int,
    cols: int,
    size: int = 10,
    *,
    centred: bool = False,
    rng: int | np.random.Generator = 0,
) -> str:
    """A tiling of ``rows x cols`` square rooms with sides of `size` cells, and one door between any two neighbours.

    Doors are placed by `rng`, or `centred` in the middle of each wall, which makes the map symmetric.

    >>> print(rooms_map(1, 2, size=3, centred=True))
    #########
    #...#...#
    #.......#
    #...#...#
    #########
    """
    rng, step = make_generator(rng), check_int("size", size) + 1
    _check_size(rows, cols, step**2)
    grid = np.full((rows * step + 1, cols * step + 1), ".")
    grid[::step] = "#"
    grid[:, ::step] = "#"
    # Doors in vertical walls row by row, then in horizontal ones.
    vertical = [(y, x, True) for y in range(rows) for x in range(1, cols)]
    for y, x, is_vertical in [
        *vertical,
        *((y, x, False) for y in range(1, rows) for x in range(cols)),
    ]:
        door = 1 + (size // 2 if centred else int(rng.integers(size)))
        grid[y * step + door * is_vertical, x * step + door * (not is_vertical)] = "."
    return "\n".join(map("".join, grid))


def perfect_map(rows: int, cols: int, *, rng: int | np.random.Generator = 0) -> str:
    """A perfect maze: corridors that form a random spanning tree of ``rows x cols`` crossings."""
    _check_size(rows, cols, 4)
    number = np.arange(rows * cols).reshape(rows, cols)
    a = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    b = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    weights = coo_array(
        (1.0 + make_generator(rng).random(len(a)), (a, b)),
        shape=(number.size, number.size),
    )
    tree = minimum_spanning_tree(weights.tocsr()).tocoo()
    grid = np.full((2 * rows + 1, 2 * cols + 1), "#")
    grid[1::2, 1::2] = "."
    (ya, xa), (yb, xb) = np.divmod(tree.row, cols), np.divmod(tree.col, cols)
    grid[ya + yb + 1, xa + xb + 1] = "."
    return "\n".join(map("".join, grid))


# Functions of rows, columns and rng.
GENERATORS: dict[str, Callable[..., str]] = {
    "rooms": rooms_map,
    "perfect": perfect_map,
    "open": open_map,
}


def _find_map(source: Any, rng: int | np.random.Generator) -> tuple[str, str]:
    """Name and text of a map; see `maze`."""
    if not isinstance(source, str | Path):
        raise TypeError(
            f"a maze is a name, the text of a map or a path, got {type(source).__name__}"
        )
    if source in mazes():
        return str(source), (FOLDER / f"{source}.txt").read_text(encoding="utf-8")
    if isinstance(source, str):
        if re.fullmatch("[#X. SGE]*", source) or "\n" in source:
            return "", source
        kind, _, size = source.partition(":")
        if kind in GENERATORS:
            sides = re.fullmatch(r"(\d{1,9})x(\d{1,9})", size, re.ASCII)
            if sides is None:
                raise ValueError(
                    f"a generated maze is {kind}:ROWSxCOLS, like {kind}:20x30, got {source!r}"
                )
            return source, GENERATORS[kind](int(sides[1]), int(sides[2]), rng=rng)
    reason = "no such file"
    try:
        # Devices and pipes are not read.
        if (path := Path(source)).is_file():
            return path.stem, path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = str(error.args[-1])
    hint = suggest_name(source, mazes()) or f": built in are {', '.join(mazes())}"
    raise ValueError(f"no maze called {str(source)[:80]!r} ({reason}){hint}")


def _parse_map(text: str) -> tuple[NDArray[np.str_], int]:
    """Characters of a map as a rectangle, ``#``, ``.``, ``S`` and ``G``, and the number of its first line."""
    lines = text.rstrip("\r\n").splitlines()
    first = next((y for y, line in enumerate(lines) if line), 0)
    size = re.fullmatch(r"\s*(\d+)\s*,\s*(\d+)\s*", lines[first]) if lines else None
    first += size is not None
    rows = lines[first:] or [""]
    height, width = len(rows), max(map(len, rows))
    if not width:
        raise ValueError(
            "the map is empty: give at least one line with a free cell (.)"
        )
    if size and (height > int(size[1]) or width > int(size[2])):
        raise ValueError(
            f"the first line says {size[0]} but the map has {height} rows and {width} columns"
        )
    for y, row in enumerate(rows):
        if unknown := re.search("[^#X. SGE]", row):
            raise ValueError(
                f"unknown character {unknown[0]!r} at line {y + first + 1} column {unknown.start() + 1}: "
                "use # or X for walls, . or space for free cells, S start, G or E goal"
            )
    synonyms = str.maketrans("X E", "#.G")
    return np.array(
        [list(row.translate(synonyms).ljust(width, "#")) for row in rows]
    ), first + 1


def _check_size(
    rows: int, cols: int, cells_per_unit: int, max_cells: int = 50_000_000
) -> None:
    """Check the number of cells of a generated map."""
    cells = check_int("rows", rows, 0) * check_int("cols", cols, 0) * cells_per_unit
    if not 1 <= cells <= max_cells:
        raise ValueError(
            f"a map has 1 to {max_cells:,} cells, one of {rows} x {cols} has {cells:,}"
        )
