"""Panels of states: a maze, one number per state, or an option (paper, Figures 1 to 5).

Small mazes are drawn as vector graphics, all cells in one collection; large ones as a coarse image with one arrow per
block of states, which keeps a million states cheap. The colours are safe for the colour-blind, and what matters differs
in shape, too: a state where an option stops has no arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize, to_rgb
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from numpy.typing import ArrayLike, NDArray

from eigenoptions._validation import check_int, check_real
from eigenoptions.mdp import MOVES

WALL, INK, STOP = "#8a8a8a", "#1a1a1a", "#d7263d"
# Colours of start and goal.
MARKS = {"S": "#8ecdf0", "G": "#f7c04a"}
SIGNED = LinearSegmentedColormap.from_list("blue-orange", ["#2166ac", "#ffffff", "#e66101"])
# Not cividis: its middle is the grey of the walls.
SEQUENTIAL = matplotlib.colormaps["viridis"]
ARROW = np.array([(-36, -5), (8, -5), (8, -18), (36, 0), (8, 18), (8, 5), (-36, 5)]) / 100
# Number that stands for an action that stays where it is, above all numbers of actions.
STAYS = 1 << 30
# Up to this many states cells are drawn as vector graphics, beyond as pixels.
DETAIL = 2500
# Longest side in blocks of a coarse image, of the arrows on it, and of a surface.
PIXELS, ARROWS, FACETS = 400, 28, 64


@dataclass(frozen=True)
class Panel:
    """One picture of a figure.

    Attributes
    ----------
    draw
        Function that draws it on the axes it is called with.
    title
        Text above it.
    aspect
        Height divided by width.
    kind
        ``"map"`` (a grid of states, no axes), ``"solid"`` (3-D) or ``"graph"`` (with axes and labels).
    """

    draw: Callable[[Any], None]
    title: str = ""
    aspect: float = 1.0
    kind: str = "map"


def maze_panel(coords: ArrayLike | None, marks: Mapping[int, str] | None = None, title: str = "") -> Panel:
    """Maze with grey walls and white states, and letters on some states, like Figure 1.

    >>> maze_panel([[0, 0], [0, 1], [0, 2]], {0: "S", 2: "G"}).aspect
    0.6
    """
    cells = _cells(coords)
    letters = {
        check_int("a marked state", s, 0, len(cells) - 1): letter for s, letter in dict(marks or {}).items()
    }

    def draw(ax: Axes) -> None:
        _ground(ax, cells, np.zeros(len(cells), dtype=bool))
        for state, letter in letters.items():
            row, col = cells[state]
            tint = MARKS.get(letter, "white")
            ax.add_artist(PathPatch(_joined(_squares(cells[[state]])), facecolor=tint, linewidth=0))
            style: Any = {"weight": "bold", "ha": "center", "va": "center_baseline"}
            outline = [withStroke(linewidth=1.5, foreground=tint)]
            # Points that fit a cell and can be read.
            size = float(np.clip(0.75 * _side(ax, cells), 5.5, 9.0))
            ax.text(col, row, letter, size=size, path_effects=outline, **style)

    return Panel(draw, title, _aspect(cells))


def value_panel(
    coords: ArrayLike | None,
    values: ArrayLike,
    title: str = "",
    *,
    signed: bool = True,
    limits: tuple[float, float] | None = None,
    label: str | None = None,
) -> Panel:
    """Heat map of one number per state: blue to orange around zero, or dark to light if not `signed`.

    `limits` sets the ends of the colour scale, so that several panels can share one; `label` adds a colour bar.

    >>> value_panel([[0, 0], [1, 0]], [-1.0, 1.0], "PVF").title
    'PVF'
    """
    cells = _cells(coords)
    v = _numbers(values, cells)
    cmap, norm = _scale(v, signed, limits)

    def draw(ax: Axes) -> None:
        _frame(ax, cells)
        ax.patch.set_facecolor(WALL)
        if len(cells) <= DETAIL:
            picture: Any = PolyCollection(
                list(_squares(cells)), cmap=cmap, norm=norm, edgecolors="face", linewidths=0.2
            )
            picture.set_array(v)
            ax.add_collection(picture)
        else:
            blocks, finite = _Blocks(cells, PIXELS), np.isfinite(v)
            count = blocks.sum(finite)
            mean = np.ma.array(blocks.sum(finite, v), mask=count == 0) / count
            picture = blocks.image(ax, mean, cmap=cmap, norm=norm)
        if label is not None:
            bar = ax.figure.colorbar(picture, cax=ax.inset_axes((1.04, 0.0, 0.05, 1.0)))
            bar.set_label(label)
            bar.outline.set_visible(False)

    return Panel(draw, title, _aspect(cells))


def surface_panel(coords: ArrayLike | None, values: ArrayLike, title: str = "") -> Panel:
    """Surface whose height is one number per state, with gaps for walls, like Figure 2 (left).

    >>> surface_panel([[0, 0], [0, 1]], [0.0, 1.0]).kind
    'solid'
    """
    cells = _cells(coords)
    v = _numbers(values, cells)

    def draw(ax: Any) -> None:
        blocks = _Blocks(cells, FACETS)
        shape, step, count = blocks.shape, blocks.step, blocks.sum()
        row, col = np.nonzero(count)
        height = blocks.sum(weights=v)[row, col] / count[row, col]
        # The height of a corner is the mean of the cells around it, so that the surface is connected.
        corner = np.stack(
            [(row + dy) * (shape[1] + 1) + col + dx for dy, dx in ((0, 0), (0, 1), (1, 1), (1, 0))], 1
        )
        around = np.bincount(corner.ravel())
        level = np.bincount(corner.ravel(), weights=np.repeat(height, 4)) / np.maximum(around, 1)
        y, x = np.divmod(corner, shape[1] + 1)
        cmap, norm = _scale(height, True, None)
        faces = Poly3DCollection(
            np.stack([x * step, y * step, level[corner]], axis=2).astype(float),
            facecolors=cmap(norm(height)),
            edgecolors="#00000055",
            linewidths=0.25,
            clip_on=False,
        )
        ax.add_collection3d(faces)
        ax.set(xlim=(0, shape[1] * step), ylim=(shape[0] * step, 0), zlim=_ends(level[corner]))
        ax.set_box_aspect((shape[1], shape[0], 0.55 * max(shape)), zoom=1.1)
        ax.view_init(elev=32, azim=-62)
        ax.set(xticks=[], yticks=[], zticks=[])
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.pane.set(facecolor="#f4f4f4", edgecolor="#d0d0d0")
            # Not invisible: some versions of Matplotlib cannot measure an axis without any visible part.
            axis.line.set_linewidth(0)

    return Panel(draw, title, 0.85, "solid")


def policy_panel(
    coords: ArrayLike | None, policy: ArrayLike, title: str = "", moves: ArrayLike | None = None
) -> Panel:
    """Option as arrows, with the states where it stops in red, like Figures 2 to 5.

    On a large maze each arrow is the mean move of a block of states (none where moves cancel), and the shade of red
    grows with the share of states in a block where the option stops. A ring is an action that most likely stays, a
    digit the number of one that leads to no neighbouring cell (``+`` above 9).

    Parameters
    ----------
    coords, policy
        ``(S, 2)`` row and column of each state, and ``(S,)`` its action, -1 where the option stops.
    title
        Text above the panel.
    moves
        ``(S, 2)`` rows and columns that each action moves by, as `OptionSet.moves` gives them. None: the actions are
        those of a maze, 0 up, 1 right, 2 down, 3 left, and others lead nowhere.

    Examples
    --------
    >>> policy_panel([[0, 0], [0, 1]], [1, -1], "e2+").title
    'e2+'
    """
    cells = _cells(coords)
    actions = np.asarray(check_real("policy", policy), dtype=np.int64)
    if actions.shape != (len(cells),):
        raise ValueError(
            f"policy must have one action for each of {len(cells)} states, got shape {actions.shape}"
        )

    stops = actions < 0
    if moves is None:
        towards = np.array([*MOVES, (0, 0)], dtype=float)[np.where(stops, 4, np.minimum(actions, 4))]
    else:
        towards = np.array(moves, dtype=float)
        if towards.shape != cells.shape:
            raise ValueError(f"moves must have shape {cells.shape} for these states, got {towards.shape}")
    stays = ~stops & ~towards.any(axis=1) & (moves is not None)
    towards[stops | (np.abs(towards).max(axis=1) > 1)] = 0.0
    length = np.hypot(*towards.T)
    towards[length > 0] /= length[length > 0, None]

    def draw(ax: Axes) -> None:
        _ground(ax, cells, stops)
        if len(cells) <= DETAIL:
            at, step, turns = cells.astype(np.float64), 1, towards
            _other_actions(ax, cells, np.where(stops | (length > 0), -1, np.where(stays, STAYS, actions)))
        else:
            at, turns, step = _mean_moves(cells, towards)
            _stops(ax, cells, stops)
        going = np.hypot(*turns.T) > 0.1
        # Not by add_patch, which loops over all corners in Python to widen limits that are already set.
        shapes = at[going, None, ::-1] + step * _turned(ARROW, turns[going])
        ax.add_artist(PathPatch(_joined(shapes), facecolor=INK, linewidth=0))

    return Panel(draw, title, _aspect(cells))


def _other_actions(ax: Axes, cells: NDArray[np.int64], actions: NDArray[Any]) -> None:
    """Rings and digits for actions that lead to no neighbouring cell; none where `actions` is negative."""
    for action in np.unique(actions[actions >= 0]).tolist():
        marker = "o" if action == STAYS else f"${action}$" if action < 10 else "$+$"
        at = cells[actions == action]
        color: Any = (
            {"facecolors": "none", "edgecolors": INK, "linewidths": 0.4}
            if action == STAYS
            else {"c": INK, "linewidths": 0}
        )
        ax.scatter(at[:, 1], at[:, 0], s=(0.4 * _side(ax, cells)) ** 2, marker=marker, **color)


def _cells(coords: ArrayLike | None) -> NDArray[np.int64]:
    if coords is None:
        raise ValueError(
            "these states have no coords: a picture needs a row and a column for each (MDP(coords=...))"
        )
    cells = np.asarray(check_real("coords", coords), dtype=np.int64)
    if cells.ndim != 2 or cells.shape[1] != 2 or not len(cells):
        raise ValueError(f"coords must have shape (S, 2), got {cells.shape}")
    return cells


def _numbers(values: ArrayLike, cells: NDArray[np.int64]) -> NDArray[np.float64]:
    v = np.asarray(values, dtype=np.float64)
    if v.shape != (len(cells),):
        raise ValueError(f"values must have one number for each of {len(cells)} states, got shape {v.shape}")
    return v


def _ends(v: NDArray[np.float64]) -> tuple[float, float]:
    """Lowest and highest finite number; widened if they are equal."""
    finite = v[np.isfinite(v)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _scale(
    v: NDArray[np.float64], signed: bool, limits: tuple[float, float] | None
) -> tuple[Colormap, Callable[[Any], Any]]:
    """Colour map and norm; if signed, zero is white."""
    low, high = limits or _ends(v)
    if signed and limits is None:
        top = max(abs(low), abs(high))
        low, high = -top, top
    return (SIGNED if signed else SEQUENTIAL), Normalize(low, high)


def _extent(cells: NDArray[np.int64]) -> tuple[float, float, float, float]:
    """Left, right, bottom and top of the states and one ring of wall."""
    low, high = _corners(cells)
    return low[1] - 1.5, high[1] + 1.5, high[0] + 1.5, low[0] - 1.5


def _corners(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """First and last row and column; column by column, which is ten times faster than both at once."""
    return np.array([[side.min() for side in cells.T], [side.max() for side in cells.T]])


def _aspect(cells: NDArray[np.int64]) -> float:
    left, right, bottom, top = _extent(cells)
    return float((bottom - top) / (right - left))


def _frame(ax: Axes, cells: NDArray[np.int64]) -> None:
    left, right, bottom, top = _extent(cells)
    ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def _side(ax: Axes, cells: NDArray[np.int64]) -> float:
    """Side of a cell in points."""
    left, right, bottom, top = _extent(cells)
    box = np.asarray(ax.get_window_extent().size) * 72 / ax.figure.dpi
    return float(min(box[0] / (right - left), box[1] / (bottom - top)))


def _squares(cells: NDArray[np.int64]) -> NDArray[np.float64]:
    """``(S, 4, 2)`` corners of the cells, as x and y."""
    corner = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    squares: NDArray[np.float64] = cells[:, None, ::-1] + corner
    return squares


def _turned(shape: NDArray[np.float64], moves: NDArray[np.float64]) -> NDArray[np.float64]:
    """``(n, corners, 2)`` copies of a shape that points right, rotated to each (row, column) move."""
    down, right = moves.T
    turn = np.stack([right, down, -down, right], axis=1).reshape(-1, 2, 2)
    turned: NDArray[np.float64] = shape @ turn
    return turned


def _joined(shapes: NDArray[np.float64]) -> Path:
    """One path of many polygons ``(n, corners, 2)``: a third of the bytes of one path per polygon."""
    closed = np.concatenate([shapes, shapes[:, :1]], axis=1)
    codes = np.full(closed.shape[:2], Path.LINETO, dtype=np.uint8)
    codes[:, 0], codes[:, -1] = Path.MOVETO, Path.CLOSEPOLY
    return Path(closed.reshape(-1, 2), codes.ravel())


def _ground(ax: Axes, cells: NDArray[np.int64], stops: NDArray[np.bool_]) -> None:
    """Walls, states, and the states where an option stops."""
    _frame(ax, cells)
    ax.patch.set_facecolor(WALL)
    if len(cells) <= DETAIL:
        line = {"edgecolor": "#c8c8c8", "linewidth": 0.25 if max(np.ptp(cells, axis=0)) < 40 else 0.05}
        for chosen, color in ((~stops, "white"), (stops, STOP)):
            ax.add_artist(PathPatch(_joined(_squares(cells[chosen])), facecolor=color, **line))
    else:
        # The grey of a block is its share of walls.
        blocks = _Blocks(cells, PIXELS)
        grey = LinearSegmentedColormap.from_list("walls", [WALL, "white"])
        blocks.image(ax, blocks.sum() / blocks.step**2, cmap=grey, norm=Normalize(0, 1))


def _stops(ax: Axes, cells: NDArray[np.int64], stops: NDArray[np.bool_]) -> None:
    """Density of the stops, scaled so that a single stop is as visible as one per room.

    The densest tenth of the blocks with stops is fully red.
    """
    blocks = _Blocks(cells, PIXELS // 4)
    share = blocks.sum(stops) / np.maximum(blocks.sum(), 1)
    if not share.any():
        return
    pixels = np.empty((*blocks.shape, 4))
    pixels[..., :3] = to_rgb(STOP)
    pixels[..., 3] = np.minimum(share / np.quantile(share[share > 0], 0.9), 1.0)
    blocks.image(ax, pixels)


class _Blocks:
    """Square blocks of states: `shape` rows and columns of them, at most `most`, and `step`, the side of a block."""

    def __init__(self, cells: NDArray[np.int64], most: int) -> None:
        self.low, high = _corners(cells)
        sides = high - self.low + 1
        self.step = int(-(-sides.max() // most))
        self.shape = tuple(int(-(-side // self.step)) for side in sides)
        row, col = ((cells[:, i] - self.low[i]) // self.step for i in (0, 1))
        self._block = row * self.shape[1] + col

    def sum(self, chosen: Any = slice(None), weights: NDArray[np.float64] | None = None) -> NDArray[Any]:
        """``(rows, columns)`` number of the chosen states in each block, or the sum of their weights ``(S,)``."""
        size, w = self.shape[0] * self.shape[1], None if weights is None else weights[chosen]
        return np.bincount(self._block[chosen], weights=w, minlength=size).reshape(self.shape)

    def image(self, ax: Axes, pixels: Any, **scale: Any) -> Any:
        """Draw one pixel per block on axes that `_frame` has set up."""
        (top, left), (bottom, right) = self.low - 0.5, self.low + self.step * np.array(self.shape) - 0.5
        return ax.imshow(pixels, extent=(left, right, bottom, top), interpolation="none", **scale)


def _mean_moves(
    cells: NDArray[np.int64], moves: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Centres of coarse blocks, direction of their mean move (0 where moves cancel), and side of a block."""
    blocks, moving = _Blocks(cells, ARROWS), moves.any(axis=1)
    total = np.stack([blocks.sum(moving, move) for move in moves.T], axis=2).reshape(-1, 2)
    length = np.hypot(*total.T)
    clear = length > 0.1 * blocks.sum(moving).ravel()
    unit = np.divide(total, length[:, None], out=np.zeros(total.shape), where=clear[:, None])
    centres = np.argwhere(np.ones(blocks.shape)) * blocks.step + blocks.low + (blocks.step - 1) / 2
    return centres, unit, blocks.step
