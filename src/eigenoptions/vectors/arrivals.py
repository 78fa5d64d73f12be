"""Steps that end an episode at a goal, in a state where other episodes go on.

In the table they lead to the additional state, so that no way passes through them. But
who wants to go to that very state has arrived.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from eigenoptions.mdp import MDP
from eigenoptions.samples import Transitions


def count_endings(batch: Transitions, mdp: MDP) -> csr_array | None:
    """Return the share ``(S * A, S)`` of the tries of each row that ended in a state.

    Only endings that lead to the additional state count; None if there are none.

    Parameters
    ----------
    batch : Transitions
        Steps between numbered states.
    mdp : MDP
        Their table.
    """
    if not mdp.n_additional:
        return None
    row = batch.obs * mdp.n_actions + batch.action
    n_rows = mdp.n_states * mdp.n_actions
    n_tries = np.bincount(row, minlength=n_rows)
    is_end = np.array(batch.terminated, dtype=np.bool_)
    # A state in which episodes only end is absorbing: whoever ends there is there.
    goes_on = np.zeros(mdp.n_states, dtype=np.bool_)
    goes_on[batch.obs] = True
    goes_on[batch.next_obs[~is_end]] = True
    is_end &= goes_on[batch.next_obs]
    last = batch.next_obs[is_end]
    share = 1.0 / n_tries[row[is_end]]
    shape = (n_rows, mdp.n_states)
    return csr_array((share, (row[is_end], last)), shape=shape)


def let_arrive(mdp: MDP, endings: csr_array, goal: int) -> MDP:
    """Return the table in which steps that ended at a goal lead there.

    It is the table itself where there are none.

    Parameters
    ----------
    mdp : MDP
        A table with an additional state.
    endings : csr_array
        What `count_endings` returned.
    goal : int
        The state.

    Examples
    --------
    >>> log = {"obs": [0, 1], "action": [0, 0], "next_obs": [1, 0]}
    >>> batch = Transitions.of({**log, "terminated": [True, False]})
    >>> mdp = MDP.from_transitions(batch)
    >>> mdp.successors.tolist()
    [[2], [0], [2]]
    >>> let_arrive(mdp, count_endings(batch, mdp), 1).successors.tolist()
    [[1], [0], [2]]
    """
    arrivals = endings[:, [goal]].tocoo()
    if not arrivals.nnz:
        return mdp
    end = mdp.n_states - 1
    table = mdp.transition.tolil()
    shares = zip(arrivals.row.tolist(), arrivals.data.tolist(), strict=True)
    for row, share in shares:
        table[row, goal] += share
        # Rounding leaves no tiny rest.
        rest = table[row, end] - share
        table[row, end] = rest if rest > 1e-12 else 0.0
    return replace(mdp, transition=csr_array(table))
