"""Features of your own
====================

Any function from a batch of observations to rows of numbers, here for a pendulum.

In the picture: paths of four options over the angle (0 is upright, ±3.14 hangs down) and the speed of the pendulum,
each from the same eight states; a square is where a path ends. Each pair of options, + and -, drives to opposite ends:
fast to the left and fast to the right, or still and swinging.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
from gymnasium.wrappers import DiscretizeAction

import eigenoptions as eo


def waves(obs):
    """(N, 3) cosine, sine and speed to (N, 20): waves in the angle times powers of the speed."""
    angle, speed = np.arctan2(obs[:, 1], obs[:, 0]), obs[:, 2] / 8
    around = [
        np.ones(len(obs)),
        *(f(k * angle) for k in (1, 2) for f in (np.cos, np.sin)),
    ]
    return np.stack(
        [wave * speed**power for wave in around for power in range(4)], axis=1
    )


env = DiscretizeAction(gym.make("Pendulum-v1"), bins=3)
options = eo.discover(env, n_options=4, steps=6000, features=waves)
print(options)
figure, axes = plt.subplots(2, 2, figsize=(6.5, 4.5), layout="constrained")
runs = eo.envs.run_options(env, options, runs=8, max_steps=60)
for ax, option, paths in zip(axes.flat, options, runs, strict=True):
    phase = [
        np.stack([np.arctan2(way[:, 1], way[:, 0]), way[:, 2]], axis=1) for way in paths
    ]
    groups = {
        "path": np.concatenate(phase),
        "end": np.stack([way[-1] for way in phase]),
    }
    print(f"{option.label}: mean speed at the end {groups['end'][:, 1].mean():5.1f}")
    for name, points in groups.items():
        ax.scatter(*np.transpose(points), s=6, label=name)
    ax.set(title=option.label, xlabel="angle", ylabel="speed")
    ax.legend()
eo.plots.save_figure(figure, "own-features.svg")
