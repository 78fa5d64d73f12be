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

    # Heights on a grid of points.
    x, y = np.meshgrid(np.linspace(left, right, 101), np.linspace(bottom, top, 101))
    grid_points = np.stack([x.ravel(), y.ravel()], axis=1)
    heights = np.asarray(potential(grid_points), dtype=float).reshape(x.shape)

    # Only differences of a potential matter, so its zero means nothing. About its
    # median, half of the box is blue and half is orange.
    relative_heights = heights - np.median(heights)
    limit = float(np.abs(relative_heights).max())
    if limit == 0.0:
        # A flat function: any scale shows it in the middle colour.
        limit = 1.0

    ax.imshow(
        relative_heights,
        cmap=read_colormap(cmap, signed=True),
        vmin=-limit,
        vmax=limit,
        origin="lower",
        extent=(left, right, bottom, top),
        aspect="auto",
    )
    for path in paths:
        path_x, path_y = np.asarray(path).T
        ax.plot(path_x, path_y, color=INK, linewidth=0.6, alpha=0.7)
        ax.plot(path_x[-1], path_y[-1], "o", color=RED, markersize=2.5)
    ax.set(xlim=(left, right), ylim=(bottom, top))
