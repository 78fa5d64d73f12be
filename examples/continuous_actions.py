"""Options of MountainCarContinuous
================================

Three forces in place of an interval of actions, then as usual.

In the picture: potentials of the first options over position and velocity of the car, blue low and orange high. An
option moves toward orange; several lead up one of the two slopes.
"""

from __future__ import annotations

import gymnasium as gym
import matplotlib.pyplot as plt
from gymnasium.wrappers import DiscretizeAction

import eigenoptions as eo


def car() -> gym.Env:
    return DiscretizeAction(
        gym.make("MountainCarContinuous-v0", max_episode_steps=200), bins=3
    )


def highest(env: gym.Env, episodes: int = 10) -> float:
    """Mean over episodes of the position farthest to the right; the goal is at 0.45."""
    total = 0.0
    env.action_space.seed(0)
    for seed in range(episodes):
        top, over = env.reset(seed=seed)[0][0], False
        while not over:
            obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
            top, over = max(top, obs[0]), terminated or truncated
        total += top
    return float(total / episodes)


options = eo.discover(
    car, n_options=8, steps=5000, features="fourier"
).with_termination(patience=8)
print(options)
env = eo.OptionsWrapper(car(), options, option_chance=0.2)
low, high = options.features.low, options.features.high
figure, axes = plt.subplots(1, 4, figsize=(9, 2.4), sharey=True, layout="constrained")
for i, ax in enumerate(axes):
    eo.plots.draw_landscape(ax, options[i : i + 1].potential, low, high)
    ax.set(title=options.labels[i], xlabel="position")
axes[0].set_ylabel("velocity")
eo.plots.save_figure(figure, "continuous-actions.svg")
print(
    f"farthest position: {highest(car()):.2f} by random actions, {highest(env):.2f} with options"
)
