"""A maze of your own, drawn as text
=================================

Its eigenvectors and its options.

In the picture: the first row shows the eigenvectors e2 to e5, smoothest first.
e2 separates the two ends of the map, the next ones its parts. Below are the
options that climb them; red cells are where an option stops.
"""

import matplotlib.pyplot as plt

import eigenoptions as eo

# One character per cell: # wall, . free, S start, G goal.
# A path to a text file works as well.
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

figure, axes = plt.subplots(2, 4, figsize=(9, 3.6), layout="constrained")
for column in range(4):
    # The first eigenvector, e1, is the same everywhere.
    ax = axes[0, column]
    eo.plots.draw_values(ax, maze, spectrum.vectors[:, column + 1])
    ax.set_title(f"e{column + 2}")

# Every second option: the + of each eigenvector.
eo.plots.draw_options(axes[1], options[::2])
eo.plots.save_figure(figure, "own-maze.svg")
