"""``eigenoptions mazes``: the built-in mazes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

import eigenoptions as eo
from eigenoptions._text import count_noun
from eigenoptions.cli.arguments import add_json_argument
from eigenoptions.cli.maps import stack_lines
from eigenoptions.cli.terminal import make_console, print_json, print_next

POSITION = 4
SUMMARY = "list the built-in mazes"
EXAMPLES = ("mazes",)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_json_argument(parser)


def run(arguments: Namespace) -> None:
    """List the built-in mazes, each with a small picture."""
    names = eo.mazes()
    descriptions = [_describe_maze(name) for name in names]
    if arguments.as_json:
        print_json({"mazes": descriptions})
        return

    from rich.columns import Columns
    from rich.text import Text

    blocks = []
    for maze in descriptions:
        picture = maze["map"].replace("#", "█").replace(".", " ")
        size = f"{maze['rows']} × {maze['columns']}"
        count = count_noun(maze["states"], "state")
        blocks.append(stack_lines(maze["name"], count, size, Text(picture)))
    make_console().print(Columns(blocks, padding=(0, 2)))
    print_next(f"eigenoptions discover {names[0]} -n 8")


def _describe_maze(name: str) -> dict[str, Any]:
    """Describe a maze in JSON values; its map is a text that `maze` reads."""
    mdp = eo.maze(name)
    assert mdp.coords is not None
    n_rows, n_columns = (np.ptp(mdp.coords, axis=0) + 1).tolist()

    # The last line of the text is no part of the map.
    picture, _ = str(mdp).rsplit("\n", 1)
    return {
        "name": name,
        "states": mdp.n_states,
        "rows": n_rows,
        "columns": n_columns,
        "map": picture.replace("█", "#").replace(" ", "."),
    }
