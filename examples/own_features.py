"""Features of your own
====================

Any function from a batch of observations to rows of numbers, here for a
pendulum.

In the picture: paths of four options over the angle (0 is upright, ±3.14 hangs
down) and the speed of the pendulum, each from the same eight states; a square
is where a path ends. Each pair of options, + and -, drives to opposite ends:
fast to the left and fast to the right, or still and swinging.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
from gymnasium.wrappers import DiscretizeAction

import eigenoptions as eo
from eigenoptions.samples.collection import run_options


def read_angle(obs):
    """Angles of observations (N, 3): cosine, sine and speed."""
    return np.arctan2(obs[:, 1], obs[:, 0])


def make_waves(obs):
    """Features (N, 20): waves in the angle times powers of the speed."""
    angle = read_angle(obs)
    speed = obs[:, 2] / 8
    waves = [
        np.ones(len(obs)),
        np.cos(angle),
        np.sin(angle),
        np.cos(2 * angle),
        np.sin(2 * angle),
    ]
    features = []
    for wave in waves:
        for power in range(4):
            features.append(wave * speed**power)
    return np.stack(features, axis=1)


env = DiscretizeAction(gym.make("Pendulum-v1"), bins=3)
options = eo.discover(env, n_options=4, steps=6000, features=make_waves)
print(options)

# Run every option from the same eight starts.
paths_by_option = run_options(env, options, runs=8, max_steps=60)
figure, axes = plt.subplots(2, 2, figsize=(6.5, 4.5), layout="constrained")
for ax, option, paths in zip(axes.flat, options, paths_by_option, strict=True):
    visited = np.concatenate(paths)
    ends = np.array([path[-1] for path in paths])
    print(f"{option.label}: mean speed at the end {ends[:, 2].mean():5.1f}")
    ax.scatter(read_angle(visited), visited[:, 2], s=6, label="path")
    ax.scatter(read_angle(ends), ends[:, 2], s=6, label="end")
    ax.set(title=option.label, xlabel="angle", ylabel="speed")
    ax.legend()
eo.plots.save_figure(figure, "own-features.svg")
