"""Four figures: options, eigenvectors, diffusion times and learning curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from eigenoptions._text import draw_arrows, explain_glyphs
from eigenoptions._types import FloatArray
from eigenoptions._validation import check_type
from eigenoptions.learning import LearningRecord
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from eigenoptions.options.pictures import (
    find_arrows,
    make_caption,
    spread_observations,
)
from eigenoptions.plots.curves import draw_curves
from eigenoptions.plots.files import render_figure
from eigenoptions.plots.maps import MAX_DETAILED_STATES, draw_options, draw_values
from eigenoptions.plots.nodes import has_positions, place_states
from eigenoptions.plots.observed import draw_points, draw_strips
from eigenoptions.plots.paths import draw_paths
from eigenoptions.plots.style import STYLE, make_line_style
from eigenoptions.samples import Transitions
from eigenoptions.samples.linear import LinearOptionSet
from eigenoptions.spectra import Spectrum
from eigenoptions.vectors.cells import Cells

# Most eigenvectors of a figure.
_MAX_EIGENVECTORS = 8

# About as many of recorded observations are drawn as points.
_MAX_POINTS = 1_000


class _NotebookFigure(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        return render_figure(self, "png", dpi=150)


def plot_options(
    options: OptionSet | LinearOptionSet,
    observations: ArrayLike | Transitions | None = None,
    *,
    columns: int | None = None,
    width: float | None = None,
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
        default, options of cells show these, and
        options of two numbers with bounds a map of 25 x 25 observations.
    columns : int, optional
        Number of maps beside each other; by default up to four, or eight for more than
        16 options, fewer where maps have many cells, and two strips of frames.
    width : float, optional
        Width of the figure in inches; by default 1.7 per map, more where arrows need
        it.
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
        steps = None
        if isinstance(observations, Transitions):
            steps = observations
            observations = steps.obs[:: max(1, len(steps) // _MAX_POINTS)]
        return _plot_observed(options, observations, columns, width, cmap, over, steps)
    check_type("options", options, OptionSet, "make them with discover")
    options = replace(options, mdp=place_states(options.mdp))
    with matplotlib.rc_context(STYLE):
        figure, axes = make_maps(options.mdp, len(options), columns, width)
        draw_options(axes, options, cmap=cmap)

        note = _explain_options(options)
        if note:
            characters = int(17 * figure.get_figwidth())
            figure.supxlabel(fill(note, characters), x=0.01, ha="left", size=7)
    return figure


def _plot_observed(
    options: LinearOptionSet,
    observations: ArrayLike | None,
    columns: int | None,
    width: float | None,
    cmap: str | Colormap | None,
    over: tuple[int, int],
    steps: Transitions | None,
) -> Figure:
    """A figure of options that act on observations."""
    if observations is None:
        observations, over = _fill_map(options, over)
    shape = np.shape(observations)
    if not len(options) or len(shape) < 2 or not shape[0]:
        raise ValueError(
            "there must be options and observations (N, ...), "
            f"got {len(options)} and {shape}"
        )

    is_frames = len(shape) > 2
    with matplotlib.rc_context(STYLE):
        if is_frames:
            n_columns = min(columns or 2, len(options))
            map_width = 3.4
            map_height = 0.85
        else:
            n_columns = min(columns or 4, len(options))
            map_width = 1.7
            map_height = 1.7
        n_rows = -(-len(options) // n_columns)
        if width is None:
            width = map_width * n_columns
        height = n_rows * (map_height * width / (map_width * n_columns) + 0.22)

        figure = _NotebookFigure(figsize=(width, height), layout="constrained")
        grid: Any = figure.subplots(n_rows, n_columns, squeeze=False)
        axes = grid.ravel().tolist()
        for unused in axes[len(options) :]:
            unused.set_axis_off()
        if is_frames:
            draw_strips(axes[: len(options)], options, observations)
        else:
            draw_points(axes[: len(options)], options, observations, over, cmap)
            note = (
                f"column {over[0]} to the right, column {over[1]} up; the colour is "
                "the potential, a ring where the option ends"
            )
            if steps is not None:
                draw_paths(axes[: len(options)], options, steps, over)
                note += "; lines are paths of recorded steps, from a circle to a dot"
            characters = int(17 * width)
            figure.supxlabel(fill(note, characters), x=0.01, ha="left", size=7)
    return figure


def _fill_map(
    options: LinearOptionSet, over: tuple[int, int]
) -> tuple[FloatArray, tuple[int, int]]:
    """Observations that fill a map, and the two columns that it shows.

    Of options of cells they are the middles of the cells.
    """
    cells = options.features
    spread = spread_observations(cells)
    if spread is not None:
        return spread.obs, (0, 1)
    if not isinstance(cells, Cells) or len(cells.columns) < 2:
        raise ValueError(
            "these options act on observations, got none: "
            "plot_options(options, observations) draws them over some"
        )
    middles = np.zeros((cells.n_features, max(cells.columns) + 1))
    middles[:, cells.columns] = cells.centers
    if not set(over) <= set(cells.columns):
        over = (cells.columns[0], cells.columns[1])
    return middles, over


def plot_eigenvectors(
    mdp: MDP,
    spectrum: Spectrum,
    *,
    columns: int | None = None,
    width: float | None = None,
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
    width : float, optional
        Width of the figure in inches; by default 1.7 per map.
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
    with matplotlib.rc_context(STYLE):
        figure, axes = make_maps(mdp, len(numbers), columns, width)
        for ax, i in zip(axes, numbers, strict=False):
            draw_values(ax, mdp, spectrum.vectors[:, i], cmap=cmap)
            # The paper counts eigenvectors from 1.
            ax.set_title(make_caption(f"e{i + 1}", spectrum.values[i]))
        for ax in axes[len(numbers) :]:
            ax.set_axis_off()
    return figure


def plot_diffusion(
    curves: ArrayLike | Mapping[str, ArrayLike],
    *,
    width: float = 3.5,
    height: float = 2.4,
) -> Figure:
    """Draw the diffusion time by the number of options, like Figure 6.

    A dashed line is the time without options.

    Parameters
    ----------
    curves : (n + 1,) array, or mapping from names to arrays
        Times with 0 to n options, as `diffusion_curve` returns them; NaN where a time
        is not known.
    width : float, default=3.5
        Width of the figure in inches.
    height : float, default=2.4
        Height of the figure in inches.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> rooms = eo.maze("i-maze")
    >>> curve = eo.diffusion_curve(rooms, eo.discover(rooms, 4))
    >>> plot_diffusion(curve).axes[0].get_yscale()
    'log'
    """
    named_curves = curves if isinstance(curves, Mapping) else {"": curves}
    with matplotlib.rc_context(STYLE):
        figure = _NotebookFigure(figsize=(width, height), layout="constrained")
        ax = figure.add_subplot()
        for i, (name, curve) in enumerate(named_curves.items()):
            times = np.asarray(curve, dtype=float)
            counts = np.flatnonzero(~np.isnan(times))
            ax.plot(counts, times[counts], label=name, **make_line_style(i))

        # All curves begin with the same time, that without options.
        ax.axhline(
            times[0],
            color="#555555",
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
    width: float = 3.5,
    height: float = 2.4,
) -> Figure:
    """Draw the mean return over runs by episode, with 95% bands, like Figure 7.

    Parameters
    ----------
    records : LearningRecord, or mapping from names to records
        What `q_learning` returns. Its other tables, such as `steps`, can be drawn by
        `draw_curves`.
    width : float, default=3.5
        Width of the figure in inches.
    height : float, default=2.4
        Height of the figure in inches.

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

    with matplotlib.rc_context(STYLE):
        figure = _NotebookFigure(figsize=(width, height), layout="constrained")
        ax = figure.add_subplot()
        draw_curves(ax, range(1, n_episodes + 1), returns, bands=bands)
        ax.set(xlabel="episode", ylabel="return", ylim=(-0.02, 1.02))
        has_names = any(named_records)
        if has_names:
            ax.legend()
    return figure


