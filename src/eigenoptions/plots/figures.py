"""Figures: panels in a grid, the common ones by name, and files with the same bytes on every run."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from numpy.typing import ArrayLike, NDArray

from eigenoptions import _text
from eigenoptions._validation import check_choice, check_type
from eigenoptions.files import write_bytes
from eigenoptions.learning import LearningRecord
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.plots.lines import curve_panel
from eigenoptions.plots.panels import (
    DETAIL,
    INK,
    SIGNED,
    STOP,
    Panel,
    maze_panel,
    policy_panel,
    surface_panel,
    value_panel,
)
from eigenoptions.spectra import Spectrum

# Widths in inches of one column and of both columns of a conference page, and the gap between panels.
COLUMN, PAGE, GAP = 3.25, 6.75, 0.09
# Number of points per side at which the potential of an option is evaluated.
GRID_POINTS = 101

# DejaVu comes with matplotlib, so letters are the same on every machine; in SVG files they are outlines. A fixed hash
# salt gives the same ids on every run. Fonts of type 42 (TrueType) are what conferences ask for.
STYLE: Any = {
    "font.family": "DejaVu Sans",
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
    "svg.hashsalt": "eigenoptions",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}
# File types, and the metadata that would change from run to run.
FORMATS: dict[str, dict[str, None]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
}


class Picture(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_svg_(self) -> str:
        return svg(self)


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
        Number of columns; by default up to four, or eight for more than 16 panels.
    width
        Width in inches; by default one column of a conference page for up to two columns, else the page.
    ratios
        Relative widths of the columns; equal by default.
    legend
        Draw one legend for all panels of lines below them; for panels without a legend of their own.

    Examples
    --------
    >>> figure([maze_panel([[0, 0], [0, 1]])] * 3).get_size_inches().tolist()[0]
    6.75
    """
    drawn = list(panels)
    for panel in drawn:
        check_type("a panel", panel, Panel, "make it with maze_panel, curve_panel and the like")
    if not drawn:
        raise ValueError("nothing to draw: give at least one panel")
    if columns is not None and columns < 1:
        raise ValueError(f"columns must be at least 1, got {columns}")
    columns = min(len(drawn), columns or (4 if len(drawn) <= 16 else 8))
    width = width or (COLUMN if columns <= 2 else PAGE)
    if ratios is not None and (len(ratios) != columns or min(ratios) <= 0):
        raise ValueError(f"ratios must be {columns} numbers above 0, one per column, got {list(ratios)}")
    shares = [r / sum(ratios) for r in ratios] if ratios else [1 / columns] * columns
    widths = [width * shares[i % columns] - GAP for i in range(len(drawn))]
    # About 18 letters fit per inch.
    titles = [
        fill(panel.title, max(4, int(18 * w)), break_long_words=False)
        for panel, w in zip(drawn, widths, strict=True)
    ]
    title_height = 0.05 + 0.13 * max(title.count("\n") + 1 if title else 0 for title in titles)
    height = min(max(panel.aspect * w for panel, w in zip(drawn, widths, strict=True)), 2.8)
    with matplotlib.rc_context(STYLE):
        total = -(-len(drawn) // columns) * (height + title_height) + GAP
        if any(panel.kind == "graph" for panel in drawn):
            fig: Figure = Picture(figsize=(width, total), layout="constrained")
            grid = fig.add_gridspec(-(-len(drawn) // columns), columns, width_ratios=shares)
        else:
            fig = Picture(figsize=(width, total))
            grid = _plain_grid(fig, shares, height, title_height)
        for i, panel in enumerate(drawn):
            place = grid[i // columns, i % columns]
            ax = fig.add_subplot(place, projection="3d" if panel.kind == "solid" else None)
            panel.draw(ax)
            ax.set_title(titles[i])
        if legend:
            _legend(fig)
        if fig.get_layout_engine() is not None:
            _fix_layout(fig)
    return fig


def _plain_grid(fig: Figure, shares: list[float], height: float, title_height: float) -> GridSpec:
    """A grid by arithmetic, for panels that nothing sticks out of."""
    width, total = fig.get_size_inches()
    return fig.add_gridspec(
        round((total - GAP) / (height + title_height)),
        len(shares),
        width_ratios=shares,
        left=GAP / 2 / width,
        right=1 - GAP / 2 / width,
        bottom=GAP / 2 / total,
        top=1 - title_height / total,
        wspace=GAP / (width / len(shares) - GAP),
        hspace=title_height / height,
    )


def _legend(fig: Figure) -> None:
    """Add one legend of the lines of all panels below them."""
    lines = {
        label: line
        for ax in fig.axes
        for line, label in zip(*ax.get_legend_handles_labels(), strict=True)
        if label
    }
    fig.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4)
    fig.set_figheight(fig.get_figheight() + 0.05 + 0.15 * -(-len(lines) // 4))


def _fix_layout(fig: Figure) -> None:
    """Run the layout solver once and round its result, because its last bits depend on memory addresses."""
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
    for mdp in mdps:
        check_type("a domain", mdp, MDP, "make it with maze or from_env")
    letters = [{s: c for s, c in ((m.start, "S"), (m.goal, "G")) if s is not None} for m in mdps]
    panels = [maze_panel(m.coords, marks, m.name) for m, marks in zip(mdps, letters, strict=True)]
    return figure(panels, width=width)


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
    spectrum, coords
        Spectrum of a state space, and ``(S, 2)`` row and column of each state.
    which
        Columns of ``spectrum.vectors``, counted from 0; by default the first eight after eigenvalue zero.
    surface, width
        Whether to draw surfaces in 3-D instead of heat maps; and as in `figure`.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> [ax.get_title() for ax in pvfs(eo.spectrum(eo.graph(mdp), k=3), mdp.coords).axes]
    ['e2  λ\xa0=\xa00.00701', 'e3  λ\xa0=\xa00.0085']
    """
    check_type("spectrum", spectrum, Spectrum, "make it with spectrum(graph(mdp))")
    k = len(spectrum.values)
    chosen = list(range(min(spectrum.n_zero, k - 1), k))[:8] if which is None else list(which)
    if any(not 0 <= i < k for i in chosen):
        raise ValueError(f"which must hold numbers in 0..{k - 1} for {k} eigenvectors, got {chosen}")
    panel = surface_panel if surface else value_panel
    panels = [panel(coords, spectrum.vectors[:, i], caption(f"e{i + 1}", spectrum.values[i])) for i in chosen]
    return figure(panels, width=width)


def options(options: OptionSet, *, columns: int | None = None, width: float | None = None) -> Figure:
    """Every option of a set as arrows, with its label and eigenvalue, like Figures 3 to 5.

    Arrows are the most likely moves of the dynamics the options were found on. Text below the maps explains rings and
    digits, which stand for other actions, and what the maps are where there are several (MiniGrid's headings).

    >>> import eigenoptions as eo
    >>> len(options(eo.discover(eo.maze("i-maze"), n_options=4)).axes)
    4
    """
    check_type("options", options, OptionSet, "make them with discover")
    # A move that is not known is drawn as one that leads to no neighbouring cell.
    far = np.full((options.n_states, 2), 2)
    known = [far if (moves := options.moves(i)) is None else moves for i in range(len(options))]
    drawn = list(zip(options, known, strict=True))
    panels = [
        policy_panel(options.coords, o.policy, caption(o.label, o.eigenvalue), moves) for o, moves in drawn
    ]
    made = figure(panels, columns=columns, width=width)
    if options.n_states <= DETAIL:
        glyphs = {glyph for o, moves in drawn for glyph in _text.arrows(o.policy, moves)}
        if key := _text.key(glyphs, options.legend):
            _note(made, key)
    return made


def _note(fig: Figure, text: str) -> None:
    """Add text below a figure of maps, and room for it."""
    width, height = fig.get_size_inches()
    lines = fill(text, int(18 * width)).split("\n")
    room = 0.13 * len(lines) + 0.05
    for ax in fig.axes:
        x, y, w, h = ax.get_position(original=True).bounds
        ax.set_position((x, (y * height + room) / (height + room), w, h * height / (height + room)))
    fig.set_figheight(height + room)
    with matplotlib.rc_context(STYLE):
        fig.text(0.01, 0.03 / (height + room), "\n".join(lines), va="bottom", size=6.5)


def landscapes(
    options: LinearOptionSet,
    low: ArrayLike,
    high: ArrayLike,
    paths: Sequence[Sequence[NDArray[Any]]] | None = None,
    *,
    names: tuple[str, str] = ("first", "second"),
    columns: int | None = None,
) -> Figure:
    """Potential of each option over a box of two-dimensional observations, and the paths it takes (Section 5.2).

    Parameters
    ----------
    options
        Options in a feature space of observations with two numbers (MountainCar: position and velocity).
    low, high
        ``(2,)`` corners of the box.
    paths
        Paths of each option, as `envs.run_options` returns them: each is a line, with a red dot at its end.
    names, columns
        Axis labels of the two dimensions; and as in `figure`.

    Examples
    --------
    >>> from eigenoptions.features import Raw
    >>> slope = LinearOptionSet([[1.0, 0.0]], Raw(), 2, weights=np.zeros((1, 2, 2)), labels=("e1+",))
    >>> len(landscapes(slope, [0, 0], [1, 1]).axes)
    1
    """
    check_type("options", options, LinearOptionSet, "discover them from samples")
    if len(names) != 2 or (paths is not None and len(paths) != len(options)):
        raise ValueError(f"names must be 2, and paths one list for each of {len(options)} options, or None")
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    if low.shape != (2,) or high.shape != (2,) or not (np.isfinite([low, high]).all() and (low < high).all()):
        raise ValueError(f"the box must have two dimensions and finite corners, got {low} and {high}")
    x, y = (np.linspace(low[i], high[i], GRID_POINTS) for i in range(2))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    heights = options.potential(grid).reshape(len(options), GRID_POINTS, GRID_POINTS)
    box = (low[0], high[0], low[1], high[1])

    def panel(i: int) -> Panel:
        def draw(ax: Axes) -> None:
            centred = heights[i] - np.median(heights[i])
            top = np.abs(centred).max() or 1.0
            image: Any = {"origin": "lower", "extent": box, "aspect": "auto"}
            ax.imshow(centred, cmap=SIGNED, vmin=-top, vmax=top, **image)
            for path in paths[i] if paths is not None else ():
                ax.plot(path[:, 0], path[:, 1], color=INK, linewidth=0.6, alpha=0.7)
                ax.plot(*path[-1], "o", color=STOP, markersize=2.5)
            ax.set(xlim=box[:2], ylim=box[2:], xlabel=names[0], ylabel=names[1])

        return Panel(draw, caption(options.labels[i], float(options.eigenvalues[i])), 0.85, "graph")

    return figure([panel(i) for i in range(len(options))], columns=columns or min(len(options), 4))


def heat(
    values: ArrayLike, coords: ArrayLike | None, label: str = "", *, width: float | None = None
) -> Figure:
    """Heat map of one number per state (a hitting time, a visit count) with a colour bar.

    >>> import eigenoptions as eo
    >>> mdp = eo.maze("i-maze")
    >>> heat(range(19), mdp.coords, "steps").axes[0].get_title()
    ''
    """
    panel = value_panel(coords, values, signed=False, label=label)
    return figure([Panel(panel.draw, "", panel.aspect, "graph")], width=width)


def curves(
    x: ArrayLike, series: Mapping[str, ArrayLike], *, width: float | None = None, **settings: Any
) -> Figure:
    """Lines with confidence bands; `settings` are those of `curve_panel`.

    >>> curves([1, 2], {"": [10.0, 1000.0]}, log=True).axes[0].get_yscale()
    'log'
    """
    return figure([curve_panel(x, series, **settings)], width=width)


def learning(
    records: LearningRecord | Mapping[str, LearningRecord], of: str = "returns", *, width: float | None = None
) -> Figure:
    """Mean over runs by episode, with 95% bands, of one record or of several by name, like Figure 7.

    Parameters
    ----------
    records
        What `q_learning` and the other learners return.
    of
        Table of the record: ``"returns"``, ``"learning_returns"``, ``"steps"`` or ``"evaluation_steps"``.
    width
        As in `figure`.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> corridor = eo.maze("S..G")
    >>> drawn = learning({"4 actions": eo.q_learning(corridor, runs=3, episodes=5)})
    >>> drawn.axes[0].get_xlabel()
    'episode'
    """
    named = records if isinstance(records, Mapping) else {"": records}
    check_choice("of", of, ("returns", "learning_returns", "steps", "evaluation_steps"))
    for record in named.values():
        check_type("a record", record, LearningRecord, "make it with q_learning")
    if len({record.returns.shape[1] for record in named.values()}) != 1:
        raise ValueError("the records must have the same number of episodes, and there must be at least one")
    episodes = next(iter(named.values())).returns.shape[1]
    returns = of.endswith("returns")
    return curves(
        range(1, episodes + 1),
        {name: record.mean(of) for name, record in named.items()},
        bands={name: record.band(of) for name, record in named.items()},
        xlabel="episode",
        ylabel="return" if returns else "steps",
        limits=(-0.02, 1.02) if returns else None,
        width=width,
    )


def plot(record: MDP | Spectrum | OptionSet | LearningRecord, **settings: Any) -> Figure:
    """The usual figure of a record, which its method `plot` draws too; `settings` are those of the function used.

    >>> import eigenoptions as eo
    >>> len(plot(eo.discover(eo.maze("i-maze"), n_options=4)).axes)
    4
    """
    if isinstance(record, MDP):
        return domains([record], **settings)
    if isinstance(record, OptionSet):
        return options(record, **settings)
    if isinstance(record, LearningRecord):
        return learning(record, **settings)
    if isinstance(record, Spectrum):
        return pvfs(record, record.coords, **settings)
    raise TypeError(f"plot takes an MDP, Spectrum, OptionSet or LearningRecord, got {type(record).__name__}")


def caption(label: str, eigenvalue: float) -> str:
    r"""Label and eigenvalue, if there is one; a line may break only between the two.

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
    """Write a figure as .svg, .pdf or .png; on failure the path is left as it was."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise ValueError(f"pictures are written as {', '.join('.' + f for f in FORMATS)}, got {str(path)!r}")
    write_bytes(path, _bytes(fig, kind))


def _bytes(fig: Figure, kind: str) -> bytes:
    check_type("fig", fig, Figure, "make it with figure, options, pvfs and the like")
    buffer = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        fig.savefig(buffer, format=kind, metadata=FORMATS[kind])
    return buffer.getvalue()
