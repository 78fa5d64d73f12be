"""Panels with axes: curves with confidence bands, thin lines, levels to compare with, and points (Figures 6 and 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from numpy.typing import ArrayLike, NDArray

from eigenoptions._validation import check_float, check_settings, check_type
from eigenoptions.plots.panels import Panel

# Okabe and Ito's colours, which differ also for the colour-blind; lines differ by dashes as well.
CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)), (0, (8, 2)))
THREAD_COLOR, LEVEL_COLOR = "#9a9a9a", "#555555"
# One colour per kind of option in all figures, by the name of a line; "8 options" is a shade of the first.
KIND_COLORS = {
    **dict.fromkeys(("eigenoptions", "singular", "in order of eigenvalue", "as reported"), "#0072b2"),
    **dict.fromkeys(("random", "random options", "in a random order"), "#9a9a9a"),
    **dict.fromkeys(("bottleneck", "bottleneck options"), "#d55e00"),
    **dict.fromkeys(("primitive", "primitive actions", "walk", "random walk", "rand"), "#000000"),
    "published": "#cc79a7",
    "constant": "#009e73",
    "rows": "#e69f00",
    "rotated": "#56b4e9",
}


class Scale(TypedDict, total=False):
    """Settings of the axes of `curve_panel`.

    Attributes
    ----------
    xlabel, ylabel
        Axis labels.
    log
        Make the vertical axis logarithmic.
    limits
        Ends of the vertical axis.
    ticks
        Labels of the places `x`, one per place; the places are marked by dots.
    legend
        Name the lines in a legend (the default).
    """

    xlabel: str
    ylabel: str
    log: bool
    limits: tuple[float, float] | None
    ticks: Sequence[str] | None
    legend: bool


def curve_panel(
    x: ArrayLike,
    series: Mapping[str, ArrayLike],
    title: str = "",
    *,
    confidence: float = 0.95,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    threads: Mapping[str, ArrayLike] | None = None,
    levels: Mapping[str, float] | None = None,
    **scale: Unpack[Scale],
) -> Panel:
    """Lines: each of `series` is ``(n,)``, or ``(runs, n)`` for a mean with a confidence band (Student's t) around it.

    Parameters
    ----------
    x
        ``(n,)`` horizontal positions.
    series
        Lines by name.
    title
        Text above the panel.
    confidence
        Confidence level of the bands of series with several runs.
    bands
        Lower and upper ends, each ``(n,)``, of known bands of series with one line.
    threads
        ``(k, n)`` thin lines behind the others, k per name.
    levels
        Horizontal lines by name.
    scale
        Labels and scale of the axes, see `Scale`.

    Examples
    --------
    >>> curve_panel([0, 1], {"64 options": [[1.0, 2.0], [3.0, 4.0]]}, xlabel="episode").kind
    'graph'
    """
    check_type("series", series, Mapping, "give the lines by name")
    at = np.asarray(x, dtype=float)
    lines = {name: _lines(name, y, at) for name, y in series.items()}
    thin = {name: _lines(name, y, at) for name, y in (threads or {}).items()}
    known = {
        name: np.stack([_lines(name, end, at)[0] for end in ends]) for name, ends in (bands or {}).items()
    }
    check_float("confidence", confidence, above=0, below=1)
    log, ticks = scale.get("log", False), scale.get("ticks")
    if ticks is not None and len(ticks) != at.size:
        raise ValueError(f"ticks must have a word for each of {at.size} places, got {len(ticks)}")
    check_settings("curve_panel", scale, Scale.__annotations__)

    def draw(ax: Axes) -> None:
        for name, y in thin.items():
            label = [name, *[""] * (len(y) - 1)]
            color = KIND_COLORS.get(name, THREAD_COLOR)
            ax.plot(at, y.T, color=color, linewidth=0.4 if len(y) > 4 else 0.9, alpha=0.8, label=label)
        for name, level in (levels or {}).items():
            ax.axhline(level, color=LEVEL_COLOR, linewidth=0.9, linestyle=(0, (4, 2)), label=name, zorder=1.5)
        for i, (name, y) in enumerate(lines.items()):
            style = named_style(i, name, list(lines)) | (
                {} if ticks is None else {"marker": "o", "markersize": 2.5}
            )
            mean = y.mean(axis=0)
            ax.plot(at, mean, label=name, **style)
            ends = known.get(name) if len(y) == 1 else _mean_interval(y, confidence)
            if ends is not None:
                low = np.where(ends[0] > 0, ends[0], mean) if log else ends[0]
                ax.fill_between(at, low, ends[1], color=style["color"], alpha=0.2, linewidth=0)
        ax.set(xlabel=scale.get("xlabel", ""), ylabel=scale.get("ylabel", ""))
        ax.set_yscale("log" if log else "linear")
        ax.margins(x=0.01 if ticks is None else 0.04)
        if ticks is not None:
            ax.set_xticks(at, ticks)
        if scale.get("limits") is not None:
            ax.set_ylim(scale["limits"])
        if scale.get("legend", True) and any((*thin, *(levels or {}), *lines)):
            ax.legend()

    return Panel(draw, title, 0.72, "graph")


def point_panel(
    groups: Mapping[str, ArrayLike], title: str = "", *, xlabel: str = "", ylabel: str = ""
) -> Panel:
    """Points ``(n, 2)``, with one colour and one marker per group; later groups cover earlier ones.

    >>> point_panel({"singular": [[1, 0], [2, 5]]}).kind
    'graph'
    """
    check_type("groups", groups, Mapping, "give the points by name")
    points = {name: np.asarray(of, dtype=float).reshape(-1, 2) for name, of in groups.items()}

    def draw(ax: Axes) -> None:
        for i, (name, at) in enumerate(points.items()):
            color = KIND_COLORS.get(name, CYCLE[i % len(CYCLE)])
            style: Any = {"color": color, "marker": "osD^vP*"[i % 7]}
            ax.plot(*at.T, linestyle="", markersize=2.5, markeredgewidth=0, alpha=0.7, label=name, **style)
        ax.set(xlabel=xlabel, ylabel=ylabel)
        if any(points):
            ax.legend()

    return Panel(draw, title, 0.72, "graph")


def line_style(i: int) -> dict[str, Any]:
    """Colour and dashes of the line with this number.

    >>> line_style(1)
    {'color': '#d55e00', 'linestyle': '--'}
    """
    # From the eighth on, colours come with other dashes.
    return {"color": CYCLE[i % len(CYCLE)], "linestyle": DASHES[(i + i // len(CYCLE)) % len(DASHES)]}


def named_style(i: int, name: str, names: Sequence[str]) -> dict[str, Any]:
    """Style of a line with this number and name among others: kinds and numbers of options have their own colours.

    >>> named_style(1, "bottleneck options", ["eigenoptions", "bottleneck options"])
    {'color': '#d55e00', 'linestyle': '--'}
    """
    style = line_style(i)
    numbered = [other for other in names if other.endswith(" options") and other.split()[0].isdigit()]
    if name in numbered:
        shade = 0.4 + 0.6 * (numbered.index(name) + 1) / len(numbered)
        return style | {"color": to_hex(colormaps["Blues"](shade))}
    return style | ({"color": KIND_COLORS[name]} if name in KIND_COLORS else {})


def _lines(name: str, y: ArrayLike, at: NDArray[np.float64]) -> NDArray[np.float64]:
    lines = np.atleast_2d(np.asarray(y, dtype=float))
    if lines.ndim != 2 or lines.shape[1:] != at.shape:
        raise ValueError(f"{name!r} must have shape (n,) or (runs, n) with n = {at.size}, got {np.shape(y)}")
    return lines


def _mean_interval(y: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
    """``(2, n)`` ends of the confidence interval of the mean over runs."""
    from scipy.stats import sem, t

    ends = np.reshape(t.interval(confidence, len(y) - 1), (2, 1))
    interval: NDArray[np.float64] = y.mean(axis=0) + ends * sem(y)
    return interval
