"""A map of first visits: in which order an environment was explored."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from eigenoptions._colors import INK, RED, WHITE
from eigenoptions._validation import check_type
from eigenoptions.explore.found import Found
from eigenoptions.explore.found_vectors import VectorFound
from eigenoptions.plots.figures import make_axes, measure_map
from eigenoptions.plots.maps import draw_values


def plot_first_visits(
    found: Found,
    *,
    columns: tuple[int, int] = (0, 1),
    figsize: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw after how many steps `explore` saw each state.

    States that were not seen look like walls. A ring is a state with an action that was
    never tried, a red dot one that was entered with a reward. Of vectors, all steps are
    drawn in two of their columns.

    Parameters
    ----------
    found : Found
        What was found, of states with coordinates: mazes, FrozenLake, MiniGrid without
        objects; or of vectors.
    columns : pair of int, default=(0, 1)
        Of vectors: the columns to the right and upwards.
    figsize : pair of floats, optional
        Width and height of the figure in inches; by default those of a wide map.
    ax : Axes, optional
        Axes to draw on. By default those of a new figure.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> found = eo.explore(eo.maze("four-rooms"), 300)
    >>> figure = plot_first_visits(found)
    >>> figure.axes[0].get_title().endswith("states in 300 steps")
    True
    """
    check_type("found", found, Found, "make it with explore")
    if isinstance(found, VectorFound):
        return _plot_steps(found, columns, figsize, ax)
    if found.mdp.coords is None:
        raise ValueError(
            f"the states of {found.about.name} have no coordinates, so no map shows "
            "them: plot np.sort(found.first_visit) as a curve instead"
        )
    visits = np.where(found.first_visit < 0, np.nan, found.first_visit)
    if ax is None and figsize is None:
        width, height = measure_map(found.mdp)
        # The map is twice as large as others. The colour bar takes a fifth of the
        # width.
        figsize = (2.4 * width, 1.6 * height + 0.3)
    figure, ax = make_axes(figsize, ax)
    draw_values(
        ax, found.mdp, visits, signed=False, colorbar="steps to the first visit"
    )
    ax.set_title(f"{len(found.seen):,} states in {found.n_steps:,} steps")

    # White rings with a dark edge are seen on every colour of the scale.
    is_frontier = found.untried.any(axis=1) & (found.first_visit >= 0)
    rows, columns = found.mdp.coords[is_frontier].T
    ax.plot(columns, rows, "o", color=WHITE, mec=INK, mew=0.5, markersize=3.0)
    rows, columns = found.mdp.coords[found.rewarded].T
    ax.plot(columns, rows, "o", color=RED, mec=WHITE, mew=0.5, markersize=5.0)
    return figure


def _plot_steps(
    found: VectorFound,
    columns: tuple[int, int],
    figsize: tuple[float, float] | None,
    ax: Axes | None,
) -> Figure:
    """Draw all steps in two columns, the later the paler; red dots are rewarded."""
    x, y = columns
    before, after = found.log.obs, found.log.next_obs
    segments = np.stack([before[:, [x, y]], after[:, [x, y]]], axis=1)
    figure, ax = make_axes(figsize or (5.4, 3.4), ax)
    lines = LineCollection(list(segments), linewidths=1.0)
    lines.set_array(np.arange(found.n_steps))
    ax.add_collection(lines)
    ax.autoscale()
    figure.colorbar(lines, ax=ax, label="step")

    rewarded = after[found.is_step_rewarded]
    ax.plot(rewarded[:, x], rewarded[:, y], "o", color=RED, mec=WHITE, mew=0.5)
    ax.set_xlabel(f"column {x}")
    ax.set_ylabel(f"column {y}")
    ax.set_title(f"{len(found.seen):,} cells in {found.n_steps:,} steps")
    return figure
