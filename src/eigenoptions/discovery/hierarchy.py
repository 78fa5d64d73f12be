"""Options over options: discover again on the graph that options span (the question that the paper leaves open).

The paper ends with "it is not clear how to use eigenoptions hierarchically". Here a set of options is taken as further
actions: `mdp_with_options` is the MDP whose moves are the primitive actions and whole options, so its graph has an edge
from each state where an option may start to where it ends. `second_level` discovers the purposes of that graph and
solves them with primitive actions, so that the result is an ordinary set of options.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from eigenoptions._validation import check_type
from eigenoptions.discovery import discover
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from eigenoptions.options.solver import follow_options, solve


def mdp_with_options(mdp: MDP, options: OptionSet) -> MDP:
    """The MDP whose actions are the primitive ones and, after them, the options, each run to its end.

    An option that may not start in a state leaves it unchanged there. Options discovered on this MDP are options over
    options: their policies choose actions and, by number ``n_actions + i``, options.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> corridor = eo.maze("S....")
    >>> ends = eo.solve(corridor, [eo.Purpose(np.eye(5)[s], goal=s) for s in (0, 4)])
    >>> mdp_with_options(corridor, ends).successors[2].tolist()
    [2, 3, 2, 1, 0, 4]
    """
    check_type("mdp", mdp, MDP, "make one with maze or from_env")
    check_type("options", options, OptionSet, "make them with discover")
    options.check(mdp)
    n, A = mdp.n_states, mdp.n_actions
    _, ends, _ = follow_options(mdp, options.policy, stop_chance=0.0)
    stays = np.flatnonzero(options.policy.ravel() < 0)
    ends = ends + csr_array((np.ones(len(stays)), (stays, stays % n)), shape=ends.shape)
    moves = csr_array(vstack([mdp.transition, ends]))
    # Rows of actions come first, then those of each option; they are put into the order of states.
    action_rows = np.arange(n * A).reshape(n, A)
    option_rows = n * A + np.arange(len(options)) * n + np.arange(n)[:, None]
    return replace(mdp, transition=moves[np.hstack([action_rows, option_rows]).ravel()], reward=None)


def second_level(
    mdp: MDP,
    options: OptionSet,
    n_options: int | None = None,
    method: str = "eigen",
    *,
    gamma: float | None = None,
    rng: int | np.random.Generator = 0,
    **settings: Any,
) -> OptionSet:
    """Options whose purposes are those of the graph that other options span.

    Parameters
    ----------
    mdp : MDP
        The dynamics.
    options : OptionSet
        Options of the first level.
    n_options, method, gamma, rng, settings
        As in `discover`, for the options of the second level; the method chooses purposes on the spanned graph.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> second_level(mdp, eo.discover(mdp, 8), 4)
    OptionSet(4 options on 104 states: e2+, e2-, e3+, e3-)
    """
    spanned = discover(mdp_with_options(mdp, options), n_options, method, gamma=gamma, rng=rng, **settings)
    provenance = {"method": method, "source": "table", "level": 2}
    return solve(mdp, spanned.purposes, spanned.provenance["gamma"], provenance=provenance)
