"""Options over options: discover again on the graph that options span.

The paper ends with "it is not clear how to use eigenoptions hierarchically". Here a set
of options is taken as further actions: the graph of `mdp_with_options` has an edge from
each state where an option may start to where it ends.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array, vstack

from eigenoptions._validation import check_type
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import follow_options
from eigenoptions.options import OptionSet
from eigenoptions.options.walks import stack_policies


def mdp_with_options(mdp: MDP, options: OptionSet) -> MDP:
    """The MDP whose actions are the primitive ones and, after them, the options.

    Each option is run to its end. One that may not start in a state leaves it unchanged
    there. Policies of options discovered on this MDP choose actions and, by number
    ``n_actions + i``, options. To follow their purposes by primitive actions instead,
    solve them on the MDP itself.

    Parameters
    ----------
    mdp : MDP
        The dynamics.
    options : OptionSet
        Options of this MDP.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> corridor = eo.maze("S....")
    >>> ends = eo.solve(corridor, [eo.Purpose(np.eye(5)[s], goal=s) for s in (0, 4)])
    >>> wide = mdp_with_options(corridor, ends)
    >>> wide.successors[2].tolist()
    [2, 3, 2, 1, 0, 4]
    >>> eo.solve(corridor, eo.discover(wide, 2).purposes)
    OptionSet(2 options on 5 states: e2+, e2-)
    """
    check_type("mdp", mdp, MDP, "make one with maze or from_env")
    policies = stack_policies(mdp, options)
    n_options, n_states = policies.shape
    n_actions = mdp.n_actions

    # Where each option ends from each state; where it may not start, it stays.
    _, ends, _ = follow_options(mdp, policies, stop_chance=0.0)
    stays = np.flatnonzero(policies.ravel() < 0)
    ends = ends + csr_array(
        (np.ones(len(stays)), (stays, stays % n_states)), shape=ends.shape
    )

    # Rows of actions come first, then those of each option. Sort them by state.
    moves = csr_array(vstack([mdp.transition, ends]))
    states = np.arange(n_states)
    action_rows = np.arange(n_states * n_actions).reshape(n_states, n_actions)
    first_rows = n_states * n_actions + np.arange(n_options) * n_states
    option_rows = first_rows + states[:, None]
    rows = np.hstack([action_rows, option_rows]).ravel()
    return replace(mdp, transition=moves[rows], reward=None)
