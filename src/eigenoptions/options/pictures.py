"""Options of a table as text and as pictures in a notebook.

A map has an arrow for each state: where the option most likely goes. Large maps have
colours, graphs have arrows along their edges, and other options a line of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from eigenoptions._svg import (
    Figure,
    count_hidden,
    draw_maps,
    draw_nodes,
    draw_points,
    fits_arrows,
    show_figures,
    show_table,
)
from eigenoptions._text import (
    HEADINGS,
    MAX_LINES,
    MAX_WIDTH,
    draw_arrows,
    draw_map,
    explain_glyphs,
    find_moves,
    find_turns,
    printable,
    set_side_by_side,
)
from eigenoptions._types import BoolArray, FloatArray, IntegerArray
from eigenoptions.mdp import MDP

# Most maps of a page, and most rows of a table.
_MAX_MAPS = 8
_MAX_ROWS = 20

_CLIMB = "options climb from blue to orange, and end on red"

# Rows and columns of a map of observations between two bounds.
_N_PLACES = 25


class DrawnPurpose(Protocol):
    """What a picture needs to know of a purpose."""

    @property
    def potential(self) -> FloatArray | None:
        """One number per state, or None."""

    @property
    def goal(self) -> int | None:
        """The state that it leads to, or None."""


class LabelledOption(Protocol):
    """What a picture needs to know of every option."""

    @property
    def label(self) -> str:
        """Its name."""

    @property
    def eigenvalue(self) -> float:
        """The eigenvalue of its eigenvector, or nan."""


class DrawnOption(LabelledOption, Protocol):
    """What a picture needs to know of an option of a table."""

    @property
    def mean_length(self) -> float:
        """Expected steps until it terminates."""

    @property
    def policy(self) -> IntegerArray:
        """The action of each state, negative where it terminates."""

    @property
    def value(self) -> FloatArray:
        """The value of each state."""

    @property
    def purpose(self) -> DrawnPurpose:
        """What it was computed for."""


def show_options(title: str, mdp: MDP, options: Sequence[DrawnOption]) -> str:
    """Show options as a page of a notebook.

    Parameters
    ----------
    title : str
        What they are.
    mdp : MDP
        Their table.
    options : sequence of options
        Those that are shown, as far as there is room.
    """
    if not len(options):
        return show_figures(title, [], [])
    if mdp.coords is None and mdp.positions is None:
        return _tabulate(title, mdp, options)

    n_headings = 1 if mdp.headings is None else len(np.unique(mdp.headings))
    n_shown = max(1, _MAX_MAPS // n_headings)
    groups = [_draw_option(mdp, option) for option in options[:n_shown]]
    remedy = f"options[{n_shown}:], or eo.plots.plot_options(options)"
    notes = [
        _explain(mdp, options[:n_shown]),
        count_hidden(len(options), n_shown, "option", remedy),
    ]
    return show_figures(title, groups, notes)


def show_feature_options(
    title: str,
    options: Sequence[LabelledOption],
    features: object,
    potentials: FloatArray,
    actions: IntegerArray | None,
) -> str:
    """Show options of a feature space: cells on a map, or a table.

    Parameters
    ----------
    title : str
        What they are.
    options : sequence of options
        Those that are shown, as far as there is room.
    features : callable
        The feature map. Cells of a grid have `coords`, clusters have `places`.
    potentials : (n, d) array
        The vectors e of the options: one number per cell.
    actions : (n, S) array or None
        The action of each option in each cell; None without cells.
    """
    shown = options[:_MAX_MAPS]
    remedy = f"options[{len(shown)}:]"
    hidden = count_hidden(len(options), len(shown), "option", remedy)
    coords = getattr(features, "coords", None)
    places = getattr(features, "places", None)
    if actions is None or (coords is None and places is None):
        rows = [[_caption(option)] for option in shown]
        note = "eo.plots.plot_options(options, observations) draws them over some"
        return show_table(title, ["option"], rows, [note, hidden])

    groups = []
    for option, potential, action in zip(shown, potentials, actions, strict=False):
        if coords is None:
            assert places is not None
            caption = _caption(option)
            groups.append(
                [
                    draw_points(
                        places, values=potential, dots=action < 0, caption=caption
                    )
                ]
            )
        else:
            groups.append(_draw_cells(coords, potential, action < 0, _caption(option)))

    what = "a point is a cluster, placed by the functions e2 and e3"
    if coords is not None:
        what = _explain_columns(features)
    return show_figures(title, groups, [f"{_CLIMB}; {what}", hidden])


class Spread(NamedTuple):
    """Observations of two numbers that are spread evenly, and their places on a map.

    The first number grows to the right, the second one up.
    """

    obs: FloatArray
    coords: IntegerArray


def spread_observations(features: object) -> Spread | None:
    """Spread observations between the bounds of a feature map of two numbers.

    None for maps without bounds, of more or fewer numbers, or of chosen columns.

    Examples
    --------
    >>> from eigenoptions.samples.features import Fourier
    >>> spread = spread_observations(Fourier((0, 0), (1, 2)))
    >>> spread.obs.min(axis=0), spread.obs.max(axis=0)
    (array([0.02, 0.04]), array([0.98, 1.96]))
    """
    low = getattr(features, "low", None)
    high = getattr(features, "high", None)
    columns = getattr(features, "columns", None)
    if low is None or high is None or columns is not None or len(low) != 2:
        return None
    down, right = np.indices((_N_PLACES, _N_PLACES)).reshape(2, -1)
    up = _N_PLACES - 1 - down
    shares = (np.stack([right, up], axis=1) + 0.5) / _N_PLACES
    extent = np.subtract(high, low)
    return Spread(low + shares * extent, np.stack([down, right], axis=1))


def show_spread_options(
    title: str,
    options: Sequence[LabelledOption],
    coords: IntegerArray,
    potentials: FloatArray,
    is_end: BoolArray,
) -> str:
    """Show options of a feature space as maps of observations that are spread evenly.

    Parameters
    ----------
    title : str
        What they are.
    options : sequence of options
        Those that are shown, as far as there is room.
    coords : (N, 2) array
        Places of the observations, as `spread_observations` makes them.
    potentials : (n, N) array
        Potential of each option at each observation.
    is_end : (n, N) array of bool
        Whether it ends there.
    """
    shown = options[:_MAX_MAPS]
    groups = []
    for option, potential, ends in zip(shown, potentials, is_end, strict=False):
        caption = _caption(option)
        groups.append(draw_maps(coords, values=potential, dots=ends, caption=caption))
    remedy = f"options[{len(shown)}:]"
    hidden = count_hidden(len(options), len(shown), "option", remedy)
    note = f"{_CLIMB}; {_explain_columns(None)}"
    return show_figures(title, groups, [note, hidden])


def _draw_cells(
    coords: IntegerArray, potential: FloatArray, is_end: BoolArray, caption: str
) -> list[Figure]:
    """A map: where several cells share a place, it shows their mean."""
    places, place_of_cell = np.unique(coords, axis=0, return_inverse=True)
    # NumPy 2.0.0 returns a column.
    place_of_cell = place_of_cell.ravel()
    counts = np.bincount(place_of_cell)
    means = np.bincount(place_of_cell, potential) / counts
    is_mostly_end = np.bincount(place_of_cell, is_end) > 0.5 * counts
    return draw_maps(places, values=means, dots=is_mostly_end, caption=caption)


def _explain_columns(features: object) -> str:
    """Which columns a map of cells shows, and what it averages over."""
    columns = getattr(features, "columns", (0, 1))
    text = f"column {columns[0]} to the right, column {columns[1]} up"
    if len(columns) > 2:
        others = "column" if len(columns) == 3 else f"{len(columns) - 2} columns"
        text += f"; means over the other {others}"
    return text


def print_options(title: str, mdp: MDP, options: Sequence[DrawnOption]) -> str:
    """Draw options as maps of characters, of at most 40 lines.

    Parameters
    ----------
    title : str
        What they are: the last line.
    mdp, options
        As in `show_options`.
    """
    if mdp.coords is None or not len(options):
        return title

    # Below the maps: empty lines, what is hidden, the legend and the title.
    max_lines = MAX_LINES - 6
    blocks = _print_maps(mdp, options[0])
    n_parts = len(blocks)
    lines = blocks[0].split("\n")
    # Maps of one size: how many of them have room.
    n_rows = max(1, max_lines // (len(lines) + 1))
    n_columns = max(1, MAX_WIDTH // (max(map(len, lines)) + 1))
    for option in options[1 : n_rows * n_columns + 1]:
        blocks += _print_maps(mdp, option)
    text, n_blocks = set_side_by_side(blocks, max_lines)
    n_shown = max(1, n_blocks // n_parts)
    legend = _explain_glyphs(mdp, options[:n_shown])
    hidden = count_hidden(len(options), n_shown, "option", f"options[{n_shown}:]")
    below = [hidden, printable(legend), title]
    return "\n\n".join([text, "\n".join(line for line in below if line)])


def _caption(option: LabelledOption) -> str:
    """The label of an option and its eigenvalue."""
    return make_caption(option.label, option.eigenvalue)


def make_caption(label: str, eigenvalue: float) -> str:
    r"""Make a title: the label of an option or eigenvector, and its eigenvalue, if any.

    >>> make_caption("e2+", 0.25), make_caption("goal 3", float("nan"))
    ('e2+  λ = 0.25', 'goal 3')
    """
    if np.isnan(eigenvalue):
        return label
    return f"{label}  λ = {eigenvalue:.3g}"


def find_arrows(
    mdp: MDP, policy: IntegerArray
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Find where the actions of a policy most likely move and turn the agent.

    Parameters
    ----------
    mdp : MDP
        States with `coords`.
    policy : (S,) array
        Action of each state, negative where an option terminates.

    Returns
    -------
    moves : (S, 2) array
        Rows and columns, as `_text.find_moves` returns them.
    turns : (S,) array or None
        Turns, as `_text.find_turns` returns them; None where no heading is known.
    """
    assert mdp.coords is not None
    actions = np.asarray(policy, dtype=np.int64)
    successors = mdp.most_likely_successors
    moves = find_moves(mdp.coords, actions, successors)
    if mdp.headings is None:
        return moves, None
    return moves, find_turns(mdp.headings, actions, successors)


