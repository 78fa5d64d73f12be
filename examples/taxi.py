"""Taxi
====

500 states, of which the place of the taxi is only a part.

Each destination is a world of its own, so eigenoptions are found for all four
at once.

In the picture: one 5 x 5 map per place of the passenger (columns; the last one
is inside the taxi) and destination (rows). The longest of 16 options: arrows
drive, 4 picks up, 5 drops off, red is where it stops. It belongs to one
destination, fetches the passenger and drives to one corner; of the other
destinations it knows nothing.
"""

import logging

import gymnasium as gym
import numpy as np

import eigenoptions as eo

# Four destinations are four components of the graph, which `discover` would
# remark on.
logging.getLogger("eigenoptions").setLevel(logging.ERROR)

# The newest version of the environment that Gymnasium has.
versions = [name for name in gym.registry if name.startswith("Taxi-")]
taxi = eo.from_env(max(versions))
options = eo.discover(taxi, n_options=16)
print(repr(taxi))
print(repr(options))

print("\noption  may start in  stops in  mean length")
for option in options:
    n_starts = option.initiation.sum()
    n_stops = option.termination.sum()
    print(
        f"{option.label:>6}  {n_starts:12d}"
        f"  {n_stops:8d}  {option.mean_length:11.1f}"
    )

longest = int(np.argmax(options.mean_length))
figure = eo.plots.plot_options(
    options[longest : longest + 1], figsize=(6.5, 6.0)
)
eo.plots.save_figure(figure, "taxi.svg")
