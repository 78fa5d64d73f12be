"""MountainCar, explored
=====================

In MountainCar no observation repeats, and random actions never reach the goal.
``explore`` learns a model of one step, and goes where this promises places far
from all that were seen.

In the picture: all steps, position to the right and velocity upwards, the later
the paler; the red dot is the goal.
"""

import gymnasium as gym

import eigenoptions as eo

env = gym.make("MountainCar-v0")
found = eo.explore(env, 1_000, until="reward")
print(found)

# The way to what was rewarded acts on observations, from any start.
way = found.option()
obs, _ = env.reset(seed=7)
n_steps = 0
terminated = truncated = False
while not (terminated or truncated):
    # -1 says that no way is known from here.
    action = max(way.act(obs), 0)
    obs, _, terminated, truncated, _ = env.step(action)
    n_steps += 1
print(f"the option reaches the goal in {n_steps} steps: {terminated}")

# Options of cells, for an agent of yours.
options = eo.discover(found, n_options=4)
print(repr(options))

eo.plots.save_figure(
    eo.plots.plot_first_visits(found), "explore-mountain-car.svg"
)
