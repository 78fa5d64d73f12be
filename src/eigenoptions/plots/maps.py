"""Maps of states on Matplotlib axes: mazes, one number per state, policies, options.

`mdp` is an `MDP` with `coords`, or only the ``(S, 2)`` row and column of each state.
What a colour says, a shape says too: a state where an option terminates is red and has
no arrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import Colormap, to_rgb
from matplotlib.image import AxesImage
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

from eigenoptions._colors import (
    INK,
    PRINTED_GOAL,
    PRINTED_START,
    PRINTED_WALL,
    RED,
    WHITE,
)
from eigenoptions._text import find_moves
from eigenoptions._types import BoolArray, FloatArray, IntegerArray
from eigenoptions.mdp import MDP, MOVES
from eigenoptions.options import Option, OptionSet
from eigenoptions.options.maps import find_arrows, make_caption
from eigenoptions.plots.nodes import (
    draw_node_policy,
    draw_node_values,
    draw_nodes,
    has_positions,
)
from eigenoptions.plots.style import read_colormap

_Number = TypeVar("_Number", bound=np.generic)

_MARK_COLORS = {"S": PRINTED_START, "G": PRINTED_GOAL}

# Larger maps have no lines between cells, and colours instead of arrows.
MAX_DETAILED_STATES = 2500

# A picture has one pixel per cell, and must not fill the memory.
_MOST_CELLS = 1e6
_MOST_CELLS_PER_STATE = 1000

# Rows and columns by which an agent moves, in the order of right turns: the headings
# right, down, left and up.
_FORWARD = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])


def draw_maze(
    ax: Axes, mdp: MDP | ArrayLike, marks: Mapping[int, str] | None = None
) -> None:
    """Draw grey walls, white states, and letters on some states, like Figure 1.

    A graph is drawn as nodes and edges, without letters.

    Parameters
    ----------
    ax : Axes
        Axes to draw on.
    mdp : MDP or (S, 2) array
        States with `coords` or `positions`, or the row and column of each state.
    marks : mapping from states to letters, optional
        Letter of each marked state; by default S and G at the start and the goal of the
        MDP.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_maze(ax, eo.maze("S.G"))
    >>> [letter.get_text() for letter in ax.texts]
    ['S', 'G']
    """
    if has_positions(mdp):
        draw_nodes(ax, mdp, WHITE)
        return

    cells = _read_cells(mdp)
    _draw_cells(ax, cells, is_red=np.zeros(len(cells), dtype=bool))

    if marks is None:
        marks = _mark_task(mdp)
    for state, letter in marks.items():
        row, column = cells[state]
        _draw_mark(ax, row, column, letter)


def draw_values(
    ax: Axes,
    mdp: MDP | ArrayLike,
    values: ArrayLike,
    *,
    signed: bool = True,
    limits: tuple[float, float] | None = None,
    colorbar: str | None = None,
    cmap: str | Colormap | None = None,
) -> AxesImage | PathCollection:
    """Draw one number per state as a heat map, or as colours of the nodes of a graph.

    The numbers are proto-value functions, hitting times or counts of visits, for
    example.

    Parameters
    ----------
    ax : Axes
        Axes to draw on.
    mdp : MDP or (S, 2) array
        States with `coords`, or the row and column of each state.
    values : (S,) array
        One number per state. States with NaN look like walls.
    signed : bool, default=True
        Colours from blue below zero over white to orange above. If False, they go from
        dark to light.
    limits : pair of floats, optional
        Ends of the colour scale, so that several maps can share one; by default those
        of the values.
    colorbar : str, optional
        Label of a colour bar. By default there is no bar.
    cmap : str or Colormap, optional
        Another colour map; see `signed` for the default.

    Returns
    -------
    AxesImage or PathCollection
        The image, or the nodes, for a colour bar of your own.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_values(ax, eo.maze("S.G"), [-1.0, 0.0, 1.0]).get_clim()
    (-1.0, 1.0)
    """
    n_states = mdp.n_states if isinstance(mdp, MDP) else len(_read_cells(mdp))
    numbers = _read_numbers("values", values, n_states).astype(np.float64)
    if limits is None:
        limits = _find_limits(numbers, signed)

    low, high = limits
    colors = read_colormap(cmap, signed).with_extremes(bad=PRINTED_WALL)
    image: AxesImage | PathCollection
    if has_positions(mdp):
        image = draw_node_values(ax, mdp, numbers, limits, colors)
    else:
        cells = _read_cells(mdp)
        pixels = np.ma.masked_invalid(_to_grid(cells, numbers, wall=np.nan))
        image = _draw_image(ax, cells, pixels, cmap=colors, vmin=low, vmax=high)

    if colorbar is not None:
        bar_axes = ax.inset_axes((1.04, 0.0, 0.05, 1.0))
        bar: Any = ax.figure.colorbar(image, cax=bar_axes, label=colorbar)
        bar.outline.set_visible(False)
    return image


def draw_policy(ax: Axes, mdp: MDP | ArrayLike, policy: ArrayLike) -> None:
    """Draw the policy of an option, like Figures 3 to 5.

    An arrow is the most likely move of the action in the MDP; a bent one turns the
    agent to the left or to the right (MiniGrid). Where only rows and columns are given,
    the actions are up, right, down and left. A ring is an action
    that most likely changes nothing. A digit is the number of an action that leads to
    no neighbouring cell. States where the option terminates are red.

    Parameters
    ----------
    ax : Axes
        Axes to draw on.
    mdp : MDP or (S, 2) array
        States with `coords`, or the row and column of each state.
    policy : (S,) array
        Action of each state, negative where the option terminates.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_policy(ax, eo.maze("S.G"), [1, 1, -1])
    >>> ax.collections[-1].N
    2
    """
    if has_positions(mdp):
        n_states = mdp.n_states
        actions = _read_numbers("policy", policy, n_states).astype(np.int64)
        draw_node_policy(ax, mdp, actions)
        return

    cells = _read_cells(mdp)
    actions = _read_numbers("policy", policy, len(cells)).astype(np.int64)
    terminates = actions < 0
    _draw_cells(ax, cells, is_red=terminates)

    moves = compute_moves(mdp, actions)
    length = np.abs(moves).max(axis=1)
    if isinstance(mdp, MDP) and mdp.headings is not None:
        turns = find_arrows(mdp, actions)[1]
        assert turns is not None
        turning = np.flatnonzero(turns)
        _draw_turns(ax, cells[turning], mdp.headings[turning], turns[turning])
        # What turns is drawn; it neither moves nor stays.
        length[turning] = -1
    is_neighbour = length == 1
    _draw_moves(ax, cells[is_neighbour], moves[is_neighbour])

    cell_size = _measure_cell(ax)
    stays = (length == 0) & ~terminates
    _draw_rings(ax, cells[stays], size=0.4 * cell_size, width=0.5)

    for state in np.flatnonzero(length > 1):
        row, column = cells[state]
        action = actions[state]
        ax.text(
            column,
            row,
            str(action) if action < 10 else "+",
            ha="center",
            va="center_baseline",
            color=INK,
            size=0.6 * cell_size,
        )


def draw_options(
    axes: Axes | Sequence[Axes] | NDArray[np.object_],
    options: OptionSet,
    *,
    cmap: str | Colormap | None = None,
) -> None:
    """Draw each option of a set on its own axes, with its label and eigenvalue.

    In large maps, arrows could not be told apart. There the colours are the potential
    that the option climbs, or its value if it leads to a goal, and a ring is a state
    where it terminates (a red dot, where there are hundreds).

    Parameters
    ----------
    axes : Axes, or sequence or array of Axes
        Axes as ``plt.subplots`` returns them, at least one per option. Those left over
        are hidden.
    options : OptionSet
        Options of states with `coords`.
    cmap : str or Colormap, optional
        Colours of large maps; by default from blue over white to orange.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> from matplotlib.figure import Figure
    >>> axes = Figure().subplots(1, 2)
    >>> draw_options(axes, eo.discover("i-maze", 2))
    >>> axes[0].get_title()[:3]
    'e2+'
    """
    all_axes = np.asarray(axes, dtype=object).ravel()
    if len(all_axes) < len(options):
        raise ValueError(
            f"axes must be at least {len(options)}, one per option, got {len(all_axes)}"
        )

    for ax, option in zip(all_axes, options, strict=False):
        is_graph = has_positions(options.mdp)
        if is_graph or options.n_states <= MAX_DETAILED_STATES:
            draw_policy(ax, options.mdp, option.policy)
        else:
            _draw_large_option(ax, options.mdp, option, cmap)
        ax.set_title(make_caption(option.label, option.eigenvalue))
    for ax in all_axes[len(options) :]:
        ax.set_axis_off()


def compute_moves(
    mdp: MDP | ArrayLike, actions: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rows and columns by which the action of each state most likely moves.

    Parameters
    ----------
    mdp : MDP or (S, 2) array
        States with `coords`. Where only rows and columns are given, the actions are up,
        right, down and left.
    actions : (S,) array
        Action of each state, negative where an option terminates.

    Returns
    -------
    (S, 2) array
        0 where the action is negative.

    Examples
    --------
    >>> compute_moves([[0, 0], [0, 1]], np.array([1, -1])).tolist()
    [[0, 1], [0, 0]]
    """
    if isinstance(mdp, MDP):
        return find_moves(_read_cells(mdp), actions, mdp.most_likely_successors)

    # An action beyond the four leads to no neighbour; a negative one stays.
    n_moves = len(MOVES)
    moves = np.array([*MOVES, (2, 2), (0, 0)])
    rows = np.minimum(actions, n_moves)
    rows[actions < 0] = n_moves + 1
    return moves[rows]


