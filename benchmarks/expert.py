"""Eigenoptions and diffusion times as an expert would write them with NumPy and SciPy and the paper at hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import eigsh

Array = NDArray[np.float64]


def discover_options(
    successors: NDArray[np.int32], n_options: int, gamma: float = 0.9
) -> tuple[Array, Array, Array]:
    """Eigenvectors (S, n) in both signs, values (S, n) and policies (S, n) of the first eigenoptions (Section 3)."""
    # The normalized Laplacian of the graph without self-loops.
    n, n_actions = successors.shape
    rows = np.repeat(np.arange(n), n_actions)
    W = csr_array((np.ones(n * n_actions), (rows, successors.ravel())), shape=(n, n))
    W = csr_array(W + W.T)
    W.setdiag(0.0)
    W.eliminate_zeros()
    W.data[:] = 1.0
    scale = diags_array(1.0 / np.sqrt(np.asarray(W.sum(axis=1)).ravel()))
    L = csr_array(diags_array(np.ones(n)) - scale @ W @ scale)
    k = n_options // 2 + 1
    if n <= 500:
        vectors = np.linalg.eigh(L.toarray())[1][:, 1:k]
    else:
        values, vectors = eigsh(L.tocsc(), k=k, sigma=-1e-3)
        vectors = vectors[:, np.argsort(values)[1:]]
    E = np.stack([vectors, -vectors], axis=2).reshape(n, -1)
    # Value iteration for all of them at once; TERMINATE is worth 0.
    V, next_states = np.zeros_like(E), np.ascontiguousarray(successors.T)
    limit = 1e-10 * np.abs(E).max()
    while True:
        X = E + gamma * V
        best = X[next_states[0]]
        for column in next_states[1:]:
            np.maximum(best, X[column], out=best)
        best -= E
        np.maximum(best, 0.0, out=best)
        change = np.abs(best - V).max()
        V = best
        if change <= limit:
            break
    Q = X[next_states] - E
    return E, V, np.where(Q.max(axis=0) > 100 * limit, Q.argmax(axis=0), -1)


def compute_diffusion_time(next_states, option_next):  # type: ignore[no-untyped-def]
    """Diffusion time by one linear system per goal (Appendix B), written for compilation by numba.

    ``option_next (k, S)`` is the next state under each option, -1 where it terminates.
    """
    n, n_actions = next_states.shape
    total = 0.0
    for goal in range(n):
        M, c = np.zeros((n, n)), np.zeros(n)
        for s in range(n):
            if s == goal:
                M[s, s] = 1.0
                continue
            for a in range(n_actions):
                M[s, s] += 1.0
                M[s, next_states[s, a]] -= 1.0
                c[s] += 1.0
            for o in range(len(option_next)):
                if option_next[o, s] < 0:
                    continue
                t = s
                while t != goal and option_next[o, t] >= 0:
                    t = option_next[o, t]
                    c[s] += 1.0
                M[s, s] += 1.0
                M[s, t] -= 1.0
        total += np.linalg.solve(M, c).sum()
    return total / (n * (n - 1))


def learn_q(  # type: ignore[no-untyped-def]
    next_states,
    policy,
    start: int,
    goal: int,
    episodes: int,
    max_steps: int,
    rng: np.random.Generator,
) -> Array:
    """Returns of one run of Q-learning with options (Section 4.3), as a loop of Python over NumPy arrays."""
    n, n_actions = next_states.shape
    q, returns = np.zeros((n, n_actions)), np.zeros(episodes)
    for episode in range(episodes):
        # Behaviour is uniform over actions and available options; values are those of actions.
        state, option = start, -1
        for _ in range(max_steps):
            if option < 0 or policy[option, state] < 0:
                available = np.flatnonzero(policy[:, state] >= 0)
                choice = rng.integers(n_actions + len(available))
                option = -1 if choice < n_actions else available[choice - n_actions]
            action = policy[option, state] if option >= 0 else choice
            after = next_states[state, action]
            reward = float(after == goal)
            target = reward if reward else 0.9 * q[after].max()
            q[state, action] += 0.1 * (target - q[state, action])
            state = after
            if reward:
                break
        # One greedy episode, ties at random.
        state = start
        for _ in range(max_steps):
            best = np.flatnonzero(q[state] == q[state].max())
            action = (
                rng.integers(n_actions)
                if rng.random() < 0.01
                else best[rng.integers(len(best))]
            )
            state = next_states[state, action]
            if state == goal:
                returns[episode] = 1.0
                break
    return returns
