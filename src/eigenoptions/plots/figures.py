"""Figures: panels in a grid, the usual ones by name, and files of them that come out the same each time."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from eigenoptions.files import write_bytes
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from eigenoptions.plots.lines import curve_panel
from eigenoptions.plots.panels import Panel, maze_panel, policy_panel, surface_panel, value_panel
from eigenoptions.spectra import Spectrum

COLUMN, PAGE = 3.25, 6.75  # inches: one column and both of a conference page

STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same letters on every machine
    "font.size": 7.5,
    "axes.titlesize": 7.5,
    "axes.titlepad": 3.0,
    "axes.labelsize": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "figure.dpi": 150,
    "savefig.dpi": 300,
    "svg.hashsalt": "eigenoptions",  # ids that do not change from run to run
    "svg.fonttype": "path",  # letters as outlines: looks alike wherever it is opened or inlined
    "pdf.fonttype": 42,  # TrueType, as conferences ask
}
FORMATS: dict[str, dict[str, None]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
}  # file types, and the metadata that would change from run to run


def figure(
    panels: Iterable[Panel],
    *,
    columns: int | None = None,
    width: float | None = None,
    ratios: Sequence[float] | None = None,
    legend: bool = False,
) -> Figure:
    """Panels in a grid, row by row, as one figure.

    Parameters
    ----------
    panels
        What to draw.
    columns
        In the grid; up to four by default, eight when there are many panels.
    width
        In inches; a column of a conference page for up to two panels a row, else the page.
    ratios
        Widths of the columns in proportion to each other; alike by default.
    legend
        One for all panels of lines, below them; for panels that have none of their own.

    Examples
    --------
    >>> figure([maze_panel([[0, 0], [0, 1]])] * 3).get_size_inches().tolist()[0]
    6.75
    """
    drawn = list(panels)
    if not drawn:
        raise ValueError("nothing to draw: give at least one panel")
    if columns is not None and columns < 1:
        raise ValueError(f"columns must be at least 1, got {columns}")
    columns = min(len(drawn), columns or (4 if len(drawn) <= 16 else 8))
    rows = -(-len(drawn) // columns)
    width = width or (COLUMN if columns <= 2 else PAGE)
    if ratios is not None and (len(ratios) != columns or min(ratios) <= 0):
        raise ValueError(f"ratios must be {columns} numbers above 0, one a column, got {list(ratios)}")
    gap = 0.09  # inches
    shares = [r / sum(ratios) for r in ratios] if ratios else [1 / columns] * columns
    wide = [width * shares[i % columns] - gap for i in range(len(drawn))]
    letters = [max(4, int(18 * w)) for w in wide]  # that fit above a panel
    titles = [fill(p.title, n, break_long_words=False) for p, n in zip(drawn, letters, strict=True)]
    head = 0.05 + 0.13 * max(t.count("\n") + 1 if t else 0 for t in titles)
    high = min(max(p.aspect * w for p, w in zip(drawn, wide, strict=True)), 2.8)
    with matplotlib.rc_context(STYLE):
        if any(p.kind == "graph" for p in drawn):
            fig = Figure(figsize=(width, rows * (high + head) + gap), layout="constrained")
            grid = fig.add_gridspec(rows, columns, width_ratios=shares)
        else:  # nothing sticks out of the panels, so the layout is plain arithmetic
            fig = Figure(figsize=(width, rows * (high + head) + gap))
            tall = fig.get_figheight()
            grid = fig.add_gridspec(
                rows,
                columns,
                width_ratios=shares,
                left=gap / 2 / width,
                right=1 - gap / 2 / width,
                bottom=gap / 2 / tall,
                top=1 - head / tall,
                wspace=gap / (width / columns - gap),
                hspace=head / high,
            )
        for i, panel in enumerate(drawn):
            place = grid[i // columns, i % columns]
            ax = fig.add_subplot(place, projection="3d" if panel.kind == "solid" else None)
            panel.draw(ax)
            ax.set_title(titles[i])
        if legend:
            _legend(fig)
        if fig.get_layout_engine() is not None:
            _settle(fig)
    return fig


def _legend(fig: Figure) -> None:
    """Say once below all panels what the lines are."""
    lines = {
        label: line
        for ax in fig.axes
        for line, label in zip(*ax.get_legend_handles_labels(), strict=True)
        if label
    }
    fig.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4)
    fig.set_figheight(fig.get_figheight() + 0.05 + 0.15 * -(-len(lines) // 4))


def _settle(fig: Figure) -> None:
    """Lay a figure out once, to a millionth: the solver's last bits depend on addresses in memory."""
    fig.draw_without_rendering()
    for ax in fig.axes:
        x, y, w, h = (round(float(x), 6) for x in ax.get_position(original=True).bounds)
        ax.set_position((x, y, w, h))
    fig.set_layout_engine("none")


