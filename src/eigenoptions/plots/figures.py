"""Four figures: options, eigenvectors, diffusion times and learning curves; and files of figures and clips."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from PIL import Image

from eigenoptions._text import draw_arrows, explain_glyphs
from eigenoptions._validation import check_float, check_type
from eigenoptions.learning import LearningRecord
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from eigenoptions.options.files import write_atomically
from eigenoptions.plots.axes import (
    compute_moves,
    draw_curves,
    draw_options,
    draw_values,
    make_caption,
    make_line_style,
)
from eigenoptions.spectra import Spectrum

# Letters of SVG files are outlines, so that they are the same on every machine; conferences ask for TrueType in PDF.
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "figure.dpi": 150,
    "svg.hashsalt": "eigenoptions",
    "pdf.fonttype": 42,
}


class NotebookFigure(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        return _to_bytes(self, "png", dpi=150)


def plot_options(
    options: OptionSet, *, columns: int | None = None, width: float | None = None
) -> Figure:
    """Draw every option of a set as arrows, with its label and eigenvalue, like Figures 3 to 5.

    Parameters
    ----------
    options
        Options of states with `coords`.
    columns
        Number of maps beside each other; by default up to four, or eight for more than 16 options.
    width
        Width of the figure in inches; by default 1.7 per map.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> len(plot_options(eo.discover("i-maze", 4)).axes)
    4
    """
    check_type("options", options, OptionSet, "make them with discover")
    with matplotlib.rc_context(STYLE):
        figure, axes = make_maps(options.mdp, len(options), columns, width)
        draw_options(axes, options)
        moves = [compute_moves(options.mdp, policy) for policy in options.policy]
        glyphs = {
            g
            for pair in zip(options.policy, moves, strict=True)
            for g in draw_arrows(*pair)
        }
        if note := explain_glyphs(glyphs, options.mdp.legend):
            figure.supxlabel(
                fill(note, int(17 * figure.get_figwidth())), x=0.01, ha="left", size=7
            )
    return figure


def plot_eigenvectors(
    mdp: MDP,
    spectrum: Spectrum,
    *,
    columns: int | None = None,
    width: float | None = None,
) -> Figure:
    """Draw the first eigenvectors (proto-value functions) after eigenvalue zero, at most eight, as heat maps.

    Parameters
    ----------
    mdp, spectrum
        States with `coords`, and the spectrum of their graph.
    columns, width
        As in `plot_options`.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> rooms = eo.maze("four-rooms")
    >>> figure = plot_eigenvectors(rooms, eo.spectrum(eo.graph(rooms), k=3))
    >>> [ax.get_title() for ax in figure.axes]
    ['e2  λ = 0.00701', 'e3  λ = 0.0085']
    """
    check_type("spectrum", spectrum, Spectrum, "make it with spectrum(graph(mdp))")
    numbers = range(spectrum.n_zero, len(spectrum.values))[:8]
    with matplotlib.rc_context(STYLE):
        figure, axes = make_maps(mdp, len(numbers), columns, width)
        for ax, i in zip(axes.flat, numbers, strict=False):
            draw_values(ax, mdp, spectrum.vectors[:, i])
            ax.set_title(make_caption(f"e{i + 1}", spectrum.values[i]))
        for ax in axes.flat[len(numbers) :]:
            ax.set_axis_off()
    return figure


def plot_diffusion(
    curves: ArrayLike | Mapping[str, ArrayLike],
    *,
    width: float = 3.5,
    height: float = 2.4,
) -> Figure:
    """Draw diffusion time by number of options, like Figure 6; a dashed line is the time without options.

    Parameters
    ----------
    curves
        ``(n + 1,)`` times with 0 to n options, as `diffusion_curve` returns them; or several of them by name. NaN where
        a time is not known.
    width, height
        Size of the figure in inches.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> rooms = eo.maze("i-maze")
    >>> plot_diffusion(eo.diffusion_curve(rooms, eo.discover(rooms, 4))).axes[0].get_yscale()
    'log'
    """
    named = curves if isinstance(curves, Mapping) else {"": curves}
    with matplotlib.rc_context(STYLE):
        figure = NotebookFigure(figsize=(width, height), layout="constrained")
        ax = figure.add_subplot()
        for i, (name, curve) in enumerate(named.items()):
            times = np.asarray(curve, dtype=float)
            counts = np.flatnonzero(~np.isnan(times))
            ax.plot(counts, times[counts], label=name, **make_line_style(i))
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
    """Draw the mean return over runs by episode, with 95% bands, of one record or several by name, like Figure 7.

    Parameters
    ----------
    records
        What `q_learning` returns; its other tables, as `steps`, can be drawn by `draw_curves`.
    width, height
        Size of the figure in inches.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> record = eo.q_learning(eo.maze("S..G"), runs=3, episodes=5)
    >>> plot_learning({"4 actions": record}).axes[0].get_xlabel()
    'episode'
    """
    named = records if isinstance(records, Mapping) else {"": records}
    for record in named.values():
        check_type("a record", record, LearningRecord, "make it with q_learning")
    with matplotlib.rc_context(STYLE):
        figure = NotebookFigure(figsize=(width, height), layout="constrained")
        ax = figure.add_subplot()
        episodes = range(1, next(iter(named.values())).returns.shape[1] + 1)
        bands = {name: record.band() for name, record in named.items()}
        draw_curves(
            ax,
            episodes,
            {name: record.returns for name, record in named.items()},
            bands=bands,
        )
        ax.set(xlabel="episode", ylabel="return", ylim=(-0.02, 1.02))
        if any(named):
            ax.legend()
    return figure


def save_figure(figure: Figure, path: str | Path, *, dpi: int = 300) -> None:
    """Write a figure as .svg, .pdf or .png; on failure the path is left as it was.

    Parameters
    ----------
    figure
        Any Matplotlib figure.
    path
        File name; its suffix is the format.
    dpi
        Resolution of .png files and of images inside the others.
    """
    check_type("figure", figure, Figure, "make it with plot_options or plt.subplots")
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in ("svg", "pdf", "png"):
        raise ValueError(
            f"figures are written as .svg, .pdf or .png, got {str(path)!r}"
        )
    write_atomically(path, _to_bytes(figure, suffix, dpi))


def save_clip(
    frames: Sequence[ArrayLike], path: str | Path, *, fps: float = 5.0
) -> None:
    """Write frames as an animated GIF that repeats.

    Parameters
    ----------
    frames
        Pictures ``(H, W, 3)`` of type uint8, as ``env.render()`` of an environment with ``render_mode="rgb_array"``
        returns them.
    path
        File name.
    fps
        Frames per second, at most 50: browsers show faster clips at 10.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_clip(np.zeros((2, 4, 4, 3), dtype=np.uint8), f"{folder}/clip.gif")
    """
    fps = check_float("fps", fps, above=0, maximum=50)
    pictures = np.asarray(frames)
    if (
        pictures.ndim != 4
        or pictures.shape[3] != 3
        or pictures.dtype != np.uint8
        or not len(pictures)
    ):
        raise ValueError(
            f"frames must be uint8 of shape (N, H, W, 3), got {pictures.dtype} {pictures.shape}"
        )
    first, *others = [Image.fromarray(picture) for picture in pictures]
    buffer = io.BytesIO()
    first.save(
        buffer,
        "GIF",
        save_all=True,
        append_images=others,
        duration=round(1000 / fps),
        loop=0,
    )
    write_atomically(path, buffer.getvalue())


def make_maps(
    mdp: MDP, n_maps: int, columns: int | None, width: float | None
) -> tuple[Figure, Any]:
    """A figure with an array of axes in the shape of the maze, for `n_maps` maps."""
    if not n_maps:
        raise ValueError("nothing to draw: give at least one option or eigenvector")
    columns = min(n_maps, columns or (4 if n_maps <= 16 else 8))
    rows = -(-n_maps // columns)
    width = width or max(1.7 * columns, 2.5)
    high, wide = np.ptp(mdp.coords, axis=0) + 3 if mdp.coords is not None else (1, 1)
    height = rows * (width / columns * min(high / wide, 2.0) + 0.22)
    figure = NotebookFigure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _to_bytes(figure: Figure, suffix: str, dpi: int) -> bytes:
    # Without a date the same figure gives the same file.
    undated: Any = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    buffer = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format=suffix, dpi=dpi, metadata=undated[suffix])
    return buffer.getvalue()
