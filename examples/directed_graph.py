"""One-way doors
=============

Options where moves cannot be taken back.

In the picture: four rooms that can only be passed clockwise. The first row has
eigenoptions, whose graph takes every edge as passable both ways, the second one
options of the method "neo", whose graph is directed. Either kind obeys the
doors, because options are solved with the true moves: follow the arrows around
the door on the left.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array

import eigenoptions as eo

UP, RIGHT, DOWN, LEFT = range(4)
# Row and column of each door, and the direction in which it may be passed.
DOORS = {(3, 6): RIGHT, (7, 9): DOWN, (10, 6): LEFT, (6, 2): UP}

# The next state of each state and action: shape (104, 4).
rooms = eo.maze("four-rooms")
successors = rooms.successors.copy()
for place, direction in DOORS.items():
    (door,) = np.flatnonzero((rooms.coords == place).all(axis=1))
    behind = successors[door, direction]

    # Whoever has passed the door cannot go back into it.
    backward = (direction + 2) % 4
    successors[behind, backward] = behind

# The table of an MDP has one row per state and action.
n_moves = successors.size
table = csr_array(
    (np.ones(n_moves), successors.ravel(), np.arange(n_moves + 1))
)
one_way = replace(rooms, transition=table, name="one-way", goal=None)

figure, axes = plt.subplots(2, 4, figsize=(8, 4.5), layout="constrained")
for row, method in zip(axes, ("eigen", "neo"), strict=True):
    options = eo.discover(one_way, 4, method)
    lengths = ", ".join(
        f"{option.label} {option.mean_length:.1f}" for option in options
    )
    print(f"{method}: mean lengths {lengths}")
    for ax, option in zip(row, options, strict=True):
        eo.plots.draw_policy(ax, rooms.coords, option.policy)
        ax.set_title(f"{method} {option.label}")
eo.plots.save_figure(figure, "directed-graph.svg")
