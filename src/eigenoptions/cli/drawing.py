"""Maps for the terminal: arrows on coloured cells, and half blocks for mazes that are too large for arrows.

Where there are no colours (a pipe, NO_COLOR), the same maps are drawn in plain characters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich.columns import Columns
from rich.console import Console, Group
from rich.text import Text

from eigenoptions import _text as sketch
from eigenoptions._text import printable

WALL_COLOR, INK_COLOR, TRAIL_COLOR = "#5b5b5b", "#101010", "#ffdd33"
AGENT = "◆"
# Characters for values from low to high where there are no colours.
SHADES = "·-+#"
# Narrowest map of a large maze, in columns.
MIN_COLUMNS = 16

Array = NDArray[np.float64]


def has_colour() -> bool:
    """Whether standard output shows colours."""
    console = Console()
    return console.color_system is not None and not console.no_color


def levels(values: Array) -> Array:
    """Values divided by the largest of them without sign, so that they lie in -1..1.

    >>> levels(np.array([1.0, -4.0])).tolist()
    [0.25, -1.0]
    """
    return values / (float(np.abs(values).max(initial=0.0)) or 1.0)


def cell_map(
    coords: NDArray[np.int_],
    glyphs: Sequence[str],
    level: Array | None = None,
    *,
    trail: Sequence[int] = (),
    colour: bool = False,
    wide: bool = False,
) -> list[Text]:
    """One cell per state, with a wall around.

    Parameters
    ----------
    coords, glyphs
        ``(S, 2)`` row and column of each state, and its character.
    level
        ``(S,)`` numbers in -1 (blue) to 1 (orange), which colour the cells; None: no colours.
    trail
        States of a run so far, which are coloured; the last one is where the agent is.
    colour
        Whether colours are shown.
    wide
        Draw cells two columns wide, which makes them about square.

    Examples
    --------
    >>> [line.plain for line in cell_map(np.array([[0, 0], [0, 1]]), "→●")]
    ['████', '█→●█', '████']
    """
    grid = np.pad(sketch.layout(coords), 1, constant_values=-1)
    many = 2 if wide else 1
    seen = dict.fromkeys(trail, "") | dict.fromkeys(trail[-1:], AGENT)
    lines = []
    for row in grid.tolist():
        line = Text()
        for s in row:
            if s < 0:
                line.append(sketch.WALL * many, style=WALL_COLOR if colour else None)
                continue
            style = None
            if colour and s in seen:
                style = f"bold {INK_COLOR} on {TRAIL_COLOR}"
            elif colour and glyphs[s] == sketch.STOP:
                style = f"bold #ffffff on {sketch.STOP_COLOR}"
            elif colour and level is not None:
                style = f"{INK_COLOR} on {sketch.shade(float(level[s]))}"
            line.append((seen.get(s) or glyphs[s]).ljust(many), style=style)
        lines.append(line)
    return lines


def block_map(
    coords: NDArray[np.int_], level: Array, stops: NDArray[np.bool_], columns: int, *, colour: bool = False
) -> list[Text]:
    """A map of at most `columns` columns in which each block of cells has the mean level of its states.

    With colours a character shows two blocks, one above the other; without, one character from low ``·`` to high ``#``
    per block. Blocks that hold a state where an option stops are red, or ``●``.

    >>> cells = np.argwhere(np.ones((4, 8), dtype=bool))
    >>> drawn = block_map(cells, np.linspace(0, 1, 32), np.arange(32) == 31, 4)
    >>> [line.plain for line in drawn]
    ['·-+●']
    """
    cells = coords - coords.min(axis=0)
    step = -(-int(cells[:, 1].max() + 1) // columns)
    # A character is about twice as high as wide.
    place = tuple((cells // [step if colour else 2 * step, step]).T)
    shape = tuple(int(axis.max()) + 1 for axis in place)
    count, total, red = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool)
    np.add.at(count, place, 1)
    np.add.at(total, place, level)
    np.logical_or.at(red, place, stops)
    mean = np.divide(total, count, out=np.full(shape, np.nan), where=count > 0)
    if not colour:
        low, high = np.nanmin(mean), np.nanmax(mean)
        share = np.nan_to_num((mean - low) / ((high - low) or 1.0))
        shades = np.array(list(SHADES))[np.minimum(len(SHADES) * share, len(SHADES) - 1).astype(int)]
        glyphs = np.select([count == 0, red], [sketch.WALL, sketch.STOP], shades)
        return [Text("".join(row)) for row in glyphs]
    paint = [
        [
            WALL_COLOR if x != x else sketch.STOP_COLOR if stop else sketch.shade(x)
            for x, stop in zip(*row, strict=True)
        ]
        for row in zip(mean.tolist(), red.tolist(), strict=True)
    ]
    paint += [[WALL_COLOR] * shape[1]] * (len(paint) % 2)
    lines = []
    for upper, lower in zip(paint[::2], paint[1::2], strict=True):
        line = Text()
        for above, below in zip(upper, lower, strict=True):
            line.append("▀", style=f"{above} on {below}")
        lines.append(line)
    return lines


def fitting_columns(width: int, maps: int) -> int:
    """Columns of each of `maps` maps that stand side by side in a terminal, at most two of them.

    >>> fitting_columns(80, 4), fitting_columns(80, 1), fitting_columns(20, 2)
    (39, 80, 16)
    """
    return max(MIN_COLUMNS, (width - 2) // 2 if maps > 1 else width)


def bar_line(share: float, width: int) -> str:
    """A horizontal bar that fills a share of `width` characters.

    >>> bar_line(0.5, 4), bar_line(0.01, 4)
    ('██', '▏')
    """
    eighths = max(1, round(8 * width * share))
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def side_by_side(blocks: Sequence[Sequence[str | Text]]) -> Columns:
    """Blocks of lines that stand beside each other, as many per row as fit; an empty line follows each row.

    >>> Console(width=6).print(side_by_side([["a", "bc"], ["d"], ["e"]]))  # doctest: +NORMALIZE_WHITESPACE
    a   d
    bc
    <BLANKLINE>
    e
    <BLANKLINE>
    """
    columns = []
    for block in blocks:
        lines = [line if isinstance(line, Text) else Text(printable(line)) for line in (*block, "")]
        for line in lines:
            # A block that is wider than the terminal is cut off.
            line.no_wrap, line.overflow = True, "crop"
        columns.append(Group(*lines))
    return Columns(columns, padding=(0, 2))