def _draw_option(mdp: MDP, option: DrawnOption) -> list[Figure]:
    """The maps of an option, or its graph."""
    caption = _caption(option)
    if mdp.headings is not None:
        caption = option.label
    policy = np.asarray(option.policy, dtype=np.int64)
    if mdp.coords is None:
        assert mdp.positions is not None
        states = np.arange(mdp.n_states)
        next_states = mdp.most_likely_successors[states, policy]
        return [
            draw_nodes(
                mdp.positions,
                mdp.edges,
                policy=policy,
                next_states=next_states,
                caption=caption,
            )
        ]

    if fits_arrows(mdp.coords):
        moves, turns = find_arrows(mdp, policy)
        return draw_maps(
            mdp.coords,
            mdp.headings,
            policy=policy,
            moves=moves,
            turns=turns,
            caption=caption,
        )
    # The potential of a single goal is one bright cell: its value shows the way there.
    heights = option.purpose.potential
    if heights is None or option.purpose.goal is not None:
        heights = option.value
    return draw_maps(
        mdp.coords, mdp.headings, values=heights, dots=policy < 0, caption=caption
    )


def _print_maps(mdp: MDP, option: DrawnOption) -> list[str]:
    """A map of characters below its label, or one for each heading."""
    assert mdp.coords is not None
    label = printable(option.label)
    moves, turns = find_arrows(mdp, option.policy)
    glyphs = np.array(draw_arrows(option.policy, moves, turns))
    if mdp.headings is None:
        return [f"{label}\n{draw_map(mdp.coords, glyphs.tolist())}"]

    blocks = []
    for number in np.unique(mdp.headings).tolist():
        states = np.flatnonzero(mdp.headings == number)
        drawn = draw_map(mdp.coords[states], glyphs[states].tolist())
        blocks.append(f"{label} facing {HEADINGS[number]}\n{drawn}")
    return blocks