def _read_cells(mdp: MDP | ArrayLike) -> NDArray[np.int64]:
    """``(S, 2)`` row and column of each state; ValueError if they make no map."""
    coords = mdp.coords if isinstance(mdp, MDP) else mdp
    if coords is None:
        raise ValueError(
            "states have no coords: a map needs a row and a column of each "
            "(MDP(coords=...))"
        )
    cells = np.asarray(coords).astype(np.int64)
    if cells.ndim != 2 or cells.shape[1] != 2 or not len(cells):
        raise ValueError(f"coords must have shape (S, 2), got {cells.shape}")

    if not fits_picture(cells):
        raise ValueError(
            f"coords must be rows and columns of a grid of at most "
            f"{_MOST_CELLS_PER_STATE:,} cells per state, got {len(cells)} states in "
            f"{' x '.join(str(side) for side in np.ptp(cells, axis=0) + 1)} cells"
        )
    return cells


def fits_picture(coords: IntegerArray) -> bool:
    """Whether a grid is small enough for a picture.

    >>> fits_picture(np.array([[0, 0], [10**9, 10**9]]))
    False
    """
    n_cells = np.prod(np.ptp(coords, axis=0) + 3.0)
    return bool(n_cells <= _MOST_CELLS_PER_STATE * len(coords) + _MOST_CELLS)


