"""Four figures: options, eigenvectors, diffusion times and learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import fill
from typing import TypeAlias

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from eigenoptions._validation import check_type
from eigenoptions.learning import LearningRecord
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from eigenoptions.options.maps import explain_maps, make_caption
from eigenoptions.plots.curves import draw_curves
from eigenoptions.plots.files import render_figure
from eigenoptions.plots.maps import MAX_DETAILED_STATES, draw_options, draw_values
from eigenoptions.plots.nodes import has_positions, place_states
from eigenoptions.plots.observed import (
    draw_places,
    draw_strips,
    observe,
    place_options,
)
from eigenoptions.plots.paths import draw_paths
from eigenoptions.plots.style import make_line_style, measure_letters
from eigenoptions.samples import Transitions
from eigenoptions.samples.linear import LinearOptionSet
from eigenoptions.spectra import Spectrum

# Most eigenvectors of a figure.
_MAX_EIGENVECTORS = 8

# About as many of recorded observations are drawn as points.
_MAX_POINTS = 1_000

# Width and height of a strip of frames in inches.
_STRIP_SIZE = (3.4, 0.85)

# Axes as ``plt.subplots`` returns them.
GivenAxes: TypeAlias = Axes | Sequence[Axes] | NDArray[np.object_]


class NotebookFigure(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        return render_figure(self, "png", dpi=150)


def plot_options(
    options: OptionSet | LinearOptionSet,
    observations: ArrayLike | Transitions | None = None,
    *,
    columns: int | None = None,
    figsize: tuple[float, float] | None = None,
    ax: GivenAxes | None = None,
    cmap: str | Colormap | None = None,
    over: tuple[int, int] = (0, 1),
) -> Figure:
    """Draw every option of a set as arrows, like Figures 3 to 5, or over observations.

    Each map has the label and the eigenvalue of its option as its title.

    Parameters
    ----------
    options : OptionSet or LinearOptionSet
        Options of states, or options that act on observations. States without
        `coords` and `positions` are drawn as a graph: few steps apart is near.
    observations : array (N, ...) or Transitions, optional
        For options that act on observations, some hundred of them. Of frames, each
        option is a strip: from where it starts to where it ends (`draw_strips`). Of
        vectors, it is a map over two columns, coloured by its potential, with rings
        where it ends (`draw_points`); recorded steps add paths (`draw_paths`). By
        default, options of cells and of clusters show these, and options of two
        numbers with bounds a map of 25 x 25 observations.
    columns : int, optional
        Number of maps beside each other; by default up to four, or eight for more than
        16 options, fewer where maps have many cells, and two strips of frames.
    figsize : pair of floats, optional
        Width and height of the figure in inches; by default as large as titles and
        arrows need it.
    ax : Axes, or sequence or array of Axes, optional
        Axes to draw on, at least one per option. By default those of a new figure.
    cmap : str or Colormap, optional
        Colours of large maps, which have no arrows, and of potentials.
    over : tuple of int, default=(0, 1)
        The two columns of vectors.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> len(plot_options(eo.discover("i-maze", 4)).axes)
    4
    """
    if isinstance(options, LinearOptionSet):
        return _plot_observed(options, observations, columns, figsize, ax, cmap, over)

    check_type("options", options, OptionSet, "make them with discover")
    options = replace(options, mdp=place_states(options.mdp))
    size = measure_map(options.mdp)
    figure, axes = make_maps(len(options), size, columns, figsize, ax)
    draw_options(axes, options, cmap=cmap)
    if ax is None:
        legend = options.mdp.legend
        if not has_positions(options.mdp):
            legend = explain_maps(options.mdp, options, is_figure=True)
        _explain(figure, legend, figsize is not None)
    return figure


def _plot_observed(
    options: LinearOptionSet,
    observations: ArrayLike | Transitions | None,
    columns: int | None,
    figsize: tuple[float, float] | None,
    ax: GivenAxes | None,
    cmap: str | Colormap | None,
    over: tuple[int, int],
) -> Figure:
    """A figure of options that act on observations."""
    steps = None
    if isinstance(observations, Transitions):
        steps = observations
        observations = steps.obs[:: max(1, len(steps) // _MAX_POINTS)]

    if observations is None:
        points = place_options(options, over)
        if points is None:
            raise ValueError(
                "these options act on observations, got none: "
                "plot_options(options, observations) draws them over some"
            )
    else:
        shape = np.shape(observations)
        if len(shape) < 2 or not shape[0]:
            raise ValueError(f"observations must have shape (N, ...), got {shape}")
        if len(shape) > 2:
            figure, axes = make_maps(len(options), _STRIP_SIZE, columns, figsize, ax)
            draw_strips(axes, options, observations)
            return figure
        points = observe(options, observations, over)

    side = _find_least_width()
    figure, axes = make_maps(len(options), (side, side), columns, figsize, ax)
    draw_places(axes, options, points, cmap)
    note = f"{points.axes}; the colour is the potential, a ring where the option ends"
    if steps is not None:
        draw_paths(axes, options, steps, over)
        note += "; lines are paths of recorded steps, from a circle to a dot"
    if ax is None:
        _explain(figure, note, figsize is not None)
    return figure


def plot_eigenvectors(
    mdp: MDP,
    spectrum: Spectrum,
    *,
    columns: int | None = None,
    figsize: tuple[float, float] | None = None,
    ax: GivenAxes | None = None,
    cmap: str | Colormap | None = None,
) -> Figure:
    """Draw the first eigenvectors (proto-value functions) as heat maps.

    They begin after eigenvalue zero, and are at most eight.

    Parameters
    ----------
    mdp : MDP
        States with `coords`.
    spectrum : Spectrum
        Spectrum of their graph.
    columns : int, optional
        Number of maps beside each other; by default up to four.
    figsize : pair of floats, optional
        Width and height of the figure in inches; by default as large as titles need it.
    ax : Axes, or sequence or array of Axes, optional
        Axes to draw on, at least one per eigenvector. By default those of a new figure.
    cmap : str or Colormap, optional
        Colour map; by default from blue over white to orange.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> rooms = eo.maze("four-rooms")
    >>> figure = plot_eigenvectors(rooms, eo.spectrum(eo.graph(rooms), k=3))
    >>> [ax.get_title() for ax in figure.axes]
    ['e2  λ = 0.00701', 'e3  λ = 0.0085']
    """
    check_type("spectrum", spectrum, Spectrum, "make it with spectrum(graph(mdp))")
    first = spectrum.n_zero
    numbers = range(first, len(spectrum.values))[:_MAX_EIGENVECTORS]
    size = measure_map(mdp)
    figure, axes = make_maps(len(numbers), size, columns, figsize, ax)
    for map_ax, i in zip(axes, numbers, strict=True):
        draw_values(map_ax, mdp, spectrum.vectors[:, i], cmap=cmap)
        # The paper counts eigenvectors from 1.
        map_ax.set_title(make_caption(f"e{i + 1}", spectrum.values[i]))
    return figure


def plot_diffusion(
    curves: ArrayLike | Mapping[str, ArrayLike],
    *,
    figsize: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the diffusion time by the number of options, like Figure 6.

    A dashed line is the time without options.

    Parameters
    ----------
    curves : (n + 1,) array, or mapping from names to arrays
        Times with 0 to n options, as `diffusion_curve` returns them; NaN where a time
        is not known.
    figsize : pair of floats, optional
        Width and height of the figure in inches; by default Matplotlib's.
    ax : Axes, optional
        Axes to draw on. By default those of a new figure.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> rooms = eo.maze("i-maze")
    >>> curve = eo.diffusion_curve(rooms, eo.discover(rooms, 4))
    >>> plot_diffusion(curve).axes[0].get_yscale()
    'log'
    """
    named_curves = curves if isinstance(curves, Mapping) else {"": curves}
    figure, ax = make_axes(figsize, ax)
    for i, (name, curve) in enumerate(named_curves.items()):
        times = np.asarray(curve, dtype=float)
        counts = np.flatnonzero(~np.isnan(times))
        ax.plot(counts, times[counts], label=name, **make_line_style(i))

    # All curves begin with the same time, that without options.
    ax.axhline(
        times[0],
        color="#777777",
        linewidth=0.9,
        linestyle=(0, (4, 2)),
        label="primitive actions",
    )
    ax.set(xlabel="options", ylabel="diffusion time", yscale="log")
    ax.legend()
    return figure


