"""Discovery online from pixels, as an experiment: ``python benchmarks/online_pixels.py``.

Nine rooms of 5 x 5 cells from a corner, one pixel per cell, one stream of 8 rounds of 600 steps; the number of states
seen after each round. After a round, features are trained further on what was seen, and 8 options lead the next one
(chance 0.05). Ways: a random walk; trained features with options that end after 8 steps without a rise; the same
with options of a fixed length of 10 steps; and both with the number of features of the Ritz step (of its principal
directions) chosen by the held-out score. One JSON line per way and seed goes to ``out/bench/online-pixels.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import record
from worlds import frames, grid

import eigenoptions as eo
from eigenoptions.deep import Dataset, learn, ritz
from eigenoptions.discovery.trained import PATIENCE, fit_numbered

# Rounds, steps of each, options, chance of one at a decision, and steps of an option of fixed length.
ROUNDS, STEPS, OPTIONS, CHANCE, LENGTH = 2 if record.QUICK else 8, 600, 8, 0.05, 10
TRAINING_STEPS = 5 if record.QUICK else 30
# Numbers of features to choose from, and the lag of the pairs that score them.
SIZES, LAG = (6, 12, 24, 48, 96, 256), 5
WAYS = ("random walk", "patience", "fixed length", "patience, chosen", "fixed length, chosen")[
    :: 4 if record.QUICK else 1
]


def options_of(seen: list[tuple[int, int, int]], images: np.ndarray, encoder: Any, chosen: bool) -> Any:
    """Policies and potentials ``(options, S)`` of options from the transitions seen, and the encoder."""
    before, action, after = np.array(seen).T
    # Only what was seen is known.
    states, places = np.unique(np.concatenate([before, after]), return_inverse=True)
    first, second = np.split(places, 2)
    ended = np.zeros(len(seen), dtype=bool)
    data = Dataset(images[states], first, second, action, ended)
    how = {"encoder": encoder or "auto", "steps": TRAINING_STEPS, "rng": len(seen)}
    found = learn(data, OPTIONS // 2 + 1, **how)
    purposes = eo.eigenpurposes(with_fewer(data, found) if chosen else found)
    how = {"n_actions": 4, "gamma": 0.9}
    fitted = fit_numbered(*data.sample(len(data)), purposes, found.features, **how)
    return fitted.actions(images), fitted.potential(images), found.features


def with_fewer(data: Dataset, found: Any) -> Any:
    """The spectrum by so many principal directions of the features as score best on held-out pairs."""
    phi, k = found.features(data.observations), found.vectors.shape[1]

    def slowest(part: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
        mean, C, R = ritz.moments(part, phi.__getitem__, LAG)
        size, axes = np.linalg.eigh(C[1:, 1:])
        kept = np.flatnonzero(size > ritz.FLAT * size[-1])[::-1][:n]
        S = axes[:, kept] / np.sqrt(size[kept])
        c, columns = np.linalg.eigh(S.T @ R[1:, 1:] @ S)
        v = (S @ columns)[:, ::-1][:, : k - 1]
        return c[::-1][: k - 1], np.vstack([-mean[1:] @ v, v])

    train, held = data.split(False), data.split(True)
    scores = [ritz.score(held, phi.__getitem__, slowest(train, n)[1], LAG) for n in SIZES]
    c, v = slowest(data.all, SIZES[int(np.argmax(scores))])
    if v.shape[1] < k - 1:
        return found
    values = np.append(0.0, 1 - np.clip(c, 0, 1) ** (1 / LAG))
    return replace(found, values=values, vectors=np.column_stack([found.vectors[:, :1], v]))


def stream(way: str, seed: int) -> list[int]:
    """Number of states seen after each round."""
    mdp, rng = grid("nine rooms"), np.random.default_rng(seed)
    images = frames(mdp, None)
    policy, height, encoder = np.zeros((0, mdp.n_states), dtype=int), None, None
    seen: list[tuple[int, int, int]] = []
    state, visited, counts = 0, {0}, []
    for _ in range(ROUNDS):
        option, best, idle, age = -1, -np.inf, 0, 0
        for _ in range(STEPS):
            if option < 0 and len(policy) and rng.random() < CHANCE:
                able = np.flatnonzero(policy[:, state] >= 0)
                option, best, idle, age = (int(rng.choice(able)) if len(able) else -1), -np.inf, 0, 0
            ends = age >= LENGTH if way.startswith("fixed") else idle >= PATIENCE
            if option >= 0 and (policy[option, state] < 0 or ends):
                option = -1
            action = int(policy[option, state]) if option >= 0 else int(rng.integers(4))
            after = int(mdp.successors[state, action])
            seen.append((state, action, after))
            state, age = after, age + 1
            visited.add(state)
            if option >= 0:
                idle = 0 if height[option, state] > best else idle + 1
                best = max(best, height[option, state])
        counts.append(len(visited))
        if way != "random walk" and len(counts) < ROUNDS:
            policy, height, encoder = options_of(seen, images, encoder, way.endswith("chosen"))
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one seed and little training")
    parser.add_argument("--seeds", type=int, default=1 if record.QUICK else 5, help="number of seeds")
    parser.add_argument(
        "--out", type=Path, default=record.OUT / "online-pixels.jsonl", help="file of the results"
    )
    given = parser.parse_args()
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[list[int]]] = {way: [] for way in WAYS}
    for seed in range(1, given.seeds + 1):
        for way in WAYS:
            began = time.process_time()
            counts = stream(way, seed)
            found[way].append(counts)
            line = {"way": way, "seed": seed, "seen": counts, "cpu": round(time.process_time() - began, 1)}
            with given.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
    for way, lines in found.items():
        print(f"{way}: {', '.join(f'{x:.0f}' for x in np.mean(lines, axis=0))}")
        record.fact(f"{way}: states seen in the end", float(np.mean(lines, axis=0)[-1]), "")
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
