"""Spectrum and options on large mazes: ratios against what one would write instead, in one run.

Run with OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1, as `make bench` does; ``--million`` adds the largest sizes.
Times are CPU seconds of one process.
"""

from __future__ import annotations

import heapq
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from scipy.sparse.linalg import eigsh

import eigenoptions as eo
from eigenoptions import maps
from eigenoptions._kernels import planning as kernel

GAMMA, N, K = 0.9, 64, 32


def seconds(work: Callable[[], Any], repeat: int = 1) -> tuple[float, Any]:
    """Least CPU time of `repeat` calls, and the last result."""
    best = np.inf
    for _ in range(repeat):
        begin = time.process_time()
        result = work()
        best = min(best, time.process_time() - begin)
    return best, result


@njit(cache=True)
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


def compare(name: str, text: str) -> None:
    mdp = eo.maze(text)
    W = eo.graph(mdp)
    L = eo.laplacian(W)
    ours, sp = seconds(lambda: eo.spectrum(W, K), 2)
    scipy, _ = seconds(lambda: eigsh(L, k=K, sigma=-1e-3))
    purposes = eo.eigenpurposes(eo.spectrum(W, N // 2 + 1))
    solving, options = seconds(lambda: eo.solve(mdp, purposes, GAMMA), 2)
    W.sort_indices()
    successors = mdp.successors
    assert successors is not None
    first = purposes[0].direction
    dijkstra(successors, W.indptr, W.indices, first, GAMMA)
    each, exact = seconds(
        lambda: [dijkstra(successors, W.indptr, W.indices, p.direction, GAMMA) for p in purposes]
    )
    gap = max(
        float(np.abs(np.maximum(u - p.direction, 0) - options.value[i]).max())
        for i, (u, p) in enumerate(zip(exact, purposes, strict=True))
    )
    both, _ = seconds(lambda: eo.discover(mdp, N), 2)
    alone, _ = seconds(lambda: eo.spectrum(W, N // 2 + 1), 2)
    backups, climbing = throughput(mdp, purposes)
    print(f"\n{name}: {mdp.n_states} states")
    print(
        f"  spectrum k={K}          {ours:8.2f} s   scipy eigsh(sigma) {scipy:.2f} s   {scipy / ours:.1f}x faster"
    )
    print(f"  residual               {np.abs(L @ sp.vectors - sp.vectors * sp.values).max():8.1e}")
    print(
        f"  {N} options             {solving:8.2f} s   Dijkstra each      {each:.2f} s   "
        f"{each / solving:.1f}x faster, values differ by {gap:.0e}"
    )
    print(f"  action backups         {backups / climbing / 1e9:8.2f} 10^9 per CPU second")
    print(f"  graph+spectrum+options {both:8.2f} s   spectrum alone {alone:.2f} s   ratio {both / alone:.2f}")


def throughput(mdp: eo.MDP, purposes: list[eo.Purpose]) -> tuple[float, float]:
    """Action backups of the sweeps for the first group of eight, and their CPU time."""
    from eigenoptions.planning import renumbered

    assert mdp.successors is not None
    order, nxt = renumbered(mdp.successors)
    E = np.stack([p.direction[order] for p in purposes[: kernel.LANES]], axis=1)
    feeders = kernel.feeders(nxt)
    spent, done = seconds(lambda: kernel.climb(nxt, E, E.copy(), GAMMA, *feeders), 3)
    return float(done * kernel.LANES * mdp.n_actions), spent


def small() -> None:
    mdp = eo.maze("four-rooms")
    eo.discover(mdp, 2 * mdp.n_states, skip_zero=False)
    spent, options = seconds(lambda: eo.discover(mdp, 2 * mdp.n_states, skip_zero=False), 20)
    print(f"four rooms, all {len(options)} options: {1e3 * spent:.1f} ms (graph, spectrum, options)")
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", "import eigenoptions as eo; eo.discover(eo.maze('four-rooms'), 8)"], check=True
    )
    print(f"fresh process, 8 options, compiled code from the cache: {time.perf_counter() - begin:.2f} s wall")
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "eigenoptions.cli", "--help"], check=True, stdout=subprocess.DEVNULL
    )
    print(f"eigenoptions --help: {time.perf_counter() - begin:.2f} s wall")


def million(name: str, text: str) -> None:
    """One size, in this process: time and peak memory."""
    mdp = eo.maze(text)
    del text
    spent, sp = seconds(lambda: eo.spectrum(eo.graph(mdp), K))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{name}: {mdp.n_states} states, spectrum k={K}: {spent:.1f} s, peak {peak:.2f} GB", flush=True)
    purposes = eo.eigenpurposes(sp)
    spent, options = seconds(lambda: eo.solve(mdp, purposes, GAMMA))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{name}: {len(options)} options: {spent:.1f} s, peak {peak:.2f} GB", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        million(
            sys.argv[2], maps.rooms_map(100, 100) if sys.argv[2] == "rooms" else maps.perfect_map(707, 707)
        )
        sys.exit()
    small()
    compare("rooms", maps.rooms_map(31, 31))
    compare("perfect maze", maps.perfect_map(224, 224))
    if "--million" in sys.argv:
        for kind in ("rooms", "perfect"):
            subprocess.run([sys.executable, __file__, "--million", kind], check=True)
