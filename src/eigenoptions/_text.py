"""Sketches of states on a grid and of curves, as text for the terminal and as a small SVG for a notebook.

The records of the library use them for `__repr__`, `__str__` and `_repr_html_`; `plots` makes figures for a paper. The
functions take plain arrays: coordinates, and one glyph, number or action per state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Row and column of a move to a neighbouring cell.
ARROWS = {
    (-1, 0): "↑",
    (0, 1): "→",
    (1, 0): "↓",
    (0, -1): "←",
    (-1, 1): "↗",
    (1, 1): "↘",
    (1, -1): "↙",
    (-1, -1): "↖",
}
STOP, STAY = "●", "○"
WALL = "█"
STOP_COLOR = "#d7263d"
# Most rows and columns of a map in the terminal; larger ones are drawn coarser.
MAX_SIDE = 48
# Most maps of a set of options in a notebook.
MAX_PICTURES = 12
SPARK = "▁▂▃▄▅▆▇█"
# The package that draws figures lies above the records that it draws, so their method `plot` looks it up by name.
PLOTS = "eigenoptions.plots"


def layout(coords: NDArray[np.int_]) -> NDArray[np.int64]:
    """Grid of the numbers of states at the rows and columns `coords` ``(S, 2)``, -1 where there is none (a wall).

    >>> layout(np.array([[0, 0], [1, 1]]))
    array([[ 0, -1],
           [-1,  1]])
    """
    cells = np.asarray(coords, dtype=np.int64)
    low = cells.min(axis=0)
    grid = np.full(tuple(cells.max(axis=0) - low + 1), -1, dtype=np.int64)
    grid[tuple((cells - low).T)] = np.arange(len(cells))
    return grid


def coarse(grid: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Every m-th row and column of a grid, so that neither side is longer than `most`.

    >>> coarse(np.arange(25).reshape(5, 5), 3)
    array([[ 0,  2,  4],
           [10, 12, 14],
           [20, 22, 24]])
    """
    step = -(-max(grid.shape) // most)
    return grid[::step, ::step]


def text(coords: NDArray[np.int_], glyphs: Sequence[str]) -> str:
    """One character per state, walls filled in.

    >>> print(text(np.array([[0, 0], [0, 1], [1, 1]]), "ab."))
    ████
    █ab█
    ██.█
    ████
    """
    grid = np.pad(coarse(layout(coords), MAX_SIDE), 1, constant_values=-1)
    return "\n".join("".join(WALL if s < 0 else glyphs[s] for s in row) for row in grid.tolist())


def moves(
    coords: NDArray[np.int_], policy: NDArray[np.integer[Any]], successors: NDArray[np.int32]
) -> NDArray[np.int64]:
    """``(S, 2)`` rows and columns that the action of each state moves by, 0 where it stops (is negative) or stays.

    >>> moves(np.array([[0, 0], [0, 1]]), np.array([1, -1]), np.array([[0, 1], [0, 1]])).tolist()
    [[0, 1], [0, 0]]
    """
    here = np.arange(len(policy))
    cells = np.asarray(coords, dtype=np.int64)
    return cells[np.where(policy >= 0, successors[here, policy], here)] - cells


def arrows(policy: NDArray[np.integer[Any]], moves: NDArray[np.int64] | None) -> list[str]:
    """One glyph per state: an arrow to a neighbouring cell, a ring where an action stays, a dot where an option stops.

    Where an action leads elsewhere, or `moves` is None (not known), its number stands, or ``+`` above 9.

    >>> arrows(np.array([7, 7, -1, 5]), np.array([[0, -1], [0, 0], [0, 0], [3, 0]]))
    ['←', '○', '●', '5']
    """
    known: Any = [None] * len(policy) if moves is None else map(tuple, moves.tolist())
    glyphs = {**ARROWS, (0, 0): STAY}
    return [
        STOP if a < 0 else glyphs.get(move, str(a) if a < 10 else "+")
        for a, move in zip(policy.tolist(), known, strict=True)
    ]


def directions(policy: NDArray[np.integer[Any]], moves: NDArray[np.int64]) -> NDArray[np.int8]:
    """``(S,)`` numbers in place of glyphs: 0 up, 1 right, 2 down, 3 left, 4 any other move, -1 where the option stops.

    >>> directions(np.array([7, 0, -1]), np.array([[0, -1], [3, 0], [0, 0]])).tolist()
    [3, 4, -1]
    """
    found = np.full(len(policy), 4, dtype=np.int8)
    for number, move in enumerate(list(ARROWS)[:4]):
        found[(moves == move).all(axis=1)] = number
    found[policy < 0] = -1
    return found


def key(glyphs: Iterable[str], legend: str = "") -> str:
    """Explanation of glyphs that are neither arrows nor stops, and the legend of the states; empty where not needed.

    >>> key("↑1")
    'a digit: number of an action whose move leads to no neighbouring cell or is not known'
    """
    used = set(glyphs)
    parts = [f"{STAY} the action most likely changes nothing"] if STAY in used else []
    if used & set("0123456789+"):
        above = " (+ above 9)" if "+" in used else ""
        parts.append(
            f"a digit{above}: number of an action whose move leads to no neighbouring cell or is not known"
        )
    return "; ".join([*parts, *filter(None, [legend])])


def svg(
    coords: NDArray[np.int_],
    *,
    values: NDArray[np.float64] | None = None,
    glyphs: Sequence[str] | None = None,
    marks: dict[int, str] | None = None,
    size: int = 180,
) -> str:
    """A small picture: cells shaded by `values` (blue to orange) or marked by `glyphs` (red where an option stops).

    Returns an ``<svg>`` element, `size` pixels wide, that needs nothing from outside.

    >>> svg(np.array([[0, 0], [0, 1]]), glyphs="→●").count("<rect")
    3
    """
    grid = coarse(layout(coords), 100)
    high, wide = grid.shape
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" viewBox="-0.2 -0.2 {wide + 0.4} {high + 0.4}" '
        'role="img" font-family="sans-serif" text-anchor="middle" font-size="0.7">',
        f'<rect x="-0.2" y="-0.2" width="{wide + 0.4}" height="{high + 0.4}" fill="#777"/>',
    ]
    top = float(np.max(np.abs(values))) or 1.0 if values is not None else 1.0
    for (y, x), state in np.ndenumerate(grid):
        s = int(state)
        if s < 0:
            continue
        fill = "#fff"
        if values is not None:
            fill = shade(float(values[s]) / top)
        elif glyphs is not None and glyphs[s] == STOP:
            fill = STOP_COLOR
        rows.append(f'<rect x="{x + 0.03}" y="{y + 0.03}" width=".94" height=".94" fill="{fill}"/>')
        label = (marks or {}).get(s, "")
        if not label and glyphs and glyphs[s] != STOP:
            label = glyphs[s]
        if label:
            rows.append(f'<text x="{x + 0.5}" y="{y + 0.75}">{escape(label)}</text>')
    return "".join([*rows, "</svg>"])