def _read_numbers(name: str, numbers: ArrayLike, n_states: int) -> NDArray[Any]:
    """``(S,)`` one number per state; ValueError if the shape is another."""
    checked = np.asarray(numbers)
    if checked.shape != (n_states,):
        raise ValueError(
            f"{name} must have shape ({n_states},), one per state, got {checked.shape}"
        )
    return checked


def _find_limits(numbers: FloatArray, signed: bool) -> tuple[float, float]:
    """Ends of the colour scale; those of signed numbers are symmetric around zero."""
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        low, high = 0.0, 1.0
    else:
        low = finite.min()
        high = finite.max()
    if signed:
        high = max(-low, high)
        low = -high
    return low, high


def _mark_task(mdp: MDP | ArrayLike) -> dict[int, str]:
    """Letters of the start and the goal, where an MDP has them."""
    marks = {}
    if isinstance(mdp, MDP):
        if mdp.start is not None:
            marks[mdp.start] = "S"
        if mdp.goal is not None:
            marks[mdp.goal] = "G"
    return marks


def _to_grid(
    cells: NDArray[np.int64], numbers: NDArray[_Number], wall: float
) -> NDArray[_Number]:
    """Grid of the numbers of states, with one ring of walls around them."""
    first = cells.min(axis=0) - 1
    n_rows, n_columns = cells.max(axis=0) - first + 2
    rows, columns = (cells - first).T

    grid = np.full((n_rows, n_columns), wall, dtype=numbers.dtype)
    grid[rows, columns] = numbers
    return grid


def _draw_image(
    ax: Axes, cells: NDArray[np.int64], pixels: ArrayLike, **scale: Any
) -> AxesImage:
    """Draw one pixel per cell, at its row and column, without ticks and frame."""
    top, left = cells.min(axis=0) - 1.5
    bottom, right = cells.max(axis=0) + 1.5

    # "none" keeps the corners of few large pixels sharp in vector graphics.
    is_detailed = len(cells) <= MAX_DETAILED_STATES
    image = ax.imshow(
        pixels,
        extent=(left, right, bottom, top),
        interpolation="none" if is_detailed else "antialiased",
        **scale,
    )
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_visible(False)
    return image


def _draw_cells(ax: Axes, cells: NDArray[np.int64], is_red: BoolArray) -> None:
    """Draw walls, white states and red states."""
    palette = np.array([to_rgb(PRINTED_WALL), to_rgb(WHITE), to_rgb(RED)])
    kinds = np.where(is_red, 2, 1)
    _draw_image(ax, cells, palette[_to_grid(cells, kinds, wall=0)])

    if len(cells) <= MAX_DETAILED_STATES:
        # Lines between cells have the colour of walls, on which they do not show.
        # (Those of a grid need ticks, which take as long as all the rest.)
        top, left = cells.min(axis=0) - 0.5
        bottom, right = cells.max(axis=0) + 0.5
        lines = [[(x, top), (x, bottom)] for x in np.arange(left + 1, right)]
        lines += [[(left, y), (right, y)] for y in np.arange(top + 1, bottom)]
        grid = LineCollection(lines, colors=PRINTED_WALL, linewidths=0.2, zorder=1.5)
        ax.add_collection(grid, autolim=False)


