"""Four rooms
==========

Discover skills, look at two of them, keep them, and let both walk through the
maze.

The options are kept in ``four-rooms.safetensors`` in the current folder.

In the picture: the eight options as arrows. Those of e2 lead to two opposite
corners, those of e3 to the other two; red cells are where an option stops.
"""

import eigenoptions as eo

rooms = eo.maze("four-rooms")
options = eo.discover(rooms, n_options=8)

# The two signs of the second eigenvector; dots mark where they stop.
print(options[:2])

print("\noption  eigenvalue  stops in  mean length")
for option in options:
    n_stops = option.termination.sum()
    print(
        f"{option.label:>6}  {option.eigenvalue:10.5f}"
        f"  {n_stops:8d}  {option.mean_length:11.2f}"
    )

figure = eo.plots.plot_options(options)
eo.plots.save_figure(figure, "four-rooms.svg")
options.save("four-rooms.safetensors")

# Read two of the options again, and follow them from the start of the maze.
first_two = eo.load_options("four-rooms.safetensors", rooms, only=[0, 1])
print()
for option in first_two:
    path = ""
    state = rooms.start
    action = option.act(state)
    while action != eo.TERMINATE:
        path += "↑→↓←"[action]
        state = int(rooms.successors[state, action])
        action = option.act(state)
    print(
        f"From the start {option.label} walks {path or 'nowhere'} "
        f"and stops in state {state}."
    )
