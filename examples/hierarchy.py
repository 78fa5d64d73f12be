"""Options over options
====================

Discover again on the graph that the first options span.

In the picture: above, eigenoptions of four rooms; below, options of the second
level. Where first-level options jump from anywhere to a few corners, those
corners are near everything, and the second level leads to what is still far.
"""

import matplotlib.pyplot as plt

import eigenoptions as eo
from eigenoptions.discovery.hierarchy import mdp_with_options

rooms = eo.maze("four-rooms")
first = eo.discover(rooms, n_options=4)

# The actions of this MDP are the four moves, then the four options.
wide = mdp_with_options(rooms, first)

# The purposes of its graph, followed by moves alone.
purposes = eo.discover(wide, n_options=4).purposes
second = eo.solve(rooms, purposes)

print(repr(wide))
print("first", repr(first))
print("second", repr(second))
levels = {
    "first level": first,
    "second level": second,
    "both levels": first + second,
}
for name, options in levels.items():
    time = eo.diffusion_time(rooms, options, option_chance=0.05)
    print(f"diffusion time, {name}: {time:.0f} steps")

figure, axes = plt.subplots(2, 4, figsize=(8, 4.5), layout="constrained")
for i in range(4):
    eo.plots.draw_policy(axes[0, i], rooms, first[i].policy)
    axes[0, i].set_title(f"level 1: {first[i].label}")
    eo.plots.draw_policy(axes[1, i], rooms, second[i].policy)
    axes[1, i].set_title(f"level 2: {second[i].label}")
eo.plots.save_figure(figure, "hierarchy.svg")
