"""What a planner believes: cells, distances, moves and a way."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import Colormap
from numpy.typing import ArrayLike

from eigenoptions._colors import INK, RED
from eigenoptions._types import FloatArray
from eigenoptions.plots.style import read_colormap
from eigenoptions.vectors import Planner


def draw_plan(
    ax: Axes,
    planner: Planner,
    start: ArrayLike,
    goal: ArrayLike,
    path: ArrayLike | None = None,
    *,
    cmap: str | Colormap | None = "viridis_r",
) -> PolyCollection:
    """Draw the plan of a `Planner` over the cells of its data.

    Cells are coloured by their distance to the goal, with an arrow to where their move
    most likely leads. The dashed line is the way that the planner believes it takes
    (``planner.simulate``), the red line a path that was taken. Where they part, the
    data do not show what is there.

    Parameters
    ----------
    ax : Axes
        Axes to draw on. They show the first two columns.
    planner : Planner
        A planner of vectors.
    start, goal : array of shape (d,)
        Observations.
    path : array of shape (T, d), default=None
        Observations of a path that was taken.
    cmap : str or Colormap, default="viridis_r"
        Colour map of distances.

    Returns
    -------
    PolyCollection
        The cells, for a colour bar.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(0)
    >>> obs, action = rng.uniform(0, 4, (4_000, 2)), rng.uniform(-1, 1, (4_000, 2))
    >>> planner = eo.Planner((obs, action, np.clip(obs + 0.2 * action, 0, 4)))
    >>> ax = Figure().add_subplot()
    >>> distances = draw_plan(ax, planner, [0.5, 0.5], [3.5, 3.5]).get_array()
    >>> bool(distances.min() == 0)
    True
    """
    centers = planner.centers
    if centers is None or planner.cell_size is None or centers.shape[1] < 2:
        raise ValueError(
            "draw_plan shows cells of at least two columns, this planner has none: "
            "draw options of a table by draw_policy"
        )
    distance = -planner.potential(goal)
    is_known = np.isfinite(distance)
    cells = make_squares(centers, planner.cell_size)
    squares = PolyCollection(
        list(cells[is_known]),
        array=distance[is_known],
        cmap=read_colormap(cmap, signed=False),
        edgecolors="none",
    )
    ax.add_collection(squares)

    # An arrow to the most likely next cell, where that is another one.
    policy = np.asarray(planner.option(goal).policy)
    successors = planner.mdp.most_likely_successors
    states = np.arange(len(policy))
    following = np.where(policy >= 0, successors[states, policy], states)
    moving = np.flatnonzero(is_known & (following != states))
    steps = centers[following[moving]] - centers[moving]
    ax.quiver(
        *centers[moving, :2].T,
        *(0.6 * steps[:, :2]).T,
        angles="xy",
        scale_units="xy",
        scale=1.0,
        color=INK,
        alpha=0.5,
        width=0.003,
    )

    believed = np.asarray(planner.simulate(start, goal))
    ax.plot(*believed[:, :2].T, "--", color=INK, label="simulated")
    if path is not None:
        taken = np.asarray(path, dtype=float)
        ax.plot(*taken[:, :2].T, color=RED, label="taken")
    ax.plot(*np.asarray(start, dtype=float)[:2], "o", color=INK)
    ax.plot(*np.asarray(goal, dtype=float)[:2], "*", color=RED, markersize=12)
    ax.autoscale_view()
    return squares


def make_squares(centers: FloatArray, size: FloatArray) -> FloatArray:
    """``(S, 4, 2)`` corners of a rectangle around each centre, in the first columns."""
    corners = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    return centers[:, None, :2] + corners * size[:2]
