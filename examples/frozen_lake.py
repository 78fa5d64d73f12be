"""FrozenLake
==========

Options of an environment whose moves are uncertain, read from its table.

In the picture: on slippery ice an action moves in the chosen direction only
every third time, so arrows show what is aimed at. Holes end an episode; options
go around them. e2+ heads for the far end, where the goal is, although no reward
was used.
"""

import eigenoptions as eo

# The table is exact: 64 states, with the probabilities of every slip.
lake = eo.from_env("FrozenLake8x8-v1")
options = eo.discover(lake, n_options=8)
print(lake, options[:1], sep="\n\n")

print("\noption  stops in  mean length")
for option in options:
    n_stops = option.termination.sum()
    print(f"{option.label:>6}  {n_stops:8d}  {option.mean_length:11.1f}")

figure = eo.plots.plot_options(options)
eo.plots.save_figure(figure, "frozen-lake.svg")
