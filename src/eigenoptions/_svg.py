"""Pictures as SVG and pages as HTML: what records show in a notebook.

The functions take plain arrays, as those of `_text` do, and need no Matplotlib. A
picture suits light and dark pages: lines have the colour of the text around them, and
what is filled is partly transparent. Its unit is the side of a cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eigenoptions._colors import (
    INK,
    PRINTED_GOAL,
    PRINTED_START,
    RED,
    SCREEN_BLUE,
    SCREEN_ORANGE,
)
from eigenoptions._text import (
    HEADINGS,
    count_noun,
    draw_arrows,
    layout_states,
    printable,
)
from eigenoptions._types import BoolArray, FloatArray, IntegerArray

# Larger maps have colours instead of arrows.
MAX_ARROW_SIDE = 50

# In still larger maps only every m-th row and column is drawn.
_MAX_SIDE = 100

# Steps of a heat map below and above zero. Cells of one step are one shape.
_N_LEVELS = 8

# Movement by rows and columns of an agent with each of the `HEADINGS`.
_FORWARD = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])

# Walls. Crisp edges leave no seam between cells that touch.
_PALE = 'fill-opacity=".3" shape-rendering="crispEdges"'

_MARK_COLORS = {"S": PRINTED_START, "G": PRINTED_GOAL}


class Figure(NamedTuple):
    """A picture, the line of text above it, and its width in pixels."""

    caption: str
    svg: str
    width: float


# Pictures beside each other, and the pixels between them.
_GAP = 12
_ROW = f"display:flex;flex-wrap:wrap;gap:{_GAP}px"


def draw_maps(
    coords: IntegerArray,
    headings: IntegerArray | None = None,
    *,
    policy: IntegerArray | None = None,
    moves: IntegerArray | None = None,
    turns: IntegerArray | None = None,
    values: FloatArray | None = None,
    rings: BoolArray | None = None,
    dots: BoolArray | None = None,
    marks: Mapping[int, str] | None = None,
    is_shown: BoolArray | None = None,
    caption: str = "",
) -> list[Figure]:
    """Draw a map of states, or one for each heading of the agent.

    Parameters
    ----------
    coords : (S, 2) array
        Row and column of each state.
    headings : (S,) array, default=None
        Heading of each state, a number of `HEADINGS`.
    policy, moves, turns : array, default=None
        Arrows, as `_text.draw_arrows` takes them.
    values : (S,) array, default=None
        Colours: blue below zero, orange above. States with nan have none.
    rings, dots : (S,) array of bool, default=None
        States with a ring, and with a red dot.
    marks : mapping from states to letters, default=None
        Letters on some states.
    is_shown : (S,) array of bool, default=None
        States that are drawn; the others look like walls. None: all.
    caption : str, default=""
        What stands above the maps.

    Examples
    --------
    >>> (figure,) = draw_maps(np.array([[0, 0], [0, 1]]), dots=np.array([0, 1]))
    >>> figure.svg.startswith("<svg")
    True
    """
    n_states = len(coords)
    shown = np.ones(n_states, dtype=np.bool_) if is_shown is None else is_shown
    parts = [("", np.flatnonzero(shown))]
    if headings is not None:
        parts = []
        for number, name in enumerate(HEADINGS):
            states = np.flatnonzero(shown & (headings == number))
            if len(states):
                parts.append((f"facing {name}", states))

    figures = []
    for heading, states in parts:
        drawing = _MapDrawing(coords[states])
        if values is not None:
            drawing.add_values(values[states])
        if policy is not None and moves is not None:
            facing = None if headings is None else int(headings[states[0]])
            chosen_turns = None if turns is None else turns[states]
            drawing.add_policy(policy[states], moves[states], chosen_turns, facing)
        if rings is not None:
            drawing.add_rings(np.flatnonzero(rings[states]))
        if dots is not None:
            drawing.add_dots(np.flatnonzero(dots[states]))
        for state, letter in (marks or {}).items():
            for place in np.flatnonzero(states == state).tolist():
                drawing.add_mark(place, letter)
        title = " ".join([caption, heading]).strip()
        figures.append(drawing.finish(title))
    return figures


def fits_arrows(coords: IntegerArray) -> bool:
    """Whether a map is small enough for arrows.

    >>> fits_arrows(np.array([[0, 0], [0, 200]]))
    False
    """
    return bool(np.ptp(coords, axis=0).max() < MAX_ARROW_SIDE)


class _MapDrawing:
    """One map: walls first, then what is added to its cells, in this order."""

    def __init__(self, coords: IntegerArray) -> None:
        side = int(np.ptp(coords, axis=0).max()) + 1
        self._is_small = side <= MAX_ARROW_SIDE
        self._has_policy = False
        self._has_turns = False
        self._has_values = False
        grid = np.pad(layout_states(coords, _MAX_SIDE), 1, constant_values=-1)
        self._height, self._width = grid.shape

        # A map that is drawn coarser leaves out states: these have no place.
        rows, columns = np.nonzero(grid >= 0)
        self._rows = np.full(len(coords), -1)
        self._columns = np.full(len(coords), -1)
        self._rows[grid[rows, columns]] = rows
        self._columns[grid[rows, columns]] = columns

        walls = _trace_runs(grid < 0)
        self._parts = [f'<path d="{walls}" fill="currentColor" {_PALE}/>']
        if self._is_small:
            lines = "".join(
                f"M{column} {row}h1v1"
                for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
            )
            self._parts.append(
                f'<path d="{lines}" fill="none" stroke="currentColor" '
                'stroke-opacity=".15" stroke-width=".04"/>'
            )

    def add_values(self, values: FloatArray) -> None:
        """Fill cells with colours: stronger where a number is farther from zero."""
        self._has_values = True
        levels = _find_levels(values)
        drawn = self._rows >= 0
        grid = np.zeros((self._height, self._width), dtype=np.int64)
        grid[self._rows[drawn], self._columns[drawn]] = levels[drawn]
        for level in np.unique(grid[grid != 0]).tolist():
            color = SCREEN_ORANGE if level > 0 else SCREEN_BLUE
            opacity = abs(level) / _N_LEVELS
            self._parts.append(
                f'<path d="{_trace_runs(grid == level)}" fill="{color}" '
                f'fill-opacity="{opacity:.3g}" shape-rendering="crispEdges"/>'
            )

    def add_policy(
        self,
        policy: IntegerArray,
        moves: IntegerArray,
        turns: IntegerArray | None,
        facing: int | None,
    ) -> None:
        """Draw the action of each cell, and a red dot where there is none."""
        self._has_policy = True
        arrows = ""
        digits = ""
        lengths = np.abs(moves).max(axis=1)
        is_turn = np.zeros(len(policy), dtype=np.bool_)
        if turns is not None:
            is_turn = (turns != 0) & (policy >= 0)
            self._has_turns = bool(is_turn.any())

        is_drawn = (policy >= 0) & (self._rows >= 0)
        for turn in (-1, 1):
            if turns is not None and facing is not None:
                chosen = is_drawn & is_turn & (turns == turn)
                arrows += self._trace_arrows(chosen, *find_bend(facing, turn))
        is_step = is_drawn & (lengths == 1) & ~is_turn
        for move in np.unique(moves[is_step], axis=0):
            direction = move / np.hypot(*move)
            chosen = is_step & (moves == move).all(axis=1)
            arrows += self._trace_arrows(chosen, direction, direction)

        far = np.flatnonzero(is_drawn & (lengths > 1) & ~is_turn)
        glyphs = draw_arrows(policy[far], moves[far])
        for state, glyph in zip(far.tolist(), glyphs, strict=True):
            y, x = self._find_middle(state)
            digits += f'<text x="{_show(x)}" y="{_show(y)}">{glyph}</text>'

        if arrows:
            self._parts.append(
                f'<path d="{arrows}" fill="none" stroke="currentColor" '
                'stroke-width=".1" stroke-linejoin="round" stroke-linecap="round"/>'
            )
        if digits:
            self._parts.append(
                '<g font-size=".65" text-anchor="middle" dominant-baseline="central" '
                f'fill="currentColor">{digits}</g>'
            )
        stays = (policy >= 0) & (lengths == 0) & ~is_turn
        self.add_rings(np.flatnonzero(stays))
        self.add_dots(np.flatnonzero(policy < 0))

    def add_rings(self, states: IntegerArray) -> None:
        """Draw a ring on some cells."""
        circles = ""
        for state in states.tolist():
            if self._rows[state] >= 0:
                y, x = self._find_middle(state)
                circles += (
                    f"M{_show(x - 0.17)} {_show(y)}"
                    "a.17 .17 0 1 0 .34 0a.17 .17 0 1 0-.34 0"
                )
        if circles:
            self._parts.append(
                f'<path d="{circles}" fill="none" stroke="currentColor" '
                'stroke-width=".07"/>'
            )

    def add_dots(self, states: IntegerArray) -> None:
        """Draw a red dot on some cells: what ends there."""
        drawn = states[self._rows[states] >= 0]
        # The middles of the cells, x before y.
        places = np.stack([self._columns[drawn], self._rows[drawn]], axis=1) + 0.5
        # In a large map the cells are small: there, dots are as wide as cells.
        width = 0.5 if self._is_small else 1.0
        if self._has_values:
            # A margin, so that red can be told from orange.
            self._parts.append(_draw_round(places, "currentColor", 1.4 * width))
        self._parts.append(_draw_round(places, RED, width))

    def add_mark(self, state: int, letter: str) -> None:
        """Draw a letter on a coloured cell."""
        if self._rows[state] < 0:
            return
        y, x = self._find_middle(state)
        color = _MARK_COLORS.get(letter, "none")
        ink = INK if color != "none" else "currentColor"
        self._parts.append(
            f'<rect x="{_show(x - 0.5)}" y="{_show(y - 0.5)}" width="1" height="1" '
            f'fill="{color}"/><text x="{_show(x)}" y="{_show(y)}" font-size=".75" '
            'font-weight="bold" text-anchor="middle" dominant-baseline="central" '
            f'fill="{ink}">{escape(letter)}</text>'
        )

    def finish(self, caption: str) -> Figure:
        """The map with what was added to it."""
        # Arrows need ten pixels a cell, those that bend fourteen; small maps get more.
        # Four of thirteen cells fit into a page of the documentation.
        least = 1.0
        if self._has_policy:
            least = 14.0 if self._has_turns else 10.0
        side = 172.0
        if self._has_values or not self._is_small:
            side = 230.0
        pixels = float(np.clip(side / self._width, least, 18.0))
        body = "".join(self._parts)
        return _frame(body, self._width, self._height, pixels * self._width, caption)

    def _trace_arrows(
        self,
        is_chosen: BoolArray,
        before: NDArray[np.floating] | NDArray[np.integer],
        after: NDArray[np.floating] | NDArray[np.integer],
    ) -> str:
        """The path of equal arrows in some cells; see `find_corners`."""
        shaft, head = find_corners(np.zeros(2), before, after)
        corners = np.concatenate([shaft, head])
        # All but the first corner as steps from the one before, x first.
        steps = [_show(x, y) for y, x in np.diff(corners, axis=0).tolist()]
        pens = ["l"] * (len(shaft) - 1) + ["m", "l", "l"]
        shape = "".join(f"{pen}{step}" for pen, step in zip(pens, steps, strict=True))

        path = ""
        tail_y, tail_x = corners[0].tolist()
        for state in np.flatnonzero(is_chosen).tolist():
            y, x = self._find_middle(state)
            path += f"M{_show(x + tail_x, y + tail_y)}{shape}"
        return path

    def _find_middle(self, state: int) -> tuple[float, float]:
        """Vertical and horizontal place of the middle of a cell."""
        return float(self._rows[state]) + 0.5, float(self._columns[state]) + 0.5


def draw_nodes(
    positions: FloatArray,
    edges: IntegerArray,
    *,
    policy: IntegerArray | None = None,
    next_states: IntegerArray | None = None,
    caption: str = "",
) -> Figure:
    """Draw the nodes and edges of a graph, and an option as arrows along edges.

    Parameters
    ----------
    positions : (S, 2) array
        x and y of each node; y rises.
    edges : (E, 2) array of int
        Pairs of nodes.
    policy : (S,) array, default=None
        Action of each state, negative where the option terminates: red nodes.
    next_states : (S,) array, default=None
        Where the actions of the policy lead.
    caption : str, default=""
        What stands above the picture.
    """
    # 100 units wide and at most 100 high, with a margin for the nodes.
    low = positions.min(axis=0)
    extent = max(float(np.ptp(positions, axis=0).max()), 1e-12)
    places = (positions - low) / extent * 100.0
    top = float(places[:, 1].max())
    places[:, 1] = top - places[:, 1]
    places += 5.0

    lines = ""
    for first, second in places[edges].tolist():
        lines += f"M{_show(*first)}L{_show(*second)}"
    parts = [
        f'<path d="{lines}" fill="none" stroke="currentColor" stroke-opacity=".35" '
        'stroke-width=".6"/>'
    ]

    radius = float(np.clip(16.0 / np.sqrt(len(positions)), 0.7, 3.0))
    is_end = np.zeros(len(positions), dtype=np.bool_)
    if policy is not None:
        is_end = policy < 0
    parts.append(_draw_round(places[~is_end], "currentColor", 2 * radius))
    parts.append(_draw_round(places[is_end], RED, 2 * radius))

    if policy is not None and next_states is not None:
        arrows = ""
        for state in np.flatnonzero(~is_end).tolist():
            move = places[next_states[state]] - places[state]
            length = float(np.hypot(*move))
            if length > 0:
                reach = max(0.5 * length, length - radius - 1.0)
                arrows += _trace_edge_arrow(places[state], move / length, reach)
        parts.append(
            f'<path d="{arrows}" fill="none" stroke="{SCREEN_ORANGE}" '
            'stroke-width="1" stroke-linejoin="round" stroke-linecap="round"/>'
        )
    return _frame("".join(parts), 110.0, top + 10.0, 260.0, caption)


def draw_points(
    points: FloatArray,
    *,
    values: FloatArray | None = None,
    dots: BoolArray | None = None,
    caption: str = "",
    width: float = 250.0,
    height: float = 190.0,
) -> Figure:
    """Draw points, such as eigenvalues by their number.

    Parameters
    ----------
    points : (N, 2) array
        x and y of each point; y rises.
    values : (N,) array, default=None
        Colours, as in `draw_maps`. None: all points are blue.
    dots : (N,) array of bool, default=None
        Points that are red.
    caption : str, default=""
        What stands above the picture.
    width, height : float, default=250 and 190
        Size in pixels.

    Examples
    --------
    >>> draw_points(np.array([[1.0, 0.0], [2.0, 0.5]]), caption="values").caption
    'values'
    """
    margin = 6.0
    low = points.min(axis=0)
    extent = np.maximum(np.ptp(points, axis=0), 1e-12)
    room = np.array([width, height]) - 2 * margin
    places = (points - low) / extent * room + margin
    places[:, 1] = height - places[:, 1]

    size = float(np.clip(60.0 / np.sqrt(len(points)), 2.0, 6.0))
    levels = np.full(len(points), -_N_LEVELS)
    if values is not None:
        levels = _find_levels(values)
    is_red = np.zeros(len(points), dtype=np.bool_) if dots is None else dots

    body = (
        f'<path d="M.5 0V{height - 0.5}H{width}" fill="none" stroke="currentColor" '
        'stroke-opacity=".35"/>'
    )
    for level in np.unique(levels[~is_red]).tolist():
        color = SCREEN_ORANGE if level > 0 else SCREEN_BLUE
        # A point near zero is pale, but it is there.
        opacity = max(abs(level), 1) / _N_LEVELS
        body += _draw_round(places[(levels == level) & ~is_red], color, size, opacity)
    body += _draw_round(places[is_red], RED, size)
    return _frame(body, width, height, width, caption)


def show_figures(
    title: str, groups: Iterable[Sequence[Figure]], notes: Sequence[str]
) -> str:
    """A page of pictures beside each other, below a title and above some notes.

    Parameters
    ----------
    title : str
        What is shown, such as the `repr` of a record.
    groups : iterable of sequences of Figure
        The pictures, as many in a row as there is room for. Those of one group stay
        together, two in a row.
    notes : sequence of str
        Lines of text. Empty ones are left out.

    Examples
    --------
    >>> print(show_figures("a < b", [], ["note"]))
    <div><div>a &lt; b</div><div style="opacity:.75">note</div></div>
    """
    shown = ""
    for group in groups:
        figures = "".join(_show_figure(figure) for figure in group)
        if len(group) > 1:
            width = 2 * group[0].width + _GAP + 1
            figures = f'<div style="{_ROW};max-width:{width:.0f}px">{figures}</div>'
        shown += figures
    if shown:
        shown = f'<div style="{_ROW};margin:6px 0">{shown}</div>'
    return f"<div><div>{_escape(title)}</div>{shown}{_show_notes(notes)}</div>"


def show_table(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    notes: Sequence[str],
) -> str:
    """A page with a table, where there is nothing to draw.

    Parameters
    ----------
    title : str
        What is shown.
    header : sequence of str
        Names of the columns.
    rows : iterable of sequences of str
        The entries.
    notes : sequence of str
        Lines of text. Empty ones are left out.
    """
    # Without it, numbers of two columns would touch where a page has no style.
    space = 'style="padding:1px 12px 1px 0;text-align:left"'
    cells = "".join(f"<th {space}>{_escape(name)}</th>" for name in header)
    lines = f"<tr>{cells}</tr>"
    for row in rows:
        cells = "".join(f"<td {space}>{_escape(entry)}</td>" for entry in row)
        lines += f"<tr>{cells}</tr>"
    table = f'<table style="margin:6px 0">{lines}</table>'
    return f"<div><div>{_escape(title)}</div>{table}{_show_notes(notes)}</div>"


def count_hidden(n_all: int, n_shown: int, noun: str, remedy: str) -> str:
    """Say how many are not shown, and how to see them; empty if all are.

    >>> count_hidden(9, 8, "option", "options[8:]")
    '... 1 more option: options[8:]'
    """
    n_hidden = n_all - n_shown
    if n_hidden <= 0:
        return ""
    return f"... {count_noun(n_hidden, f'more {noun}')}: {remedy}"


def _show_figure(figure: Figure) -> str:
    """A picture below its caption."""
    return (
        '<figure style="margin:0;max-width:100%">'
        '<figcaption style="text-align:left;margin:0">'
        f"{_escape(figure.caption)}</figcaption>{figure.svg}</figure>"
    )


def _show_notes(notes: Sequence[str]) -> str:
    """Lines of text in a paler colour."""
    shown = ""
    for note in notes:
        if note:
            shown += f'<div style="opacity:.75">{_escape(note)}</div>'
    return shown


def _escape(text: str) -> str:
    """A text that cannot command the page or the terminal."""
    return escape(printable(text))


def _frame(
    body: str, width: float, height: float, pixels: float, caption: str
) -> Figure:
    """A picture of so many pixels, which shrinks with the page."""
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="0 0 {_show(width)} {_show(height)}" '
        f'style="width:{pixels:.0f}px;max-width:100%;height:auto">'
        f"<title>{_escape(caption) or 'a map'}</title>{body}</svg>"
    )
    return Figure(caption, svg, pixels)


def _draw_round(
    places: FloatArray, color: str, width: float, opacity: float = 1.0
) -> str:
    """Dots at x and y: lines without length and with round ends."""
    if not len(places):
        return ""
    path = "".join(f"M{_show(*place)}h0" for place in places.tolist())
    return (
        f'<path d="{path}" stroke="{color}" stroke-width="{_show(width)}" '
        f'stroke-opacity="{opacity:.3g}" stroke-linecap="round"/>'
    )


def _trace_runs(is_filled: NDArray[np.bool_]) -> str:
    """A path around all cells that are filled, one rectangle for each run in a row."""
    path = ""
    for row, line in enumerate(np.pad(is_filled, ((0, 0), (1, 1))).astype(np.int8)):
        borders = np.flatnonzero(np.diff(line)).tolist()
        for first, last in zip(borders[::2], borders[1::2], strict=True):
            length = last - first
            path += f"M{first} {row}h{length}v1h-{length}z"
    return path


def find_bend(heading: int, turn: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows and columns that an agent faces before and after a turn.

    >>> [direction.tolist() for direction in find_bend(0, 1)]
    [[0, 1], [1, 0]]
    """
    return _FORWARD[heading], _FORWARD[(heading + turn) % len(_FORWARD)]