def _explain(mdp: MDP, options: Sequence[DrawnOption]) -> str:
    """What the pictures show."""
    if mdp.coords is None:
        return "red: the option ends there"
    if not fits_arrows(mdp.coords):
        return _CLIMB
    glyphs = _explain_glyphs(mdp, options, bends=True)
    return "; ".join(part for part in ("red: the option ends there", glyphs) if part)


def _explain_glyphs(
    mdp: MDP, options: Sequence[DrawnOption], bends: bool = False
) -> str:
    """What arrows do not say by themselves."""
    used: set[str] = set()
    for option in options:
        moves, turns = find_arrows(mdp, option.policy)
        used.update(draw_arrows(option.policy, moves, turns))
    return explain_glyphs(used, mdp.legend, bends=bends)


def _tabulate(title: str, mdp: MDP, options: Sequence[DrawnOption]) -> str:
    """Options without a picture: where they start and end, and how long they take."""
    rows = []
    for option in options[:_MAX_ROWS]:
        n_ends = int((option.policy < 0).sum())
        rows.append(
            [
                _caption(option),
                f"{mdp.n_states - n_ends:,}",
                f"{n_ends:,}",
                f"{option.mean_length:.3g}",
            ]
        )
    header = ["option", "starts in (states)", "ends in (states)", "mean length"]
    notes = [
        "states have no coordinates: eo.plots.plot_options(options) draws a graph",
        count_hidden(len(options), len(rows), "option", f"options[{len(rows)}:]"),
    ]
    return show_table(title, header, rows, notes)
