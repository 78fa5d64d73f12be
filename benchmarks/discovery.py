"""Spectrum and options on large mazes: ratios against what one would write instead, in one run.

Run ``python benchmarks/discovery.py`` with OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1, as `make bench` does.
SciPy's `eigsh` is called as its documentation shows, and once more with what an expert would set: a symmetric minimum
degree order and a smaller shift. Options are compared with one compiled pass of label setting (Dijkstra) each.
"""

from __future__ import annotations

import heapq
import subprocess
import sys

import numpy as np
import record
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import LinearOperator, eigsh, splu

import eigenoptions as eo
from eigenoptions.mdp import maps

GAMMA, N, K = 0.9, *((16, 8) if record.QUICK else (64, 32))
SHIFT = -1e-6


@record.compiled
def dijkstra(nxt, pred_ptr, pred, e, gamma):  # type: ignore[no-untyped-def]
    """Label setting for one potential: the exact u from the top down, with a heap."""
    n = len(e)
    u = e.copy()
    done = np.zeros(n, dtype=np.bool_)
    heap = [(0.0, 0)]
    heap.pop()
    for s in range(n):  # only where the potential has a peak can a climb end
        top = True
        for a in range(nxt.shape[1]):
            top &= e[nxt[s, a]] <= e[s]
        if top:
            heapq.heappush(heap, (-u[s], s))
    while heap:
        key, s = heapq.heappop(heap)
        if done[s] or -key < u[s]:
            continue
        done[s] = True
        x = (1.0 - gamma) * e[s] + gamma * u[s]
        for p in range(pred_ptr[s], pred_ptr[s + 1]):
            t = np.int64(pred[p])
            if not done[t] and x > u[t]:
                u[t] = x
                heapq.heappush(heap, (-x, t))
    return u


def expert(L: csr_array) -> tuple[np.ndarray, np.ndarray]:
    """SciPy's eigensolver with a factor made for symmetric matrices."""
    A = csc_array(L - SHIFT * eye_array(L.shape[0]))
    factor = splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    inverse = LinearOperator(L.shape, matvec=factor.solve, dtype=float)
    return eigsh(L, k=K, sigma=SHIFT, OPinv=inverse)


def compare(name: str, text: str) -> None:
    mdp = eo.maze(text)
    W = eo.graph(mdp)
    L = eo.laplacian(W)
    name = f"{name}, {mdp.n_states:,} states"
    rounds = 1 if record.QUICK else 2
    before, sp = record.clock(lambda: eo.spectrum(W, K))
    theirs, (default, _) = record.clock(lambda: eigsh(L, k=K, sigma=-1e-3))
    again, tuned = record.race(lambda: eo.spectrum(W, K), lambda: expert(L), rounds)
    mine = min(before, again)
    # The smallest eigenvalue of a perfect maze is 1e-7, and SciPy's error is absolute: compared in units of the norm.
    record.agree(f"eigenvalues, {name}, eigsh", float(np.abs(np.sort(default) - sp.values).max()), 1e-12)
    record.agree(f"eigenvalues, {name}, tuned", float(np.abs(np.sort(expert(L)[0]) - sp.values).max()), 1e-12)
    residual = float(np.abs(L @ sp.vectors - sp.vectors * sp.values).max())
    record.fact(f"largest residual, {name}", residual, "")
    what = f"spectrum k={K}, {name}"
    record.row(what, mine, theirs, "SciPy eigsh(sigma=-1e-3)")
    record.row(what, mine, tuned, "SciPy eigsh, symmetric factor", note="without proof that none is missed")

    purposes = eo.eigenpurposes(eo.spectrum(W, N // 2 + 1))
    W.sort_indices()
    nxt = mdp.successors
    assert nxt is not None

    def each() -> list[np.ndarray]:
        return [dijkstra(nxt, W.indptr, W.indices, p.direction, GAMMA) for p in purposes]

    exact, options = each(), eo.solve(mdp, purposes, GAMMA)
    gaps = [
        float(np.abs(np.maximum(u - p.direction, 0) - options.value[i]).max() / np.abs(p.direction).max())
        for i, (u, p) in enumerate(zip(exact, purposes, strict=True))
    ]
    record.agree(f"values of {N} options, {name}, Dijkstra", max(gaps), 1e-13)
    solving, labels = record.race(lambda: eo.solve(mdp, purposes, GAMMA), each, rounds)
    record.row(f"{N} options, {name}", solving, labels, "compiled Dijkstra, one an option")
    both, alone = record.race(lambda: eo.discover(mdp, N), lambda: eo.spectrum(W, N // 2 + 1), rounds)
    record.fact(f"graph, spectrum and options over the spectrum alone, {name}", both / alone, "x")


def small() -> None:
    """What a user waits for before anything is computed."""
    starts = {
        "a fresh process, 8 options of four rooms": [
            "-c",
            "import eigenoptions as eo; eo.discover(eo.maze('four-rooms'), 8)",
        ],
        "eigenoptions --help": ["-m", "eigenoptions.cli", "--help"],
    }
    for what, command in starts.items():
        run = [sys.executable, *command]
        spent, _ = record.clock(
            lambda run=run: subprocess.run(run, check=True, stdout=subprocess.DEVNULL), True
        )
        record.fact(what, spent, "s", "wall, compiled code from the cache")


def main() -> int:
    eo.discover(eo.maze(maps.rooms_map(3, 3)), 4)  # compiled before the clock starts
    eo.discover(eo.maze(maps.perfect_map(20, 20)), 4)
    small()
    compare("rooms", maps.rooms_map(*((3, 3) if record.QUICK else (31, 31))))
    compare("perfect maze", maps.perfect_map(*((25, 25) if record.QUICK else (224, 224))))
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
