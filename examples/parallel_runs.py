"""Many runs at once
=================

One function over settings and seeds, on all cores or on a Ray cluster, with the
same results.

In the picture: Q-learning in four rooms, mean return with 95% intervals of 40
runs. Without options the goal is hardly ever found; with four or more to
explore with, it is learned within a few episodes.
"""

import sys
from itertools import product

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo

N_EPISODES = 100


def learn(job: tuple[int, int]) -> np.ndarray:
    """Returns of ten runs with a number of options and a seed: (10, 100)."""
    n_options, seed = job
    rooms = eo.maze("four-rooms")
    options = None
    if n_options > 0:
        options = eo.discover(rooms, n_options)
    record = eo.q_learning(
        rooms, options, runs=10, episodes=N_EPISODES, rng=seed
    )
    return record.returns


# Other processes import this file, and must not run what follows.
if __name__ == "__main__":
    # The engine is "serial", "processes" or "ray".
    engine = sys.argv[1] if len(sys.argv) > 1 else "serial"

    numbers = (0, 4, 32)
    jobs = list(product(numbers, range(4)))
    with eo.parallel.using(engine):
        returns = eo.parallel.run_jobs(learn, jobs)

    curves = {}
    for number in numbers:
        same_number = [
            returns_of_job
            for (n_options, _), returns_of_job in zip(
                jobs, returns, strict=True
            )
            if n_options == number
        ]
        curves[f"{number} options"] = np.concatenate(same_number)

    for name, returns in curves.items():
        mean = returns.mean()
        print(f"{name:>10}: mean return {mean:.2f} over {len(returns)} runs")

    figure, ax = plt.subplots(figsize=(6.5, 3), layout="constrained")
    eo.plots.draw_curves(ax, range(1, N_EPISODES + 1), curves)
    ax.set(xlabel="episode", ylabel="return")
    ax.legend()
    eo.plots.save_figure(figure, "parallel-runs.svg")
