"""Collecting and streaming one-hot transitions of four rooms, against a loop that follows the original recipe.

Run ``python benchmarks/gram.py``. The recipe: one environment stepped in a loop, a tuple in a Python set for each
difference, a list of dense rows, `numpy.linalg.svd` at the end. Both are timed in this process, spectrum included. Then
the memory of the stream as transitions grow, and the bits of an Atari-sized run.
"""

from __future__ import annotations

import sys
import tracemalloc
from functools import partial

import numpy as np
import record

import eigenoptions as eo
from eigenoptions.envs import MazeEnv, collect, stream
from eigenoptions.spectra.gram import Gram

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


def main() -> int:
    rooms = eo.maze("four-rooms")
    mdp = eo.MDP(
        rooms.transition, coords=rooms.coords
    )  # no start: copies begin anywhere, so all of it is seen
    ours(mdp, 1000)  # compiled before the clock starts
    steps = STEPS // (10 if record.QUICK else 1)
    fast, loop = record.race(
        lambda: ours(mdp, steps), lambda: recipe(mdp, steps), 1 if record.QUICK else 2, 3
    )
    what = f"{steps:,} transitions of four rooms, collected, streamed, decomposed"
    ratio = record.row(what, fast, loop, "set of tuples, dense SVD")
    record.aim("samples to spectrum, against the recipe", ratio, least=TARGET / (10 if record.QUICK else 1))
    batch = collect(mdp, steps, n_envs=1024)
    gram = Gram(mdp.n_states)
    add, _ = record.seconds(lambda: gram.add(batch.obs, batch.next_obs), 5)
    record.fact("the stream alone, a transition", add / steps * 1e9, "ns")

    print("memory of the stream, and the most in use on the way")
    for steps in (2_500,) if record.QUICK else (25_000, 250_000, 2_500_000):
        tracemalloc.start()
        gram = Gram(mdp.n_states)
        for part in stream(mdp, steps, n_envs=1024):
            gram.add(part.obs, part.next_obs)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        size = f"{len(gram)} differences, {gram.nbytes / 1e3:.0f} kB, peak {peak / 1e6:.1f} MB"
        print(f"  {steps:9,d} transitions: {size}")

    rng = np.random.default_rng(0)
    Gram().add(np.eye(4, dtype=bool), np.eye(4, dtype=bool)[::-1])  # compiled
    for width in (128,) if record.QUICK else (256, 512, 1024, 2048):
        flips = rng.random((5_001 if record.QUICK else 25_001, width)) < 0.02
        bits = np.logical_xor.accumulate(flips, axis=0)
        ram = Gram()
        adding, _ = record.clock(partial(ram.add, bits[:-1], bits[1:]))
        record.point("Gram of 25,000 rows of bits, added", width, adding)
        record.point("Gram of bits, spectrum", width, record.clock(ram.spectrum)[0])
        record.point("Gram of bits, memory", width, ram.nbytes / 1e9, "GB")
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
