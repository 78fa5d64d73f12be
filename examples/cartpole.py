"""CartPole: options from samples, as extra actions for any agent.

Velocities have no bounds, so those of the features come from the samples. The table shows how far each option climbs
its own potential.

In the picture: cart position and pole angle along the paths of four options, and where they end. Options tilt the pole
or drive the cart to one side; none of them was asked to balance it.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np

import eigenoptions as eo
from eigenoptions.envs import run_options


def main() -> None:
    options = eo.discover("CartPole-v1", n_options=6, steps=8_000, features="fourier", gamma=0.95)
    low, high = options.features.low, options.features.high
    print(options, f"cart velocity scaled from {low[1]:.2f} to {high[1]:.2f}", sep="\n")

    print("\noption  steps  rise of its potential")
    panels = []
    for option, paths in zip(options, run_options("CartPole-v1", options, max_steps=200), strict=True):
        places = {"path": np.concatenate(paths)[:, [0, 2]], "end": [path[-1][[0, 2]] for path in paths]}
        panels.append(eo.plots.point_panel(places, option.label, xlabel="position", ylabel="angle"))
        steps = np.mean([len(path) - 1 for path in paths])
        rise = np.mean([option.reward(path[0], path[-1]) for path in paths])
        print(f"{option.label:>6}  {steps:5.1f}  {rise:21.2f}")

    eo.plots.save(eo.plots.figure(panels[:4], columns=2, width=eo.plots.PAGE), "cartpole.svg")

    env = eo.OptionsWrapper(gym.make("CartPole-v1"), options, gamma=0.95, max_duration=200)
    _, info = env.reset(seed=0)
    print("\nactions and options that may be chosen:", info["action_mask"].tolist())
    _, _, terminated, _, info = env.step(env.n_primitive)
    print(f"{options.labels[0]} took {info['duration']} steps; the pole {'fell' if terminated else 'stands'}")


if __name__ == "__main__":
    main()
