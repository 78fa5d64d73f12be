"""Random walks as matrices: the uniform walk, policies of options, ends of episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import (
    block_diag,
    csc_array,
    csr_array,
    diags_array,
    eye_array,
)
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from eigenoptions.mdp.graphs import reachable
from eigenoptions.mdp.table import MDP

# Pairs of an option chance and a stop chance.
Settings = tuple[tuple[float, float], ...]


Mask = NDArray[np.bool_]


Array = NDArray[np.float64]


def find_ends(mdp: MDP) -> NDArray[np.bool_]:
    """``(S,)`` states in which an episode ends: those that no action leaves."""
    # A table stores no zeros: each entry off the diagonal is a way out, however unlikely.
    table = mdp.transition
    entries_per_state = np.diff(table.indptr[:: mdp.n_actions])
    state = np.repeat(np.arange(mdp.n_states), entries_per_state)
    ends = np.ones(mdp.n_states, dtype=np.bool_)
    ends[state[table.indices != state]] = False
    return ends


def continue_after_end(
    mdp: MDP, *, goal_ends: bool = True, max_restarts: int | None = None
) -> MDP:
    """The same dynamics without ends: states that no action leaves, and the goal, lead to the start.

    Without a start, they lead to any other state, or to at most `max_restarts` of them.
    """
    ends = find_ends(mdp)
    if goal_ends and mdp.goal is not None:
        ends[mdp.goal] = True
    if not ends.any() or ends.all():
        return MDP(mdp.transition)
    restart, states = np.zeros((1, mdp.n_states)), np.array([mdp.start])
    if mdp.start is None or ends[mdp.start]:
        states = np.flatnonzero(~ends)
        states = states[:: -(-len(states) // (max_restarts or len(states)))]
    restart[0, states] = 1.0
    is_end = np.repeat(ends, mdp.n_actions)
    table = diags_array((~is_end).astype(float)) @ mdp.transition
    table = table + csr_array(is_end[:, None].astype(float)) @ csr_array(
        restart / restart.sum()
    )
    return MDP(csr_array(table))


def cumulate_rows(
    indptr: NDArray[Any], data: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Cumulative sums of each csr row."""
    sums = np.concatenate([[0.0], np.cumsum(data)])
    cumulative: NDArray[np.float64] = sums[1:] - np.repeat(
        sums[indptr[:-1]], np.diff(indptr)
    )
    return cumulative


def uniform_walk(mdp: MDP) -> csr_array:
    """``(S, S)`` transition probabilities when every action is equally likely; a blocked move stays."""
    table, n = mdp.transition.tocoo(), mdp.n_states
    return csr_array(
        (table.data / mdp.n_actions, (table.row // mdp.n_actions, table.col)),
        shape=(n, n),
    )


def sample_successor(
    mdp: MDP, state: int, action: int, rng: np.random.Generator
) -> int:
    """Draw the state that follows when an action is taken in a state."""
    table = mdp.transition
    row = state * mdp.n_actions + action
    outcomes = slice(table.indptr[row], table.indptr[row + 1])
    return int(rng.choice(table.indices[outcomes], p=table.data[outcomes]))


def lengths(mdp: MDP, policy: ArrayLike) -> Array:
    """Expected steps until an option terminates, from every state: 0 where it does at once, inf where it never does."""
    row = np.asarray(policy)
    terminates, moves = row < 0, policy_transitions(mdp, row)
    endless = ~reachable(moves, terminates, backward=True)
    finite = np.flatnonzero(~reachable(moves, endless, backward=True))
    result = np.full(mdp.n_states, np.inf)
    if len(finite):
        system = csc_array(eye_array(len(finite)) - moves[finite][:, finite])
        result[finite] = splu(system).solve(np.where(terminates[finite], 0.0, 1.0))
    return result


def follow_options(
    mdp: MDP, policy: NDArray[Any], stop_chance: float
) -> tuple[csr_array, csr_array, Array]:
    """What options ``(n, S)`` do from each state, in deterministic or stochastic dynamics.

    Returns the probability q_o(s, g) that option o, started in s, passes through g and goes on (row o S + g, column
    s), the probability T_o(s, t) that it terminates in t (row o S + s, column t), and its expected steps c_o(s) as
    ``(n, S)``. All follow from its expected visits: the sum of the powers of its transition probabilities.
    """
    (n, S), runs = policy.shape, policy.ravel() >= 0
    # One table for all pairs of an option and a state; without options it is empty.
    moves = csr_array(
        block_diag(
            [csr_array((0, 0)), *(policy_transitions(mdp, row) for row in policy)]
        )
    )
    continues = csr_array(moves @ diags_array(np.where(runs, 1.0 - stop_chance, 0.0)))
    continues.eliminate_zeros()
    visits, power = eye_array(n * S, format="csr"), continues
    for _ in range(S.bit_length() if mdp.successors is not None else 0):
        # (1 + x) (1 + x^2) (1 + x^4) ...: paths that end have no more than S steps.
        visits, power = visits + visits @ power, power @ power
    if power.nnz:
        parts = [slice(o * S, (o + 1) * S) for o in range(n)]
        systems = [csc_array(eye_array(S) - continues[part, part]) for part in parts]
        visits = block_diag(
            [csr_array(splu(system).solve(np.eye(S))) for system in systems],
            format="csr",
        )
    visits = diags_array(runs.astype(float)) @ visits
    steps = visits.sum(axis=1).reshape(n, S)
    ends = csr_array(visits @ moves @ diags_array(np.where(runs, stop_chance, 1.0)))
    passes = visits @ diags_array(1.0 / np.where(runs, visits.diagonal(), 1.0))
    passes = csr_array((passes - diags_array(runs.astype(float))).T)
    passes, ends = (
        csr_array((t.data, t.indices % S, t.indptr), shape=(n * S, S))
        for t in (passes, ends)
    )
    return passes, ends, steps


def policy_transitions(mdp: MDP, policy: NDArray[np.integer[Any]]) -> csr_array:
    """``(S, S)`` transition probabilities under a policy row; empty rows where it terminates."""
    acts = policy >= 0
    moves = csr_array(
        mdp.transition[
            np.arange(mdp.n_states) * mdp.n_actions + np.where(acts, policy, 0)
        ]
    )
    moves.data = moves.data * np.repeat(acts, np.diff(moves.indptr))
    moves.eliminate_zeros()
    return moves


def find_recurrent_states(mdp: MDP) -> Mask:
    """``(S,)`` the largest set of states that a walk visits again and again: all of them are reachable from each."""
    moves = uniform_walk(mdp).tocoo()
    label = connected_components(moves, connection="strong")[1]
    size = np.bincount(label)
    before, after = label[moves.row], label[moves.col]
    size[before[before != after]] = 0
    return np.asarray(label == size.argmax())
