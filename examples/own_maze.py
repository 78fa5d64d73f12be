"""A maze of your own, drawn as text: its eigenvectors and its options.

In the picture: the first row shows the eigenvectors e2 to e5, smoothest first. e2 separates the two ends of the map,
the next ones its parts. Below are the options that climb them; red cells are where an option stops.
"""

import eigenoptions as eo

# One character per cell: # wall, . free, S start, G goal. A path to a text file works as well.
TEXT = """
#################
#S....#....#....#
#.....#....#....#
#..........#....#
#.....#.........#
#.....#....#....#
###.#######.#####
#.......#.......#
#...............#
#.......#......G#
#################
"""

maze = eo.maze(TEXT)
spectrum = eo.spectrum(eo.graph(maze), k=5)
options = eo.discover(maze, n_options=8)
print(maze, options[:1], sep="\n\n")

names = [f"e{i}" for i in range(2, 6)]
heat = [eo.plots.value_panel(maze.coords, spectrum.vectors[:, i], name) for i, name in enumerate(names, 1)]
arrows = [eo.plots.policy_panel(maze.coords, option.policy, option.label) for option in options[::2]]
eo.plots.save(eo.plots.figure([*heat, *arrows], columns=4), "own-maze.svg")
