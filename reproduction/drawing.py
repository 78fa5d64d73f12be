"""Drawing on Matplotlib axes: mazes, options, numbers per state, and curves with intervals and thin lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from numpy.typing import ArrayLike

from eigenoptions.mdp import MDP
from reproduction.statistics import mean_interval

# Style of all figures; DejaVu comes with Matplotlib, so letters are the same on every machine.
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
}
WALL, INK, STOP = "#8a8a8a", "#1a1a1a", "#d7263d"
# Okabe and Ito's colours, which differ also for the colour-blind; lines differ by dashes as well.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)), (0, (8, 2)))
# One colour per kind of option in all figures.
KINDS = {"eigenoptions": "#0072b2", "bottleneck options": "#d55e00", "primitive actions": "#000000"}
SIGNED = LinearSegmentedColormap.from_list("blue-orange", ["#2166ac", "#ffffff", "#e66101"])


def make_maps(n: int, width: float = 6.75, columns: int = 4, **kwargs: Any) -> tuple[Figure, list[Axes]]:
    """Figure with axes for `n` mazes."""
    columns = min(n, columns)
    rows = -(-n // columns)
    figure = Figure(figsize=(width, rows * (width / max(columns, 3) + 0.2)), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **kwargs).ravel())


def make_graphs(n: int, width: float = 6.75, columns: int = 4, **kwargs: Any) -> tuple[Figure, list[Axes]]:
    """Figure with axes for `n` graphs of curves."""
    columns = min(n, columns)
    rows = -(-n // columns)
    figure = Figure(figsize=(width, rows * (0.72 * width / columns + 0.2)), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **kwargs).ravel())


def add_legend(figure: Figure, columns: int = 4) -> None:
    """Add one legend of the lines of all axes below them."""
    pairs = [pair for ax in figure.axes for pair in zip(*ax.get_legend_handles_labels(), strict=True)]
    lines = {label: line for line, label in pairs if label}
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=columns)
    figure.set_figheight(figure.get_figheight() + 0.05 + 0.15 * -(-len(lines) // columns))


def draw_maze(ax: Axes, mdp: MDP, marks: Mapping[int, str] | None = None, title: str = "") -> None:
    """Draw grey walls and white states, and letters on some states."""
    _draw_cells(ax, mdp, facecolors="white", edgecolors="#c8c8c8", linewidths=0.25)
    for state, letter in (marks or {}).items():
        row, column = np.asarray(mdp.coords)[state]
        box = {
            "boxstyle": "square,pad=0.1",
            "facecolor": "#8ecdf0" if letter == "S" else "#f7c04a",
            "linewidth": 0,
        }
        ax.text(column, row, letter, size=6, weight="bold", ha="center", va="center", bbox=box)
    ax.set_title(title)


def draw_policy(ax: Axes, mdp: MDP, policy: ArrayLike, title: str = "") -> None:
    """Draw an option as arrows, with the states where it terminates (action -1) in red."""
    actions, cells = np.asarray(policy), np.asarray(mdp.coords)
    stops = actions < 0
    _draw_cells(ax, mdp, facecolors=np.where(stops, STOP, "white"), edgecolors="#c8c8c8", linewidths=0.25)
    moves = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])[actions[~stops]]
    arrow = {
        "units": "xy",
        "scale": 1.35,
        "width": 0.1,
        "headwidth": 3.6,
        "headlength": 2.8,
        "headaxislength": 2.8,
    }
    ax.quiver(*cells[~stops].T[::-1], moves[:, 1], -moves[:, 0], pivot="mid", color=INK, **arrow)
    ax.set_title(title)


def draw_values(
    ax: Axes, mdp: MDP, values: ArrayLike, title: str = "", *, limits: tuple[float, float], label: str = ""
) -> None:
    """Draw one number per state in colours from dark to light, with a colour bar if it has a label."""
    low, high = limits
    cells = _draw_cells(ax, mdp, cmap="viridis", edgecolors="face", linewidths=0.2)
    cells.set_array(np.asarray(values, dtype=float))
    cells.set_clim(low, high)
    if label:
        bar = ax.figure.colorbar(cells, cax=ax.inset_axes((1.04, 0.0, 0.05, 1.0)))
        bar.set_label(label)
        bar.outline.set_visible(False)
    ax.set_title(title)


def draw_surface(ax: Any, mdp: MDP, values: ArrayLike, title: str = "") -> None:
    """Draw one number per state as the height of a surface on 3-D axes, with gaps for walls, like Figure 2."""
    cells, height = np.asarray(mdp.coords), np.asarray(values, dtype=float)
    columns = cells[:, 1].max() + 2
    corner = np.stack(
        [(cells[:, 0] + dy) * columns + cells[:, 1] + dx for dy, dx in ((0, 0), (0, 1), (1, 1), (1, 0))], 1
    )
    # The height of a corner is the mean of the cells around it, so that the surface is connected.
    count = np.maximum(np.bincount(corner.ravel()), 1)
    level = np.bincount(corner.ravel(), weights=np.repeat(height, 4)) / count
    y, x = np.divmod(corner, columns)
    colors = SIGNED(0.5 + 0.5 * height / np.abs(height).max())
    faces = Poly3DCollection(
        np.stack([x, y, level[corner]], axis=2).astype(float),
        facecolors=colors,
        edgecolors="#00000055",
        linewidths=0.25,
    )
    ax.add_collection3d(faces)
    ends = {"xlim": (x.min(), x.max()), "ylim": (y.max(), y.min()), "zlim": (height.min(), height.max())}
    ax.set(title=title, xticks=[], yticks=[], zticks=[], **ends)
    ax.set_box_aspect((np.ptp(x), np.ptp(y), 0.55 * np.ptp(x)), zoom=1.1)
    ax.view_init(elev=32, azim=-62)


def _draw_cells(ax: Axes, mdp: MDP, **style: Any) -> PolyCollection:
    """Draw all states as squares on a grey ground of walls."""
    cells = np.asarray(mdp.coords)
    corner = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    squares = PolyCollection(cells[:, None, ::-1] + corner, **style)
    ax.add_collection(squares)
    (top, left), (bottom, right) = cells.min(axis=0), cells.max(axis=0)
    ax.set(
        xlim=(left - 1.5, right + 1.5), ylim=(bottom + 1.5, top - 1.5), aspect="equal", xticks=[], yticks=[]
    )
    ax.set_facecolor(WALL)
    ax.spines[:].set_visible(False)
    return squares


def draw_curves(
    ax: Axes,
    x: ArrayLike,
    lines: Mapping[str, ArrayLike],
    *,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    thin: Mapping[str, ArrayLike] | None = None,
    baseline: float | None = None,
    ticks: Sequence[str] | None = None,
    **axes: Any,
) -> None:
    """Draw lines ``(n,)``, or ``(runs, n)`` as their mean with its 95% interval.

    Parameters
    ----------
    ax, x, lines
        Axes, ``(n,)`` positions and lines by name.
    bands
        Lower and upper ends of known intervals, by name of the line.
    thin
        ``(k, n)`` thin lines behind the others, by name.
    baseline
        Height of a horizontal line for primitive actions.
    ticks
        Labels of the positions, which then have dots.
    axes
        Settings of the axes: title, xlabel, ylabel, yscale, ylim.
    """
    at = np.asarray(x, dtype=float)
    for name, many in (thin or {}).items():
        y = np.asarray(many, dtype=float)
        ax.plot(
            at, y.T, color="#9a9a9a", linewidth=0.4 if len(y) > 4 else 0.9, label=[name, *[""] * (len(y) - 1)]
        )
    if baseline is not None:
        ax.axhline(
            baseline,
            color="#555555",
            linewidth=0.9,
            linestyle=(0, (4, 2)),
            label="primitive actions",
            zorder=1.5,
        )
    numbered = [name for name in lines if name.split()[0].isdigit()]
    for i, (name, values) in enumerate(lines.items()):
        y = np.asarray(values, dtype=float)
        style: dict[str, Any] = {
            "color": KINDS.get(name, COLORS[i % 7]),
            "linestyle": DASHES[(i + i // 7) % 7],
        }
        if name in numbered:
            style["color"] = colormaps["Blues"](0.4 + 0.6 * (numbered.index(name) + 1) / len(numbered))
        if ticks is not None:
            style |= {"marker": "o", "markersize": 2.5}
        ends = (bands or {}).get(name)
        if y.ndim == 2:
            y, ends = y.mean(axis=0), mean_interval(y)
        ax.plot(at, y, label=name, **style)
        if ends is not None:
            ax.fill_between(at, *ends, color=style["color"], alpha=0.2, linewidth=0)
    ax.set(**axes)
    ax.margins(x=0.01 if ticks is None else 0.04)
    if ticks is not None:
        ax.set_xticks(at, ticks)
