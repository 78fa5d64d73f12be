"""Learned eigenfunctions on the 13 grids of the literature, beside those of ALLO.

``python -m benchmarks.deep [GRID ...] [--kinds xy jitter frame] [--seeds 3] [--no-allo]
[--store]``

Each run learns the first ten eigenfunctions of the random walk in episodes of 50 steps,
from positions that repeat, from jittered ones or from frames. It compares them with the
true ones by the mean cosine of matched functions. ALLO (Gomez, Bowling and Machado,
ICLR 2024) has the same encoder and the same CPU seconds; ``--no-allo`` leaves it out.
With ``--store``, the runs are kept in ``benchmarks/deep.csv``, and an interrupted
command continues.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from benchmarks.allo import learn_allo
from benchmarks.grid_walks import (
    list_grids,
    measure_mean_cosine,
    observe_states,
    sample_transitions,
)
from benchmarks.stored import read_table, store_table
from benchmarks.timing import Row
from eigenoptions.deep import Dataset, learn


def compare_with_allo(
    grids: Sequence[str] = ("GridRoom-4", "GridRoom-16"),
    kinds: Sequence[str] = ("xy", "jitter"),
) -> Iterator[Row]:
    """Compare the mean cosines of the first ten eigenfunctions, ours and ALLO's."""
    for name in grids:
        for kind in kinds:
            run = measure_cosines(name, kind, seed=1)
            yield Row(
                f"{name}, {kind}, mean cosine",
                run["ours"],
                run["allo"],
                rival="ALLO, same seconds",
                unit="",
            )


def measure_cosines(
    name: str,
    kind: str,
    seed: int,
    with_allo: bool = True,
    seconds: float = 10.0,
    n_transitions: int = 200_000,
) -> dict[str, Any]:
    """Learn from the same transitions in both ways; return the mean cosine of each."""
    data = Dataset.of(sample_transitions(name, kind, n_transitions, seed))
    observations = observe_states(name, kind)

    logging.disable(logging.WARNING)
    begin = time.process_time()
    spectrum = learn(data, 11, seconds=seconds, rng=seed)
    # `seconds` are those of a reference core; ALLO gets what they were here.
    cpu_seconds = time.process_time() - begin
    logging.disable(logging.NOTSET)
    assert spectrum.features is not None
    eigenfunctions = spectrum.features(observations) @ spectrum.vectors
    # The first one is constant.
    ours = measure_mean_cosine(name, eigenfunctions[:, 1:])

    run = {
        "grid": name,
        "kind": kind,
        "seed": seed,
        "cpu_seconds": round(cpu_seconds, 1),
        "ours": round(ours, 4),
        "allo": None,
    }
    if with_allo:
        (found,) = learn_allo(data, observations, [cpu_seconds], seed)
        run["allo"] = round(measure_mean_cosine(name, found.functions), 4)
    return run


def main() -> None:
    """Print runs as they are measured."""
    parser = argparse.ArgumentParser(description="Learned eigenfunctions against ALLO.")
    parser.add_argument("grids", nargs="*", default=list_grids(), metavar="GRID")
    parser.add_argument(
        "--kinds",
        nargs="+",
        default=["xy", "jitter"],
        choices=["xy", "jitter", "frame"],
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--no-allo", action="store_true", help="learn in one way only")
    parser.add_argument(
        "--store",
        action="store_true",
        help="write benchmarks/deep.csv, and skip runs that it has",
    )
    arguments = parser.parse_args()

    stored = read_table("deep") if arguments.store else pd.DataFrame()
    runs = stored.to_dict("records")
    done = {(run["grid"], run["kind"], run["seed"]) for run in runs}
    for kind in arguments.kinds:
        for seed in range(1, arguments.seeds + 1):
            for name in arguments.grids:
                if (name, kind, seed) in done:
                    continue
                run = measure_cosines(name, kind, seed, not arguments.no_allo)
                print(run, flush=True)
                runs.append(run)
                if arguments.store:
                    store_table("deep", pd.DataFrame(runs))


if __name__ == "__main__":
    main()