def plot_learning(
    records: LearningRecord | Mapping[str, LearningRecord],
    *,
    figsize: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the mean return over runs by episode, with 95% bands, like Figure 7.

    Parameters
    ----------
    records : LearningRecord, or mapping from names to records
        What `q_learning` returns. Its other tables, such as `steps`, can be drawn by
        `draw_curves`.
    figsize : pair of floats, optional
        Width and height of the figure in inches; by default Matplotlib's.
    ax : Axes, optional
        Axes to draw on. By default those of a new figure.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> record = eo.q_learning(eo.maze("S..G"), runs=3, episodes=5)
    >>> plot_learning({"4 actions": record}).axes[0].get_xlabel()
    'episode'
    """
    named_records = records if isinstance(records, Mapping) else {"": records}
    for record in named_records.values():
        check_type("a record", record, LearningRecord, "make it with q_learning")

    returns = {name: record.returns for name, record in named_records.items()}
    bands = {name: record.band() for name, record in named_records.items()}
    first_record = next(iter(named_records.values()))
    n_episodes = first_record.returns.shape[1]

    figure, ax = make_axes(figsize, ax)
    draw_curves(ax, range(1, n_episodes + 1), returns, bands=bands)
    ax.set(xlabel="episode", ylabel="return", ylim=(-0.02, 1.02))
    has_names = any(named_records)
    if has_names:
        ax.legend()
    return figure


def make_axes(
    figsize: tuple[float, float] | None, ax: Axes | None
) -> tuple[Figure, Axes]:
    """The axes that are given, or those of a new figure, which is as large as any."""
    if ax is None:
        own = NotebookFigure(figsize=figsize, layout="constrained")
        return own, own.add_subplot()
    check_type("ax", ax, Axes, "make them with plt.subplots")
    figure, _ = make_maps(1, (0, 0), None, figsize, ax)
    return figure, ax


def make_maps(
    n_maps: int,
    size: tuple[float, float],
    columns: int | None,
    figsize: tuple[float, float] | None,
    ax: GivenAxes | None,
) -> tuple[Figure, list[Axes]]:
    """Axes for some maps: those that are given, or rows of them in a new figure.

    Parameters
    ----------
    n_maps : int
        Number of maps.
    size : pair of floats
        Width and height of a map in inches, without its title.
    columns, figsize, ax
        As in `plot_options`.
    """
    if not n_maps:
        raise ValueError("nothing to draw: give at least one option or eigenvector")

    if ax is not None:
        if columns is not None or figsize is not None:
            raise ValueError(
                "columns and figsize are those of a new figure: leave them out, or ax"
            )
        axes = np.asarray(ax, dtype=object).ravel().tolist()
        # Of axes in a subfigure, too, this is the whole figure.
        figure = axes[0].figure.figure
    else:
        figure = _make_figure(n_maps, size, columns, figsize)
        axes = list(figure.axes)

    if len(axes) < n_maps:
        raise ValueError(
            f"ax must be at least {n_maps} axes, one per map, got {len(axes)}"
        )
    for unused in axes[n_maps:]:
        unused.set_axis_off()
    return figure, axes[:n_maps]


def _make_figure(
    n_maps: int,
    size: tuple[float, float],
    columns: int | None,
    figsize: tuple[float, float] | None,
) -> Figure:
    """A figure with rows of axes for maps."""
    map_width, map_height = size
    if columns is None:
        # Wide maps: as many as fit into a page, or for many options into a screen.
        columns, room = (4, 9.0) if n_maps <= 16 else (8, 14.0)
        columns = max(1, min(columns, int(room / map_width)))
    columns = min(n_maps, columns)
    rows = -(-n_maps // columns)

    if figsize is None:
        # Below a title there is as much space as it is high.
        title = 2 * measure_letters(matplotlib.rcParams["axes.titlesize"])
        figsize = (columns * map_width, rows * (map_height + title))
    figure = NotebookFigure(figsize=figsize, layout="constrained")
    figure.subplots(rows, columns, squeeze=False)
    return figure


def _explain(figure: Figure, text: str, has_own_size: bool) -> None:
    """Write a text below the maps of a figure, in lines as long as they are wide.

    A figure without a size of its own becomes as much higher as the text is.
    """
    if not text:
        return
    size = matplotlib.rcParams["legend.fontsize"]
    letter = measure_letters(size)
    # Letters are about 0.6 times as wide as high, and a line 1.4 times as high.
    lines = fill(text, int(figure.get_figwidth() / (0.6 * letter)))
    figure.supxlabel(lines, x=0.01, ha="left", size=size)
    if not has_own_size:
        n_lines = lines.count("\n") + 1
        figure.set_figheight(figure.get_figheight() + 1.4 * letter * n_lines)


# Width of the largest map in inches.
_MOST_WIDTH = 6.8


def _find_least_width() -> float:
    """Width of the smallest map in inches: a title of twenty letters."""
    return max(1.7, 20 * 0.6 * measure_letters(matplotlib.rcParams["axes.titlesize"]))


def measure_map(mdp: MDP) -> tuple[float, float]:
    """Width and height of a map in inches."""
    width = _find_least_width()
    if mdp.coords is not None and mdp.n_states <= MAX_DETAILED_STATES:
        # An arrow needs a ninth of an inch.
        n_columns = float(np.ptp(mdp.coords[:, 1]) + 3)
        width = max(width, min(n_columns / 9.0, _MOST_WIDTH))
    # High mazes are drawn at most twice as high as wide.
    return width, width * min(_measure_shape(mdp), 2.0)


def _measure_shape(mdp: MDP) -> float:
    """Height of a map divided by its width, with the walls around it."""
    if mdp.coords is not None:
        high, wide = np.ptp(mdp.coords, axis=0) + 3
        return float(high / wide)
    if mdp.positions is not None:
        wide, high = np.ptp(mdp.positions, axis=0)
        # A graph in a line needs some height, too.
        return float(np.clip(high / max(wide, 1e-9), 0.4, 2.0))
    return 1.0
