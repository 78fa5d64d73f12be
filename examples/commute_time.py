"""Commute times
=============

An embedding in which distance is how long a random walk takes to go there and
back.

In the picture: on the left the states of four rooms at their first two
coordinates, one colour per room. Rooms are clusters, and doors lie between
them. On the right the steps from the start, in the lower left corner, to each
cell and back; a wall between two cells counts, their distance on the map does
not.
"""

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo

rooms = eo.maze("four-rooms")
W = eo.graph(rooms)
spectrum = eo.spectrum(W, k=None, operator="combinatorial")

# One row of coordinates per state: shape (104, 104).
embedding = spectrum.embedding("commute")

# The commute time is the squared distance times the sum of all weights.
offset = embedding - embedding[rooms.start]
steps = W.sum() * (offset**2).sum(axis=1)
nearest = np.sort(steps)[1]
print(
    f"there and back: to the next cell {nearest:.0f} steps, "
    f"to the farthest {steps.max():.0f}"
)

row, column = rooms.coords.T
is_upper = row < 7
is_left = column < 6
is_right = column > 6
states_of_rooms = {
    "upper left": is_upper & is_left,
    "upper right": is_upper & is_right,
    "lower left": ~is_upper & is_left,
    "lower right": ~is_upper & is_right,
}

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
for name, states in states_of_rooms.items():
    first, second = embedding[states, 1:3].T
    left.scatter(first, second, s=8, label=name)
left.set(xlabel="first coordinate", ylabel="second coordinate")
left.legend()
eo.plots.draw_values(
    right, rooms, steps, signed=False, colorbar="steps there and back"
)
eo.plots.save_figure(figure, "commute-time.svg")
