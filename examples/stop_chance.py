"""Options that stop by chance
===========================

A random walk sees a large map sooner if its options also terminate with a small probability after each step.

In the picture: the share of the states of 16 rooms that a walk has seen. With options that run to their end, the walk
is carried to the same places again and again; options that stop by chance push it along the eigenvectors.
"""

import logging

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo
from eigenoptions.options.tuning import tune_exploration
from eigenoptions.options.walks import walk

logging.getLogger("eigenoptions").setLevel(
    logging.ERROR
)  # some of the options stop at small hills
rooms = eo.maze("rooms:4x4")
options = eo.discover(rooms, n_options=8)
best = tune_exploration(rooms, options)
ways = {
    "primitive actions": (0.0, 0.0),
    "8 options, one decision in twenty": (0.05, 0.0),
    "the same, stopped with probability 0.1": (0.05, 0.1),
    f"automatic: {best.option_chance:g} and {best.stop_chance:g}": (
        best.option_chance,
        best.stop_chance,
    ),
}

figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
steps = np.arange(0, 60_000, 200)
for name, (option_chance, stop_chance) in ways.items():
    seen = np.zeros(len(steps))
    for seed in range(10):
        chances = {"option_chance": option_chance, "stop_chance": stop_chance}
        path = walk(eo.MDP(rooms.transition), 60_000, options, **chances, rng=seed)
        first_visits = np.sort(np.unique(path.next_obs, return_index=True)[1])
        seen += np.searchsorted(first_visits, steps, side="right") / rooms.n_states / 10
    print(
        f"{name}: {seen[50]:.0%} of {rooms.n_states} states after 10,000 steps, {seen[-1]:.0%} after 60,000"
    )
    ax.plot(steps, seen, label=name)
ax.set(xlabel="steps", ylabel="share of states seen", ylim=(0, 1))
ax.legend(loc="lower right")
eo.plots.save_figure(figure, "stop-chance.svg")
