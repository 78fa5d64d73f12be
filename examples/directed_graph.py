"""One-way doors
=============

Options where moves cannot be taken back.

In the picture: four rooms that can only be passed clockwise. The first row has eigenoptions, whose graph takes every
edge as passable both ways, the second one options of the method "neo", whose graph is directed. Either kind obeys the
doors, because options are solved with the true moves: follow the arrows around the door on the left.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array

import eigenoptions as eo

rooms = eo.maze("four-rooms")
# (104, 4): next state of each action, 0 up, 1 right, 2 down, 3 left.
moves = rooms.successors.copy()
for place, action in (((3, 6), 1), ((7, 9), 2), ((10, 6), 3), ((6, 2), 0)):
    (door,) = np.flatnonzero((rooms.coords == place).all(axis=1))
    behind = moves[door, action]
    # No way back into the door.
    moves[behind, (action + 2) % 4] = behind
table = csr_array((np.ones(moves.size), moves.ravel(), np.arange(moves.size + 1)))
one_way = replace(rooms, transition=table, name="one-way", goal=None)

figure, axes = plt.subplots(2, 4, figsize=(8, 4.5), layout="constrained")
for row, method in zip(axes, ("eigen", "neo"), strict=True):
    options = eo.discover(one_way, 4, method)
    print(
        f"{method}: mean lengths {', '.join(f'{o.label} {o.mean_length:.1f}' for o in options)}"
    )
    for ax, option in zip(row, options, strict=True):
        eo.plots.draw_policy(ax, rooms.coords, option.policy)
        ax.set_title(f"{method} {option.label}")
eo.plots.save_figure(figure, "directed-graph.svg")
