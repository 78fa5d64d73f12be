"""How often to take an option
===========================

Diffusion time of four rooms over the chance of an option, exactly.

In the picture: the dip of each curve is the best chance of an option. With few options it is small, and far from it
the walk is slower than without options (the left end of the curves).
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo


def main() -> None:
    rooms = eo.maze("four-rooms")
    options = eo.discover(rooms, n_options=32)
    chances = np.linspace(0.0, 0.6, 13)
    lines = {}
    print("options  best chance  diffusion time  uniform choice  none")
    for n in (4, 8, 32):
        best = eo.best_option_chance(rooms, options[:n])
        row = (
            best.diffusion_time,
            best.uniform_diffusion_time,
            best.primitive_diffusion_time,
        )
        print(
            f"{n:7d}  {best.chance:11.3f}  {row[0]:14.1f}  {row[1]:14.1f}  {row[2]:4.0f}"
        )
        lines[f"{n} options"] = [
            eo.diffusion_time(rooms, options[:n], option_chance=c) for c in chances
        ]
    figure, ax = plt.subplots(figsize=(4.5, 3), layout="constrained")
    eo.plots.draw_curves(ax, chances, lines)
    ax.set(xlabel="chance of an option", ylabel="diffusion time", yscale="log")
    ax.legend()
    eo.plots.save_figure(figure, "option-chance.svg")


if __name__ == "__main__":
    main()
