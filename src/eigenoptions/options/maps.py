"""Options of a table as text: a map has an arrow where an option most likely goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eigenoptions._text import (
    HEADINGS,
    MAX_LINES,
    MAX_WIDTH,
    count_hidden,
    draw_arrows,
    draw_map,
    explain_glyphs,
    explain_size,
    find_moves,
    find_turns,
    printable,
    set_side_by_side,
)
from eigenoptions._types import IndexArray, IntegerArray
from eigenoptions.mdp import MDP

# Most options that are listed, where no map shows them.
_MAX_LISTED = 20


class DrawnOption(Protocol):
    """What a map needs to know of an option of a table."""

    @property
    def label(self) -> str:
        """Its name."""

    @property
    def eigenvalue(self) -> float:
        """The eigenvalue of its eigenvector, or nan."""

    @property
    def mean_length(self) -> float:
        """Expected steps until it terminates."""

    @property
    def policy(self) -> IntegerArray:
        """The action of each state, negative where it terminates."""


def draw_text(title: str, mdp: MDP, options: Sequence[DrawnOption]) -> str:
    """Draw options as maps of characters, of at most 40 lines, or list them.

    Parameters
    ----------
    title : str
        What they are: the last line.
    mdp : MDP
        Their table. Options of states without coordinates are listed.
    options : sequence of options
        Of them, as many are shown as there is room for.
    """
    if not len(options):
        return title
    if mdp.coords is None:
        text, n_shown = _list_options(mdp, options)
        legend = ""
    else:
        text, n_shown = _set_maps(mdp, options)
        legend = explain_maps(mdp, options[:n_shown])
    hidden = count_hidden(len(options), n_shown, "option", f"options[{n_shown}:]")
    below = [hidden, printable(legend), title]
    return "\n\n".join([text, "\n".join(line for line in below if line)])


def _list_options(mdp: MDP, options: Sequence[DrawnOption]) -> tuple[str, int]:
    """A line for each of the first options, and how many there are."""
    lines = []
    for option in options[:_MAX_LISTED]:
        n_ends = int((option.policy < 0).sum())
        lines.append(
            f"{make_caption(option.label, option.eigenvalue)}  starts in "
            f"{mdp.n_states - n_ends:,} states, ends in {n_ends:,}, "
            f"mean length {option.mean_length:.3g}"
        )
    return "\n".join(lines), len(lines)


def _set_maps(mdp: MDP, options: Sequence[DrawnOption]) -> tuple[str, int]:
    """Maps of the first options beside each other, and of how many options."""
    # Below the maps: empty lines, what is hidden, the legend and the title.
    max_lines = MAX_LINES - 6
    blocks = _draw_option(mdp, options[0])
    n_parts = len(blocks)
    lines = blocks[0].split("\n")
    # Maps of one size: how many of them have room.
    n_rows = max(1, max_lines // (len(lines) + 1))
    n_columns = max(1, MAX_WIDTH // (max(map(len, lines)) + 1))
    for option in options[1 : n_rows * n_columns + 1]:
        blocks += _draw_option(mdp, option)
    text, n_blocks = set_side_by_side(blocks, max_lines)
    return text, max(1, n_blocks // n_parts)


def _draw_option(mdp: MDP, option: DrawnOption) -> list[str]:
    """The maps of an option below their captions."""
    assert mdp.coords is not None
    glyphs = np.array(find_glyphs(mdp, option.policy))
    blocks = []
    for caption, states in list_maps(mdp, printable(option.label)):
        drawn = draw_map(mdp.coords[states], glyphs[states].tolist())
        blocks.append(f"{caption}\n{drawn}")
    return blocks


def list_maps(mdp: MDP, label: str) -> list[tuple[str, IndexArray]]:
    """The captions and the states of the maps of an option: one, or one per heading.

    >>> import eigenoptions as eo
    >>> [(caption, len(states)) for caption, states in list_maps(eo.maze("S.G"), "e2")]
    [('e2', 3)]
    """
    if mdp.headings is None:
        return [(label, np.arange(mdp.n_states))]
    maps = []
    for number in np.unique(mdp.headings).tolist():
        states = np.flatnonzero(mdp.headings == number)
        maps.append((f"{label} facing {HEADINGS[number]}", states))
    return maps


def find_glyphs(mdp: MDP, policy: IntegerArray) -> list[str]:
    """One glyph per state: what a policy does there; see `draw_arrows`.

    >>> import eigenoptions as eo
    >>> find_glyphs(eo.maze("S.G"), np.array([1, 1, -1]))
    ['→', '→', '●']
    """
    return draw_arrows(policy, *find_arrows(mdp, policy))


def make_caption(label: str, eigenvalue: float) -> str:
    r"""Make a title: the label of an option or eigenvector, and its eigenvalue, if any.

    >>> make_caption("e2+", 0.25), make_caption("goal 3", float("nan"))
    ('e2+  λ = 0.25', 'goal 3')
    """
    # The label of a user's purpose may hold any characters.
    label = printable(label)
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


def explain_maps(
    mdp: MDP, options: Sequence[DrawnOption], *, is_figure: bool = False
) -> str:
    """Explain what maps of options do not say by themselves.

    In a figure turns are bent arrows, and no row is left out.
    """
    used: set[str] = set()
    for option in options:
        used.update(find_glyphs(mdp, option.policy))
    legend = explain_glyphs(used, mdp.legend, bends=is_figure)
    if is_figure or mdp.coords is None:
        return legend
    return "; ".join(part for part in (explain_size(mdp.coords), legend) if part)
