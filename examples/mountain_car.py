"""MountainCar without its reward
==============================

Explore, derive options, explore with them. The car leaves the valley by itself.

In the picture: the eigenvectors of eight options over position and velocity,
blue low and orange high, and the paths that the options take. Some swing up one
slope, some gather speed in the valley; red dots are where they stop.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo
from eigenoptions.samples.collection import run_options

# Each round explores with options of all that was seen before.
space = gym.make("MountainCar-v0").observation_space
rounds = []
options = None
for number in range(4):
    steps = eo.collect(
        "MountainCar-v0",
        2000,
        policy=options,
        option_chance=0.05,
        n_envs=4,
        rng=number,
    )
    rounds.append(steps)
    seen = eo.Transitions.of(rounds)
    options = eo.discover(
        seen,
        n_options=8,
        features=eo.Fitted("fourier", order=5, iterations=1600),
        space=space,
        n_actions=3,
    )
    highest = seen.next_obs[:, 0].max()
    print(f"{len(seen):6d} steps: position up to {highest:5.2f} (goal: 0.50)")

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
