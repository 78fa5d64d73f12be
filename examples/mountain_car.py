"""MountainCar without its reward
==============================

Explore, derive options, explore with them. The car leaves the valley by itself.

In the picture: the eigenvectors of eight options over position and velocity,
blue low and orange high, and the paths that the options take. Some swing up one
slope, some gather speed in the valley; red dots are where they stop.
"""

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo
from eigenoptions.envs import run_options

# Each round explores with the options of the round before.
rounds = eo.cycle(
    "MountainCar-v0",
    features="fourier",
    order=5,
    n_options=8,
    steps=2000,
    rounds=4,
    n_envs=4,
)
goals = 0
for one_round in rounds:
    goals += int(one_round.transitions.terminated.sum())
    print(
        f"{one_round.steps:6d} steps: {one_round.seen:4d} cells seen, "
        f"goal reached {goals:2d} times"
    )
options = one_round.options

# Run every option from the same four starts.
paths_by_option = run_options("MountainCar-v0", options, runs=4, max_steps=200)
print("\noption  mean length  stops at position, velocity")
for option, paths in zip(options, paths_by_option, strict=True):
    mean_length = np.mean([len(path) - 1 for path in paths])
    ends = []
    for path in paths:
        position, velocity = path[-1]
        ends.append(f"({position:.1f}, {velocity:.2f})")
    print(f"{option.label:>6}  {mean_length:11.1f}  {', '.join(ends)}")

low = options.features.low
high = options.features.high
figure, axes = plt.subplots(
    2, 4, figsize=(9, 4.5), sharex=True, sharey=True, layout="constrained"
)
for i, ax in enumerate(axes.flat):
    potential = options[i : i + 1].potential
    eo.plots.draw_landscape(ax, potential, low, high, paths_by_option[i])
    ax.set(title=options.labels[i], xlabel="position", ylabel="velocity")
eo.plots.save_figure(figure, "mountain-car.svg")
