"""Many runs at once
=================

One function over settings and seeds, on all cores or on a Ray cluster, with the same results.

In the picture: Q-learning in four rooms, mean return with 95% intervals of 40 runs. Without options the goal is hardly
ever found; with four or more to explore with, it is learned within a few episodes.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo


def returns(job: tuple[int, int]) -> np.ndarray:
    """Evaluation returns (10, 100) of ten runs with a number of options and a seed."""
    n_options, seed = job
    rooms = eo.maze("four-rooms")
    options = eo.discover(rooms, n_options) if n_options else None
    return eo.q_learning(rooms, options, runs=10, episodes=100, rng=seed).returns


def main(engine: str) -> None:
    numbers, seeds = (0, 4, 32), range(4)
    # The engine is "serial", "processes" or "ray".
    with eo.parallel.using(engine):
        found = eo.parallel.run_jobs(
            returns, [(n, seed) for n in numbers for seed in seeds]
        )
    curves = {
        f"{n} options": np.concatenate(found[4 * i : 4 * i + 4])
        for i, n in enumerate(numbers)
    }
    for name, runs in curves.items():
        print(f"{name:>10}: mean return {runs.mean():.2f} over {len(runs)} runs")
    figure, ax = plt.subplots(figsize=(6.5, 3), layout="constrained")
    eo.plots.draw_curves(ax, range(1, 101), curves)
    ax.set(xlabel="episode", ylabel="return")
    ax.legend()
    eo.plots.save_figure(figure, "parallel-runs.svg")


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else "serial")
