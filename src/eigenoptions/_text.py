"""States on a grid as text, and short descriptions: what records show in a terminal.

The functions take plain arrays: coordinates, and one glyph, number or action per state. `plots` draws figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Glyphs of moves by rows and columns.
ARROWS = {(-1, 0): "↑", (0, 1): "→", (1, 0): "↓", (0, -1): "←"}
ARROWS |= {(-1, 1): "↗", (1, 1): "↘", (1, -1): "↙", (-1, -1): "↖"}
STOP, STAY, WALL = "●", "○", "█"
# Largest number of rows and columns of a map; larger ones are drawn coarser.
MAX_SIDE = 48


def layout_states(
    coords: NDArray[np.int_], max_side: int | None = None
) -> NDArray[np.int64]:
    """Grid of the numbers of states at the rows and columns `coords` ``(S, 2)``, -1 where there is none (a wall).

    With `max_side`, every m-th row and column, so that neither side is longer.

    >>> layout_states(np.array([[0, 0], [1, 1]]))
    array([[ 0, -1],
           [-1,  1]])
    """
    cells = np.asarray(coords, dtype=np.int64)
    cells = cells - cells.min(axis=0)
    sides = cells.max(axis=0) + 1
    step = 1 if max_side is None else -(-int(sides.max()) // max_side)
    states = np.flatnonzero((cells % step == 0).all(axis=1))
    grid = np.full(tuple(-(-sides // step)), -1, dtype=np.int64)
    grid[tuple((cells[states] // step).T)] = states
    return grid


def draw_map(coords: NDArray[np.int_], glyphs: Sequence[str]) -> str:
    """One character per state, walls filled in.

    >>> print(draw_map(np.array([[0, 0], [0, 1], [1, 1]]), "ab."))
    ████
    █ab█
    ██.█
    ████
    """
    grid = np.pad(layout_states(coords, MAX_SIDE), 1, constant_values=-1)
    return "\n".join(
        "".join(WALL if s < 0 else glyphs[s] for s in row) for row in grid.tolist()
    )


def find_moves(
    coords: NDArray[np.int_],
    policy: NDArray[np.integer[Any]],
    successors: NDArray[np.int32],
) -> NDArray[np.int64]:
    """``(S, 2)`` rows and columns that the action of each state moves by, 0 where it stops (is negative) or stays.

    >>> find_moves(np.array([[0, 0], [0, 1]]), np.array([1, -1]), np.array([[0, 1], [0, 1]])).tolist()
    [[0, 1], [0, 0]]
    """
    states = np.arange(len(policy))
    cells = np.asarray(coords, dtype=np.int64)
    return cells[np.where(policy >= 0, successors[states, policy], states)] - cells


def draw_arrows(
    policy: NDArray[np.integer[Any]], moves: NDArray[np.int64] | None
) -> list[str]:
    """One glyph per state: an arrow to a neighbouring cell, a ring where an action stays, a dot where an option stops.

    Where an action leads elsewhere, or `moves` is None (unknown), its number stands, or ``+`` above 9.

    >>> draw_arrows(np.array([7, 7, -1, 5]), np.array([[0, -1], [0, 0], [0, 0], [3, 0]]))
    ['←', '○', '●', '5']
    """
    keys: Any = [None] * len(policy) if moves is None else map(tuple, moves.tolist())
    glyphs = {**ARROWS, (0, 0): STAY}
    return [
        STOP if action < 0 else glyphs.get(key, str(action) if action < 10 else "+")
        for action, key in zip(policy.tolist(), keys, strict=True)
    ]


def explain_glyphs(glyphs: Iterable[str], legend: str = "") -> str:
    """Explanation of glyphs that are neither arrows nor stops, and the legend of the states; empty if not needed.

    >>> explain_glyphs("↑1")
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


def draw_spark(
    values: Any, width: int = 32, *, low: float = 0.0, high: float = 1.0
) -> str:
    """A curve as one line of text: means over at most `width` parts, from `low` (lowest bar) to `high` (highest).

    >>> draw_spark([0.0, 0.25, 0.5, 1.0])
    '▁▃▅█'
    """
    bars = "▁▂▃▄▅▆▇█"
    parts = np.array_split(np.asarray(values, dtype=float), min(width, len(values)))
    levels = [len(bars) * (part.mean() - low) / ((high - low) or 1.0) for part in parts]
    return "".join(bars[int(np.clip(level, 0, len(bars) - 1))] for level in levels)


def count_noun(number: int, noun: str) -> str:
    """A number and its noun, with an s unless the number is 1.

    >>> count_noun(1, "state"), count_noun(3, "state")
    ('1 state', '3 states')
    """
    if number == 1:
        return f"{number} {noun}"
    return f"{number} {noun}s"


def describe(array: Any) -> str:
    """Type, shape and range of an array in a few words.

    >>> describe(np.array([[1, 5], [2, 3]]))
    'int64 (2, 2), 1 to 5'
    """
    array = np.asarray(array)
    shape = f"{array.dtype} {array.shape}"
    if not array.size or array.dtype.kind not in "uif":
        return shape
    return f"{shape}, {array.min():.4g} to {array.max():.4g}"


def printable(text: str) -> str:
    r"""`text` for a terminal: control characters, which could command it, as escape codes.

    >>> print(printable("a\x1b[31mb"))
    a\x1b[31mb
    """
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )
