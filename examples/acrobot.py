"""Acrobot
=======

The same purposes followed in two ways: by look-ahead (the paper's way) and by
learned action values.

Look-ahead tries every action in a copy of the environment and sees one step.
Learned options accept that a potential falls before it rises. The options are
saved as ``acrobot.safetensors`` and read again.

In the picture: one point per option and start, at its number of steps and at
how far it climbed its own potential. Learned options travel farther and climb
higher.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo
from eigenoptions.samples.collection import run_options

# Discover options from samples of a random walk, and keep them in a file.
env = gym.make("Acrobot-v1")
transitions = eo.collect("Acrobot-v1", 4_000, n_envs=8)
options = eo.discover(
    transitions,
    n_options=4,
    features=eo.Fitted("fourier", order=2),
    space=env.observation_space,
    n_actions=3,
)
options.save("acrobot.safetensors")

# The same purposes, followed in two ways.
learned = eo.load_options("acrobot.safetensors")
look_ahead = learned.look_ahead(env)
print(learned)
print(look_ahead)

# Run every option of both kinds from the same four starts.
learned_paths = run_options(env, learned, runs=4, max_steps=80, warm_up=0)
ahead_paths = run_options(env, look_ahead, runs=4, max_steps=80, warm_up=0)


def measure(option, paths):
    """Number of steps, and rise of the option's potential, of each path."""
    steps = [len(path) - 1 for path in paths]
    rises = [option.reward(path[0], path[-1]) for path in paths]
    return steps, rises


points = {"learned": ([], []), "look-ahead": ([], [])}
print(
    "\noption  learned: steps, rise of its potential    look-ahead: steps, rise"
)
for i, option in enumerate(learned):
    steps, rises = measure(option, learned_paths[i])
    ahead_steps, ahead_rises = measure(option, ahead_paths[i])
    print(
        f"{option.label:>6}"
        f"  {np.mean(steps):14.1f} {np.mean(rises):25.2f}"
        f" {np.mean(ahead_steps):20.1f} {np.mean(ahead_rises):5.2f}"
    )
    points["learned"][0].extend(steps)
    points["learned"][1].extend(rises)
    points["look-ahead"][0].extend(ahead_steps)
    points["look-ahead"][1].extend(ahead_rises)

figure, ax = plt.subplots(figsize=(3.5, 2.6), layout="constrained")
for name, (steps, rises) in points.items():
    ax.scatter(steps, rises, s=6, label=name)
ax.set(xlabel="steps", ylabel="rise of the potential")
ax.legend()
eo.plots.save_figure(figure, "acrobot.svg")
