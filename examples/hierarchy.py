"""Options over options
====================

Discover again on the graph that the first options span.

In the picture: above, eigenoptions of four rooms; below, options of the second level. Where first-level options jump
from anywhere to a few corners, those corners are near everything, and the second level leads to what is still far.
"""

import matplotlib.pyplot as plt

import eigenoptions as eo
from eigenoptions.discovery.hierarchy import mdp_with_options

rooms = eo.maze("four-rooms")
first = eo.discover(rooms, n_options=4)
# Its actions are the four moves, then the four options.
wide = mdp_with_options(rooms, first)
# The purposes of its graph, followed by moves alone.
second = eo.solve(rooms, eo.discover(wide, n_options=4).purposes)
print(f"{wide!r}\nfirst {first!r}\nsecond {second!r}")
for name, options in (("first", first), ("second", second), ("both", first + second)):
    time = eo.diffusion_time(rooms, options, option_chance=0.05)
    print(
        f"diffusion time, {name} level{'s' if name == 'both' else ''}: {time:.0f} steps"
    )
shown = [
    (f"level {level}: {o.label}", o.policy)
    for level, options in ((1, first), (2, second))
    for o in options
]
figure, axes = plt.subplots(2, 4, figsize=(8, 4.5), layout="constrained")
for ax, (title, policy) in zip(axes.flat, shown, strict=True):
    eo.plots.draw_policy(ax, rooms, policy)
    ax.set_title(title)
eo.plots.save_figure(figure, "hierarchy.svg")
