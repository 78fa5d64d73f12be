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
    find_moves,
    find_turns,
    printable,
    set_side_by_side,
)
from eigenoptions._types import IntegerArray
from eigenoptions.mdp import MDP


class DrawnOption(Protocol):
    """What a map needs to know of an option of a table."""

    @property
    def label(self) -> str:
        """Its name."""

    @property
    def policy(self) -> IntegerArray:
        """The action of each state, negative where it terminates."""


def print_options(title: str, mdp: MDP, options: Sequence[DrawnOption]) -> str:
    """Draw options as maps of characters, of at most 40 lines.

    Parameters
    ----------
    title : str
        What they are: the last line.
    mdp, options
        Their table, and the options, of which as many are drawn as there is room for.
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
    legend = explain_maps(mdp, options[:n_shown])
    hidden = count_hidden(len(options), n_shown, "option", f"options[{n_shown}:]")
    below = [hidden, printable(legend), title]
    return "\n\n".join([text, "\n".join(line for line in below if line)])


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


def explain_maps(
    mdp: MDP, options: Sequence[DrawnOption], *, bends: bool = False
) -> str:
    """Explain what arrows do not say by themselves; see `explain_glyphs`."""
    used: set[str] = set()
    for option in options:
        moves, turns = find_arrows(mdp, option.policy)
        used.update(draw_arrows(option.policy, moves, turns))
    return explain_glyphs(used, mdp.legend, bends=bends)
