"""The slow twin of `GrowingTable`: the option to the unknown as `solve` derives it."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from eigenoptions._types import FloatArray
from eigenoptions.explore.unknown import GrowingTable
from eigenoptions.mdp import MDP
from eigenoptions.options import Purpose


def make_unknown_mdp(table: GrowingTable) -> tuple[MDP, Purpose]:
    """Return the option to the unknown as `solve` takes it: an MDP and a purpose.

    Each action a has an additional state ``S + a``, which every untried a leads to. Its
    potential is the promise of a, and that of known states is 0. An end leads to the
    start, or to each start as often as an episode began there. What was tried once
    promises nothing any more, also where outcomes are random.

    Returns
    -------
    mdp : MDP
        All ``S + A`` states.
    purpose : Purpose
        The potential of these states.
    """
    n_states = table.n_states
    n_actions = table.n_actions
    n_all_states = n_states + n_actions

    # Every action of an additional state stays there.
    known_rows = _count_moves(table)
    unknown_rows = np.repeat(np.eye(n_all_states)[n_states:], n_actions, axis=0)
    counts = np.concatenate([known_rows, unknown_rows])
    probabilities = counts / counts.sum(axis=1, keepdims=True)

    potential = np.concatenate([np.zeros(n_states), table.promises])
    purpose = Purpose(potential, "unknown", exact=True)
    return MDP(csr_array(probabilities)), purpose


def _count_moves(table: GrowingTable) -> FloatArray:
    """Return ``(S * A, S + A)`` how often each action of a known state led where.

    The states are those of `make_unknown_mdp`.
    """
    n_states = table.n_states
    n_actions = table.n_actions
    shape = (n_states * n_actions, n_states + n_actions)
    row, next_state, ended, times = table.outcomes

    # From a known state to another one.
    goes_on = csr_array((times[~ended], (row[~ended], next_state[~ended])), shape=shape)

    # Where episodes ended, these are shared among the starts.
    n_ended = np.bincount(row[ended], times[ended], minlength=shape[0])
    n_episodes = sum(table.starts.values())
    start_shares = np.zeros((1, shape[1]))
    for start, n_begun in table.starts.items():
        start_shares[0, start] = n_begun / n_episodes
    begins_again = csr_array(n_ended[:, None]) @ csr_array(start_shares)

    # An action that was never tried leads to its additional state, as if once.
    n_outcomes = np.bincount(row, minlength=shape[0])
    untried = np.flatnonzero(n_outcomes == 0)
    unknown = n_states + untried % n_actions
    enters_unknown = csr_array((np.ones(len(untried)), (untried, unknown)), shape=shape)

    counts: FloatArray = (goes_on + begins_again + enters_unknown).toarray()
    return counts
