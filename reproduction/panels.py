"""Figures of the reproduction: panels in a grid, the colours of its kinds of options, thin lines and levels.

A panel is a function that draws on axes, with its title and shape; `make_figure` sets panels side by side. What a
panel draws comes from `eigenoptions.plots`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from eigenoptions.plots import draw_curves, draw_maze, draw_policy, draw_values
from eigenoptions.plots.axes import LINE_COLORS, make_caption, make_line_style
from eigenoptions.plots.figures import STYLE

# Width in inches of one column and of both columns of a conference page.
COLUMN, PAGE = 3.25, 6.75
# One colour per kind of option in all figures.
KIND_COLORS = {
    **dict.fromkeys(("eigenoptions", "singular", "in order of eigenvalue", "as reported"), "#0072b2"),
    **dict.fromkeys(("random", "random options", "in a random order"), "#9a9a9a"),
    **dict.fromkeys(("bottleneck", "bottleneck options"), "#d55e00"),
    **dict.fromkeys(("primitive", "primitive actions", "walk", "random walk", "rand"), "#000000"),
    "published": "#cc79a7",
    "constant": "#009e73",
    "rows": "#e69f00",
    "rotated": "#56b4e9",
    **{f"{n} options": colormaps["Blues"](0.4 + 0.1 * i) for i, n in enumerate((2, 4, 8, 64, 128, 256))},
}
caption, line_style = make_caption, make_line_style


@dataclass(frozen=True)
class Panel:
    """A function that draws on axes, the title above them, height divided by width, and "3d" or None."""

    draw: Callable[[Any], Any]
    title: str = ""
    aspect: float = 1.0
    projection: str | None = None


def figure(
    panels: Iterable[Panel],
    *,
    columns: int | None = None,
    width: float | None = None,
    ratios: Sequence[float] | None = None,
    legend: bool = False,
) -> Figure:
    """Panels in a grid, row by row; with `legend` one legend for all of them below.

    >>> figure([maze_panel([[0, 0], [0, 1]])] * 3).get_size_inches().tolist()[0]
    6.75
    """
    drawn = list(panels)
    columns = min(len(drawn), columns or (4 if len(drawn) <= 16 else 8))
    width = width or (COLUMN if columns <= 2 else PAGE)
    shares = np.array(ratios or [1.0] * columns) / sum(ratios or [1.0] * columns)
    rows = -(-len(drawn) // columns)
    height = min(max(panel.aspect * width * shares[i % columns] for i, panel in enumerate(drawn)), 2.8)
    with matplotlib.rc_context(STYLE):
        made = Figure(figsize=(width, rows * (height + 0.3) + 0.4 * legend), layout="constrained")
        grid = made.add_gridspec(rows, columns, width_ratios=shares)
        for i, panel in enumerate(drawn):
            ax = made.add_subplot(grid[i // columns, i % columns], projection=panel.projection)
            panel.draw(ax)
            ax.set_title(fill(panel.title, max(4, int(18 * width * shares[i % columns]))))
        if legend:
            lines = {
                name: line
                for ax in made.axes
                for line, name in zip(*ax.get_legend_handles_labels(), strict=True)
            }
            made.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4)
    return made


def to_svg(drawn: Figure) -> str:
    """SVG text of a figure."""
    buffer = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        drawn.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue().decode()


svg = to_svg


def maze_panel(coords: ArrayLike, marks: Mapping[int, str] | None = None, title: str = "") -> Panel:
    """A maze with letters on some states."""
    return Panel(lambda ax: draw_maze(ax, coords, marks), title, _aspect(coords))


def value_panel(coords: ArrayLike, values: ArrayLike, title: str = "", **settings: Any) -> Panel:
    """One number per state; `settings` are those of `draw_values`, with `label` for its colour bar."""
    settings["colorbar"] = settings.pop("label", None)
    return Panel(lambda ax: draw_values(ax, coords, values, **settings), title, _aspect(coords))


def policy_panel(coords: ArrayLike, policy: ArrayLike, title: str = "") -> Panel:
    """The policy of an option of a maze."""
    return Panel(lambda ax: draw_policy(ax, coords, policy), title, _aspect(coords))


def curve_panel(
    x: ArrayLike,
    series: Mapping[str, ArrayLike],
    title: str = "",
    *,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    threads: Mapping[str, ArrayLike] | None = None,
    levels: Mapping[str, float] | None = None,
    xlabel: str = "",
    ylabel: str = "",
    log: bool = False,
    limits: tuple[float, float] | None = None,
    ticks: Sequence[str] | None = None,
    legend: bool = True,
) -> Panel:
    """Lines by name with bands; thin lines (`threads`) behind them, dashed horizontal `levels`, words as `ticks`."""

    def draw(ax: Any) -> None:
        for name, lines in (threads or {}).items():
            lines = np.atleast_2d(lines)
            label = [name, *[""] * (len(lines) - 1)]
            style = {"color": KIND_COLORS.get(name, "#9a9a9a"), "linewidth": 0.4 if len(lines) > 4 else 0.9}
            ax.plot(x, lines.T, alpha=0.8, label=label, **style)
        for name, level in (levels or {}).items():
            ax.axhline(level, color="#555555", linewidth=0.9, linestyle=(0, (4, 2)), label=name, zorder=1.5)
        draw_curves(ax, x, series, bands=bands, colors=KIND_COLORS)
        ax.set(xlabel=xlabel, ylabel=ylabel, yscale="log" if log else "linear")
        if ticks is not None:
            for line in ax.lines[-len(series) :]:
                line.set(marker="o", markersize=2.5)
            ax.set_xticks(x, ticks)
            ax.margins(x=0.04)
        if limits is not None:
            ax.set_ylim(limits)
        if legend and any((*series, *(threads or {}), *(levels or {}))):
            ax.legend()

    return Panel(draw, title, 0.72)


def point_panel(
    groups: Mapping[str, ArrayLike], title: str = "", *, xlabel: str = "", ylabel: str = ""
) -> Panel:
    """Points ``(n, 2)`` by name; later groups cover earlier ones."""

    def draw(ax: Any) -> None:
        for i, (name, points) in enumerate(groups.items()):
            x, y = np.reshape(np.asarray(points, dtype=float), (-1, 2)).T
            color = KIND_COLORS.get(name, LINE_COLORS[i % len(LINE_COLORS)])
            ax.scatter(x, y, s=6, color=color, marker="osD^vP*"[i % 7], alpha=0.7, linewidths=0, label=name)
        ax.set(xlabel=xlabel, ylabel=ylabel)
        if any(groups):
            ax.legend()

    return Panel(draw, title, 0.72)


def _aspect(coords: ArrayLike) -> float:
    high, wide = np.ptp(np.asarray(coords), axis=0) + 3
    return float(high / wide)
