"""States on a grid as text, and short descriptions: what records show in a terminal.

The functions take plain arrays: coordinates, and one glyph, number or action per state.
Figures are drawn by `plots`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._types import IntegerArray

# Arrow of a move by so many rows and columns.
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

# Headings of an agent, in the order of right turns, and the glyphs of its turns.
HEADINGS = ("right", "down", "left", "up")
TURNS = {-1: "↶", 1: "↷"}

# An option terminates; its action changes nothing; no state.
STOP = "●"
STAY = "○"
WALL = "█"

# Most rows and columns of a map; larger maps are drawn coarser.
MAX_SIDE = 48

# Most lines that a record prints, and most characters of a line of maps.
MAX_LINES = 40
MAX_WIDTH = 80


def layout_states(
    coords: IntegerArray, max_side: int | None = None
) -> NDArray[np.int64]:
    """Lay out the numbers of states on a grid, -1 where there is no state (a wall).

    Parameters
    ----------
    coords : (S, 2) array
        Row and column of each state. The grid begins at the smallest of each.
    max_side : int, optional
        Most rows and columns. In larger grids, only every m-th row and column is kept.

    Examples
    --------
    >>> layout_states(np.array([[0, 0], [1, 1]]))
    array([[ 0, -1],
           [-1,  1]])
    """
    cells = np.asarray(coords, dtype=np.int64)
    cells = cells - cells.min(axis=0)
    sides = cells.max(axis=0) + 1

    step = 1
    if max_side is not None:
        step = _divide_up(int(sides.max()), max_side)

    is_kept = (cells % step == 0).all(axis=1)
    states = np.flatnonzero(is_kept)
    rows, columns = (cells[states] // step).T

    n_rows = _divide_up(int(sides[0]), step)
    n_columns = _divide_up(int(sides[1]), step)
    grid = np.full((n_rows, n_columns), -1, dtype=np.int64)
    grid[rows, columns] = states
    return grid


def layout_map(coords: IntegerArray) -> NDArray[np.int64]:
    """Lay out the states of a map of characters, with one ring of walls around them."""
    return np.pad(layout_states(coords, MAX_SIDE), 1, constant_values=-1)


def draw_map(coords: IntegerArray, glyphs: Sequence[str], width: int = 1) -> str:
    """Draw a map with one glyph per state, and walls around and between them.

    Parameters
    ----------
    coords : (S, 2) array
        Row and column of each state.
    glyphs : sequence of str
        One character per state.
    width : int, default=1
        Characters of a cell: two make it about square.

    Examples
    --------
    >>> print(draw_map(np.array([[0, 0], [0, 1], [1, 1]]), "ab."))
    ████
    █ab█
    ██.█
    ████
    """
    lines = []
    for row in layout_map(coords).tolist():
        line = ""
        for state in row:
            line += glyphs[state].ljust(width) if state >= 0 else WALL * width
        lines.append(line)
    return "\n".join(lines)


def explain_size(coords: IntegerArray) -> str:
    """Say that a map of characters is coarser than the grid; empty if it is not.

    >>> explain_size(np.array([[0, 0], [0, 95]]))
    'one of 2 rows and columns is drawn'
    """
    step = _divide_up(int(np.ptp(coords, axis=0).max()) + 1, MAX_SIDE)
    if step == 1:
        return ""
    return f"one of {step} rows and columns is drawn"


def find_moves(
    coords: IntegerArray, policy: IntegerArray, successors: IntegerArray
) -> NDArray[np.int64]:
    """Find the rows and columns that the action of each state moves by.

    Parameters
    ----------
    coords : (S, 2) array
        Row and column of each state.
    policy : (S,) array
        Action of each state, negative where an option terminates.
    successors : (S, A) array
        Most likely next state of each action.

    Returns
    -------
    (S, 2) array
        0 where the action changes nothing, or the option terminates.

    Examples
    --------
    >>> coords = np.array([[0, 0], [0, 1]])
    >>> successors = np.array([[0, 1], [0, 1]])
    >>> find_moves(coords, np.array([1, -1]), successors).tolist()
    [[0, 1], [0, 0]]
    """
    states = np.arange(len(policy))
    next_states = np.where(policy >= 0, successors[states, policy], states)
    cells = np.asarray(coords, dtype=np.int64)
    return cells[next_states] - cells


def find_turns(
    headings: IntegerArray, policy: IntegerArray, successors: IntegerArray
) -> NDArray[np.int64]:
    """Find where the action of each state turns the agent.

    Parameters
    ----------
    headings : (S,) array
        Heading of each state, a number of `HEADINGS`.
    policy : (S,) array
        Action of each state, negative where an option terminates.
    successors : (S, A) array
        Most likely next state of each action.

    Returns
    -------
    (S,) array
        -1 for a turn to the left, 1 for one to the right, 0 for any other action.

    Examples
    --------
    >>> successors = np.array([[1, 0], [1, 0]])
    >>> find_turns(np.array([0, 3]), np.array([0, 1]), successors).tolist()
    [-1, 1]
    """
    states = np.arange(len(policy))
    next_states = np.where(policy >= 0, successors[states, policy], states)
    # 1 is a quarter to the right and 3 one to the left.
    quarters = (headings[next_states] - headings) % len(HEADINGS)
    turns = np.array([0, 1, 0, -1], dtype=np.int64)
    return np.asarray(turns[quarters])


def draw_arrows(
    policy: IntegerArray,
    moves: IntegerArray | None,
    turns: IntegerArray | None = None,
) -> list[str]:
    """Draw one glyph per state for the action there.

    An arrow leads to a neighbouring cell, a round one turns the agent. A ring is an
    action that changes nothing, and a dot a state where the option terminates. An
    action that leads elsewhere, or whose move is not known, is shown by its number, or
    by ``+`` above 9.

    Parameters
    ----------
    policy : (S,) array
        Action of each state, negative where the option terminates.
    moves : (S, 2) array or None
        Rows and columns that the actions move by; None where they are not known.
    turns : (S,) array, default=None
        -1 where the action turns the agent to the left, 1 to the right, else 0.

    Examples
    --------
    >>> policy = np.array([7, 7, -1, 5])
    >>> moves = np.array([[0, -1], [0, 0], [0, 0], [3, 0]])
    >>> draw_arrows(policy, moves)
    ['←', '○', '●', '5']
    """
    if moves is None:
        return [_draw_action(action, None) for action in policy.tolist()]

    if turns is None:
        turns = np.zeros(len(policy), dtype=np.int64)
    glyphs = []
    for action, (rows, columns), turn in zip(
        policy.tolist(), moves.tolist(), turns.tolist(), strict=True
    ):
        if action >= 0 and turn != 0:
            glyphs.append(TURNS[turn])
        else:
            glyphs.append(_draw_action(action, (rows, columns)))
    return glyphs


def _draw_action(action: int, move: tuple[int, int] | None) -> str:
    """Glyph of one action and its move."""
    if action < 0:
        return STOP
    if move == (0, 0):
        return STAY
    if move in ARROWS:
        return ARROWS[move]
    if action < 10:
        return str(action)
    return "+"


def explain_glyphs(
    glyphs: Iterable[str], legend: str = "", *, bends: bool = False
) -> str:
    """Explain the glyphs that do not speak for themselves, as arrows and dots do.

    Parameters
    ----------
    glyphs : iterable of str
        The glyphs that were drawn.
    legend : str, default=""
        What the map says about its states; it comes last.
    bends : bool, default=False
        Whether turns are drawn as bent arrows, not as glyphs.

    Returns
    -------
    str
        Empty if there is nothing to explain.

    Examples
    --------
    >>> explain_glyphs("↑○●")
    '○ the action most likely changes nothing'
    """
    drawn = set(glyphs)
    parts = []
    if drawn & set(TURNS.values()):
        turns = "bent arrows" if bends else "↶ and ↷"
        parts.append(f"{turns} turn the agent to the left and to the right")
    if STAY in drawn:
        parts.append(f"{STAY} the action most likely changes nothing")
    if drawn & set("0123456789+"):
        digit = "a digit (+ above 9)" if "+" in drawn else "a digit"
        parts.append(
            f"{digit}: number of an action whose move leads to no neighbouring cell "
            "or is not known"
        )
    if legend:
        parts.append(legend)
    return "; ".join(parts)


def set_side_by_side(
    blocks: Sequence[str], max_lines: int, max_width: int = MAX_WIDTH
) -> tuple[str, int]:
    r"""Set blocks of lines beside each other, in as many rows as there is room for.

    Parameters
    ----------
    blocks : sequence of str
        Blocks of lines, such as maps below their labels.
    max_lines : int
        Most lines. If the first row alone has more, the rest of it becomes "...".
    max_width : int, default=80
        Most characters of a line; a single block may be wider.

    Returns
    -------
    text : str
        The blocks.
    n_shown : int
        How many of them there are.

    Examples
    --------
    >>> text, n_shown = set_side_by_side(["a", "b\nb", "c"], max_lines=2, max_width=3)
    >>> print(text, n_shown)
    a b
      b 2
    """
    lines: list[str] = []
    n_shown = 0
    while n_shown < len(blocks):
        row = [blocks[n_shown].split("\n")]
        width = max(map(len, row[0]))
        for block in blocks[n_shown + 1 :]:
            columns = block.split("\n")
            width += 1 + max(map(len, columns))
            if width > max_width:
                break
            row.append(columns)

        joined = _join_columns(row)
        if lines and len(lines) + 1 + len(joined) > max_lines:
            break
        if lines:
            lines.append("")
        lines += joined
        n_shown += len(row)

    if len(lines) > max_lines:
        lines = [*lines[: max_lines - 1], "..."]
    return "\n".join(lines), n_shown


def _join_columns(columns: Sequence[Sequence[str]]) -> list[str]:
    """Join blocks of lines, with a space between them."""
    widths = [max(map(len, column)) for column in columns]
    joined = []
    for line in zip_longest(*columns, fillvalue=""):
        parts = [part.ljust(width) for part, width in zip(line, widths, strict=True)]
        joined.append(" ".join(parts).rstrip())
    return joined


def draw_spark(
    values: ArrayLike, width: int = 32, *, low: float = 0.0, high: float = 1.0
) -> str:
    """Draw a curve as one line of text.

    Parameters
    ----------
    values : (n,) array
        The curve.
    width : int, default=32
        Most characters. A longer curve is shown by means over its parts.
    low, high : float, default=0 and 1
        Values of the lowest and the highest bar.

    Examples
    --------
    >>> draw_spark([0.0, 0.25, 0.5, 1.0])
    '▁▃▅█'
    """
    bars = "▁▂▃▄▅▆▇█"
    numbers = np.asarray(values, dtype=float)
    height = (high - low) or 1.0

    spark = ""
    for part in np.array_split(numbers, min(width, len(numbers))):
        level = len(bars) * (part.mean() - low) / height
        spark += bars[int(np.clip(level, 0, len(bars) - 1))]
    return spark


def count_noun(number: int, noun: str) -> str:
    """A number and its noun, with an s unless the number is 1.

    >>> count_noun(1, "state"), count_noun(3, "state")
    ('1 state', '3 states')
    """
    if number == 1:
        return f"{number} {noun}"
    return f"{number} {noun}s"


def count_hidden(n_all: int, n_shown: int, noun: str, remedy: str) -> str:
    """Say how many are not shown, and how to see them; empty if all are.

    >>> count_hidden(9, 8, "option", "options[8:]")
    '... 1 more option: options[8:]'
    """
    n_hidden = n_all - n_shown
    if n_hidden <= 0:
        return ""
    return f"... {count_noun(n_hidden, f'more {noun}')}: {remedy}"


def describe(array: ArrayLike) -> str:
    """Describe an array in a few words: its type, shape and range.

    >>> describe(np.array([[1, 5], [2, 3]]))
    'int64 (2, 2), 1 to 5'
    """
    numbers = np.asarray(array)
    description = f"{numbers.dtype} {numbers.shape}"

    has_range = numbers.size > 0 and numbers.dtype.kind in "uif"
    if has_range:
        description += f", {numbers.min():.4g} to {numbers.max():.4g}"
    return description


def printable(text: str) -> str:
    r"""Make a text safe for a terminal.

    Control characters, which could command the terminal, become escape codes.

    >>> print(printable("a\x1b[31mb"))
    a\x1b[31mb
    """
    safe = ""
    for character in text:
        if character.isprintable():
            safe += character
        else:
            safe += character.encode("unicode_escape").decode()
    return safe


def _divide_up(number: int, divisor: int) -> int:
    """The quotient, rounded up."""
    return -(-number // divisor)
