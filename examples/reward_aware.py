"""Options that know what is costly
================================

The default representation takes the reward into the graph.

In the picture: nine rooms, of which the one in the middle costs 20 per step and
the others 1. Options of "eigen" run straight through it; those of
"reward-aware" lead to similar ends around it.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo
from eigenoptions.mdp.mazes import rooms_map

rooms = eo.maze(rooms_map(3, 3, size=5))
row, column = rooms.coords.T
is_costly = (row > 6) & (row < 12) & (column > 6) & (column < 12)
reward = np.where(is_costly, -20.0, -1.0)
costly = replace(rooms, reward=reward, goal=None)

figure, axes = plt.subplots(1, 5, figsize=(9, 2.4), layout="constrained")
eo.plots.draw_values(axes[0], rooms, -reward, signed=False)
axes[0].set_title("cost per step")

axes_of_methods = {"eigen": axes[1:3], "reward-aware": axes[3:]}
for method, two_axes in axes_of_methods.items():
    options = eo.discover(costly, 4, method)

    # Follow each option from the upper left corner, which is state 0.
    costly_steps = []
    for option in options:
        path = options.follow(option.label, 0)
        costly_steps.append(int(is_costly[path].sum()))
    print(
        f"{method}: steps in the costly room from the upper left corner "
        f"{costly_steps}"
    )

    for ax, option in zip(two_axes, options[1:3], strict=True):
        eo.plots.draw_policy(ax, rooms, option.policy)
        ax.set_title(f"{method}\n{option.label}")
eo.plots.save_figure(figure, "reward-aware.svg")
