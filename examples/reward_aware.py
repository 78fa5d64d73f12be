"""Options that know what is costly: the default representation takes the reward into the graph.

In the picture: nine rooms, of which the one in the middle costs 20 per step and the others 1. Options of "eigen" run
straight through it; those of "reward-aware" lead to similar ends around it.
"""

from dataclasses import replace

import numpy as np

import eigenoptions as eo
from eigenoptions.mdp.maps import rooms_map

rooms = eo.maze(rooms_map(3, 3, size=5))
middle = ((rooms.coords > 6) & (rooms.coords < 12)).all(axis=1)
costly = replace(rooms, reward=np.where(middle, -20.0, -1.0), goal=None)

panels = [eo.plots.value_panel(rooms.coords, -costly.reward, "cost per step", signed=False)]
for method in ("eigen", "reward-aware"):
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
    panels += [eo.plots.policy_panel(rooms.coords, o.policy, f"{method} {o.label}") for o in options[1:3]]
eo.plots.save(eo.plots.figure(panels, columns=5), "reward-aware.svg")
