"""Learned eigenfunctions on the 13 grids of the literature, beside those of ALLO.

``python -m benchmarks.deep [GRID ...] [--kinds xy jitter frame] [--seeds 3]``. Each run
learns the first ten eigenfunctions of the random walk in episodes of 50 steps, from
positions that repeat, from jittered ones or from frames. It compares them with the true
ones by the mean cosine of matched functions. ALLO (Gomez, Bowling and Machado, ICLR
2024) has the same encoder and the same CPU seconds.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator

import numpy as np

from benchmarks.allo import learn_allo
from benchmarks.grid_walks import (
    list_grids,
    measure_mean_cosine,
    observe_states,
    sample_transitions,
)
from benchmarks.timing import Row
from eigenoptions.deep import Dataset, learn


def compare_with_allo(
    grids: tuple[str, ...] = ("GridRoom-4", "GridRoom-16"),
    kinds: tuple[str, ...] = ("xy", "jitter"),
    seeds: int = 1,
    seconds: float = 10.0,
    n_transitions: int = 200_000,
) -> Iterator[Row]:
    """Compare the mean cosines of the first ten eigenfunctions, ours and ALLO's."""
    logging.disable(logging.WARNING)
    for name in grids:
        for kind in kinds:
            cosines = []
            for seed in range(1, seeds + 1):
                pair = _measure_cosines(name, kind, seed, seconds, n_transitions)
                cosines.append(pair)
            ours, theirs = np.mean(cosines, axis=0)
            yield Row(
                f"{name}, {kind}, mean cosine",
                float(ours),
                float(theirs),
                rival="ALLO, same seconds",
                unit="",
            )


def _measure_cosines(
    name: str,
    kind: str,
    seed: int,
    seconds: float,
    n_transitions: int,
) -> tuple[float, float]:
    """Learn from the same transitions in both ways; return the mean cosine of each."""
    data = Dataset.of(sample_transitions(name, kind, n_transitions, seed))
    observations = observe_states(name, kind)

    spectrum = learn(data, 11, seconds=seconds, rng=seed)
    assert spectrum.features is not None
    eigenfunctions = spectrum.features(observations) @ spectrum.vectors
    # The first one is constant.
    ours = measure_mean_cosine(name, eigenfunctions[:, 1:])

    theirs = measure_mean_cosine(name, learn_allo(data, observations, seconds, seed))
    return ours, theirs


def main() -> None:
    """Print rows as they are measured."""
    parser = argparse.ArgumentParser(description="Learned eigenfunctions against ALLO.")
    parser.add_argument("grids", nargs="*", default=list_grids())
    parser.add_argument(
        "--kinds",
        nargs="+",
        default=["xy", "jitter"],
        choices=["xy", "jitter", "frame"],
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()

    rows = compare_with_allo(
        tuple(arguments.grids),
        tuple(arguments.kinds),
        arguments.seeds,
        arguments.seconds,
    )
    for row in rows:
        print(row, flush=True)


if __name__ == "__main__":
    main()
