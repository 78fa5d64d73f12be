"""``eigenoptions demo``: an eigenvector, its option, and what options are worth."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

import numpy as np

import eigenoptions as eo
from eigenoptions._types import FloatArray, IndexArray
from eigenoptions.cli.arguments import add_json_argument
from eigenoptions.cli.maps import draw_cells, stack_lines
from eigenoptions.cli.terminal import (
    has_color,
    make_console,
    play,
    print_json,
    print_line,
    print_next,
    print_paragraph,
)

if TYPE_CHECKING:
    from rich.columns import Columns
    from rich.text import Text

POSITION = 1
SUMMARY = "start here: an eigenvector and an option of four rooms, in a second"
EXAMPLES = ("demo",)

# Characters for the values of an eigenvector, from low to high, without colours.
_SHADES = "·-+#"

# Characters of the longest bar.
_BAR_WIDTH = 40


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_json_argument(parser)


def run(arguments: Namespace) -> None:
    """Show an eigenvector of four rooms, the option that climbs it, and its worth."""
    mdp = eo.maze("four-rooms")
    options = eo.discover(mdp, 64)
    option = options["e2+"]
    assert mdp.goal is not None
    path = options.follow(option.label, mdp.goal).tolist()
    time_without_options = eo.diffusion_time(mdp)
    time_with_options = eo.diffusion_time(mdp, options)

    if arguments.as_json:
        answer = {
            "maze": mdp.name,
            "states": mdp.n_states,
            "option": option.label,
            "path": path,
            "n_options": len(options),
            "diffusion_time": {
                "without_options": time_without_options,
                "with_options": time_with_options,
            },
        }
        print_json(answer)
        return

    print_paragraph(
        f"four-rooms: {mdp.n_states} states, {mdp.n_actions} actions, no reward",
        "bold",
    )
    _show_option(options, option.label, path)

    print_line(
        "Diffusion time: mean number of steps between two states "
        "under random decisions."
    )
    longest = max(time_without_options, time_with_options)
    _print_bar(f"{mdp.n_actions} actions", time_without_options, longest)
    _print_bar(f"and {len(options)} eigenoptions", time_with_options, longest)
    print()
    print_next(
        "eigenoptions discover four-rooms -n 8 --out out/",
        "eigenoptions learn four-rooms -n 8 --option-chance auto",
        "eigenoptions studio",
    )


def _show_option(options: eo.OptionSet, label: str, path: list[int]) -> None:
    """Show an eigenvector beside its option, which runs if this is a terminal."""
    console = make_console()
    if has_color() and console.is_terminal:
        frames = (
            _draw_frame(options, label, path[:n_states], len(path) - 1)
            for n_states in range(1, len(path) + 1)
        )
        play(frames, seconds_per_frame=0.06)
        return

    console.print(_draw_frame(options, label, [], len(path) - 1))
    arrows = _find_arrows(options, label)
    moves = "".join(arrows[state] for state in path)
    print_paragraph(f"{label} runs from G for {len(path) - 1} steps: {moves}")


def _draw_frame(
    options: eo.OptionSet,
    label: str,
    trail: list[int],
    n_steps: int,
) -> Columns:
    """Draw an eigenvector beside its option, with the states visited so far."""
    from rich.columns import Columns

    eigenvector = options[label].purpose.potential
    coords = options.mdp.coords
    assert eigenvector is not None
    assert coords is not None
    level = eigenvector / np.abs(eigenvector).max()

    if trail:
        status = f"{len(trail) - 1} of {n_steps} steps from G"
    else:
        status = "● it terminates"
    arrows = _find_arrows(options, label)
    color = has_color()
    cells = draw_cells(coords, arrows, level, trail=trail, color=color, wide=color)

    left = _draw_eigenvector(coords, level, f"eigenvector e{options[label].index}")
    right = stack_lines(f"option {label}, which climbs it", status, cells)
    return Columns([left, right], padding=(0, 2))


def _find_arrows(options: eo.OptionSet, label: str) -> list[str]:
    """One glyph per state: what an option does there."""
    # Imported here: help needs no SciPy.
    from eigenoptions.options.maps import find_glyphs

    return find_glyphs(options.mdp, options[label].policy)


def _draw_eigenvector(
    coords: IndexArray,
    level: FloatArray,
    title: str,
) -> Text:
    """Draw a number from -1 to 1 per state: as a colour, or as a character."""
    color = has_color()
    if color:
        scale = "blue low, orange high"
        shades = [" "] * len(level)
    else:
        scale = f"{_SHADES[0]} low, {_SHADES[-1]} high"
        shades = [_choose_shade(height) for height in level.tolist()]
    cells = draw_cells(coords, shades, level, color=color, wide=color)
    return stack_lines(title, scale, cells)


def _choose_shade(height: float) -> str:
    """Choose the character of a height from -1 to 1.

    >>> "".join(_choose_shade(height) for height in (-1.0, -0.1, 0.1, 1.0))
    '·-+#'
    """
    band = int(2 * height + 2)
    return _SHADES[min(band, len(_SHADES) - 1)]


def _print_bar(name: str, steps: float, longest: float) -> None:
    """Print a time as a bar, whose length is relative to the longest."""
    bar = "█" * round(_BAR_WIDTH * steps / longest)
    print_line(f"  {name:19} {bar} {steps:.1f}")
