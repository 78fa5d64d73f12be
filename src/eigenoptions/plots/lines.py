"""Panels of lines: curves with their bands, many thin ones behind, and levels to compare with (Figures 6 and 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from eigenoptions.plots.panels import Panel

CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")  # Okabe and Ito
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)), (0, (8, 2)))
THREAD, LEVEL = "#6fa8d6", "#555555"


def curve_panel(
    x: ArrayLike,
    series: Mapping[str, ArrayLike],
    title: str = "",
    *,
    xlabel: str = "",
    ylabel: str = "",
    log: bool = False,
    confidence: float = 0.95,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    threads: Mapping[str, ArrayLike] | None = None,
    levels: Mapping[str, float] | None = None,
    ticks: Sequence[str] | None = None,
    limits: tuple[float, float] | None = None,
    legend: bool = True,
) -> Panel:
    """Lines: each of `series` is ``(n,)``, or ``(runs, n)`` for a mean with a band (Student's t) around it.

    Lines differ by colour and by dashes.

    Parameters
    ----------
    x
        ``(n,)`` places.
    series
        Lines by name.
    title, xlabel, ylabel
        Words.
    log
        Make the vertical axis logarithmic.
    confidence
        Of the bands of series that are runs.
    bands
        Lower and upper end, each ``(n,)``, of bands that are known; for series of one line.
    threads
        ``(k, n)`` thin lines behind the others, k of one name.
    levels
        Horizontal lines.
    ticks
        Words at the places of x.
    limits
        Ends of the vertical axis.
    legend
        Say what the lines are.

    Examples
    --------
    >>> curve_panel([0, 1], {"64 options": [[1.0, 2.0], [3.0, 4.0]]}).kind
    'graph'
    """
    at = np.asarray(x, dtype=float)
    lines = {name: _lines(name, y, at) for name, y in series.items()}
    thin = {name: _lines(name, y, at) for name, y in (threads or {}).items()}
    known = {
        name: np.stack([_lines(name, end, at)[0] for end in ends]) for name, ends in (bands or {}).items()
    }
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    if ticks is not None and len(ticks) != at.size:
        raise ValueError(f"ticks must have a word for each of {at.size} places, got {len(ticks)}")

    def draw(ax: Axes) -> None:
        for name, y in thin.items():
            ax.plot(at, y.T, color=THREAD, linewidth=0.4, alpha=0.8, label=[name, *[""] * (len(y) - 1)])
        for name, level in (levels or {}).items():
            ax.axhline(level, color=LEVEL, linewidth=0.9, linestyle=(0, (4, 2)), label=name, zorder=1.5)
        for i, (name, y) in enumerate(lines.items()):
            style: Any = {"color": CYCLE[i % len(CYCLE)], "linestyle": DASHES[i % len(DASHES)]}
            if ticks is not None:
                style |= {"marker": "o", "markersize": 2.5}
            mean = y.mean(axis=0)
            ax.plot(at, mean, label=name, **style)
            ends = known.get(name) if len(y) == 1 else _student(y, confidence)
            if ends is not None:
                low = np.where(ends[0] > 0, ends[0], mean) if log else ends[0]
                ax.fill_between(at, low, ends[1], color=style["color"], alpha=0.2, linewidth=0)
        ax.set(xlabel=xlabel, ylabel=ylabel, yscale="log" if log else "linear")
        ax.margins(x=0.01 if ticks is None else 0.04)
        if ticks is not None:
            ax.set_xticks(at, ticks)
        if limits is not None:
            ax.set_ylim(*limits)
        named = [name for name in (*thin, *(levels or {}), *lines) if name]
        if legend and named:
            ax.legend()

    return Panel(draw, title, 0.72, "graph")


def point_panel(
    groups: Mapping[str, ArrayLike], title: str = "", *, xlabel: str = "", ylabel: str = ""
) -> Panel:
    """Points ``(n, 2)``, a colour and a mark for each group; later groups lie above earlier ones.

    >>> point_panel({"singular": [[1, 0], [2, 5]]}).kind
    'graph'
    """
    points = {name: np.asarray(of, dtype=float).reshape(-1, 2) for name, of in groups.items()}

    def draw(ax: Axes) -> None:
        for i, (name, at) in enumerate(points.items()):
            style: Any = {"color": CYCLE[i % len(CYCLE)], "marker": "osD^vP*"[i % 7]}
            ax.plot(*at.T, linestyle="", markersize=2.5, markeredgewidth=0, alpha=0.7, label=name, **style)
        ax.set(xlabel=xlabel, ylabel=ylabel)
        ax.legend()

    return Panel(draw, title, 0.72, "graph")


def _lines(name: str, y: ArrayLike, at: NDArray[np.float64]) -> NDArray[np.float64]:
    lines = np.atleast_2d(np.asarray(y, dtype=float))
    if lines.ndim != 2 or lines.shape[1:] != at.shape:
        raise ValueError(f"{name!r} must have shape (n,) or (runs, n) with n = {at.size}, got {np.shape(y)}")
    return lines


def _student(y: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
    """Ends of the interval of the mean over runs."""
    half = stdtrit(len(y) - 1, 0.5 + confidence / 2) * y.std(axis=0, ddof=1) / np.sqrt(len(y))
    return np.stack([y.mean(axis=0) - half, y.mean(axis=0) + half])
