"""Functions that draw on Matplotlib axes: mazes, one number per state, policies and curves.

`mdp` is an `MDP` with `coords`, or only the ``(S, 2)`` row and column of each state. What a colour says, a shape says
too: a state where an option terminates is red and has no arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

from eigenoptions._colors import (
    BLUE,
    INK,
    LINES,
    ORANGE,
    PRINTED_GOAL,
    PRINTED_START,
    PRINTED_WALL,
    RED,
    WHITE,
)
from eigenoptions._text import find_moves
from eigenoptions.evaluation.intervals import mean_interval
from eigenoptions.mdp import MDP, MOVES

MARK_COLORS = {"S": PRINTED_START, "G": PRINTED_GOAL}
SIGNED = LinearSegmentedColormap.from_list("blue-orange", [BLUE, WHITE, ORANGE])
# Lines differ by dashes as well as by colour.
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
# Larger maps have no lines between cells, and colours instead of arrows.
MAX_DETAILED_STATES = 2500


def draw_maze(
    ax: Axes, mdp: MDP | ArrayLike, marks: Mapping[int, str] | None = None
) -> None:
    """Draw grey walls, white states and letters on some states, like Figure 1.

    Parameters
    ----------
    ax, mdp
        Axes to draw on; and an MDP with `coords`, or ``(S, 2)`` rows and columns.
    marks
        Letter of each marked state; by default S and G at the start and the goal of the MDP.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_maze(ax, eo.maze("S.G"))
    >>> [letter.get_text() for letter in ax.texts]
    ['S', 'G']
    """
    cells = _check_cells(mdp)
    _draw_cells(ax, cells, np.zeros(len(cells), dtype=bool))
    if marks is None and isinstance(mdp, MDP):
        marks = {
            s: letter
            for s, letter in ((mdp.start, "S"), (mdp.goal, "G"))
            if s is not None
        }
    for state, letter in (marks or {}).items():
        row, column = cells[state]
        color = MARK_COLORS.get(letter, "white")
        ax.fill_between(
            [column - 0.5, column + 0.5], row - 0.5, row + 0.5, color=color, linewidth=0
        )
        outline = [withStroke(linewidth=1.5, foreground=color)]
        size = float(np.clip(0.75 * _cell_points(ax), 5.5, 11.0))
        style: Any = {
            "ha": "center",
            "va": "center_baseline",
            "weight": "bold",
            "size": size,
        }
        ax.text(column, row, letter, path_effects=outline, **style)


def draw_values(
    ax: Axes,
    mdp: MDP | ArrayLike,
    values: ArrayLike,
    *,
    signed: bool = True,
    limits: tuple[float, float] | None = None,
    colorbar: str | None = None,
) -> Any:
    """Draw one number per state as a heat map (proto-value functions, hitting times, counts of visits).

    Parameters
    ----------
    ax, mdp
        As in `draw_maze`.
    values
        ``(S,)`` numbers; states with NaN look like walls.
    signed
        Blue below zero, white at zero, orange above; otherwise dark to light.
    limits
        Ends of the colour scale, so that several maps can share one; by default those of the values.
    colorbar
        Label of a colour bar; None draws no bar.

    Returns
    -------
    AxesImage
        The image, for a colour bar of your own.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> from matplotlib.figure import Figure
    >>> draw_values(Figure().add_subplot(), eo.maze("S.G"), [-1.0, 0.0, 1.0]).get_clim()
    (-1.0, 1.0)
    """
    cells = _check_cells(mdp)
    numbers = _check_numbers("values", values, cells).astype(float)
    if limits is None:
        finite = numbers[np.isfinite(numbers)]
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
        limits = (-max(-low, high), max(-low, high)) if signed else (low, high)
    colors = (SIGNED if signed else matplotlib.colormaps["viridis"]).with_extremes(
        bad=PRINTED_WALL
    )
    picture = np.ma.masked_invalid(_to_grid(cells, numbers, np.nan))
    image = _draw_image(ax, cells, picture, cmap=colors, vmin=limits[0], vmax=limits[1])
    if colorbar is not None:
        bar: Any = ax.figure.colorbar(
            image, cax=ax.inset_axes((1.04, 0.0, 0.05, 1.0)), label=colorbar
        )
        bar.outline.set_visible(False)
    return image


def draw_policy(ax: Axes, mdp: MDP | ArrayLike, policy: ArrayLike) -> None:
    """Draw the policy of an option: an arrow per state, red where the option terminates (Figures 3 to 5).

    An arrow is the most likely move of the action in the MDP; with rows and columns only, actions are up, right, down
    and left. A ring is an action that most likely changes nothing; a digit is the number of an action that leads to no
    neighbouring cell.

    Parameters
    ----------
    ax, mdp
        As in `draw_maze`.
    policy
        ``(S,)`` actions; negative where the option terminates.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_policy(ax, eo.maze("S.G"), [1, 1, -1])
    >>> ax.collections[0].N
    2
    """
    cells = _check_cells(mdp)
    actions = _check_numbers("policy", policy, cells).astype(np.int64)
    terminates = actions < 0
    moves = compute_moves(mdp, actions)
    distance = np.abs(moves).max(axis=1)
    _draw_cells(ax, cells, terminates)

    row, column = cells[distance == 1].T
    down, right = 0.72 * moves[distance == 1].T / np.hypot(*moves[distance == 1].T)
    in_cells: Any = {
        "angles": "xy",
        "units": "xy",
        "scale_units": "xy",
        "scale": 1.0,
        "pivot": "mid",
    }
    shape: Any = {
        "headwidth": 3.4,
        "headlength": 2.8,
        "headaxislength": 2.8,
        "width": 0.1,
    }
    ax.quiver(column, row, right, down, color=INK, zorder=3, **in_cells, **shape)
    size = _cell_points(ax)
    stays = ~terminates & (distance == 0)
    _draw_rings(ax, cells[stays], 0.4 * size, 0.5)
    for state in np.flatnonzero(distance > 1):
        text = str(actions[state]) if actions[state] < 10 else "+"
        ax.text(
            cells[state, 1],
            cells[state, 0],
            text,
            ha="center",
            va="center_baseline",
            size=0.6 * size,
        )


def draw_options(axes: Any, options: Any) -> None:
    """Draw each option of a set on its own axes, with its label and eigenvalue as the title.

    In large maps, where arrows could not be told apart, the colours are the potential that the option climbs, from blue
    to orange, or its value if it leads to a goal; a ring (where there are hundreds, a red dot) is a state where it
    terminates.

    Parameters
    ----------
    axes
        Array of axes (of ``plt.subplots``), at least one per option; those left over are hidden.
    options
        An `OptionSet`.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> from matplotlib.figure import Figure
    >>> axes = Figure().subplots(1, 2)
    >>> draw_options(axes, eo.discover("i-maze", 2))
    >>> axes[0].get_title()[:3]
    'e2+'
    """
    all_axes = np.ravel(axes)
    if len(all_axes) < len(options):
        raise ValueError(
            f"axes must be at least {len(options)}, one per option, got {len(all_axes)}"
        )
    for ax, option in zip(all_axes, options, strict=False):
        potential = option.purpose.potential
        if options.n_states <= MAX_DETAILED_STATES:
            draw_policy(ax, options.mdp, option.policy)
        else:
            has_goal = potential is None or option.goal is not None
            draw_values(ax, options.mdp, option.value if has_goal else potential)
            _mark_ends(ax, _check_cells(options.mdp)[option.termination])
        ax.set_title(make_caption(option.label, option.eigenvalue))
    for ax in all_axes[len(options) :]:
        ax.set_axis_off()


def draw_landscape(
    ax: Axes,
    potential: Callable[[NDArray[np.float64]], ArrayLike],
    low: ArrayLike,
    high: ArrayLike,
    paths: Iterable[ArrayLike] = (),
) -> None:
    """Draw a function of two-dimensional observations, and paths over it (MountainCar: position and velocity).

    Parameters
    ----------
    ax
        Axes to draw on.
    potential
        Function from ``(N, 2)`` observations to ``(N,)`` numbers, as the eigenvector that an option climbs.
    low, high
        ``(2,)`` corners of the box of observations.
    paths
        ``(T, 2)`` observations of each path: a line with a red dot at its end.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> draw_landscape(Figure().add_subplot(), lambda obs: obs[:, 0], [0, 0], [1, 1])
    """
    (left, bottom), (right, top) = (
        np.asarray(low, dtype=float),
        np.asarray(high, dtype=float),
    )
    x, y = np.meshgrid(np.linspace(left, right, 101), np.linspace(bottom, top, 101))
    heights = np.asarray(
        potential(np.stack([x.ravel(), y.ravel()], axis=1)), dtype=float
    ).reshape(x.shape)
    heights = heights - np.median(heights)
    limit = float(np.abs(heights).max()) or 1.0
    box = (left, right, bottom, top)
    ax.imshow(
        heights,
        cmap=SIGNED,
        vmin=-limit,
        vmax=limit,
        origin="lower",
        extent=box,
        aspect="auto",
    )
    for path in map(np.asarray, paths):
        ax.plot(path[:, 0], path[:, 1], color=INK, linewidth=0.6, alpha=0.7)
        ax.plot(*path[-1], "o", color=RED, markersize=2.5)
    ax.set(xlim=(left, right), ylim=(bottom, top))


def draw_curves(
    ax: Axes,
    x: ArrayLike,
    curves: Mapping[str, ArrayLike],
    *,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    colors: Mapping[str, Any] | None = None,
) -> None:
    """Draw lines by name; lines of several runs as their mean with a confidence band (Figures 6 and 7).

    Parameters
    ----------
    ax
        Axes to draw on; labels, scales and the legend are set on them as usual.
    x
        ``(n,)`` horizontal positions.
    curves
        ``(n,)`` numbers, or ``(runs, n)`` for a mean with its 95% Student interval.
    bands
        Lower and upper ends, each ``(n,)``, of bands that are known already.
    colors
        Colours of some lines; the others have those of a palette for the colour-blind.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_curves(ax, [0, 1], {"64 options": [[1.0, 2.0], [3.0, 4.0]]})
    >>> ax.lines[0].get_ydata().tolist()
    [2.0, 3.0]
    """
    for i, (name, numbers) in enumerate(curves.items()):
        runs = np.atleast_2d(np.asarray(numbers, dtype=float))
        if runs.shape[1:] != np.shape(x):
            raise ValueError(
                f"curve {name!r} must have {np.size(x)} columns, one per x, got {runs.shape}"
            )
        style = make_line_style(i) | (
            {"color": colors[name]} if colors and name in colors else {}
        )
        ax.plot(x, runs.mean(axis=0), label=name, **style)
        band = (bands or {}).get(name)
        if band is None and len(runs) > 1:
            band = mean_interval(runs)
        if band is not None:
            ax.fill_between(x, *band, color=style["color"], alpha=0.2, linewidth=0)
    ax.margins(x=0.01)


def make_line_style(i: int) -> dict[str, Any]:
    """Colour and dashes of the i-th line of a plot.

    >>> make_line_style(1)
    {'color': '#d55e00', 'linestyle': '--'}
    """
    return {
        "color": LINES[i % len(LINES)],
        "linestyle": DASHES[i % len(DASHES)],
    }


def make_caption(label: str, eigenvalue: float) -> str:
    r"""Label and eigenvalue of an option or eigenvector, if it has one.

    >>> make_caption("e2+", 0.25), make_caption("goal 3", float("nan"))
    ('e2+  λ = 0.25', 'goal 3')
    """
    return label if np.isnan(eigenvalue) else f"{label}  λ = {eigenvalue:.3g}"


def compute_moves(
    mdp: MDP | ArrayLike, actions: NDArray[np.int64]
) -> NDArray[np.int64]:
    """``(S, 2)`` rows and columns by which the action of each state most likely moves; 0 where it is negative.

    >>> compute_moves([[0, 0], [0, 1]], np.array([1, -1])).tolist()
    [[0, 1], [0, 0]]
    """
    if not isinstance(mdp, MDP):
        # An action beyond the four leads to no neighbour.
        return np.array([*MOVES, (2, 2), (0, 0)])[
            np.where(actions < 0, 5, np.minimum(actions, 4))
        ]
    return find_moves(_check_cells(mdp), actions, mdp.most_likely_successors)


def _check_cells(mdp: MDP | ArrayLike) -> NDArray[np.int64]:
    """``(S, 2)`` row and column of each state."""
    coords = mdp.coords if isinstance(mdp, MDP) else mdp
    if coords is None:
        raise ValueError(
            "states have no coords: a map needs a row and a column of each (MDP(coords=...))"
        )
    cells = np.asarray(coords).astype(np.int64)
    if cells.ndim != 2 or cells.shape[1] != 2 or not len(cells):
        raise ValueError(f"coords must have shape (S, 2), got {cells.shape}")
    if np.prod(np.ptp(cells, axis=0) + 3.0) > 1000 * len(cells) + 1e6:
        raise ValueError(
            "coords must be rows and columns of a grid of at most 1,000 cells per state"
        )
    return cells


def _check_numbers(
    name: str, numbers: ArrayLike, cells: NDArray[np.int64]
) -> NDArray[Any]:
    checked = np.asarray(numbers)
    if checked.shape != (len(cells),):
        raise ValueError(
            f"{name} must have shape ({len(cells)},), one per state, got {checked.shape}"
        )
    return checked


def _to_grid(
    cells: NDArray[np.int64], numbers: NDArray[Any], wall: float
) -> NDArray[Any]:
    """Grid with one ring of walls around the states."""
    low = cells.min(axis=0) - 1
    grid = np.full(tuple(cells.max(axis=0) - low + 2), wall, dtype=numbers.dtype)
    grid[tuple((cells - low).T)] = numbers
    return grid


def _draw_image(ax: Axes, cells: NDArray[np.int64], pixels: Any, **scale: Any) -> Any:
    """One pixel per cell, at the rows and columns of the cells, without ticks and frame."""
    (top, left), (bottom, right) = cells.min(axis=0) - 1.5, cells.max(axis=0) + 1.5
    # "none" keeps the corners of few large pixels sharp in vector graphics.
    smoothing: Any = "none" if len(cells) <= MAX_DETAILED_STATES else "antialiased"
    image = ax.imshow(
        pixels, extent=(left, right, bottom, top), interpolation=smoothing, **scale
    )
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_visible(False)
    return image


def _draw_cells(ax: Axes, cells: NDArray[np.int64], red: NDArray[np.bool_]) -> None:
    """Walls, states and red states."""
    palette = np.array([to_rgb(color) for color in (PRINTED_WALL, "white", RED)])
    _draw_image(ax, cells, palette[_to_grid(cells, 1 + red.astype(np.int64), 0)])
    if len(cells) <= MAX_DETAILED_STATES:
        # Lines between cells have the colour of walls, on which they do not show.
        (top, left), (bottom, right) = cells.min(axis=0), cells.max(axis=0)
        ax.set_xticks(np.arange(left, right) + 0.5, minor=True)
        ax.set_yticks(np.arange(top, bottom) + 0.5, minor=True)
        ax.tick_params(which="minor", length=0)
        ax.grid(which="minor", color=PRINTED_WALL, linewidth=0.2)


def _mark_ends(ax: Axes, cells: NDArray[np.int64]) -> None:
    if len(cells) <= 200:
        _draw_rings(ax, cells, 5.0, 1.2)
    else:
        ax.plot(*cells.T[::-1], ",", color=RED)


def _draw_rings(ax: Axes, cells: NDArray[np.int64], size: float, width: float) -> None:
    ax.plot(
        *cells.T[::-1],
        "o",
        fillstyle="none",
        color=INK,
        markersize=size,
        markeredgewidth=width,
    )


def _cell_points(ax: Axes) -> float:
    """Side of a cell in points."""
    box = ax.get_window_extent()
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    figure: Any = ax.figure
    return float(
        min(box.width / abs(right - left), box.height / abs(top - bottom))
        * 72
        / figure.dpi
    )
