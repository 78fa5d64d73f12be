"""Commute times
=============

An embedding in which distance is how long a random walk takes to go there and back.

In the picture: on the left the states of four rooms at their first two coordinates, one colour per room. Rooms are
clusters, and doors lie between them. On the right the steps from the start, in the lower left corner, to each cell and
back; a wall between two cells counts, their distance on the map does not.
"""

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo

rooms = eo.maze("four-rooms")
W = eo.graph(rooms)
# (104, 104): one row per state.
rows = eo.spectrum(W, k=None, operator="combinatorial").embedding("commute")
steps = W.sum() * ((rows - rows[rooms.start]) ** 2).sum(axis=1)
print(
    f"there and back: to the next cell {np.sort(steps)[1]:.0f} steps, to the farthest {steps.max():.0f}"
)

row, column = rooms.coords.T
places = {
    "upper left": (row < 7) & (column < 6),
    "upper right": (row < 7) & (column > 6),
}
places |= {
    "lower left": (row >= 7) & (column < 6),
    "lower right": (row >= 7) & (column > 6),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
for name, inside in places.items():
    left.scatter(*rows[inside, 1:3].T, s=8, label=name)
left.set(xlabel="first coordinate", ylabel="second coordinate")
left.legend()
eo.plots.draw_values(right, rooms, steps, signed=False, colorbar="steps there and back")
eo.plots.save_figure(figure, "commute-time.svg")
