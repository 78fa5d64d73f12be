"""Options in words and pictures: as JSON values, as maps of arrows, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import eigenoptions as eo
from eigenoptions._text import count_noun, explain_size
from eigenoptions._types import FloatArray
from eigenoptions.cli.maps import draw_cells, stack_lines
from eigenoptions.cli.terminal import (
    has_color,
    make_console,
    print_paragraph,
    print_table,
)

if TYPE_CHECKING:
    from eigenoptions.samples.linear import LinearOption

# Options that are drawn as maps; the others are only in the table.
_MAX_MAPS = 32

# States where an option terminates that JSON lists, and that the table lists.
_MAX_STATES_IN_JSON = 1000
_MAX_STATES_IN_TABLE = 3


def name_state(mdp: eo.MDP, state: int | None) -> str:
    """Name a state by its row and column, or by its number where it has none."""
    if mdp.coords is None:
        return str(state)
    return str(tuple(mdp.coords[state].tolist()))


def get_settings(
    options: eo.OptionSet | eo.LinearOptionSet, seed: int | None = None
) -> dict[str, Any]:
    """Get how options were made: the numbers and words of their provenance.

    With the seed of a command, their number and this seed come first.
    """
    settings: dict[str, Any] = {}
    if seed is not None:
        settings = {"n_options": len(options), "seed": seed}
    for name, value in options.provenance.items():
        is_simple = isinstance(value, str | int | float)
        if is_simple and name not in ("mdp", "source"):
            settings[name] = value
    return settings


def make_heading(options: eo.OptionSet, settings: dict[str, Any]) -> str:
    """Write the heading of a result: the maze, its size and how options were made."""
    words = [count_noun(len(options), "option")]
    for name in ("method", "operator", "gamma"):
        if settings.get(name):
            words.append(f"{name} {settings[name]}")

    maze_name = options.mdp.name or "map"
    return f"{maze_name}: {options.n_states} states; {', '.join(words)}"


def describe_options(
    options: eo.OptionSet | eo.LinearOptionSet,
    settings: dict[str, Any],
    source: str = "",
) -> dict[str, Any]:
    """Describe options in JSON values.

    Parameters
    ----------
    options : OptionSet or LinearOptionSet
        The options.
    settings : dict
        How they were made.
    source : str, default=""
        Name of the maze or environment, if the options do not know it.
    """
    answer: dict[str, Any]
    if isinstance(options, eo.OptionSet):
        answer = {
            "maze": options.mdp.name or source,
            "states": options.mdp.n_states,
        }
    else:
        answer = {"environment": source}

    answer["settings"] = settings
    answer["options"] = [_describe_option(option) for option in options]
    return answer


def print_options(
    options: eo.OptionSet | eo.LinearOptionSet,
    settings: dict[str, Any],
) -> None:
    """Print a heading, maps of the first options and a table of all."""
    if not isinstance(options, eo.OptionSet):
        # In a feature space there are no states to list.
        rows = [(option.label, f"{option.eigenvalue:.5g}") for option in options]
        print_paragraph(repr(options), "bold")
        print_table(("option", ">eigenvalue"), rows)
        return

    print_paragraph(make_heading(options, settings), "bold")
    if options.mdp.coords is not None:
        _print_maps(options)
    heads = (
        "option",
        ">eigenvalue",
        "terminates at (row, column)",
        ">mean length",
        ">available in",
    )
    print_table(heads, [_make_table_row(option) for option in options])


def _describe_option(option: eo.Option | LinearOption) -> dict[str, Any]:
    """Describe an option in JSON values, which have no infinity and no NaN."""
    signs: dict[int | None, str] = {1: "+", -1: "-"}
    description = {
        "label": option.label,
        "eigenvalue": _replace_infinite(float(option.eigenvalue)),
        "sign": signs.get(option.sign),
    }
    if not isinstance(option, eo.Option):
        return description

    terminations = np.flatnonzero(option.termination)
    listed_states = terminations[:_MAX_STATES_IN_JSON].tolist()
    cells = None
    if option.mdp.coords is not None:
        cells = option.mdp.coords[listed_states].tolist()

    description["stops"] = cells
    description["stop_states"] = listed_states
    description["n_stops"] = len(terminations)
    description["mean_length"] = _replace_infinite(option.mean_length)
    description["start_share"] = float(option.initiation.mean())
    return description


def _replace_infinite(number: float) -> float | None:
    """Replace a number that JSON does not have by None."""
    if np.isfinite(number):
        return number
    return None


def _make_table_row(option: eo.Option) -> list[str]:
    """Make the row of an option in the table."""
    eigenvalue = ""
    if np.isfinite(option.eigenvalue):
        eigenvalue = f"{option.eigenvalue:.5g}"

    terminations = np.flatnonzero(option.termination)
    places = [
        name_state(option.mdp, state) for state in terminations[:_MAX_STATES_IN_TABLE]
    ]
    if len(terminations) > _MAX_STATES_IN_TABLE:
        places.append(f"+{len(terminations) - _MAX_STATES_IN_TABLE} more")

    mean_length = "never ends"
    if np.isfinite(option.mean_length):
        mean_length = f"{option.mean_length:.2f}"

    start_share = option.initiation.mean()
    return [
        option.label,
        eigenvalue,
        " ".join(places),
        mean_length,
        f"{start_share:.0%}",
    ]


def _print_maps(options: eo.OptionSet) -> None:
    """Print the first options as maps of arrows."""
    # Imported here: help needs neither rich nor SciPy.
    from rich.columns import Columns

    from eigenoptions.options.maps import explain_maps, find_glyphs, list_maps

    mdp = options.mdp
    assert mdp.coords is not None
    console = make_console()
    color = has_color()
    # Two maps of square cells, and a gap, have to fit beside each other.
    width = int(np.ptp(mdp.coords[:, 1])) + 1
    wide = color and 4 * (width + 2) + 2 <= console.width

    shown = options[:_MAX_MAPS]
    blocks = []
    for option in shown:
        glyphs = np.array(find_glyphs(mdp, option.policy))
        level = _compute_level(option)
        for caption, states in list_maps(mdp, option.label):
            cells = draw_cells(
                mdp.coords[states],
                glyphs[states].tolist(),
                level[states],
                color=color,
                wide=wide,
            )
            length = f"{option.mean_length:.1f} steps"
            blocks.append(stack_lines(caption, length, cells))
    console.print(Columns(blocks, padding=(0, 2)))

    notes = [explain_maps(mdp, shown)]
    if explain_size(mdp.coords):
        notes.append("--out DIR writes all rows as pictures")
    if len(options) > len(shown):
        n_others = count_noun(len(options) - len(shown), "more option")
        notes.append(f"the table has {n_others}")
    if color:
        notes.append("options climb from blue to orange and terminate on red")
    else:
        notes.append("● is where they terminate")
    print_paragraph("; ".join(note for note in notes if note))


def _compute_level(option: eo.Option) -> FloatArray:
    """Compute the heights that an option climbs, scaled to -1..1, for the colours."""
    heights = option.purpose.potential
    if heights is None:
        # Without a potential, the less there is still to gain, the higher.
        heights = -option.value
    highest = float(np.abs(heights).max())
    if highest > 0:
        heights = heights / highest
    return heights
