"""Options that stop by chance
===========================

A random walk sees a large map sooner if its options also terminate with a small
probability after each step.

In the picture: the share of the states of 16 rooms that a walk has seen. With
options that run to their end, the walk is carried to the same places again and
again; options that stop by chance push it along the eigenvectors.
"""

import logging

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo
from eigenoptions.options.tuning import tune_exploration
from eigenoptions.samples.walking import walk

N_STEPS = 60_000
N_WALKS = 10

# `discover` would remark that some of the options stop at small hills.
logging.getLogger("eigenoptions").setLevel(logging.ERROR)
rooms = eo.maze("rooms:4x4")
options = eo.discover(rooms, n_options=8)

# The probabilities to choose an option, and to stop it after each step.
best = tune_exploration(rooms, options)
automatic = (best.option_chance, best.stop_chance)
settings = {
    "primitive actions": (0.0, 0.0),
    "8 options, one decision in twenty": (0.05, 0.0),
    "the same, stopped with probability 0.1": (0.05, 0.1),
    f"automatic: {automatic[0]:g} and {automatic[1]:g}": automatic,
}

figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
at_steps = np.arange(0, N_STEPS, 200)
for name, (option_chance, stop_chance) in settings.items():
    seen = np.zeros(len(at_steps))
    for seed in range(N_WALKS):
        transitions = walk(
            eo.MDP(rooms.transition),
            N_STEPS,
            options,
            option_chance=option_chance,
            stop_chance=stop_chance,
            rng=seed,
        )
        _, first_visits = np.unique(transitions.next_obs, return_index=True)
        first_visits.sort()
        n_seen = np.searchsorted(first_visits, at_steps, side="right")
        seen += n_seen / rooms.n_states / N_WALKS
    print(
        f"{name}: {seen[50]:.0%} of {rooms.n_states} states "
        f"after 10,000 steps, {seen[-1]:.0%} after 60,000"
    )
    ax.plot(at_steps, seen, label=name)

ax.set(xlabel="steps", ylabel="share of states seen", ylim=(0, 1))
ax.legend(loc="lower right")
eo.plots.save_figure(figure, "stop-chance.svg")