def domains(mdps: Sequence[MDP], *, width: float | None = None) -> Figure:
    """Mazes side by side, with start and goal, like Figure 1.

    >>> import eigenoptions as eo
    >>> len(domains([eo.maze("open-room"), eo.maze("four-rooms")]).axes)
    2
    """
    letters = [{s: c for s, c in ((m.start, "S"), (m.goal, "G")) if s is not None} for m in mdps]
    return figure(
        [maze_panel(m.coords, marks, m.name) for m, marks in zip(mdps, letters, strict=True)], width=width
    )


def pvfs(
    spectrum: Spectrum,
    coords: ArrayLike | None,
    which: Sequence[int] | None = None,
    *,
    surface: bool = False,
    width: float | None = None,
) -> Figure:
    r"""Proto-value functions as heat maps, or as surfaces like Figure 2 (left).

    Parameters
    ----------
    spectrum
        Where they come from; its vectors must have one number a state.
    coords
        ``(S, 2)`` row and column of each state.
    which
        Columns of ``spectrum.vectors``, counted from 0; by default the first eight after eigenvalue zero.
    surface
        3-D instead of a heat map.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> [ax.get_title() for ax in pvfs(eo.spectrum(eo.graph(mdp), k=3), mdp.coords).axes]
    ['e2  λ\xa0=\xa00.00701', 'e3  λ\xa0=\xa00.0085']
    """
    k = len(spectrum.values)
    chosen = list(range(min(spectrum.n_zero, k - 1), k))[:8] if which is None else list(which)
    if any(not 0 <= i < k for i in chosen):
        raise ValueError(f"which must hold numbers in 0..{k - 1} for {k} eigenvectors, got {chosen}")
    panel = surface_panel if surface else value_panel
    return figure(
        [panel(coords, spectrum.vectors[:, i], caption(f"e{i + 1}", spectrum.values[i])) for i in chosen],
        width=width,
    )


def options(options: OptionSet, *, columns: int | None = None, width: float | None = None) -> Figure:
    """Every option of a set as arrows, with its label and eigenvalue, like Figures 3 to 5.

    >>> import eigenoptions as eo
    >>> len(options(eo.discover(eo.maze("i-maze"), n_options=4)).axes)
    4
    """
    panels = [policy_panel(options.coords, o.policy, caption(o.label, o.eigenvalue)) for o in options]
    return figure(panels, columns=columns, width=width)


def heat(
    values: ArrayLike, coords: ArrayLike | None, label: str = "", *, width: float | None = None
) -> Figure:
    """Heat map of a number a state (a hitting time, a visit count) with a colour bar.

    >>> import eigenoptions as eo
    >>> mdp = eo.maze("i-maze")
    >>> heat(range(19), mdp.coords, "steps").axes[0].get_title()
    ''
    """
    panel = value_panel(coords, values, signed=False, label=label)
    return figure([Panel(panel.draw, "", panel.aspect, "graph")], width=width)


def curves(
    x: ArrayLike,
    series: Mapping[str, ArrayLike],
    *,
    xlabel: str = "",
    ylabel: str = "",
    log: bool = False,
    confidence: float = 0.95,
    width: float | None = None,
    **more: Any,
) -> Figure:
    """Lines with confidence bands; see `curve_panel`, which takes what is left.

    >>> curves([1, 2], {"": [10.0, 1000.0]}, log=True).axes[0].get_yscale()
    'log'
    """
    panel = curve_panel(x, series, xlabel=xlabel, ylabel=ylabel, log=log, confidence=confidence, **more)
    return figure([panel], width=width)


def caption(label: str, eigenvalue: float) -> str:
    r"""Label and eigenvalue, if it has one; a line may end only between the two.

    >>> caption("e2+", 0.25), caption("goal 3", float("nan"))
    ('e2+  λ\xa0=\xa00.25', 'goal 3')
    """
    return label if eigenvalue != eigenvalue else f"{label}  λ\u00a0=\u00a0{eigenvalue:.3g}"


def svg(fig: Figure) -> str:
    """SVG text of a figure; the same figure gives the same bytes.

    >>> svg(figure([maze_panel([[0, 0], [0, 1]])]))[:13]
    '<?xml version'
    """
    return _bytes(fig, "svg").decode()


def save(fig: Figure, path: str | Path) -> None:
    """Write a figure as .svg, .pdf or .png, whole or not at all."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise ValueError(f"pictures are written as {', '.join('.' + f for f in FORMATS)}, got {str(path)!r}")
    write_bytes(path, _bytes(fig, kind))


def _bytes(fig: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        fig.savefig(buffer, format=kind, metadata=FORMATS[kind])
    return buffer.getvalue()
