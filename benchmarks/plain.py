"""What one would write instead, with NumPy or SciPy and the paper at hand, against the library.

Run ``python benchmarks/plain.py``. NumPy: dense `eigh`, value iteration with TERMINATE, one option after the other or
all in one array; diffusion time by a linear system a goal. SciPy: `eigsh` on the normalized Laplacian and value
iteration with sparse matrices. First the answers must agree; then both are timed in turns.
"""

from __future__ import annotations

import sys

import numpy as np
import record
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh

import eigenoptions as eo
from eigenoptions.mdp.maps import rooms_map

GAMMA = 0.9
CLOSE = 1e-10  # change of a value at which plain value iteration stops, in units of max|e|


def numpy_laplacian(successors: np.ndarray) -> np.ndarray:
    """Normalized Laplacian of Section 2.3, dense."""
    n = len(successors)
    W = np.zeros((n, n))
    W[np.repeat(np.arange(n), successors.shape[1]), successors.ravel()] = 1.0
    W = np.maximum(W, W.T)
    np.fill_diagonal(W, 0.0)
    root = 1.0 / np.sqrt(W.sum(axis=1))
    return np.eye(n) - root[:, None] * W * root


def numpy_value(successors: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Value and policy of eigenpurposes e, (S,) or (S, n), by value iteration; -1 is TERMINATE."""
    V = np.zeros_like(e)
    limit = CLOSE * np.abs(e).max()
    while True:
        q = e[successors] + GAMMA * V[successors] - e[:, None]  # (S, A, ...)
        new = np.maximum(q.max(axis=1), 0.0)
        if np.abs(new - V).max() <= limit:
            return new, np.where(q.max(axis=1) > 100 * limit, q.argmax(axis=1), -1)
        V = new


def numpy_options(successors: np.ndarray, batched: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvectors, values and policies of all eigenoptions, both signs."""
    vectors = np.linalg.eigh(numpy_laplacian(successors))[1]
    E = np.stack([vectors, -vectors], axis=2).reshape(len(vectors), -1)
    if batched:
        return E, *numpy_value(successors, E)
    solved = [numpy_value(successors, e) for e in E.T]
    return E, np.array([v for v, _ in solved]).T, np.array([p for _, p in solved]).T


def scipy_options(mdp: eo.MDP, n_options: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvectors, values and policies of the first eigenoptions, with sparse matrices."""
    L = eo.laplacian(eo.graph(mdp))
    values, vectors = eigsh(L, k=n_options // 2 + 1, sigma=-1e-3)
    vectors = vectors[:, np.argsort(values)[1:]]
    E = np.stack([vectors, -vectors], axis=2).reshape(len(vectors), -1)
    moves = [csr_array(mdp.transition[a :: mdp.n_actions]) for a in range(mdp.n_actions)]
    V = np.zeros_like(E)
    limit = CLOSE * np.abs(E).max()
    while True:
        x = E + GAMMA * V
        q = np.stack([P @ x for P in moves]) - E
        new = np.maximum(q.max(axis=0), 0.0)
        if np.abs(new - V).max() <= limit:
            return E, new, np.where(q.max(axis=0) > 100 * limit, q.argmax(axis=0), -1)
        V = new


def numpy_diffusion(successors: np.ndarray, policy: np.ndarray) -> float:
    """Diffusion time: for each goal write the equations down and solve them (Appendix B)."""
    n = len(successors)
    total = 0.0
    for goal in range(n):
        M, c = np.eye(n), np.zeros(n)
        for s in range(n):
            if s == goal:
                continue
            ends = [(int(t), 1) for t in successors[s]]
            for row in policy:
                t, steps = s, 0
                while t != goal and row[t] >= 0:
                    t, steps = successors[t, row[t]], steps + 1
                if steps:
                    ends.append((t, steps))
            for t, steps in ends:
                M[s, t] -= 1 / len(ends)
                c[s] += steps / len(ends)
        total += np.linalg.solve(M, c).sum()
    return total / (n * (n - 1))


def same_options(mdp: eo.MDP, E: np.ndarray, V: np.ndarray, policy: np.ndarray, what: str) -> None:
    """For the same eigenvectors: our options are worth the same, and act the same up to ties."""
    mine = eo.solve(mdp, [eo.Purpose(e, str(i)) for i, e in enumerate(np.ascontiguousarray(E.T))], GAMMA)
    scale = np.abs(E).max(axis=0)
    record.agree(f"values of the options, {what}", float((np.abs(mine.value.T - V) / scale).max()), 1e-8)
    # Where they choose otherwise, both choices must be worth the same; nothing is gained by one or the other.
    other = policy != mine.policy.T
    x = E + GAMMA * V

    def worth(chosen: np.ndarray) -> np.ndarray:
        assert mdp.successors is not None
        after = np.take_along_axis(mdp.successors, np.maximum(chosen, 0), axis=1)
        return np.where(chosen < 0, 0.0, np.take_along_axis(x, after, axis=0) - E)

    gap = float((np.abs(worth(mine.policy.T) - worth(policy)) / scale).max())
    record.agree(f"policies of the options, {what}", gap, 1e-8, f"{other.mean():.1%} of choices are ties")


def dense() -> None:
    text = "four-rooms" if not record.QUICK else "S....\n..#..\n....G"
    mdp = eo.maze(text)
    nxt, n = mdp.successors, mdp.n_states
    assert nxt is not None
    E, V, policy = numpy_options(nxt, batched=True)
    loop = numpy_options(nxt, batched=False)
    record.agree("NumPy, all at once and one by one", float(np.abs(V - loop[1]).max()), 1e-8)
    values = np.einsum("ij,ij->j", E, numpy_laplacian(nxt) @ E)[::2]
    record.agree("eigenvalues, NumPy", float(np.abs(values - eo.spectrum(eo.graph(mdp)).values).max()), 1e-12)
    same_options(mdp, E, V, policy, "NumPy")

    def ours() -> eo.OptionSet:
        return eo.discover(mdp, 2 * n, skip_zero=False)

    what = f"all {2 * n} eigenoptions of {n} states"
    rounds = 1 if record.QUICK else 3
    record.row(what, *record.race(ours, lambda: numpy_options(nxt, False), rounds, 5), "NumPy, one by one")
    record.row(what, *record.race(ours, lambda: numpy_options(nxt, True), rounds, 5), "NumPy, one array")


def diffusion() -> None:
    mdp = eo.maze("i-maze" if record.QUICK else "four-rooms")
    options = eo.discover(mdp, 4 if record.QUICK else 64)
    nxt = mdp.successors
    assert nxt is not None
    ours = eo.diffusion_time(mdp, options)
    slow, theirs = record.clock(lambda: numpy_diffusion(nxt, options.policy))
    record.agree("diffusion time, relative", abs(theirs / ours - 1), 1e-8)
    fast, _ = record.seconds(lambda: eo.diffusion_time(mdp, options), 20)
    what = f"diffusion time, {mdp.n_states} states, {len(options)} options"
    record.row(what, fast, slow, "NumPy, one system a goal")


def sparse(rooms: int, n_options: int = 64) -> None:
    mdp = eo.maze(rooms_map(rooms, rooms))
    eo.discover(mdp, n_options)
    E, V, policy = scipy_options(mdp, n_options)
    values = np.einsum("ij,ij->j", E, eo.laplacian(eo.graph(mdp)) @ E)[::2]
    true = eo.spectrum(eo.graph(mdp), n_options // 2 + 1).values[1:]
    record.agree("eigenvalues, SciPy, relative", float((np.abs(values - true) / true).max()), 1e-8)
    same_options(mdp, E, V, policy, "SciPy")
    what = f"{n_options} options of {mdp.n_states:,} states, rooms"
    times = record.race(
        lambda: eo.discover(mdp, n_options),
        lambda: scipy_options(mdp, n_options),
        1 if record.QUICK else 3,
        2,
    )
    record.row(what, *times, "SciPy, eigsh and value iteration")


def main() -> int:
    eo.discover(eo.maze("i-maze"), 4)  # compiled before the clock starts
    eo.diffusion_time(eo.maze("i-maze"), eo.discover(eo.maze("i-maze"), 4))
    dense()
    diffusion()
    for rooms in (2,) if record.QUICK else (2, 3, 10):
        sparse(rooms)
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
