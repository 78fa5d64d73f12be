"""The solver of options against what one would write instead, in one run.

Run ``python benchmarks/solver.py`` with OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1. Two rivals solve the same
potentials. *Plain*: one compiled kernel of 25 lines, one potential after the other, with the same blocks and order
of states. *NumPy*: value iteration of all options in one array, as one writes it (`plain.py`) and without temporaries.
A backup is one action of one state of one option.
"""

from __future__ import annotations

import sys

import numpy as np
import plain as programs
import record
from numba import njit

import eigenoptions as eo
from eigenoptions._kernels.planning import LANES, climb, moves
from eigenoptions.mdp import maps
from eigenoptions.options.solver import renumbered

GAMMA, N = 0.9, 64
# Change of a value, relative to max|f|, at which value iteration in NumPy ends.
CLOSE = 1e-10


@njit(cache=True)
def plain(nxt, indptr, indices, block, e, x, gamma):  # type: ignore[no-untyped-def]
    """One potential: blocks of states are relaxed until they rest; the number of state backups."""
    n = len(nxt)
    n_blocks = len(indptr) - 1
    dirty = np.ones(n_blocks, dtype=np.bool_)
    backups, forward, waiting = 0, True, True
    while waiting:
        waiting = False
        for i in range(n_blocks):
            b = i if forward else n_blocks - 1 - i
            low, high = b * block, min(n, (b + 1) * block)
            rose, moved, up = False, dirty[b], forward
            dirty[b] = False
            while moved:
                moved = False
                for r in range(high - low):
                    s = low + r if up else high - 1 - r
                    u = e[s]
                    for k in range(nxt.shape[1]):
                        u = max(u, x[nxt[s, k]])
                    new = (1.0 - gamma) * e[s] + gamma * u
                    if new > x[s]:
                        x[s], moved, rose = new, True, True
                backups += high - low
                up = not up
            if rose:
                for r in range(indptr[b], indptr[b + 1]):
                    dirty[indices[r]] = waiting = True
        forward = not forward
    return backups


def numpy_solve(successors: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Policies and values (n, S) of potentials (n, S) by value iteration of all of them in one array."""
    E = np.ascontiguousarray(F.T)
    columns = [np.ascontiguousarray(column) for column in successors.T]
    base, X, best, there = (1.0 - GAMMA) * E, E.copy(), np.empty_like(E), np.empty_like(E)
    limit = CLOSE * np.abs(E).max()
    while True:
        np.copyto(best, E)
        for column in columns:
            np.take(X, column, axis=0, out=there, mode="clip")
            np.maximum(best, there, out=best)
        best *= GAMMA
        best += base
        np.subtract(best, X, out=there)
        X, best = best, X
        if there.max() <= limit:
            break
    q = np.stack([X[column] for column in columns]) - E
    top = q.max(axis=0)
    tie = 1e-9 * np.abs(E).max(axis=0)
    policy = np.where(top > tie, (q >= top - tie).argmax(axis=0), -1)
    return policy.T.astype(np.int8), np.maximum(top, 0.0).T


def large(name: str, text: str) -> None:
    """Backups per CPU second, eight potentials at a time and one at a time."""
    mdp = eo.maze(text)
    assert mdp.successors is not None
    known = moves(*renumbered(mdp.successors))
    purposes = eo.eigenpurposes(eo.spectrum(eo.graph(mdp), N // 2 + 1))
    F = np.stack([p.direction for p in purposes])[:, known.order]
    groups = [np.ascontiguousarray(F[i : i + LANES].T) for i in range(0, N, LANES)]
    n_actions = mdp.n_actions
    name = f"{name}, {mdp.n_states:,} states"

    def ours() -> tuple[int, np.ndarray]:
        X = [E.copy() for E in groups]
        total = sum(climb(known, E, x, GAMMA) for E, x in zip(groups, X, strict=True))
        return LANES * total, np.concatenate([x.T for x in X])

    def alone() -> tuple[int, np.ndarray]:
        X = F.copy()
        return sum(
            plain(known.next, known.indptr, known.indices, known.block, *ex, GAMMA)
            for ex in zip(F, X, strict=True)
        ), X

    (mine, X), (theirs, Y) = ours(), alone()
    record.agree(f"values of {N} options, {name}, plain kernel", float(np.abs(X - Y).max()), 0.0)
    spent, slow = record.race(ours, alone, 1 if record.QUICK else 4)
    record.row(f"{N} options, {name}", spent, slow, "plain kernel, one potential at a time")
    record.fact(f"backups of ours, {name}", n_actions * mine / spent, "/s")
    record.fact(f"backups of the plain kernel, {name}", n_actions * theirs / slow, "/s")
    whole, _ = record.seconds(lambda: eo.solve(mdp, purposes, GAMMA), 1 if record.QUICK else 3)
    record.fact(f"solve as a whole over its sweeps, {name}", whole / spent, "x")
    if not record.QUICK:
        record.aim(f"backups per CPU second, {name}", n_actions * mine / spent, least=1e9, unit="/s")


def small() -> None:
    """All options of a maze of the paper, where calls from Python count."""
    mdp = eo.maze("four-rooms")
    assert mdp.successors is not None
    purposes = eo.eigenpurposes(eo.spectrum(eo.graph(mdp)), skip_zero=False)
    F = np.stack([p.direction for p in purposes])
    policy, value = numpy_solve(mdp.successors, F)
    options = eo.solve(mdp, purposes, GAMMA)
    what = f"{len(purposes)} options of {mdp.n_states} states"
    record.agree(f"values, {what}, NumPy", float(np.abs(options.value - value).max()), 1e-9)
    record.agree(f"policies, {what}, NumPy", float((options.policy != policy).sum()), 0.0)
    E = np.ascontiguousarray(F.T)
    rounds = 1 if record.QUICK else 20

    def ours() -> eo.OptionSet:
        return eo.solve(mdp, purposes, GAMMA)

    simple = record.race(ours, lambda: programs.numpy_value(mdp.successors, E), rounds, 3)
    record.row(what, *simple, "NumPy, one array")
    tuned = record.race(ours, lambda: numpy_solve(mdp.successors, F), rounds, 3)
    # The aim is against the best rival.
    ratio = record.row(what, *tuned, "NumPy, one array, in place")
    if not record.QUICK:
        record.aim(f"{what} against NumPy in place", ratio, least=3.0)


def main() -> int:
    small()
    large("rooms", maps.rooms_map(*((3, 3) if record.QUICK else (31, 31))))
    large("perfect maze", maps.perfect_map(*((25, 25) if record.QUICK else (224, 224))))
    large("open room", "\n".join(["." * 20] * 20 if record.QUICK else ["." * 316] * 316))
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
