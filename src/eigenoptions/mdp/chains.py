"""Markov chains of a table: what a random walk or an option does, as matrices.

Here are the ends of episodes, the walk that takes every action equally often, the
transition probabilities of a policy, and where options lead and how long they take.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import block_diag, csc_array, csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from eigenoptions._types import BoolArray, FloatArray, IntegerArray
from eigenoptions._validation import check_memory
from eigenoptions.mdp.graphs import reachable
from eigenoptions.mdp.table import MDP


def find_ends(mdp: MDP) -> BoolArray:
    """Return a mask ``(S,)`` of the states in which an episode ends.

    These are the states that no action leaves.
    """
    # A table stores no zeros: each entry off the diagonal is a way out, however
    # unlikely.
    table = mdp.transition
    entries_per_state = np.diff(table.indptr[:: mdp.n_actions])
    state = np.repeat(np.arange(mdp.n_states), entries_per_state)
    leaves = table.indices != state

    ends = np.ones(mdp.n_states, dtype=np.bool_)
    ends[state[leaves]] = False
    return ends


def stay_at_end(mdp: MDP) -> MDP:
    """Return the dynamics without additional states: what leads there stays put.

    An end that is entered from everywhere is then no neighbour of any state.

    Examples
    --------
    >>> steps = [[1, 2], [0, 1], [2, 2]]
    >>> stay_at_end(MDP.from_successors(steps, n_additional=1)).successors.tolist()
    [[1, 0], [0, 1]]
    """
    if not mdp.n_additional:
        return mdp
    n_states = mdp.n_listed
    table = mdp.transition[: n_states * mdp.n_actions].tocoo()
    states = table.row // mdp.n_actions
    columns = np.where(table.col < n_states, table.col, states)
    stays = csr_array(
        (table.data, (table.row, columns)), shape=(table.shape[0], n_states)
    )
    reward = mdp.reward
    if reward is not None:
        reward = reward[: len(reward) // mdp.n_states * n_states]
    return MDP(stays, start=mdp.start, goal=mdp.goal, reward=reward, name=mdp.name)


def continue_after_end(
    mdp: MDP, *, goal_ends: bool = True, max_restarts: int | None = None
) -> MDP:
    """Return the same dynamics without ends: where an episode ends, a new one begins.

    Parameters
    ----------
    mdp : MDP
        The dynamics. An episode begins at its start, or in any state that is no end.
    goal_ends : bool, default=True
        Whether an episode ends at the goal, too.
    max_restarts : int, default=None
        Without a start, the largest number of states in which an episode may begin.
        None: all that are no ends.
    """
    ends = find_ends(mdp)
    if goal_ends and mdp.goal is not None:
        ends[mdp.goal] = True
    if not ends.any() or ends.all():
        return MDP(mdp.transition)

    if mdp.start is not None and not ends[mdp.start]:
        starts = np.array([mdp.start])
    else:
        starts = np.flatnonzero(~ends)
        if max_restarts is not None:
            starts = starts[:: ceil(len(starts) / max_restarts)]

    first_state = np.zeros((1, mdp.n_states))
    first_state[0, starts] = 1.0 / len(starts)

    is_end = np.repeat(ends, mdp.n_actions)
    moves = diags_array((~is_end).astype(float)) @ mdp.transition
    restarts = csr_array(is_end[:, None].astype(float)) @ csr_array(first_state)
    return MDP(csr_array(moves + restarts))


def cumulate_rows(indptr: IntegerArray, data: FloatArray) -> FloatArray:
    """Return the cumulative sums of the entries of each csr row."""
    sums = np.concatenate([[0.0], np.cumsum(data)])
    sums_before_row = np.repeat(sums[indptr[:-1]], np.diff(indptr))
    cumulative: FloatArray = sums[1:] - sums_before_row
    return cumulative


def uniform_walk(mdp: MDP) -> csr_array:
    """Return the transition probabilities ``(S, S)`` if all actions are equally likely.

    A move that is blocked stays where it is.
    """
    table = mdp.transition.tocoo()
    probabilities = table.data / mdp.n_actions
    states = table.row // mdp.n_actions
    # Entries of the same two states are added.
    return csr_array(
        (probabilities, (states, table.col)), shape=(mdp.n_states, mdp.n_states)
    )


def sample_successor(
    mdp: MDP, state: int, action: int, rng: np.random.Generator
) -> int:
    """Draw the state that follows when an action is taken in a state."""
    table = mdp.transition
    row = state * mdp.n_actions + action
    outcomes = slice(table.indptr[row], table.indptr[row + 1])
    return int(rng.choice(table.indices[outcomes], p=table.data[outcomes]))


def compute_policy_transitions(mdp: MDP, policy: IntegerArray) -> csr_array:
    """Return the transition probabilities ``(S, S)`` of a policy ``(S,)``.

    Rows are empty where the policy is negative, that is, where an option terminates.
    """
    is_running = policy >= 0
    actions = np.where(is_running, policy, 0)
    rows = np.arange(mdp.n_states) * mdp.n_actions + actions

    moves = csr_array(mdp.transition[rows])
    moves.data = moves.data * np.repeat(is_running, np.diff(moves.indptr))
    moves.eliminate_zeros()
    return moves


def compute_lengths(mdp: MDP, policy: ArrayLike) -> FloatArray:
    """Return the expected steps until an option terminates, from each state ``(S,)``.

    It is 0 where the option terminates at once, and inf where it may run forever.
    """
    policy = np.asarray(policy)
    terminates = policy < 0
    moves = compute_policy_transitions(mdp, policy)

    # The expectation is infinite where the option may come to a state from which it
    # cannot reach its end.
    is_trapped = ~reachable(moves, terminates, backward=True)
    is_finite = ~reachable(moves, is_trapped, backward=True)
    lengths = np.full(mdp.n_states, np.inf)
    if not is_finite.any():
        return lengths

    # Elsewhere, a length is one step and the mean length of what follows it.
    finite = np.flatnonzero(is_finite)
    system = csc_array(eye_array(len(finite)) - moves[finite][:, finite])
    steps = np.where(terminates[finite], 0.0, 1.0)
    lengths[finite] = splu(system).solve(steps)
    return lengths


def follow_options(
    mdp: MDP, policies: IntegerArray, stop_chance: float
) -> tuple[csr_array, csr_array, FloatArray]:
    """Compute where options pass, where they terminate, and how long they take.

    Everything follows from the expected visits of an option: the sum of all powers of
    the transition probabilities with which it continues.

    Parameters
    ----------
    mdp : MDP
        Deterministic or stochastic dynamics.
    policies : array of shape (n, S)
        Action of each option in each state, negative where it terminates.
    stop_chance : float
        Probability that an option also terminates after each of its steps.

    Returns
    -------
    passes : csr_array of shape (n * S, S)
        Row ``o * S + g``, column s: the probability that option o, started in s, passes
        through g and goes on.
    ends : csr_array of shape (n * S, S)
        Row ``o * S + s``, column t: the probability that option o, started in s,
        terminates in t.
    steps : array of shape (n, S)
        Expected number of steps of each option from each state.
    """
    n_options, n_states = policies.shape
    is_running = policies.ravel() >= 0
    identity = eye_array(n_options * n_states, format="csr")

    # One chain for all pairs of an option and a state. The empty block is for the case
    # that there are no options.
    blocks = [compute_policy_transitions(mdp, policy) for policy in policies]
    moves = csr_array(block_diag([csr_array((0, 0)), *blocks]))
    continue_chance = np.where(is_running, 1.0 - stop_chance, 0.0)
    continues = csr_array(moves @ diags_array(continue_chance))
    continues.eliminate_zeros()

    # A path of a deterministic option that ends has fewer steps than there are states,
    # so a product of doublings sums all of it.
    visits = identity
    remainder = continues
    if mdp.successors is not None:
        visits, remainder = _sum_powers(continues, n_states)
    # What is left circles, or is stochastic: solve each option's own system.
    if remainder.nnz:
        visits = _invert_blocks(identity - continues, n_options)

    # Where an option terminates, it cannot start.
    starts = diags_array(is_running.astype(float))
    visits = starts @ visits
    steps = visits.sum(axis=1).reshape(n_options, n_states)

    stop_chances = np.where(is_running, stop_chance, 1.0)
    ends = csr_array(visits @ moves @ diags_array(stop_chances))

    # Visits to g are the probability of reaching g, times the visits from g to itself.
    # The start itself is no passage.
    own_visits = np.where(is_running, visits.diagonal(), 1.0)
    passes = csr_array((visits @ diags_array(1.0 / own_visits) - starts).T)

    return _fold_columns(passes, n_states), _fold_columns(ends, n_states), steps


def _sum_powers(matrix: csr_array, n_powers: int) -> tuple[csr_array, csr_array]:
    """Return ``I + X + X^2 + ...``, at least to power `n_powers`, and the next power.

    The product ``(I + X) (I + X^2) (I + X^4) ...`` has twice as many powers with each
    factor. The next power is zero if the sum is that of all powers.
    """
    # Rows of X have one entry at most, and so have those of its powers. How many
    # entries the sum has is known before it is computed.
    factors = []
    power = matrix
    n_entries = np.ones(matrix.shape[0])
    for _ in range(n_powers.bit_length()):
        factors.append(power)
        n_entries += (power != 0) @ n_entries
        power = power @ power
    _check_visits(np.minimum(n_entries, n_powers).sum())

    total = eye_array(matrix.shape[0], format="csr")
    for factor in factors:
        total = total + total @ factor
    return total, power


def _invert_blocks(matrix: csr_array, n_blocks: int) -> csr_array:
    """Return the inverse of a matrix with square blocks of one size on its diagonal."""
    size = matrix.shape[0] // n_blocks
    inverses: list[csr_array] = []
    for i in range(n_blocks):
        n_entries = sum(inverse.nnz for inverse in inverses) + size**2
        _check_visits(n_entries)
        block = slice(i * size, (i + 1) * size)
        inverse = splu(csc_array(matrix[block, block])).solve(np.eye(size))
        inverses.append(csr_array(inverse))
    return block_diag(inverses, format="csr")


def _check_visits(n_entries: float) -> None:
    """Raise ValueError if expected visits of options do not fit into memory."""
    # An index and a number, and a copy of both.
    check_memory(
        "where options pass",
        24 * n_entries,
        "take fewer or shorter options, or diffusion_estimate, which samples",
    )


def _fold_columns(matrix: csr_array, n_columns: int) -> csr_array:
    """Return a matrix of blocks on a diagonal with the blocks below each other."""
    return csr_array(
        (matrix.data, matrix.indices % n_columns, matrix.indptr),
        shape=(matrix.shape[0], n_columns),
    )


def find_recurrent_states(mdp: MDP) -> BoolArray:
    """Return a mask ``(S,)`` of the states that a random walk visits again and again.

    Each of them is reachable from all others, and the walk cannot leave them. If there
    are several such sets, take the largest.
    """
    moves = uniform_walk(mdp).tocoo()
    component = connected_components(moves, connection="strong")[1]

    # A component that the walk can leave does not count.
    sizes = np.bincount(component)
    before = component[moves.row]
    after = component[moves.col]
    sizes[before[before != after]] = 0
    return np.asarray(component == sizes.argmax())
