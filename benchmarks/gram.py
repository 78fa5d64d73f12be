"""Collecting and streaming one-hot transitions of four rooms, against a loop that follows the original recipe.

Run ``python benchmarks/gram.py``. The recipe: one environment stepped in a loop, a tuple in a Python set for each
difference, a list of dense rows, `numpy.linalg.svd` at the end. Both are timed in this process, spectrum included. Then
the memory of the stream as transitions grow, and the bits of an Atari-sized run.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np

import eigenoptions as eo
from eigenoptions.envs import MazeEnv, collect, stream
from eigenoptions.gram import Gram

STEPS, TARGET = 25_000, 20.0


def recipe(mdp: eo.MDP, steps: int) -> np.ndarray:
    """Right singular vectors of T, as one writes it first."""
    env = MazeEnv(mdp)
    rng = np.random.default_rng(0)
    seen, rows = set(), []
    state, _ = env.reset(seed=0)
    for _ in range(steps):
        after, *_ = env.step(int(rng.integers(mdp.n_actions)))
        difference = np.zeros(mdp.n_states)
        difference[after] += 1.0
        difference[state] -= 1.0
        key = tuple(difference)
        if key not in seen:
            seen.add(key)
            rows.append(difference)
        state = after
    return np.linalg.svd(np.array(rows))[2]


def ours(mdp: eo.MDP, steps: int) -> eo.Spectrum:
    gram = Gram(mdp.n_states)
    for batch in stream(mdp, steps, n_envs=1024):
        gram.add(batch.obs, batch.next_obs)
    return gram.spectrum()


def seconds(work: Callable[[], object], repeats: int) -> float:
    best = np.inf
    for _ in range(repeats):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def main() -> None:
    rooms = eo.maze("four-rooms")
    mdp = eo.MDP(
        rooms.transition, coords=rooms.coords
    )  # no start: copies begin anywhere, so all of it is seen
    ours(mdp, 1000)  # compiled before the clock starts
    loop = seconds(lambda: recipe(mdp, STEPS), 2)
    fast = seconds(lambda: ours(mdp, STEPS), 5)
    batch = collect(mdp, STEPS, n_envs=1024)
    gram = Gram(mdp.n_states)
    add = seconds(lambda: gram.add(batch.obs, batch.next_obs), 5)
    met = "met" if loop / fast >= TARGET else "MISSED"
    print(f"{STEPS} transitions of four rooms, collected, streamed and decomposed, CPU seconds")
    print(
        f"  the recipe {loop:.3f}   ours {fast:.4f}   ratio {loop / fast:.0f}x, target {TARGET:.0f}x: {met}"
    )
    print(f"  of ours, the stream alone: {add * 1e3:.2f} ms, {add / STEPS * 1e9:.0f} ns a transition")

    print("memory of the stream, and the most in use on the way")
    for steps in (25_000, 250_000, 2_500_000):
        tracemalloc.start()
        gram = Gram(mdp.n_states)
        for part in stream(mdp, steps, n_envs=1024):
            gram.add(part.obs, part.next_obs)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        size = f"{len(gram)} differences, {gram.nbytes / 1e3:.0f} kB, peak {peak / 1e6:.1f} MB"
        print(f"  {steps:9,d} transitions: {size}")

    rng = np.random.default_rng(0)
    flips = rng.random((25_001, 1024)) < 0.02
    bits = np.logical_xor.accumulate(flips, axis=0)
    ram = Gram()
    began = time.process_time()
    ram.add(bits[:-1], bits[1:])
    added = time.process_time() - began
    began = time.process_time()
    ram.spectrum()
    took = time.process_time() - began
    print(
        f"25,000 rows of 1,024 bits: added in {added:.2f} s, {ram.nbytes / 1e6:.1f} MB; spectrum in {took:.2f} s"
    )


if __name__ == "__main__":
    main()
