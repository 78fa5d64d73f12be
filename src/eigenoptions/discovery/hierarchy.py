"""Options over options: discover again on the graph that options span (the question that the paper leaves open).

The paper ends with "it is not clear how to use eigenoptions hierarchically". Here a set of options is taken as further
actions: `spanned` is the MDP whose moves are the primitive actions and whole options, so its graph has an edge from
each state where an option may start to where it ends. `second_level` discovers the purposes of that graph and solves
them with primitive actions, so that the result is an ordinary set of options.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array, eye_array, vstack
from scipy.sparse.linalg import splu

from eigenoptions._validation import check_settings, check_type, make_generator
from eigenoptions.discovery.methods import method as declared
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from eigenoptions.options.solver import solve


def spanned(mdp: MDP, options: OptionSet) -> MDP:
    """The MDP whose actions are the primitive ones and, after them, the options, each run to its end.

    An option that may not start in a state leaves it unchanged there. Options discovered on this MDP are options over
    options: their policies choose actions and, by number ``n_actions + i``, options.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> corridor = eo.maze("S....")
    >>> ends = eo.solve(corridor, [eo.Purpose(np.eye(5)[s], goal=s) for s in (0, 4)])
    >>> spanned(corridor, ends).successors[2].tolist()
    [2, 3, 2, 1, 0, 4]
    """
    check_type("mdp", mdp, MDP, "make one with maze or from_env")
    check_type("options", options, OptionSet, "make them with discover")
    options.check(mdp)
    n, A = mdp.n_states, mdp.n_actions
    parts = [mdp.transition, *(_ends(mdp, row) for row in options.policy)]
    # Rows of actions first, then of options; they are put into the order of states.
    order = [s * A + np.arange(A) for s in range(n)]
    jumps = n * A + np.arange(len(options)) * n
    rows = np.concatenate([np.concatenate([mine, jumps + s]) for s, mine in enumerate(order)])
    return replace(mdp, transition=csr_array(vstack(parts))[rows], reward=None)


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
    mdp, options
        The dynamics, and the options of the first level.
    n_options, method, gamma, rng, settings
        As in `discover`, for the options of the second level; the method chooses purposes on the spanned graph.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> second_level(mdp, eo.discover(mdp, 8), 4)
    OptionSet(4 options on 104 states: e2+, e2-, e3+, e3-)
    """
    chosen = declared(method)
    check_settings(f"method {method!r}", settings, chosen.settings)
    if chosen.purposes is None:
        raise ValueError(
            f"method {method!r} has no purposes of its own: choose one that has, such as 'eigen'"
        )
    wide = spanned(mdp, options)
    purposes = chosen.purposes(wide, n_options, make_generator(rng), **settings)
    gamma = chosen.default_gamma(mdp) if gamma is None else gamma
    return solve(mdp, purposes, gamma, provenance={"method": method, "source": "table", "level": 2})


def _ends(mdp: MDP, row: NDArray[np.integer[Any]]) -> csr_array:
    """``(S, S)`` where an option ends that is followed from each state."""
    n, states = mdp.n_states, np.arange(mdp.n_states)
    acting = np.asarray(row) >= 0
    if mdp.successors is not None:
        end = np.where(acting, mdp.successors[states, np.maximum(row, 0)], states)
        # Twice as far in each round; options end, so the longest path has fewer moves than there are states.
        for _ in range(n.bit_length()):
            end = end[end]
        return csr_array((np.ones(n), (states, end)), shape=(n, n))
    moves = csr_array(mdp.transition[states * mdp.n_actions + np.maximum(row, 0)])
    keep = diags_array(acting.astype(np.float64))
    within = csc_array(eye_array(n) - keep @ moves)
    stops = np.flatnonzero(~acting)
    found = splu(within).solve(np.eye(n)[:, stops])
    share = csr_array((found.ravel(), (np.repeat(states, len(stops)), np.tile(stops, n))), shape=(n, n))
    # Probabilities sum to 1 up to rounding, which is removed.
    return csr_array(diags_array(1.0 / np.asarray(share.sum(axis=1)).ravel()) @ share)
