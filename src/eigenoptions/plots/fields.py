"""Options in a feature space over two dimensions of the observation (paper, Section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.plots.figures import caption, figure
from eigenoptions.plots.panels import INK, SIGNED, STOP, Panel

GRID = 101  # points a side at which a potential is looked at


def landscapes(
    options: LinearOptionSet,
    low: ArrayLike,
    high: ArrayLike,
    paths: Sequence[Sequence[NDArray[Any]]] | None = None,
    *,
    names: tuple[str, str] = ("first", "second"),
    columns: int | None = None,
) -> Figure:
    """Potential of each option over a box of two-dimensional observations, with the paths that it walks.

    Parameters
    ----------
    options
        In a feature space of observations with two numbers (MountainCar: position and velocity).
    low, high
        ``(2,)`` corners of the box.
    paths
        For each option its paths, as `envs.run_options` gives them: a line, with a red dot where the option stopped.
    names
        Of the two dimensions.

    Examples
    --------
    >>> from eigenoptions.features import Raw
    >>> slope = LinearOptionSet([[1.0, 0.0]], Raw(), 2, weights=np.zeros((1, 2, 2)), labels=("e1+",))
    >>> len(landscapes(slope, [0, 0], [1, 1]).axes)
    1
    """
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    if low.shape != (2,) or high.shape != (2,) or not (np.isfinite([low, high]).all() and (low < high).all()):
        raise ValueError(f"the box must have two dimensions and finite corners, got {low} and {high}")
    x, y = (np.linspace(low[i], high[i], GRID) for i in range(2))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    heights = options.potential(grid).reshape(len(options), GRID, GRID)

    def panel(i: int) -> Panel:
        def draw(ax: Axes) -> None:
            middle = heights[i] - np.median(heights[i])
            top = np.abs(middle).max() or 1.0
            ax.imshow(
                middle,
                origin="lower",
                extent=(low[0], high[0], low[1], high[1]),
                aspect="auto",
                cmap=SIGNED,
                vmin=-top,
                vmax=top,
            )
            for path in paths[i] if paths is not None else ():
                ax.plot(path[:, 0], path[:, 1], color=INK, linewidth=0.6, alpha=0.7)
                ax.plot(*path[-1], "o", color=STOP, markersize=2.5)
            ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel=names[0], ylabel=names[1])

        return Panel(draw, caption(options.labels[i], float(options.eigenvalues[i])), 0.85, "graph")

    return figure([panel(i) for i in range(len(options))], columns=columns or min(len(options), 4))
