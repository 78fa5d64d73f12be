"""The method as an expert would write it, with NumPy, SciPy and the paper at hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import eigsh

from eigenoptions._types import FloatArray, IndexArray


def discover_options(
    successors: NDArray[np.int32],
    n_options: int,
    gamma: float = 0.9,
) -> tuple[FloatArray, FloatArray, IndexArray]:
    """Compute the first eigenoptions of a deterministic table (Section 3).

    Parameters
    ----------
    successors : ndarray of shape (S, A)
        Next state of each state and action.
    n_options : int
        Number of options, both signs counted.
    gamma : float, default=0.9
        Discount of the options.

    Returns
    -------
    eigenvectors, values, policies : ndarray of shape (S, n)
        One column per option.
    """
    vectors = _compute_eigenvectors(_build_laplacian(successors), n_options // 2 + 1)
    signed = np.stack([vectors, -vectors], axis=2)
    eigenvectors = signed.reshape(len(vectors), -1)

    # Value iteration for all options at once. The reward is the difference of the
    # eigenvector, and TERMINATE is worth 0.
    next_states = np.ascontiguousarray(successors.T)
    tolerance = 1e-10 * np.abs(eigenvectors).max()
    values = np.zeros_like(eigenvectors)
    change = np.inf
    while change > tolerance:
        worth = eigenvectors + gamma * values
        best = worth[next_states[0]]
        for column in next_states[1:]:
            np.maximum(best, worth[column], out=best)
        best -= eigenvectors
        np.maximum(best, 0.0, out=best)
        change = np.abs(best - values).max()
        values = best

    action_values = worth[next_states] - eigenvectors
    is_running = action_values.max(axis=0) > 100 * tolerance
    policies = np.where(is_running, action_values.argmax(axis=0), -1)
    return eigenvectors, values, policies


def _build_laplacian(successors: NDArray[np.int32]) -> csr_array:
    """Build the normalized Laplacian of the graph without self-loops."""
    n_states, n_actions = successors.shape
    rows = np.repeat(np.arange(n_states), n_actions)
    columns = successors.ravel()
    W = csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_states, n_states))
    W = csr_array(W + W.T)
    W.setdiag(0.0)
    W.eliminate_zeros()
    W.data[:] = 1.0

    degrees = np.asarray(W.sum(axis=1)).ravel()
    scale = diags_array(1.0 / np.sqrt(degrees))
    identity = diags_array(np.ones(n_states))
    return csr_array(identity - scale @ W @ scale)


def _compute_eigenvectors(L: csr_array, k: int) -> FloatArray:
    """Compute the first k eigenvectors without the very first, which is constant."""
    if L.shape[0] <= 500:
        _, vectors = np.linalg.eigh(L.toarray())
        return np.asarray(vectors[:, 1:k])
    values, vectors = eigsh(L.tocsc(), k=k, sigma=-1e-3)
    order = np.argsort(values)
    return np.asarray(vectors[:, order[1:]])


def compute_diffusion_time(  # type: ignore[no-untyped-def]
    successors,
    option_successors,
):
    """Compute the diffusion time by one linear system per goal (Appendix B).

    This function is written for numba. ``option_successors (k, S)`` are the next states
    under each option, -1 where it terminates.
    """
    n_states, n_actions = successors.shape
    total = 0.0
    for goal in range(n_states):
        # Row s says that the time from s, times the number of choices there, is the sum
        # of what each choice takes and of the times from where it ends.
        system = np.zeros((n_states, n_states))
        steps = np.zeros(n_states)
        for state in range(n_states):
            if state == goal:
                system[state, state] = 1.0
                continue

            for action in range(n_actions):
                system[state, state] += 1.0
                system[state, successors[state, action]] -= 1.0
                steps[state] += 1.0

            for option in range(len(option_successors)):
                if option_successors[option, state] < 0:
                    continue
                end = state
                while end != goal and option_successors[option, end] >= 0:
                    end = option_successors[option, end]
                    steps[state] += 1.0
                system[state, state] += 1.0
                system[state, end] -= 1.0
        total += np.linalg.solve(system, steps).sum()
    return total / (n_states * (n_states - 1))


def learn_q(  # type: ignore[no-untyped-def]
    successors,
    policies,
    start: int,
    goal: int,
    episodes: int,
    max_steps: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Run Q-learning with options (Section 4.3), as a loop over NumPy arrays.

    Parameters
    ----------
    successors : ndarray of shape (S, A)
        Next state of each state and action.
    policies : ndarray of shape (n, S)
        Action of each option, -1 where it terminates.
    start, goal : int
        The task.
    episodes, max_steps : int
        Number of episodes, and steps after which one ends.
    rng : Generator
        Draws all random numbers.

    Returns
    -------
    ndarray of shape (episodes,)
        Return of the greedy episode after each learning episode.
    """
    q = np.zeros(successors.shape)
    returns = np.zeros(episodes)
    for episode in range(episodes):
        _learn_episode(q, successors, policies, start, goal, max_steps, rng)
        if _reaches_goal(q, successors, start, goal, max_steps, rng):
            returns[episode] = 1.0
    return returns


def _learn_episode(  # type: ignore[no-untyped-def]
    q,
    successors,
    policies,
    start: int,
    goal: int,
    max_steps: int,
    rng: np.random.Generator,
) -> None:
    """Learn values of actions, with a behaviour that also chooses options."""
    n_actions = successors.shape[1]
    state = start
    option = -1
    for _ in range(max_steps):
        if option < 0 or policies[option, state] < 0:
            # Uniform over the actions and the options that are available.
            available = np.flatnonzero(policies[:, state] >= 0)
            choice = rng.integers(n_actions + len(available))
            option = -1
            if choice >= n_actions:
                option = available[choice - n_actions]
        action = choice
        if option >= 0:
            action = policies[option, state]

        next_state = successors[state, action]
        is_goal = next_state == goal
        target = 1.0
        if not is_goal:
            target = 0.9 * q[next_state].max()
        q[state, action] += 0.1 * (target - q[state, action])
        state = next_state
        if is_goal:
            return


def _reaches_goal(  # type: ignore[no-untyped-def]
    q,
    successors,
    start: int,
    goal: int,
    max_steps: int,
    rng: np.random.Generator,
) -> bool:
    """Whether a greedy episode reaches the goal; ties are broken at random."""
    n_actions = successors.shape[1]
    state = start
    for _ in range(max_steps):
        best = np.flatnonzero(q[state] == q[state].max())
        if rng.random() < 0.01:
            action = rng.integers(n_actions)
        else:
            action = best[rng.integers(len(best))]
        state = successors[state, action]
        if state == goal:
            return True
    return False
