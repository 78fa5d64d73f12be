"""Figures of the reproduction: grids of axes, and curves with thin lines and baselines.

Mazes, options and numbers per state are drawn by `eigenoptions.plots`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from eigenoptions.plots import draw_curves

# One colour per kind of option in all figures.
COLORS = {
    "eigenoptions": "#0072b2",
    "bottleneck options": "#d55e00",
    "primitive actions": "#000000",
    "discount 0.99": "#8c510a",
}


def make_maps(
    n: int, width: float = 6.75, columns: int = 4
) -> tuple[Figure, list[Axes]]:
    """A figure with axes for `n` mazes."""
    n_wide = max(min(n, columns), 3)
    return make_graphs(n, width, columns, height=width / n_wide + 0.2)


def make_graphs(
    n: int,
    width: float = 6.75,
    columns: int = 4,
    *,
    height: float | None = None,
    ylabel: str = "",
    **subplots: Any,
) -> tuple[Figure, list[Axes]]:
    """A figure with axes for `n` graphs of curves.

    Parameters
    ----------
    n : int
        How many graphs.
    width : float, default=6.75
        Of the figure, in inches.
    columns : int, default=4
        Graphs in a row, at most.
    height : float, optional
        Of a row, in inches; by default in proportion to the width of a graph.
    ylabel : str, default=""
        Label of the leftmost vertical axes.
    subplots
        Further arguments of `Figure.subplots`.
    """
    n_columns = min(n, columns)
    n_rows = ceil(n / n_columns)
    if height is None:
        height = 0.72 * width / n_columns + 0.2

    figure = Figure(figsize=(width, n_rows * height), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False, **subplots)
    for ax in axes[:, 0]:
        ax.set_ylabel(ylabel)
    return figure, list(axes.ravel())


def add_legend(figure: Figure, columns: int = 4) -> Figure:
    """Add one legend for the lines of all axes below them, and return the figure."""
    lines = {}
    for ax in figure.axes:
        for line, label in zip(*ax.get_legend_handles_labels(), strict=True):
            if label:
                lines[label] = line

    figure.legend(
        lines.values(), lines.keys(), loc="outside lower center", ncols=columns
    )
    n_rows = ceil(len(lines) / columns)
    figure.set_figheight(figure.get_figheight() + 0.05 + 0.15 * n_rows)
    return figure


def draw_learning(
    ax: Axes, curves: Mapping[str, pd.DataFrame], **settings: Any
) -> None:
    """Draw learning curves by name.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    curves : mapping
        Tables of `statistics.average_curves`, all with the same episodes.
    settings
        Those of `draw_lines`.
    """
    first, *_ = curves.values()
    draw_lines(
        ax,
        first.episode,
        {name: curve["mean"] for name, curve in curves.items()},
        bands={name: (curve.low, curve.high) for name, curve in curves.items()},
        xlabel="episode",
        ylim=(-0.02, 1.02),
        **settings,
    )


def draw_lines(
    ax: Axes,
    x: ArrayLike,
    lines: Mapping[str, ArrayLike],
    *,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    colors: Mapping[str, Any] | None = None,
    thin: Mapping[str, ArrayLike] | None = None,
    baseline: float | None = None,
    ticks: Sequence[Any] | None = None,
    **settings: Any,
) -> None:
    """Draw lines as `draw_curves` does, with what else the figures need.

    Parameters
    ----------
    ax, x, lines, bands
        As in `draw_curves`.
    colors : mapping, optional
        Colours of some lines; other kinds of options have those of `COLORS`.
    thin : mapping, optional
        ``(k, n)`` thin lines behind the others, by name.
    baseline : float, optional
        Height of a horizontal line for primitive actions.
    ticks : sequence, optional
        Labels of the positions, which then have dots.
    settings
        Of the axes: title, xlabel, ylabel, yscale, ylim.
    """
    if thin is not None:
        for name, heights in thin.items():
            _draw_thin(ax, x, name, np.asarray(heights, dtype=float))
    if baseline is not None:
        ax.axhline(
            baseline,
            label="primitive actions",
            color="#555555",
            lw=0.9,
            ls=(0, (4, 2)),
            zorder=1.5,
        )

    n_behind = len(ax.lines)
    all_colors = {**COLORS, **(colors or {})}
    draw_curves(ax, x, lines, bands=bands, colors=all_colors)
    ax.set(**settings)

    if ticks is not None:
        ax.set_xticks(np.asarray(x), [str(tick) for tick in ticks])
        ax.margins(x=0.04)
        for line in ax.lines[n_behind:]:
            line.set(marker="o", markersize=2.5)


def shade_lines(names: Iterable[str]) -> dict[str, Any]:
    """Shades of blue for lines by name, from light to dark."""
    lines = list(names)
    shades = colormaps["Blues"](np.linspace(0.5, 1.0, len(lines)))
    return dict(zip(lines, shades, strict=True))


def _draw_thin(
    ax: Axes, x: ArrayLike, name: str, heights: np.ndarray[Any, Any]
) -> None:
    """Draw thin grey lines ``(k, n)``; the first has the name for the legend."""
    n_lines = len(heights)
    width = 0.4 if n_lines > 4 else 0.9
    labels = [name] + [""] * (n_lines - 1)
    ax.plot(x, heights.T, color="#9a9a9a", linewidth=width, label=labels)
