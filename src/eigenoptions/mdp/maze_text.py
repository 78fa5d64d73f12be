"""Maze text: where a map comes from, and the cells, moves, start and goal that it describes (paper, Figure 1)."""

from __future__ import annotations

import difflib
import re
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

WALLS, FREE = "#X", ". SG"
# Row and column offsets of the actions 0 up, 1 right, 2 down, 3 left.
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
FOLDER = files("eigenoptions.mdp") / "mazes"


class Cells(NamedTuple):
    """Free cells of a map: ``coords (S, 2)``, ``successors (S, 4)``, and the states marked S and G."""

    coords: NDArray[np.int64]
    successors: NDArray[np.int64]
    start: int | None
    goal: int | None


def mazes() -> list[str]:
    """Names of the built-in mazes.

    >>> mazes()
    ['four-rooms', 'i-maze', 'open-room']
    """
    return sorted(path.name[:-4] for path in FOLDER.iterdir() if path.name.endswith(".txt"))


def read(source: str | Path, rng: int | np.random.Generator = 0) -> tuple[str, str]:
    """Name and text of a map, given by name, by rule, as text or as a path; `rng` is for maps by rule.

    >>> read("open:1x3")
    ('open:1x3', '...')
    """
    if isinstance(source, str):
        if source in mazes():
            return source, (FOLDER / f"{source}.txt").read_text(encoding="utf-8")
        if "\n" in source or not set(source) - set(WALLS + FREE):
            return "", source
        from eigenoptions.mdp import maps

        ruled = maps.by_rule(source, rng)
        if ruled is not None:
            return source, ruled
    elif not isinstance(source, Path):
        raise TypeError(f"a maze is a name, the text of a map or a path, got {type(source).__name__}")
    try:
        path = Path(source)
        if path.is_dir():
            raise ValueError("it is a folder; give a file in it")
        if path.is_file():
            return path.stem, path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(
            f"{source} is not a text file: a maze is plain text, one character per cell"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"cannot read the maze {str(source)[:80]!r}: {reason}") from None
    near = difflib.get_close_matches(str(source), mazes(), n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"built in are {', '.join(mazes())}"
    raise ValueError(f"no maze called {str(source)[:80]!r}, and no such file: {hint}")


def parse(text: str) -> Cells:
    r"""Cells and moves of a map.

    >>> parse("S#\n.G").successors.tolist()
    [[0, 0, 1, 0], [0, 2, 1, 1], [2, 2, 2, 1]]
    """
    grid, above = _grid(text)
    free = np.isin(grid, list(FREE))
    if not free.any():
        raise ValueError("the map has no free cell: write . or a space where a state should be")
    coords = np.argwhere(free)
    number = np.full((grid.shape[0] + 2, grid.shape[1] + 2), -1)
    number[1:-1, 1:-1][free] = np.arange(len(coords))
    here = np.arange(len(coords))[:, None]
    moves = np.stack([number[coords[:, 0] + 1 + dy, coords[:, 1] + 1 + dx] for dy, dx in MOVES], axis=1)
    ends: dict[str, int | None] = {}
    for letter, word in (("S", "start"), ("G", "goal")):
        found = np.argwhere(grid == letter)
        if len(found) > 1:
            where = " and ".join(f"line {y + 1 + above} column {x + 1}" for y, x in found[:2])
            raise ValueError(f"the map has {len(found)} {word}s ({letter}), at {where}: keep one")
        ends[word] = int(number[found[0, 0] + 1, found[0, 1] + 1]) if len(found) else None
    return Cells(coords, np.where(moves >= 0, moves, here), ends["start"], ends["goal"])


def _grid(text: str) -> tuple[NDArray[np.str_], int]:
    """Checked characters of a map as a rectangle, missing cells filled with wall; and the number of lines above it."""
    lines = text.removeprefix("\ufeff").splitlines()
    first = 0
    while first < len(lines) and not lines[first]:
        first += 1
    size = re.fullmatch(r"\s*(\d+)\s*,\s*(\d+)\s*", lines[first]) if first < len(lines) else None
    first += size is not None
    lines, above = lines[first:], first
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise ValueError("the map is empty: give at least one line with a free cell (.)")
    high, wide = len(lines), max(map(len, lines))
    if size:
        rows, cols = int(size[1]), int(size[2])
        if high > rows or wide > cols:
            raise ValueError(
                f"the first line says {rows},{cols} but the map has {high} rows and {wide} columns: correct it"
            )
    known = set(WALLS + FREE)
    for y, line in enumerate(lines):
        if not set(line) <= known:
            x = next(i for i, c in enumerate(line) if c not in known)
            raise ValueError(
                f"unknown character {line[x]!r} at line {y + 1 + above} column {x + 1}: "
                "use # or X for walls, . or space for free cells, S start, G goal"
            )
    return np.array([list(line.ljust(wide, "#")) for line in lines], dtype="U1"), above
