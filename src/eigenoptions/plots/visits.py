"""A map of first visits: in which order an environment was explored."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eigenoptions._validation import check_type
from eigenoptions.explore.found import Found
from eigenoptions.plots.figures import make_maps
from eigenoptions.plots.maps import draw_values
from eigenoptions.plots.style import STYLE


def plot_first_visits(found: Found, ax: Axes | None = None) -> Figure:
    """Draw after how many steps `explore` saw each state.

    States that were not seen look like walls.

    Parameters
    ----------
    found : Found
        What was found, of states with coordinates: mazes, FrozenLake, MiniGrid without
        objects.
    ax : Axes, default=None
        Axes to draw on. None: those of a new figure.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> found = eo.explore(eo.maze("four-rooms"), 300)
    >>> figure = plot_first_visits(found)
    >>> figure.axes[0].get_title().endswith("states in 300 steps")
    True
    """
    check_type("found", found, Found, "make it with explore")
    if found.mdp.coords is None:
        raise ValueError(
            f"the states of {found.about.name} have no coordinates, so no map shows "
            "them: plot np.sort(found.first_visit) as a curve instead"
        )
    visits = np.where(found.first_visit < 0, np.nan, found.first_visit)
    with matplotlib.rc_context(STYLE):
        if ax is None:
            figure, (ax,) = make_maps(found.mdp, 1, None, 3.6)
            # The colour bar takes a fifth of the width, so the map is lower, too.
            figure.set_figheight(0.8 * figure.get_figheight())
        draw_values(
            ax, found.mdp, visits, signed=False, colorbar="steps to the first visit"
        )
        ax.set_title(f"{len(found.seen):,} states in {found.n_steps:,} steps")
    # Of axes in a subfigure, too, this is the whole figure.
    whole: Figure = ax.figure.figure
    return whole
