"""Maps of states in the terminal: arrows on coloured cells, or plain characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import eigenoptions as eo
from eigenoptions._colors import (
    BLUE,
    INK,
    ORANGE,
    RED,
    TERMINAL_WALL,
    WHITE,
    YELLOW,
    mix_colors,
)
from eigenoptions._text import (
    STOP,
    WALL,
    draw_arrows,
    layout_states,
    printable,
)
from eigenoptions._types import FloatArray, IndexArray

if TYPE_CHECKING:
    from rich.columns import Columns
    from rich.text import Text

_AGENT = "◆"


def draw_option(options: eo.OptionSet, number: int) -> list[str]:
    """Draw one glyph per state: what an option does there."""
    # Imported here: help needs no SciPy.
    from eigenoptions.options.pictures import find_arrows

    mdp = options.mdp
    policy = options.policy[number]
    return draw_arrows(policy, *find_arrows(mdp, policy))


def draw_cells(
    coords: IndexArray,
    glyphs: Sequence[str],
    level: FloatArray | None = None,
    *,
    trail: Sequence[int] = (),
    color: bool = False,
    wide: bool = False,
) -> list[Text]:
    """Draw one cell per state, with a wall around the map.

    Parameters
    ----------
    coords : ndarray of shape (S, 2)
        Row and column of each state.
    glyphs : sequence of str
        One character per state.
    level : ndarray of shape (S,), default=None
        Numbers from -1 (blue) to 1 (orange), which colour the cells.
    trail : sequence of int, default=()
        States that were visited so far. The agent stands in the last one.
    color : bool, default=False
        Whether to colour the cells.
    wide : bool, default=False
        Whether cells have two characters, which makes them about square.

    Examples
    --------
    >>> [line.plain for line in draw_cells(np.array([[0, 0], [0, 1]]), "→●")]
    ['████', '█→●█', '████']
    """
    from rich.text import Text

    width = 2 if wide else 1
    grid = np.pad(layout_states(coords), 1, constant_values=-1)

    lines = []
    for row in grid.tolist():
        line = Text()
        for state in row:
            if state < 0:
                line.append(WALL * width, style=TERMINAL_WALL if color else None)
                continue

            glyph = glyphs[state]
            if trail and state == trail[-1]:
                glyph = _AGENT

            style = None
            if color:
                cell_level = None if level is None else float(level[state])
                style = _choose_style(glyphs[state], cell_level, state in trail)
            line.append(glyph.ljust(width), style=style)
        lines.append(line)
    return lines


def set_side_by_side(blocks: Sequence[Sequence[str | Text]]) -> Columns:
    """Set blocks of lines beside each other, as many per row as fit.

    An empty line follows each row of blocks. A block that is wider than the terminal
    is cut off.
    """
    from rich.columns import Columns
    from rich.console import Group
    from rich.text import Text

    columns = []
    for block in blocks:
        lines = []
        for line in [*block, ""]:
            if isinstance(line, str):
                line = Text(printable(line))
            line.no_wrap = True
            line.overflow = "crop"
            lines.append(line)
        columns.append(Group(*lines))
    return Columns(columns, padding=(0, 2))


def _choose_style(glyph: str, level: float | None, is_on_trail: bool) -> str | None:
    """Choose the colours of a cell, as rich writes them."""
    if is_on_trail:
        return f"bold {INK} on {YELLOW}"
    if glyph == STOP:
        return f"bold {WHITE} on {RED}"
    if level is not None:
        return f"{INK} on {_color_level(level)}"
    return None


def _color_level(level: float) -> str:
    """The colour of a number from -1 (blue) over 0 (white) to 1 (orange)."""
    end = ORANGE if level > 0 else BLUE
    return mix_colors(WHITE, end, min(abs(level), 1.0))
