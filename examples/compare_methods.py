"""Methods side by side
====================

Diffusion time of four rooms as options are added.

In the picture: expected steps between two states, if one decision in ten is for
an option; lower is better. With one or two options every method is worse than
none (621 steps), because the walk is carried to the same places again and
again. From four on eigenoptions help.
"""

import eigenoptions as eo

rooms = eo.maze("four-rooms")
curves = {}
for method in (
    "eigen",
    "covering",
    "betweenness",
    "successor-goals",
    "random",
):
    options = eo.discover(rooms, 8, method)
    curve = eo.diffusion_curve(rooms, options, option_chance=0.1)
    curves[method] = curve

    # The curve has one number for each number of options, from 0 to 8.
    steps = "  ".join(f"{time:6.0f}" for time in curve[::2])
    print(f"{method:15} with 0, 2, 4, 6, 8 options: {steps}")

figure = eo.plots.plot_diffusion(curves, figsize=(6.5, 3.5))
eo.plots.save_figure(figure, "compare-methods.svg")
