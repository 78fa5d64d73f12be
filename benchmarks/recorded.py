"""Eigenfunctions from a recorded data set in which each noisy image occurs once: ``python benchmarks/recorded.py``.

A labyrinth of 158 states, 60,000 transitions (episodes of 50 steps), images of 20 x 24 pixels with noise of 0.05.
Beside it: a table of visit counts of the *true states* of the same samples, at lag 1, 2 and 5. Seed 0 is for choosing
settings.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time

import numpy as np
import record

import eigenoptions as eo
from eigenoptions.deep import Dataset, learn
from eigenoptions.mdp.maps import perfect_map
from eigenoptions.options.walks import walk

# Eigenfunctions after the constant one, transitions, steps of an episode, and noise.
K, TRANSITIONS, EPISODE, NOISE = 8, 6_000 if record.QUICK else 60_000, 50, 0.05
# Size of an image, walls that are opened in the labyrinth so that it has loops, and CPU seconds of training.
SHAPE, OPENED, SECONDS = (20, 24), 19, 0.5 if record.QUICK else 15.0


def labyrinth() -> eo.MDP:
    """A perfect maze of 7 x 10 crossings with some walls opened, without start and goal."""
    cells = np.array([list(row) for row in perfect_map(7, 10).splitlines()])
    rows, columns = np.indices(cells.shape)
    inside = (rows % (len(cells) - 1) > 0) & (columns % (cells.shape[1] - 1) > 0)
    walls = np.argwhere((cells == "#") & inside & (rows % 2 != columns % 2))
    opened = walls[np.random.default_rng(0).choice(len(walls), OPENED, replace=False)]
    cells[tuple(opened.T)] = "."
    found = eo.maze("\n".join("".join(row) for row in cells))
    return eo.MDP(found.transition, coords=found.coords)


def truth(mdp: eo.MDP) -> tuple[np.ndarray, np.ndarray]:
    """Values and vectors of I - P of the uniform random walk, after the constant one."""
    P = mdp.transition.toarray().reshape(mdp.n_states, mdp.n_actions, -1).mean(axis=1)
    values, vectors = np.linalg.eigh(np.eye(len(P)) - P)
    return values[1 : K + 1], vectors[:, 1 : K + 1]


def recorded(mdp: eo.MDP, images: np.ndarray, seed: int) -> tuple[Dataset, np.ndarray]:
    """Transitions between images that are seen once, and the state of each image."""
    steps = walk(mdp, TRANSITIONS, rng=seed, max_episode_steps=EPISODE)
    after = np.arange(TRANSITIONS) + np.cumsum(np.arange(TRANSITIONS) % EPISODE == 0)
    state = np.empty(after[-1] + 1, dtype=np.int64)
    state[after], state[after - 1] = steps.next_obs, steps.obs
    noise = np.random.default_rng(seed).normal(0, NOISE, (len(state), *SHAPE)).astype(np.float32)
    return Dataset(images[state] + noise, after - 1, after, steps.action, steps.terminated), state


def span(functions: np.ndarray, vectors: np.ndarray) -> float:
    """Share of the span of the true eigenfunctions that functions ``(S, K)`` span."""
    q = np.linalg.qr(functions - functions.mean(axis=0))[0]
    return float(np.linalg.norm(q.T @ vectors) ** 2 / K)


def counted(data: Dataset, state: np.ndarray, n: int, lag: int) -> np.ndarray:
    """``(S, K)`` slowest functions of a table of visit counts of the true states."""
    before, after = (state[side] for side in data.all.pairs(lag))
    W = np.bincount(before * n + after, minlength=n * n).reshape(n, n).astype(float)
    W = W + W.T
    root = np.sqrt(W.sum(axis=1))
    return (np.linalg.eigh(W / root / root[:, None])[1] / root[:, None])[:, ::-1][:, 1 : K + 1]


def main() -> int:
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)
    parser = argparse.ArgumentParser(description=__doc__)
    seeds = [1] if record.QUICK else [1, 2, 3]
    parser.add_argument("--seeds", type=int, nargs="+", default=seeds, help="seeds of walk and training")
    parser.add_argument("--quick", action="store_true", help="few transitions, to see that it works")
    mdp = labyrinth()
    values, vectors = truth(mdp)
    images = np.zeros((mdp.n_states, *SHAPE), dtype=np.float32)
    images[np.arange(mdp.n_states), *(mdp.coords + np.array([2, 1])).T] = 1.0
    print("| seed | subspace of 8 | mean cosine | eigenvalue error (largest) | CPU s | tables: lag 1, 2, 5 |")
    print("|--:|--:|--:|--:|--:|--:|")
    for seed in parser.parse_args().seeds:
        data, state = recorded(mdp, images, seed)
        began = time.process_time()
        found = learn(data, K + 1, seconds=SECONDS, rng=seed)
        spent = time.process_time() - began
        f = (found.features(images) @ found.vectors)[:, 1:]
        f = f - f.mean(axis=0)
        cosine = np.abs((f / np.linalg.norm(f, axis=0) * vectors).sum(axis=0)).mean()
        error = np.abs(found.values[1:] / values - 1)
        tables = [f"{span(counted(data, state, mdp.n_states, lag), vectors):.4f}" for lag in (1, 2, 5)]
        cells = [f"{span(f, vectors):.4f}", f"{cosine:.3f}", f"{error.mean():.1%} ({error.max():.1%})"]
        print(f"| {seed} | {' | '.join(cells)} | {spent:.0f} | {', '.join(tables)} |", flush=True)
        record.fact(f"seed {seed}: share of the subspace", span(f, vectors), "")
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
