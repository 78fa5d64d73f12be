"""What figures share: the scale of colours, styles of lines, the size of letters."""

from __future__ import annotations

from typing import Any, TypedDict

import matplotlib
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.font_manager import FontProperties

from eigenoptions._colors import BLUE, LINES, ORANGE, WHITE

# Settings for `matplotlib.rc_context` with which the figures of our pages are drawn.
# Figures of users have the fonts and sizes of their own settings. (Any: their names
# are a type of Matplotlib's, which differs from version to version.)
STYLE: Any = {
    # This font comes with Matplotlib, so letters are the same on every machine.
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "figure.dpi": 150,
    # The names of elements in SVG files are the same in each run.
    "svg.hashsalt": "eigenoptions",
}

# Lines differ by dashes as well as by colour.
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))

_SIGNED = LinearSegmentedColormap.from_list("blue-orange", [BLUE, WHITE, ORANGE])


class LineStyle(TypedDict):
    """Arguments of ``ax.plot`` that tell a line from others."""

    color: str
    linestyle: Any


def make_line_style(i: int) -> LineStyle:
    """Make the colour and the dashes of the i-th line of a plot.

    >>> make_line_style(1)
    {'color': '#d55e00', 'linestyle': '--'}
    """
    return {
        "color": LINES[i % len(LINES)],
        "linestyle": _DASHES[i % len(_DASHES)],
    }


def read_colormap(cmap: str | Colormap | None, signed: bool) -> Colormap:
    """Read a colour map: the one that is given, or the one of signed numbers or others.

    >>> read_colormap(None, signed=True).name, read_colormap("gray", signed=True).name
    ('blue-orange', 'gray')
    """
    if cmap is None and signed:
        return _SIGNED
    if cmap is None:
        return matplotlib.colormaps["viridis"]
    return matplotlib.colormaps.get_cmap(cmap)


def measure_letters(size: float | str) -> float:
    """Measure letters in inches, whose size is given as in Matplotlib's settings.

    >>> with matplotlib.rc_context({"font.size": 9}):
    ...     measure_letters("medium"), measure_letters(18)
    (0.125, 0.25)
    """
    return float(FontProperties(size=size).get_size_in_points()) / 72