def _draw_mark(ax: Axes, row: int, column: int, letter: str) -> None:
    """Draw a letter on a coloured cell."""
    color = _MARK_COLORS.get(letter, "white")
    sides = [column - 0.5, column + 0.5]
    ax.fill_between(sides, row - 0.5, row + 0.5, color=color, linewidth=0)
    ax.text(
        column,
        row,
        letter,
        path_effects=[withStroke(linewidth=1.5, foreground=color)],
        ha="center",
        va="center_baseline",
        weight="bold",
        color=INK,
        size=float(np.clip(0.75 * _measure_cell(ax), 5.5, 11.0)),
    )


def _draw_moves(ax: Axes, cells: NDArray[np.int64], moves: NDArray[np.int64]) -> None:
    """Draw an arrow of the same length for each move, in the middle of its cell."""
    rows, columns = cells.T
    down, right = 0.72 * moves.T / np.hypot(*moves.T)
    ax.quiver(
        columns,
        rows,
        right,
        down,
        color=INK,
        zorder=3,
        # Lengths and directions are those of the cells, not of the screen.
        angles="xy",
        units="xy",
        scale_units="xy",
        scale=1.0,
        pivot="mid",
        # The shape of an arrow.
        headwidth=3.4,
        headlength=2.8,
        headaxislength=2.8,
        width=0.1,
    )


def _draw_turns(
    ax: Axes,
    cells: NDArray[np.int64],
    headings: NDArray[np.int_],
    turns: NDArray[np.int64],
) -> None:
    """Draw a bent arrow for each turn: from the present heading to the next one."""
    lines = []
    for cell, heading, turn in zip(
        cells, headings.tolist(), turns.tolist(), strict=True
    ):
        before = _FORWARD[heading]
        after = _FORWARD[(heading + turn) % len(_FORWARD)]
        shaft, head = _find_corners(cell, before, after)
        # x is the column.
        lines += [shaft[:, ::-1], head[:, ::-1]]
    width = 0.1 * _measure_cell(ax)
    ax.add_collection(LineCollection(lines, colors=INK, linewidths=width, zorder=3))


def _find_corners(
    middle: NDArray[np.int64], before: NDArray[np.int64], after: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """The corners of an arrow that bends near the middle of a cell.

    Parameters
    ----------
    middle : (2,) array
        Row and column of the cell.
    before, after : (2,) array
        Directions of the tail and of the tip: rows and columns of unit length.

    Returns
    -------
    shaft : (3, 2) array
        Corners from the tail to the tip.
    head : (3, 2) array
        Corners of the head.
    """
    # The bend moves to the outer corner, so that both arms are long.
    bend = middle + 0.2 * (before - after)
    tail = bend - 0.55 * before
    tip = bend + 0.55 * after
    across = after[::-1] * np.array([-1.0, 1.0])
    left = tip - 0.2 * after + 0.18 * across
    right = tip - 0.2 * after - 0.18 * across
    return np.stack([tail, bend, tip]), np.stack([left, tip, right])


# More rings would hide a map.
_MOST_RINGS = 200


def _draw_large_option(
    ax: Axes, mdp: MDP, option: Option, cmap: str | Colormap | None
) -> None:
    """Draw an option of a large map: colours, and marks where it terminates."""
    # The potential of a single goal is one bright cell: its value shows the way there.
    potential = option.purpose.potential
    if potential is not None and option.goal is None:
        draw_values(ax, mdp, potential, cmap=cmap)
    else:
        draw_values(ax, mdp, option.value, cmap=cmap)

    ends = _read_cells(mdp)[option.termination]
    if len(ends) <= _MOST_RINGS:
        _draw_rings(ax, ends, size=5.0, width=1.2)
    else:
        # One pixel each.
        rows, columns = ends.T
        ax.plot(columns, rows, marker=",", linestyle="none", color=RED)


def _draw_rings(ax: Axes, cells: IntegerArray, size: float, width: float) -> None:
    """Draw a ring on each cell; size and width are in points."""
    rows, columns = cells.T
    ax.plot(
        columns,
        rows,
        "o",
        fillstyle="none",
        color=INK,
        markersize=size,
        markeredgewidth=width,
    )


def _measure_cell(ax: Axes) -> float:
    """Side of a cell in points."""
    left, right = ax.get_xlim()
    bottom, top = ax.get_ylim()
    box = ax.get_window_extent()

    width = box.width / abs(right - left)
    height = box.height / abs(top - bottom)
    return min(width, height) * 72 / ax.figure.dpi
