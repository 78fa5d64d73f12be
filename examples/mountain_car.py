"""MountainCar without its reward
==============================

Explore, derive options, explore with them. The car leaves the valley by itself.

In the picture: the eigenvectors of eight options over position and velocity, blue low and orange high, and the paths
that the options take. Some swing up one slope, some gather speed in the valley; red dots are where they stop.
"""

from __future__ import annotations

import matplotlib.pyplot as plt

import eigenoptions as eo
from eigenoptions.envs import run_options


def main() -> None:
    goals = 0
    for now in eo.cycle(
        "MountainCar-v0",
        features="fourier",
        order=5,
        n_options=8,
        steps=2000,
        rounds=4,
        n_envs=4,
    ):
        goals += int(now.transitions.terminated.sum())
        print(
            f"{now.steps:6d} steps: {now.seen:4d} cells seen, goal reached {goals:2d} times"
        )

    options = now.options
    paths = run_options("MountainCar-v0", options, runs=4, max_steps=200)
    print("\noption  mean length  stops at position, velocity")
    for option, ways in zip(options, paths, strict=True):
        length = sum(len(way) - 1 for way in ways) / len(ways)
        ends = ", ".join(
            f"({x:.1f}, {v:.2f})" for x, v in (way[-1] for way in ways[:4])
        )
        print(f"{option.label:>6}  {length:11.1f}  {ends}")

    low, high = options.features.low, options.features.high
    figure, axes = plt.subplots(
        2, 4, figsize=(9, 4.5), sharex=True, sharey=True, layout="constrained"
    )
    for i, ax in enumerate(axes.flat):
        eo.plots.draw_landscape(ax, options[i : i + 1].potential, low, high, paths[i])
        ax.set(title=options.labels[i], xlabel="position", ylabel="velocity")
    eo.plots.save_figure(figure, "mountain-car.svg")


if __name__ == "__main__":
    main()
