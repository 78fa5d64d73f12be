"""The studio without a server: the page as a folder for any web host, which computes small mazes in the browser."""

from __future__ import annotations

import json
from pathlib import Path

from eigenoptions.options.storage import write_atomically
from eigenoptions.mdp import maze
from eigenoptions.studio.endpoints import describe, drawn

PAGE = Path(__file__).parent / "page"


def write_static(folder: str | Path, source: str | Path = "four-rooms") -> list[Path]:
    """Write the studio's page as static files that need no server of ours.

    Scripts of the page compute eigenvectors, options, diffusion times and learning in the browser, by the rules of the
    library but in double precision only, for mazes of up to 500 states. The methods eigen, bottleneck, covering and
    random are available there; options files and Atari results are not.

    Parameters
    ----------
    folder
        Where to write; made if it does not exist. Files of the same names are replaced.
    source
        Maze that the page opens with: a name, a path or the text of a map, as in `maze`.

    Returns
    -------
    list of Path
        The files written, ``index.html`` among them.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     sum(file.stat().st_size for file in write_static(folder)) < 1_000_000
    True
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    contents = {file.name: file.read_bytes() for file in sorted(PAGE.iterdir()) if file.is_file()}
    # The mark by which the page knows that it has no server.
    contents["index.html"] = contents["index.html"].replace(
        b'<html lang="en">', b'<html lang="en" data-engine="browser">'
    )
    hello = {**describe(), "maze": drawn(maze(source)), "atari": False}
    contents["hello.json"] = json.dumps(hello).encode()
    for name, content in contents.items():
        write_atomically(target / name, content)
    return [target / name for name in contents]