def make_maps(
    mdp: MDP, n_maps: int, columns: int | None, width: float | None
) -> tuple[Figure, list[Axes]]:
    """Make a figure with rows of axes in the shape of the maze, for `n_maps` maps."""
    if not n_maps:
        raise ValueError("nothing to draw: give at least one option or eigenvector")

    map_width = _choose_width(mdp)
    if not columns:
        # Wide maps: as many as fit into a page, or for many options into a screen.
        columns, room = (4, 9.0) if n_maps <= 16 else (8, 14.0)
        columns = max(1, min(columns, int(room / map_width)))
    columns = min(n_maps, columns)
    rows = -(-n_maps // columns)

    if not width:
        width = max(map_width * columns, 2.5)
    # High mazes are drawn at most twice as high as wide; a title takes 0.22 inches.
    map_width = width / columns
    map_height = map_width * min(_measure_shape(mdp), 2.0)
    height = rows * (map_height + 0.22)

    figure = _NotebookFigure(figsize=(width, height), layout="constrained")
    axes: Any = figure.subplots(rows, columns, squeeze=False)
    return figure, axes.ravel().tolist()


# Widths of the smallest and of the largest map in inches.
_LEAST_WIDTH = 1.7
_MOST_WIDTH = 6.8


def _choose_width(mdp: MDP) -> float:
    """Width of a map in inches: an arrow needs a ninth of one."""
    if mdp.coords is None or mdp.n_states > MAX_DETAILED_STATES:
        return _LEAST_WIDTH
    n_columns = np.ptp(mdp.coords[:, 1]) + 3
    return float(np.clip(n_columns / 9.0, _LEAST_WIDTH, _MOST_WIDTH))


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


def _explain_options(options: OptionSet) -> str:
    """Explanation of the rings and digits on the maps, if there are any."""
    if has_positions(options.mdp):
        return options.mdp.legend
    glyphs: set[str] = set()
    for policy in options.policy:
        glyphs.update(draw_arrows(policy, *find_arrows(options.mdp, policy)))
    return explain_glyphs(glyphs, options.mdp.legend, bends=True)
