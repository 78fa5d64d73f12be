"""The colours of plots, of maps in a terminal and of rendered frames, defined once.

Each colour is a text ``#rrggbb``, which Matplotlib and rich both read.
"""

from __future__ import annotations

# The scale of eigenvectors and potentials: low, zero, high.
BLUE = "#2166ac"
WHITE = "#ffffff"
ORANGE = "#e66101"

# States where an option terminates.
RED = "#d7263d"

# The way that an agent has taken, in a terminal.
YELLOW = "#ffdd33"

# Arrows, letters and lines, on all colours above.
INK = "#1a1a1a"

# Walls: light in print, where arrows and grid lines are what matters; darker on a
# screen, where walls have to stand out from the background.
PRINTED_WALL = "#8a8a8a"
TERMINAL_WALL = "#5b5b5b"
RENDERED_WALL = "#464646"

# Start and goal: strong in print, where a letter names them; pale in rendered frames,
# where the agent has to stand out.
PRINTED_START = "#8ecdf0"
PRINTED_GOAL = "#f7c04a"
RENDERED_START = "#c6dbef"
RENDERED_GOAL = "#74c476"

# Lines of a plot: the colours of Okabe and Ito, which colour-blind people can tell
# apart.
LINES = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
    "#000000",
)


def to_rgb(color: str) -> tuple[int, int, int]:
    """Read the red, green and blue part of a colour, each in 0..255.

    >>> to_rgb(ORANGE)
    (230, 97, 1)
    """
    red, green, blue = bytes.fromhex(color.removeprefix("#"))
    return red, green, blue


def mix_colors(low: str, high: str, share: float) -> str:
    """Mix two colours: `low` where `share` is 0, `high` where it is 1.

    >>> mix_colors(WHITE, ORANGE, 0.5)
    '#f2b080'
    """
    mixed = "#"
    for start, end in zip(to_rgb(low), to_rgb(high), strict=True):
        part = round(start + (end - start) * share)
        mixed += f"{part:02x}"
    return mixed
