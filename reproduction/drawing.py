"""Figures of the reproduction: grids of axes, and curves with thin lines and baselines.

Mazes, options and numbers per state are drawn by `eigenoptions.plots`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    "option discount 0.99": "#8c510a",
}


def make_maps(
    n: int, width: float = 6.75, columns: int = 4
) -> tuple[Figure, list[Axes]]:
    """Figure with axes for `n` mazes."""
    return make_graphs(n, width, columns, height=width / max(min(n, columns), 3) + 0.2)


def make_graphs(
    n: int,
    width: float = 6.75,
    columns: int = 4,
    height: float = 0,
    ylabel: str = "",
    **subplots: Any,
) -> tuple[Figure, list[Axes]]:
    """Figure with axes for `n` graphs of curves; the leftmost have the `ylabel`."""
    columns = min(n, columns)
    rows = -(-n // columns)
    height = height or 0.72 * width / columns + 0.2
    figure = Figure(figsize=(width, rows * height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **subplots)
    for ax in axes[:, 0]:
        ax.set_ylabel(ylabel)
    return figure, list(axes.ravel())


def add_legend(figure: Figure, columns: int = 4) -> Figure:
    """Add one legend of the lines of all axes below them, and return the figure."""
    pairs = [
        pair
        for ax in figure.axes
        for pair in zip(*ax.get_legend_handles_labels(), strict=True)
    ]
    lines = {label: line for line, label in pairs if label}
    figure.legend(
        lines.values(), lines.keys(), loc="outside lower center", ncols=columns
    )
    figure.set_figheight(
        figure.get_figheight() + 0.05 + 0.15 * -(-len(lines) // columns)
    )
    return figure


def draw_learning(
    ax: Axes, curves: Mapping[str, pd.DataFrame], **settings: Any
) -> None:
    """Draw learning curves (see `statistics.learning_curve`) by name; `settings` are those of `draw_lines`."""
    episodes = next(iter(curves.values())).episode
    bands = {name: (curve.low, curve.high) for name, curve in curves.items()}
    means = {name: curve["mean"] for name, curve in curves.items()}
    draw_lines(
        ax,
        episodes,
        means,
        bands=bands,
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
    thin: Mapping[str, ArrayLike] | None = None,
    baseline: float | None = None,
    ticks: Sequence[Any] | None = None,
    **settings: Any,
) -> None:
    """Draw lines as `draw_curves` does, with what else the figures need.

    Parameters
    ----------
    ax, x, lines, bands
        As in `draw_curves`; "2 options", "4 options", ... are shades of blue.
    thin
        ``(k, n)`` thin lines behind the others, by name.
    baseline
        Height of a horizontal line for primitive actions.
    ticks
        Labels of the positions, which then have dots.
    settings
        Of the axes: title, xlabel, ylabel, yscale, ylim.
    """
    for name, many in (thin or {}).items():
        y = np.asarray(many, dtype=float)
        labels = [name, *[""] * (len(y) - 1)]
        ax.plot(
            x, y.T, color="#9a9a9a", linewidth=0.4 if len(y) > 4 else 0.9, label=labels
        )
    if baseline is not None:
        ax.axhline(
            baseline,
            label="primitive actions",
            color="#555555",
            lw=0.9,
            ls=(0, (4, 2)),
            zorder=1.5,
        )
    numbered = [name for name in lines if name.split()[0].isdigit()]
    shades = colormaps["Blues"](np.linspace(0.5, 1.0, len(numbered)))
    first = len(ax.lines)
    draw_curves(
        ax,
        x,
        lines,
        bands=bands,
        colors={**COLORS, **dict(zip(numbered, shades, strict=True))},
    )
    ax.set(**settings)
    if ticks is not None:
        ax.set_xticks(np.asarray(x), list(map(str, ticks)))
        ax.margins(x=0.04)
        for line in ax.lines[first:]:
            line.set(marker="o", markersize=2.5)
