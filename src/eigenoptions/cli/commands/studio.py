"""``eigenoptions studio``: a page that shows options of a maze while you draw it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from eigenoptions.cli.files import check_writable
from eigenoptions.cli.terminal import print_files

POSITION = 7
SUMMARY = "draw a maze in the browser and see its options at once"
EXAMPLES = ("studio", "studio maze.txt")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "maze",
        nargs="?",
        default="four-rooms",
        metavar="MAZE",
        help="maze that the page opens with",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write the page into this folder, for any web host",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=8017,
        metavar="N",
        help="port on this machine (default: 8017)",
    )
    parser.add_argument(
        "--no-browser",
        action="store_true",
        help="print the address only",
    )


def run(arguments: Namespace) -> None:
    """Open the studio in the browser, or write it into a folder."""
    # Imported here, since no other command needs a web server.
    from eigenoptions.studio import serve_studio, write_studio

    if arguments.out is None:
        serve_studio(
            source=arguments.maze,
            port=arguments.port,
            open_browser=not arguments.no_browser,
        )
        return

    check_writable(arguments.out)
    page = write_studio(arguments.out, source=arguments.maze)
    print_files([page])
