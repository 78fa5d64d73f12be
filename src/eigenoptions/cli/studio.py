"""The command that opens the studio in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from eigenoptions.cli.flags import Flag, Folder


@dataclass(frozen=True)
class Studio:
    """Open the studio in the browser: draw a maze and see its options at once.

    Attributes
    ----------
    maze
        Name of a built-in maze, or path to a map, that the page opens with.
    port
        Port to listen on; if it is taken, the next free one is used.
    host
        Address to listen at; only this machine can reach the default.
    no_browser
        Only print the address.
    atari
        Folder with results of the command atari, which are shown if they exist.
    static
        Write the page into this folder instead, for any web host: it then computes small mazes in the browser.
    """

    maze: Annotated[Positional[str], arg(metavar="[MAZE]")] = "four-rooms"
    port: int = 8017
    host: str = "127.0.0.1"
    no_browser: Flag = False
    atari: Annotated[Path, arg(metavar="DIR")] = Path("out/atari")
    static: Folder = None

    def __call__(self) -> None:
        """Run the command."""
        if self.static is not None:
            from eigenoptions.studio.static import write_static

            files = write_static(self.static, self.maze)
            size = sum(file.stat().st_size for file in files)
            print(f"{self.static / 'index.html'}  ({len(files)} files, {size / 1000:.0f} kB)")
            return
        from eigenoptions.studio import serve

        serve(self.maze, host=self.host, port=self.port, browser=not self.no_browser, atari=self.atari)
