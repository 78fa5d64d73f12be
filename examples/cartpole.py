"""CartPole
========

Options from samples, as extra actions for any agent.

Velocities have no bounds, so those of the features come from the samples. The
table shows how far each option climbs its own potential.

In the picture: cart position and pole angle along the paths of six options, and
where they end. Options tilt the pole or drive the cart to one side; none of
them was asked to balance it.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo
from eigenoptions.samples.collection import run_options

options = eo.discover(
    "CartPole-v1",
    n_options=6,
    steps=8_000,
    features="fourier",
    gamma=0.95,
)
slowest = options.features.low[1]
fastest = options.features.high[1]
print(options)
print(f"cart velocity scaled from {slowest:.2f} to {fastest:.2f}")

# Run every option from the same eight starts.
paths_by_option = run_options("CartPole-v1", options, max_steps=200)
figure, axes = plt.subplots(
    2, 3, figsize=(8, 4), sharex=True, sharey=True, layout="constrained"
)
print("\noption  steps  rise of its potential")
for ax, option, paths in zip(axes.flat, options, paths_by_option, strict=True):
    steps = np.mean([len(path) - 1 for path in paths])
    rise = np.mean([option.reward(path[0], path[-1]) for path in paths])
    print(f"{option.label:>6}  {steps:5.1f}  {rise:21.2f}")

    # An observation is position, velocity, angle and angular velocity.
    visited = np.concatenate(paths)
    ends = np.array([path[-1] for path in paths])
    ax.scatter(visited[:, 0], visited[:, 2], s=3, label="path")
    ax.scatter(ends[:, 0], ends[:, 2], s=10, label="end")
    ax.set(title=option.label, xlabel="position", ylabel="angle")

axes[0, 0].legend()
eo.plots.save_figure(figure, "cartpole.svg")

# The wrapped environment has two actions and six options.
env = gym.make("CartPole-v1")
env = eo.OptionsWrapper(env, options, gamma=0.95, option_chance=0.1)
_, info = env.reset(seed=0)
mask = info["action_mask"].tolist()
print("\nactions and options that may be chosen:", mask)

first_option = env.n_primitive
_, _, terminated, _, info = env.step(first_option)
outcome = "fell" if terminated else "stands"
print(f"{options.labels[0]} took {info['duration']} steps; the pole {outcome}")
