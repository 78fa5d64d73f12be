"""CartPole
========

Options from samples, as extra actions for any agent.

Velocities have no bounds, so those of the features come from the samples. The table shows how far each option climbs
its own potential.

In the picture: cart position and pole angle along the paths of four options, and where they end. Options tilt the pole
or drive the cart to one side; none of them was asked to balance it.
"""

from __future__ import annotations

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo
from eigenoptions.envs import run_options


def main() -> None:
    options = eo.discover(
        "CartPole-v1", n_options=6, steps=8_000, features="fourier", gamma=0.95
    )
    low, high = options.features.low, options.features.high
    print(options, f"cart velocity scaled from {low[1]:.2f} to {high[1]:.2f}", sep="\n")

    print("\noption  steps  rise of its potential")
    figure, axes = plt.subplots(
        2, 3, figsize=(8, 4), sharex=True, sharey=True, layout="constrained"
    )
    runs = run_options("CartPole-v1", options, max_steps=200)
    for ax, option, paths in zip(axes.flat, options, runs, strict=True):
        ax.scatter(*np.concatenate(paths)[:, [0, 2]].T, s=3, label="path")
        ax.scatter(
            *np.transpose([path[-1][[0, 2]] for path in paths]), s=10, label="end"
        )
        ax.set(title=option.label, xlabel="position", ylabel="angle")
        steps = np.mean([len(path) - 1 for path in paths])
        rise = np.mean([option.reward(path[0], path[-1]) for path in paths])
        print(f"{option.label:>6}  {steps:5.1f}  {rise:21.2f}")

    axes[0, 0].legend()
    eo.plots.save_figure(figure, "cartpole.svg")

    env = eo.OptionsWrapper(
        gym.make("CartPole-v1"), options, gamma=0.95, max_duration=200
    )
    _, info = env.reset(seed=0)
    print("\nactions and options that may be chosen:", info["action_mask"].tolist())
    _, _, terminated, _, info = env.step(env.n_primitive)
    print(
        f"{options.labels[0]} took {info['duration']} steps; the pole {'fell' if terminated else 'stands'}"
    )


if __name__ == "__main__":
    main()
