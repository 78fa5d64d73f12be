"""Options that know what is costly
================================

The default representation takes the reward into the graph.

In the picture: nine rooms, of which the one in the middle costs 20 per step and the others 1. Options of "eigen" run
straight through it; those of "reward-aware" lead to similar ends around it.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo
from eigenoptions.mdp.mazes import rooms_map

rooms = eo.maze(rooms_map(3, 3, size=5))
middle = ((rooms.coords > 6) & (rooms.coords < 12)).all(axis=1)
costly = replace(rooms, reward=np.where(middle, -20.0, -1.0), goal=None)

figure, axes = plt.subplots(1, 5, figsize=(9, 2.2), layout="constrained")
eo.plots.draw_values(axes[0], rooms, -costly.reward, signed=False)
axes[0].set_title("cost per step")
for pair, method in zip((axes[1:3], axes[3:]), ("eigen", "reward-aware"), strict=True):
    options = eo.discover(costly, 4, method)
    inside = []
    for option in options:
        # From the upper left corner.
        state, visited = 0, []
        while (action := option.act(state)) != eo.TERMINATE:
            state = int(costly.successors[state, action])
            visited.append(middle[state])
        inside.append(int(np.sum(visited)))
    print(f"{method}: steps in the costly room from the upper left corner {inside}")
    for ax, option in zip(pair, options[1:3], strict=True):
        eo.plots.draw_policy(ax, rooms, option.policy)
        ax.set_title(f"{method} {option.label}")
eo.plots.save_figure(figure, "reward-aware.svg")
