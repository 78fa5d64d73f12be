"""Many copies at once
===================

Options in a vector environment, one primitive step of all copies per call.

In the picture: how often 256 random walks were in each cell after 200 steps from the start in the lower left corner,
with actions only and with options in one decision of twenty. Options spread the walks over all rooms.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo

rooms = eo.maze("four-rooms")
figure, axes = plt.subplots(1, 2, figsize=(6.5, 3.4), layout="constrained")
for ax, name, n in zip(axes, ("actions only", "8 options"), (0, 8), strict=True):
    envs = gym.make_vec("eigenoptions/FourRooms-v0", num_envs=256)
    envs = (
        eo.OptionsVectorWrapper(envs, eo.discover(rooms, n), option_chance=0.05)
        if n
        else envs
    )
    states, _ = envs.reset(seed=0)
    envs.action_space.seed(0)
    visits, decisions = np.zeros(rooms.n_states), 0
    for _ in range(200):
        states, reward, terminated, truncated, infos = envs.step(
            envs.action_space.sample()
        )
        decisions += int(np.sum(infos.get("complete", 256)))
        visits += np.bincount(states, minlength=rooms.n_states)
    share = visits / visits.sum()
    entropy = -np.sum(share[share > 0] * np.log2(share[share > 0]))
    print(
        f"{name:12}: {decisions:6d} decisions, entropy of the visits {entropy:.2f} of {np.log2(104):.2f} bits"
    )
    eo.plots.draw_values(ax, rooms, np.sqrt(share), signed=False, limits=(0, 0.3))
    ax.set_title(name)
eo.plots.save_figure(figure, "vector-environments.svg")
