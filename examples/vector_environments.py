"""Many copies at once
===================

Options in a vector environment, one primitive step of all copies per call.

In the picture: how often 256 random walks were in each cell after 200 steps
from the start in the lower left corner, with actions only and with options in
one decision of twenty. Options spread the walks over all rooms.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo

N_COPIES = 256

rooms = eo.maze("four-rooms")
options = eo.discover(rooms, 8)


def make_envs() -> gym.vector.VectorEnv:
    return gym.make_vec("eigenoptions/FourRooms-v0", num_envs=N_COPIES)


envs_by_name = {
    "actions only": make_envs(),
    "8 options": eo.OptionsVectorWrapper(
        make_envs(), options, option_chance=0.05
    ),
}
figure, axes = plt.subplots(1, 2, figsize=(6.5, 3.4), layout="constrained")
for ax, (name, envs) in zip(axes, envs_by_name.items(), strict=True):
    envs.reset(seed=0)
    envs.action_space.seed(0)
    visits = np.zeros(rooms.n_states)
    n_decisions = 0
    for _ in range(200):
        states, *_, infos = envs.step(envs.action_space.sample())
        visits += np.bincount(states, minlength=rooms.n_states)

        # Copies in the middle of an option do not decide in the next step.
        is_complete = infos.get("complete", np.ones(N_COPIES))
        n_decisions += int(is_complete.sum())

    share = visits / visits.sum()
    visited = share[share > 0]
    entropy = -np.sum(visited * np.log2(visited))
    highest = np.log2(rooms.n_states)
    print(
        f"{name:12}: {n_decisions:6d} decisions, "
        f"entropy of the visits {entropy:.2f} of {highest:.2f} bits"
    )
    eo.plots.draw_values(
        ax, rooms, np.sqrt(share), signed=False, limits=(0, 0.3)
    )
    ax.set_title(name)
eo.plots.save_figure(figure, "vector-environments.svg")
