"""How often to take an option
===========================

Diffusion time of four rooms over the chance of an option, exactly.

In the picture: the dip of each curve is the best chance of an option. With few
options it is small, and far from it the walk is slower than without options
(the left end of the curves).
"""

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo

rooms = eo.maze("four-rooms")
all_options = eo.discover(rooms, n_options=32)
chances = np.linspace(0.0, 0.6, 13)

curves = {}
print("options  best chance  diffusion time  uniform choice  none")
for n in (4, 8, 32):
    options = all_options[:n]
    best = eo.best_option_chance(rooms, options)
    print(
        f"{n:7d}  {best.chance:11.3f}"
        f"  {best.diffusion_time:14.1f}"
        f"  {best.uniform_diffusion_time:14.1f}"
        f"  {best.primitive_diffusion_time:4.0f}"
    )
    curves[f"{n} options"] = [
        eo.diffusion_time(rooms, options, option_chance=chance)
        for chance in chances
    ]

figure, ax = plt.subplots(figsize=(4.5, 3), layout="constrained")
eo.plots.draw_curves(ax, chances, curves)
ax.set(xlabel="chance of an option", ylabel="diffusion time", yscale="log")
ax.legend()
eo.plots.save_figure(figure, "option-chance.svg")
