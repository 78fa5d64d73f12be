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
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array, eye_array, vstack
from scipy.sparse.linalg import splu

from eigenoptions._validation import check_type
from eigenoptions.discovery import discover
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from eigenoptions.options.solver import solve


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
    moves = csr_array(vstack([mdp.transition, *(_option_ends(mdp, policy) for policy in options.policy)]))
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
    found = discover(mdp_with_options(mdp, options), n_options, method, gamma=gamma, rng=rng, **settings)
    provenance = {"method": method, "source": "table", "level": 2}
    return solve(mdp, found.purposes, found.provenance["gamma"], provenance=provenance)


def _option_ends(mdp: MDP, policy: NDArray[np.integer[Any]]) -> csr_array:
    """``(S, S)`` where an option ends that is followed from each state."""
    n, states = mdp.n_states, np.arange(mdp.n_states)
    runs = policy >= 0
    actions = np.maximum(policy, 0)
    if mdp.successors is not None:
        end = np.where(runs, mdp.successors[states, actions], states)
        # Twice as far in each round; options end, so the longest path has fewer moves than there are states.
        for _ in range(n.bit_length()):
            end = end[end]
        return csr_array((np.ones(n), (states, end)), shape=(n, n))
    moves = diags_array(runs.astype(np.float64)) @ mdp.transition[states * mdp.n_actions + actions]
    ends = np.flatnonzero(~runs)
    absorbed = splu(csc_array(eye_array(n) - moves)).solve(np.eye(n)[:, ends])
    distribution = csr_array(
        (absorbed.ravel(), (np.repeat(states, len(ends)), np.tile(ends, n))), shape=(n, n)
    )
    # Probabilities sum to 1 up to rounding, which is removed.
    return csr_array(diags_array(1.0 / distribution.sum(axis=1)) @ distribution)
