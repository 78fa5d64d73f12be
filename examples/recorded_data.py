"""Options from data that somebody has recorded
============================================

No environment, no reward.

In the picture: e2+ from 500, 2,000 and 20,000 recorded steps, and from the
exact table. With little data whole parts of the map have not been seen, and an
option knows nothing of them (red); with enough the two are the same.
"""

import matplotlib.pyplot as plt
import numpy as np
from gymnasium.spaces import Discrete

import eigenoptions as eo
from eigenoptions.samples.walking import walk

rooms = eo.maze("four-rooms")
table = eo.MDP(rooms.transition, start=rooms.start)
exact = eo.discover(table, n_options=2, operator="combinatorial")

# A random walk, which stands for your data.
log = walk(table, 20_000, rng=1)

figure, axes = plt.subplots(1, 4, figsize=(8, 2.3), layout="constrained")
for ax, n in zip(axes[:3], (500, 2_000, 20_000), strict=True):
    # Arrays under the names of D4RL or CleanRL, replay buffers, Minari data
    # sets and lists of steps are read.
    data = {
        "observations": log.obs[:n],
        "actions": log.action[:n],
        "next_observations": log.next_obs[:n],
    }
    found = eo.discover(data, n_options=2, space=Discrete(104), n_actions=4)

    # An eigenvector and its negative are equally good, so either sign counts.
    is_equal = found.policy == exact.policy[0]
    share = is_equal.mean(axis=1).max()
    n_seen = len(np.unique([log.obs[:n], log.next_obs[:n]]))
    print(
        f"{n:6d} steps: {n_seen:3d} of 104 states seen, "
        f"{share:.0%} of the actions as in the exact option"
    )
    eo.plots.draw_policy(ax, rooms, found.policy[0])
    ax.set_title(f"{n:,} steps")

eo.plots.draw_policy(axes[3], rooms, exact.policy[0])
axes[3].set_title("exact")
eo.plots.save_figure(figure, "recorded-data.svg")
