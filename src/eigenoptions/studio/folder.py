"""The studio as a folder of files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from eigenoptions._validation import check_type
from eigenoptions.mdp import MDP, maze, mazes

_PAGE = Path(__file__).parent / "page"

# The largest number of rows and of columns that can be drawn in the page.
_MAX_SIDE = 64


def write_studio(folder: str | Path, source: str | Path = "four-rooms") -> Path:
    """Write the studio into a folder, from which any web host can serve it.

    Parameters
    ----------
    folder : str or Path
        Where to write. It is made if it does not exist, and files of the same names
        are replaced.
    source : str or Path, default="four-rooms"
        The maze that the page opens with: a name, a path or the text of a map, as in
        `eigenoptions.maze`.

    Returns
    -------
    Path
        The page, ``index.html``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_studio(folder).name
    'index.html'
    """
    check_type("folder", folder, str | Path, "give the name of a folder")
    first_map = draw_rows(maze(source))
    built_in = [{"name": name, "map": draw_rows(maze(name))} for name in mazes()]
    content = json.dumps({"maze": first_map, "mazes": built_in})

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for file in _PAGE.iterdir():
        if file.is_file():
            (target / file.name).write_bytes(file.read_bytes())
    (target / "mazes.json").write_text(content, encoding="utf-8")
    return target / "index.html"


def draw_rows(mdp: MDP) -> list[str]:
    """Draw a map as rows of ``#``, ``.``, ``S`` and ``G``, as the page reads them.

    The map ends with a wall at the bottom and on the right where the maze has one at
    the top and on the left.

    >>> draw_rows(maze("#S.G"))
    ['#S.G#']
    """
    assert mdp.coords is not None
    first_cell = mdp.coords.min(axis=0)
    last_cell = mdp.coords.max(axis=0)
    if last_cell.max() >= _MAX_SIDE:
        size = tuple((last_cell + 1).tolist())
        raise ValueError(
            f"the page draws mazes of up to {_MAX_SIDE} x {_MAX_SIDE} cells, got {size}"
        )

    has_wall = first_cell > 0
    sides = np.minimum(last_cell + 1 + has_wall, _MAX_SIDE)
    grid = np.full(tuple(sides), "#")
    grid[tuple(mdp.coords.T)] = "."
    if mdp.start is not None:
        grid[tuple(mdp.coords[mdp.start])] = "S"
    if mdp.goal is not None:
        grid[tuple(mdp.coords[mdp.goal])] = "G"
    return ["".join(row) for row in grid]
