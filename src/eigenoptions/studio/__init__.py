"""The studio: a page that computes in the browser; draw a maze and see its options at once.

`page/` holds the whole program: scripts compute eigenvectors, options, diffusion times and learning for mazes of up to
700 states by the rules of the library. Python only hands the files over: to a browser on this machine, or to a folder.
"""

from __future__ import annotations

import json
import webbrowser
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from eigenoptions.mdp import MDP, maze, mazes

__all__ = ["serve_studio", "write_studio"]

PAGE = Path(__file__).parent / "page"
# Largest side of a maze that can be drawn in the page.
MAX_SIDE = 64


def write_studio(folder: str | Path, source: str | Path = "four-rooms") -> Path:
    """Write the studio into a folder, from which any web host can serve it.

    Parameters
    ----------
    folder
        Where to write; created if it does not exist. Files of the same names are replaced.
    source
        Maze that the page opens with: a name, a path or the text of a map, as in `maze`.

    Returns
    -------
    Path
        The page, ``index.html``.

    Examples
    --------
    >>> with TemporaryDirectory() as folder:
    ...     write_studio(folder).name
    'index.html'
    """
    built_in = [{"name": name, "map": draw_rows(maze(name))} for name in mazes()]
    content = json.dumps({"maze": draw_rows(maze(source)), "mazes": built_in})
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for file in PAGE.iterdir():
        if file.is_file():
            (target / file.name).write_bytes(file.read_bytes())
    (target / "mazes.json").write_text(content, encoding="utf-8")
    return target / "index.html"


def serve_studio(
    source: str | Path = "four-rooms", *, port: int = 8017, open_browser: bool = True
) -> None:
    """Serve the studio on this machine and open it in the browser, until Ctrl-C.

    Parameters
    ----------
    source
        Maze that the page opens with, as in `write_studio`.
    port
        Port at 127.0.0.1; if it is taken, a free one is used.
    open_browser
        Whether to open the browser, or only to print the address.
    """
    with TemporaryDirectory() as folder:
        write_studio(folder, source)
        handler = partial(_Handler, directory=folder)
        try:
            server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        except OSError:
            server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        address = f"http://127.0.0.1:{server.server_port}/"
        with server, suppress(KeyboardInterrupt):
            print(f"{address}  (Ctrl-C ends it)", flush=True)
            if open_browser:
                webbrowser.open(address)
            server.serve_forever()


def draw_rows(mdp: MDP) -> list[str]:
    """The rows of a map of ``#``, ``.``, ``S`` and ``G``, with the wall around it where it had one.

    >>> draw_rows(maze("#S.G"))
    ['#S.G#']
    """
    assert mdp.coords is not None
    low, high = mdp.coords.min(axis=0), mdp.coords.max(axis=0)
    if high.max() >= MAX_SIDE:
        raise ValueError(
            f"the page draws mazes of up to {MAX_SIDE} x {MAX_SIDE} cells, got {tuple((high + 1).tolist())}"
        )
    grid = np.full(tuple(np.minimum(high + 1 + (low > 0), MAX_SIDE)), "#")
    grid[tuple(mdp.coords.T)] = "."
    for state, letter in ((mdp.start, "S"), (mdp.goal, "G")):
        if state is not None:
            grid[tuple(mdp.coords[state])] = letter
    return ["".join(row) for row in grid]


class _Handler(SimpleHTTPRequestHandler):
    # Some machines say that scripts are plain text, which browsers then refuse to run.
    extensions_map = {  # noqa: RUF012 (the base class has it in this form)
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
    }

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""
