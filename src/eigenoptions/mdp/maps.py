"""Maze text made by rule, of any size: tilings of rooms, perfect mazes, open rooms.

The text goes to `maze`. Benchmarks, tests and the studio draw from here; the paper's three maps are files in `mazes/`.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree


def open_map(rows: int, cols: int) -> str:
    """One room without walls.

    >>> open_map(2, 3).split()
    ['...', '...']
    """
    return "\n".join(["." * cols] * _positive("rows", rows)) if _positive("cols", cols) else ""


def rooms_map(
    rows: int, cols: int, size: int = 10, *, centred: bool = False, rng: int | np.random.Generator = 0
) -> str:
    """A tiling of square rooms, with one door between any two neighbours.

    Parameters
    ----------
    rows, cols
        Rooms down and across.
    size
        Cells along a room's side.
    centred
        Doors in the middle of each wall, which makes the map symmetric, instead of at random places.

    Examples
    --------
    >>> print(rooms_map(1, 2, size=3, centred=True))
    #########
    #...#...#
    #.......#
    #...#...#
    #########
    """
    rng = np.random.default_rng(rng)
    _positive("rows", rows), _positive("cols", cols)
    step = _positive("size", size) + 1
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
    rng = np.random.default_rng(rng)
    number = np.arange(_positive("rows", rows) * _positive("cols", cols)).reshape(rows, cols)
    a = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    b = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    weights = coo_array((1.0 + rng.random(len(a)), (a, b)), shape=(number.size, number.size))
    tree = minimum_spanning_tree(weights.tocsr()).tocoo()
    grid = np.full((2 * rows + 1, 2 * cols + 1), "#")
    grid[1::2, 1::2] = "."
    (ya, xa), (yb, xb) = np.divmod(tree.row, cols), np.divmod(tree.col, cols)
    grid[ya + yb + 1, xa + xb + 1] = "."
    return "\n".join("".join(row) for row in grid)


def _positive(what: str, number: int) -> int:
    if number < 1:
        raise ValueError(f"{what} must be at least 1, got {number}")
    return number