def find_corners(
    middle: FloatArray,
    before: NDArray[np.floating] | NDArray[np.integer],
    after: NDArray[np.floating] | NDArray[np.integer],
) -> tuple[FloatArray, FloatArray]:
    """The corners of an arrow through the middle of a cell, which may bend there.

    Parameters
    ----------
    middle : (2,) array
        Row and column of the middle.
    before, after : (2,) array
        Directions of the tail and of the tip: rows and columns of unit length.

    Returns
    -------
    shaft : (n, 2) array
        Corners from the tail to the tip: two, or three if the arrow bends.
    head : (3, 2) array
        Corners of the head.
    """
    bends = bool((before != after).any())
    if bends:
        # The bend moves to the outer corner, so that both arms are long.
        middle = middle + 0.2 * (before - after)
    tail = middle - (0.55 if bends else 0.32) * before
    tip = middle + (0.55 if bends else 0.34) * after
    across = after[::-1] * np.array([-1.0, 1.0])
    left = tip - 0.2 * after + 0.18 * across
    right = tip - 0.2 * after - 0.18 * across

    shaft = np.stack([tail, middle, tip] if bends else [tail, tip])
    return shaft, np.stack([left, tip, right])


def _trace_edge_arrow(place: FloatArray, direction: FloatArray, length: float) -> str:
    """An arrow of a length from a node along an edge."""
    across = direction[::-1] * np.array([-1.0, 1.0])
    head = min(2.5, 0.4 * length)
    tip = place + length * direction
    left = tip + head * (0.7 * across - direction)
    right = tip - head * (0.7 * across + direction)
    return (
        f"M{_show(*place)}L{_show(*tip)}M{_show(*left)}L{_show(*tip)}L{_show(*right)}"
    )


def _find_levels(values: FloatArray) -> NDArray[np.int64]:
    """Whole numbers from -8 to 8 for colours; 0 is no colour."""
    numbers = np.asarray(values, dtype=np.float64)
    is_known = np.isfinite(numbers)
    largest = float(np.abs(numbers[is_known]).max(initial=0.0))
    levels = np.zeros(len(numbers), dtype=np.int64)
    if largest > 0:
        scaled = numbers[is_known] / largest * _N_LEVELS
        levels[is_known] = (np.sign(scaled) * np.ceil(np.abs(scaled) - 1e-9)).astype(
            int
        )
    return levels


def _show(*numbers: float) -> str:
    """Numbers as short as a picture needs them, with a space between them.

    >>> _show(1.0, 0.5, 2.346)
    '1 .5 2.35'
    """
    texts = []
    for number in numbers:
        text = f"{number:.2f}".rstrip("0").rstrip(".")
        if text.startswith("0."):
            text = text[1:]
        texts.append(text or "0")
    return " ".join(texts)
