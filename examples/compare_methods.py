"""Methods side by side
====================

Diffusion time of four rooms as options are added.

In the picture: expected steps between two states, at a chance of 0.1 for an option; lower is better. With one or two
options every method is worse than none (621 steps), because the walk is carried to the same places again and again.
From four on eigenoptions help.
"""

import eigenoptions as eo

METHODS = ("eigen", "covering", "betweenness", "successor-goals", "random")
CHANCE, MOST = 0.1, 8

rooms = eo.maze("four-rooms")
curves = {}
for method in METHODS:
    options = eo.discover(rooms, MOST, method)
    curves[method] = eo.diffusion_curve(rooms, options, option_chance=CHANCE)
    steps = "  ".join(f"{curves[method][n]:6.0f}" for n in (0, 2, 4, 6, 8))
    print(f"{method:15} with 0, 2, 4, 6, 8 options: {steps}")
eo.plots.save_figure(
    eo.plots.plot_diffusion(curves, width=6.5, height=3.5), "compare-methods.svg"
)
