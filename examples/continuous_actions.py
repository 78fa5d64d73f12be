"""Options of MountainCarContinuous
================================

Three forces in place of an interval of actions, then as usual.

In the picture: potentials of the first options over position and velocity of
the car, blue low and orange high. An option moves toward orange; several lead
up one of the two slopes.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
from gymnasium.wrappers import DiscretizeAction

import eigenoptions as eo


def make_car() -> gym.Env:
    """Make the car with three forces: left, none and right."""
    env = gym.make("MountainCarContinuous-v0", max_episode_steps=200)
    return DiscretizeAction(env, bins=3)


def measure_progress(env: gym.Env, episodes: int = 10) -> float:
    """Measure how far to the right random decisions get; the goal is at 0.45.

    This is the mean over episodes of the largest position.
    """
    total = 0.0
    env.action_space.seed(0)
    for seed in range(episodes):
        obs, _ = env.reset(seed=seed)
        farthest = obs[0]
        is_over = False
        while not is_over:
            action = env.action_space.sample()
            obs, _, terminated, truncated, _ = env.step(action)
            farthest = max(farthest, obs[0])
            is_over = terminated or truncated
        total += farthest
    return float(total / episodes)


options = eo.discover(make_car, n_options=8, steps=5000, features="fourier")
# An option ends after eight steps in which its potential did not rise.
options = options.with_termination(patience=8)
print(options)

low = options.features.low
high = options.features.high
figure, axes = plt.subplots(
    1, 4, figsize=(9, 2.4), sharey=True, layout="constrained"
)
for i, ax in enumerate(axes):
    one_option = options[i : i + 1]
    eo.plots.draw_landscape(ax, one_option.potential, low, high)
    ax.set(title=options.labels[i], xlabel="position")
axes[0].set_ylabel("velocity")
eo.plots.save_figure(figure, "continuous-actions.svg")

with_options = eo.OptionsWrapper(make_car(), options, option_chance=0.2)
print(
    f"farthest position: {measure_progress(make_car()):.2f} by random actions, "
    f"{measure_progress(with_options):.2f} with options"
)
