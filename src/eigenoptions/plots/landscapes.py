"""A function of two-dimensional observations, and paths over it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from numpy.typing import ArrayLike

from eigenoptions._colors import INK, RED
from eigenoptions._types import FloatArray
from eigenoptions.plots.style import read_colormap


def draw_landscape(
    ax: Axes,
    potential: Callable[[FloatArray], ArrayLike],
    low: ArrayLike,
    high: ArrayLike,
    paths: Iterable[ArrayLike] = (),
    *,
    cmap: str | Colormap | None = None,
) -> None:
    """Draw a function of two-dimensional observations, and paths over it.

    In MountainCar, for example, the observations are position and velocity.

    Parameters
    ----------
    ax : Axes
        Axes to draw on.
    potential : callable
        Function from ``(N, 2)`` observations to ``(N,)`` numbers, such as the
        eigenvector that an option climbs. Its median is drawn in the middle of the
        colour scale.
    low, high : (2,) arrays
        Corners of the box of observations.
    paths : iterable of (T, 2) arrays, default=()
        Observations of each path: a line with a red dot at its end.
    cmap : str or Colormap, optional
        Colour map; by default from blue over white to orange.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_landscape(ax, lambda obs: obs[:, 0], [0, 0], [1, 1])
    >>> ax.get_aspect()
    'auto'
    """
    left, bottom = np.asarray(low, dtype=float)
    right, top = np.asarray(high, dtype=float)

    # Heights on a grid of points. A potential has no zero of its own, so half of the
    # picture lies above the middle of the colours and half below.
    x, y = np.meshgrid(np.linspace(left, right, 101), np.linspace(bottom, top, 101))
    grid_points = np.stack([x.ravel(), y.ravel()], axis=1)
    heights = np.asarray(potential(grid_points), dtype=float).reshape(x.shape)
    heights = heights - np.median(heights)
    # A constant function has no range: any positive limit will do.
    limit = float(np.abs(heights).max()) or 1.0

    ax.imshow(
        heights,
        cmap=read_colormap(cmap, signed=True),
        vmin=-limit,
        vmax=limit,
        origin="lower",
        extent=(left, right, bottom, top),
        aspect="auto",
    )
    for path in paths:
        points = np.asarray(path)
        ax.plot(points[:, 0], points[:, 1], color=INK, linewidth=0.6, alpha=0.7)
        ax.plot(points[-1, 0], points[-1, 1], "o", color=RED, markersize=2.5)
    ax.set(xlim=(left, right), ylim=(bottom, top))