def shade(level: float) -> str:
    """A colour-blind safe diverging scale: blue (-1), white (0), orange (+1).

    >>> shade(-1.0), shade(0.0), shade(2.0)
    ('#2166ac', '#ffffff', '#e66101')
    """
    end = (230, 97, 1) if level > 0 else (33, 102, 172)
    weight = min(abs(level), 1.0)
    return "#" + "".join(f"{round(255 + (c - 255) * weight):02x}" for c in end)


def spark(
    values: Sequence[float] | NDArray[Any], width: int = 32, *, low: float = 0.0, high: float = 1.0
) -> str:
    """A curve as one line of text: means over at most `width` parts, from `low` (lowest bar) to `high` (highest).

    >>> spark([0.0, 0.25, 0.5, 1.0])
    '▁▃▅█'
    """
    parts = np.array_split(np.asarray(values, dtype=float), min(width, len(values)))
    levels = [len(SPARK) * (part.mean() - low) / ((high - low) or 1.0) for part in parts]
    return "".join(SPARK[int(np.clip(level, 0, len(SPARK) - 1))] for level in levels)


def curve_svg(mean: NDArray[Any], low: NDArray[Any], high: NDArray[Any], size: int = 360) -> str:
    """A curve from 0 to 1 with its band as a small picture, `size` pixels wide.

    >>> curve_svg(np.array([0.0, 1.0]), np.array([0.0, 0.8]), np.array([0.2, 1.0])).count("<polygon")
    1
    """
    x = np.linspace(0, 100, len(mean)) if len(mean) > 1 else np.array([50.0])

    def line(y: NDArray[Any], order: int = 1) -> str:
        return " ".join(f"{a:.2f},{40 - 40 * b:.2f}" for a, b in zip(x[::order], y[::order], strict=True))

    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" viewBox="-2 -3 104 46" role="img">'
        '<rect x="-2" y="-3" width="104" height="46" fill="#fff"/>'
        '<path d="M0 0H100M0 20H100M0 40H100" stroke="#ddd" stroke-width=".3"/>'
        f'<polygon points="{line(high)} {line(low, -1)}" fill="#2166ac" opacity=".25"/>'
        f'<polyline points="{line(mean)}" fill="none" stroke="#2166ac" stroke-width=".8"/></svg>'
    )


