"""Maps for the terminal: arrows on coloured cells; plain characters where there are no colours (a pipe, NO_COLOR)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich.columns import Columns
from rich.console import Console, Group
from rich.text import Text

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
from eigenoptions._text import STOP, WALL, layout_states, printable

# Characters for values from low to high where there are no colours.
SHADES = "·-+#"


def has_color() -> bool:
    """Whether standard output shows colours."""
    console = Console()
    return console.color_system is not None and not console.no_color


def mix_color(level: float) -> str:
    """Colour of a number from -1 (blue) over 0 (white) to 1 (orange)."""
    end = ORANGE if level > 0 else BLUE
    return mix_colors(WHITE, end, min(abs(level), 1.0))


def draw_cells(
    coords: NDArray[np.int_],
    glyphs: Sequence[str],
    level: NDArray[np.float64] | None = None,
    *,
    trail: Sequence[int] = (),
    color: bool = False,
    wide: bool = False,
) -> list[Text]:
    """One cell per state, with a wall around.

    `glyphs` are one character per state, `level` ``(S,)`` numbers in -1 (blue) to 1 (orange) that colour the cells,
    `trail` states visited so far, with the agent in the last one. Cells that are `wide` are about square.

    >>> [line.plain for line in draw_cells(np.array([[0, 0], [0, 1]]), "→●")]
    ['████', '█→●█', '████']
    """
    grid = np.pad(layout_states(coords), 1, constant_values=-1)
    width = 2 if wide else 1
    lines = []
    for row in grid.tolist():
        line = Text()
        for state in row:
            if state < 0:
                line.append(WALL * width, style=TERMINAL_WALL if color else None)
                continue
            style = None
            if color and state in trail:
                style = f"bold {INK} on {YELLOW}"
            elif color and glyphs[state] == STOP:
                style = f"bold {WHITE} on {RED}"
            elif color and level is not None:
                style = f"{INK} on {mix_color(float(level[state]))}"
            glyph = "◆" if trail and state == trail[-1] else glyphs[state]
            line.append(glyph.ljust(width), style=style)
        lines.append(line)
    return lines


def set_side_by_side(blocks: Sequence[Sequence[str | Text]]) -> Columns:
    """Blocks of lines beside each other, as many per row as fit; an empty line follows each row."""
    columns = []
    for block in blocks:
        lines = [
            line if isinstance(line, Text) else Text(printable(line))
            for line in (*block, "")
        ]
        for line in lines:
            # A block that is wider than the terminal is cut off.
            line.no_wrap, line.overflow = True, "crop"
        columns.append(Group(*lines))
    return Columns(columns, padding=(0, 2))
