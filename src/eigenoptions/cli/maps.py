"""Maps of states in the terminal: those that `print` shows, with colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
from eigenoptions._text import STOP, draw_map, layout_map, printable
from eigenoptions._types import FloatArray, IndexArray

if TYPE_CHECKING:
    from rich.text import Text

_AGENT = "◆"


def draw_cells(
    coords: IndexArray,
    glyphs: Sequence[str],
    level: FloatArray | None = None,
    *,
    trail: Sequence[int] = (),
    color: bool = False,
    wide: bool = False,
) -> Text:
    """Draw the map that `print` shows, with colours.

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
    >>> import numpy as np
    >>> draw_cells(np.array([[0, 0], [0, 1]]), "→●").plain.split()
    ['████', '█→●█', '████']
    """
    from rich.text import Text

    shown = list(glyphs)
    if trail:
        shown[trail[-1]] = _AGENT
    width = 2 if wide else 1
    drawn = Text(draw_map(coords, shown, width))
    if not color:
        return drawn

    start = 0
    for row in layout_map(coords).tolist():
        for state in row:
            style: str | None = TERMINAL_WALL
            if state >= 0:
                cell_level = None if level is None else float(level[state])
                style = _choose_style(glyphs[state], cell_level, state in trail)
            if style is not None:
                drawn.stylize(style, start, start + width)
            start += width
        # The end of the line.
        start += 1
    return drawn


def stack_lines(*lines: str | Text) -> Text:
    """Set lines above each other, and an empty one below them.

    What is wider than the terminal is cut off.
    """
    from rich.text import Text

    block = Text(no_wrap=True, overflow="crop")
    for line in lines:
        block.append(printable(line) if isinstance(line, str) else line)
        block.append("\n")
    return block


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
