"""Options in words and pictures: as JSON values, as maps of arrows, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import eigenoptions as eo
from eigenoptions._text import MAX_SIDE, explain_glyphs
from eigenoptions._types import FloatArray
from eigenoptions.cli.maps import draw_cells, draw_option, set_side_by_side
from eigenoptions.cli.terminal import (
    has_color,
    make_console,
    print_paragraph,
    print_table,
)

if TYPE_CHECKING:
    from rich.text import Text

    from eigenoptions.samples.linear import LinearOption

# Options that are drawn as maps; the others are only in the table.
_MAX_MAPS = 32

# States where an option terminates that JSON lists, and that the table lists.
_MAX_STATES_IN_JSON = 1000
_MAX_STATES_IN_TABLE = 3


def count_options(n: int) -> str:
    """Say a number of options in words.

    >>> count_options(1), count_options(2)
    ('1 option', '2 options')
    """
    if n == 1:
        return "1 option"
    return f"{n} options"


def name_state(mdp: eo.MDP, state: int | None) -> str:
    """Name a state by its row and column, or by its number where it has none."""
    if mdp.coords is None:
        return str(state)
    return str(tuple(mdp.coords[state].tolist()))


def get_settings(options: eo.OptionSet | eo.LinearOptionSet) -> dict[str, Any]:
    """Get how options were made: the numbers and words of their provenance."""
    settings = {}
    for name, value in options.provenance.items():
        is_simple = isinstance(value, str | int | float)
        if is_simple and name not in ("mdp", "source"):
            settings[name] = value
    return settings


def make_heading(options: eo.OptionSet, settings: dict[str, Any]) -> str:
    """Write the heading of a result: the maze, its size and how options were made."""
    words = [count_options(len(options))]
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
    """Print the first options as maps of arrows, if the maze fits into a terminal."""
    coords = options.mdp.coords
    assert coords is not None
    height, width = np.ptp(coords, axis=0) + 1
    if max(height, width) > MAX_SIDE:
        print_paragraph(
            "The maze is too large for the terminal; --out DIR writes pictures."
        )
        return

    console = make_console()
    color = has_color()
    # Two maps of square cells, and a gap, have to fit beside each other.
    wide = color and 4 * (width + 2) + 2 <= console.width

    n_maps = min(len(options), _MAX_MAPS)
    blocks: list[list[str | Text]] = []
    used_glyphs: set[str] = set()
    for i in range(n_maps):
        arrows = draw_option(options, i)
        used_glyphs.update(arrows)
        level = _compute_level(options[i])
        cells = draw_cells(coords, arrows, level, color=color, wide=wide)
        mean_length = f"{options.mean_length[i]:.1f} steps"
        blocks.append([options.labels[i], mean_length, *cells])
    console.print(set_side_by_side(blocks))

    n_others = len(options) - n_maps
    legend = explain_glyphs(used_glyphs, options.mdp.legend)
    print_paragraph(_explain_maps(n_others, legend, color))


def _explain_maps(n_others: int, legend: str, color: bool) -> str:
    """Say what the maps show, and how many options they leave out.

    >>> _explain_maps(2, "", color=False)
    'the other 2 options are only in the table; ● is where they terminate'
    """
    notes = []
    if n_others > 0:
        notes.append(f"the other {n_others} options are only in the table")
    if legend:
        notes.append(legend)
    if color:
        notes.append("options climb from blue to orange and terminate on red")
    else:
        notes.append("● is where they terminate")
    return "; ".join(notes)


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
