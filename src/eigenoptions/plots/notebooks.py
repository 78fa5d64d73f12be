"""What notebooks show of records: the figures of `plots`, each as an image.

The image is a PNG file inside the page. As SVG, the names of elements would meet those
of the next picture on the page, and large maps would have a shape for each cell. It has
the background of the figure, by default white, as on paper: so it is legible on a dark
page, too. A record without a picture is shown as `print` shows it.
"""

from __future__ import annotations

from base64 import b64encode
from html import escape

from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from eigenoptions._colors import BLUE
from eigenoptions._text import count_hidden, printable
from eigenoptions.explore.found import Found
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from eigenoptions.plots.figures import make_axes, make_maps, measure_map, plot_options
from eigenoptions.plots.files import render_figure
from eigenoptions.plots.maps import MAX_DETAILED_STATES, draw_maze, fits_picture
from eigenoptions.plots.nodes import has_positions
from eigenoptions.plots.observed import place_options
from eigenoptions.plots.plans import make_squares
from eigenoptions.plots.visits import plot_first_visits
from eigenoptions.samples.linear import LinearOptionSet
from eigenoptions.spectra import Spectrum
from eigenoptions.spectra.spectrum import number_vectors
from eigenoptions.vectors import Planner

# Most options of a picture.
_MAX_OPTIONS = 8

# Some thousand states show the shape of a spectrum.
_MAX_POINTS = 2_000

# Pixels of a page per inch. Images have twice as many, for sharp screens.
_PIXELS = 96


def show_table(mdp: MDP) -> str:
    """The map of a table, or its graph."""
    if not _has_places(mdp):
        return _show_text(mdp)
    figure, (ax,) = make_maps(1, measure_map(mdp), None, None, None)
    draw_maze(ax, mdp)
    return _show_figure(repr(mdp), figure, mdp.legend)


def show_options(options: OptionSet | LinearOptionSet, title: str) -> str:
    """Maps of the first options."""
    note = ""
    if isinstance(options, OptionSet):
        is_drawn = _has_places(options.mdp)
        note = "red: the option ends there"
        if options.n_states > MAX_DETAILED_STATES:
            note = "options climb from blue to orange, and end at rings or on red"
    else:
        is_drawn = place_options(options) is not None
    if not is_drawn or not len(options):
        return _show_text(options)

    shown = options[:_MAX_OPTIONS]
    remedy = f"options[{len(shown)}:], or eo.plots.plot_options(options)"
    hidden = count_hidden(len(options), len(shown), "option", remedy)
    return _show_figure(title, plot_options(shown), note, hidden)


def show_spectrum(spectrum: Spectrum) -> str:
    """The eigenvalues, and the states placed by e2 and e3."""
    numbers = number_vectors(spectrum)
    # States of features are observations, which are not known here.
    has_states = spectrum.features is None and 3 in numbers
    figure, axes = make_maps(1 + has_states, (3.2, 2.4), None, None, None)
    axes[0].plot(numbers, spectrum.values, "o", color=BLUE, markersize=3)
    axes[0].set_title("eigenvalues")
    if not has_states:
        return _show_figure(repr(spectrum), figure)

    every = -(-len(spectrum.vectors) // _MAX_POINTS)
    second, third = (numbers.index(number) for number in (2, 3))
    x, y = spectrum.vectors[::every, [second, third]].T
    axes[1].plot(x, y, "o", color=BLUE, markersize=2)
    axes[1].set(title="states placed by e2 and e3", xticks=[], yticks=[])
    note = "eo.plots.plot_eigenvectors(mdp, spectrum) draws the vectors as maps"
    return _show_figure(repr(spectrum), figure, note)


def show_found(found: Found) -> str:
    """The map of what was seen."""
    if not _has_places(found.mdp):
        return _show_text(found)
    note = (
        "grey: walls, and what was not seen; a ring: an action was never tried there; "
        "a red dot: a reward"
    )
    return _show_figure(repr(found), plot_first_visits(found), note, found.mdp.legend)


def show_planner(planner: Planner) -> str:
    """The cells of a planner over the first two columns."""
    centers = planner.centers
    size = planner.cell_size
    if centers is None or size is None or centers.shape[1] < 2:
        return _show_text(planner)
    figure, ax = make_axes((4.0, 3.0), None)
    # Cells that share a place are darker.
    squares = make_squares(centers, size)
    ax.add_collection(
        PolyCollection(list(squares), facecolors=BLUE, edgecolors="white", alpha=0.4)
    )
    ax.autoscale_view()
    ax.set(xlabel="first column", ylabel="second column")
    fit = "" if planner.fit is None else str(planner.fit)
    example = "eo.plots.draw_plan(ax, planner, start, goal) draws a way"
    return _show_figure(repr(planner), figure, fit, example)


def _has_places(mdp: MDP) -> bool:
    """Whether states have places on a map or in a graph."""
    if mdp.coords is None:
        return has_positions(mdp)
    return fits_picture(mdp.coords)


def _show_figure(title: str, figure: Figure, *notes: str) -> str:
    """A page with a figure below a title, and above some lines of text."""
    image = b64encode(render_figure(figure, "png", 2 * _PIXELS)).decode()
    width = round(_PIXELS * figure.get_figwidth())
    title = escape(printable(title))
    page = (
        f'<div>{title}</div><img alt="{title}" style="width:{width}px;max-width:100%" '
        f'src="data:image/png;base64,{image}">'
    )
    for note in notes:
        if note:
            page += f"<div>{escape(printable(note))}</div>"
    return f"<div>{page}</div>"


def _show_text(record: object) -> str:
    """A page with what `print` shows of a record."""
    return f"<pre>{escape(str(record))}</pre>"
