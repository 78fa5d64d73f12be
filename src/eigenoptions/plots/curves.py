"""Curves on Matplotlib axes, with bands of confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from eigenoptions.evaluation.intervals import mean_interval
from eigenoptions.plots.style import make_line_style


def draw_curves(
    ax: Axes,
    x: ArrayLike,
    curves: Mapping[str, ArrayLike],
    *,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    colors: Mapping[str, Any] | None = None,
) -> None:
    """Draw curves by name, like Figures 6 and 7.

    A curve of several runs is drawn as their mean with a confidence band.

    Parameters
    ----------
    ax : Axes
        Axes to draw on. Labels, scales and the legend are yours to set.
    x : (n,) array
        Horizontal positions.
    curves : mapping from names to arrays
        ``(n,)`` numbers, or ``(runs, n)`` for a mean with its 95% Student interval.
    bands : mapping from names to pairs of arrays, optional
        Lower and upper ends, each ``(n,)``, of bands that you know already.
    colors : mapping from names to colours, optional
        Colours of some curves. The others get colours that colour-blind people can tell
        apart.

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
                f"curve {name!r} must have {np.size(x)} columns, one per x, "
                f"got {runs.shape}"
            )

        style = make_line_style(i)
        if colors is not None and name in colors:
            style["color"] = colors[name]
        ax.plot(x, runs.mean(axis=0), label=name, **style)

        band = None
        if bands is not None:
            band = bands.get(name)
        if band is None and len(runs) > 1:
            band = mean_interval(runs)
        if band is not None:
            low, high = band
            ax.fill_between(x, low, high, color=style["color"], alpha=0.2, linewidth=0)
    ax.margins(x=0.01)