def describe(array: Any) -> str:
    """Type, shape and range of an array in a few words.

    >>> describe(np.array([[1, 5], [2, 3]]))
    'int64 (2, 2), 1 to 5'
    """
    array = np.asarray(array)
    what = f"{array.dtype} {array.shape}"
    if not array.size or array.dtype.kind not in "buif":
        return what
    ends = f"{array.sum()} true" if array.dtype.kind == "b" else f"{array.min():.4g} to {array.max():.4g}"
    return f"{what}, {ends}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for a notebook.

    >>> table(["option"], [["e2+"]])
    '<table><tr><th>option</th></tr><tr><td>e2+</td></tr></table>'
    """
    lines = [("th", heads), *(("td", row) for row in rows)]
    cells = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) for tag, row in lines)
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"


def options_html(options: Sequence[Any], text: str, total: int = 1, legend: str = "") -> str:
    """Options as maps of arrows for a notebook, with a text below; `total` is their number with those not shown."""
    pictures, used = [], set()
    for o in options:
        if o.coords is not None:
            way = None if o.successors is None else moves(o.coords, o.policy, o.successors)
            glyphs = arrows(o.policy, way)
            used.update(glyphs)
            length = f" mean length {o.mean_length:.1f}" if np.isfinite(o.mean_length) else ""
            caption = f"<figcaption><code>{escape(o.label)}</code>{length}</figcaption>"
            picture = svg(o.coords, glyphs=glyphs)
            pictures.append(f'<figure style="display:inline-block;margin:6px">{caption}{picture}</figure>')
    lines = ["".join(pictures), "red: it stops" if pictures else "", escape(key(used, legend))]
    lines += [f"{total - len(options)} more are not shown" if pictures and total > len(options) else ""]
    return "<div>" + "<br>".join([*filter(None, lines), f"<code>{escape(text)}</code>"]) + "</div>"


def arrays_html(title: str, arrays: Mapping[str, Any]) -> str:
    """A table for a notebook that describes arrays by name.

    >>> arrays_html("2 steps", {"action": np.array([0, 3])})[-46:]
    '<td>int64 (2,), 0 to 3</td></tr></table></div>'
    """
    rows = [(name, describe(array)) for name, array in arrays.items()]
    return f"<div>{table(('part', title), rows)}</div>"


def count(n: int, word: str) -> str:
    """A number with its noun.

    >>> count(1, "step"), count(2, "step")
    ('1 step', '2 steps')
    """
    return f"{n} {word}{'s' * (n != 1)}"


def plot(record: Any, **settings: Any) -> Any:
    """A figure of a record, drawn by `plots.plot`."""
    return import_module(PLOTS).plot(record, **settings)


def printable(text: str) -> str:
    r"""`text` for a terminal: control characters, which could command it, as escape codes.

    >>> print(printable("a\x1b[31mb"))
    a\x1b[31mb
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
