"""Acrobot
=======

The same purposes followed in two ways, by look-ahead (the paper's) and by learned action values.

Look-ahead tries every action in a copy of the environment and sees one step; learned options accept that a potential
falls before it rises. The options are saved as ``acrobot.safetensors`` and read again.

In the picture: one point per option and start, at its number of steps and at how far it climbed its own potential.
Learned options travel farther and climb higher.
"""

from __future__ import annotations

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo
from eigenoptions.envs import run_options


def main() -> None:
    batch = eo.collect("Acrobot-v1", 4_000, n_envs=8)
    env = gym.make("Acrobot-v1")
    options = eo.discover(
        batch,
        n_options=4,
        features="fourier",
        order=2,
        space=env.observation_space,
        n_actions=3,
    )
    options.save("acrobot.safetensors")
    learned = eo.load_options("acrobot.safetensors")
    ahead = learned.look_ahead(env)
    print(learned, ahead, sep="\n")

    print("\noption  learned: steps, rise of its potential    look-ahead: steps, rise")
    paths = [
        run_options(env, options, runs=4, max_steps=80, warm_up=0)
        for options in (learned, ahead)
    ]
    points = {"learned": [], "look-ahead": []}
    for option, *ways in zip(learned, *paths, strict=True):
        steps = [np.mean([len(path) - 1 for path in some]) for some in ways]
        rise = [[option.reward(path[0], path[-1]) for path in some] for some in ways]
        mean = np.mean(rise, axis=1)
        print(
            f"{option.label:>6}  {steps[0]:14.1f} {mean[0]:25.2f} {steps[1]:20.1f} {mean[1]:5.2f}"
        )
        for kind, some, high in zip(points, ways, rise, strict=True):
            points[kind] += [
                (len(path) - 1, y) for path, y in zip(some, high, strict=True)
            ]
    figure, ax = plt.subplots(figsize=(3.5, 2.6), layout="constrained")
    for kind, pairs in points.items():
        ax.scatter(*np.transpose(pairs), s=6, label=kind)
    ax.set(xlabel="steps", ylabel="rise of the potential")
    ax.legend()
    eo.plots.save_figure(figure, "acrobot.svg")


if __name__ == "__main__":
    main()
