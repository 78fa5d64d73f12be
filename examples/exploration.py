"""Explore with options of a graph that is not known yet: states seen against steps, with options and without.

Run it with ``python examples/exploration.py``, or ``python examples/exploration.py 30`` for 30 seeds (20 seconds). It
writes ``exploration.svg``.
"""

from __future__ import annotations

import sys

import eigenoptions as eo
from eigenoptions import plots
from eigenoptions.discovery.online import exploration
from eigenoptions.mdp.maps import rooms_map


def main(runs: int) -> None:
    mazes = {
        "four rooms": (eo.maze("four-rooms"), 4000, 250),
        "25 rooms": (eo.maze(rooms_map(5, 5, size=5)).task(start=0), 20_000, 2000),
    }
    panels = []
    for name, (mdp, steps, round_steps) in mazes.items():
        found = exploration(mdp, steps, runs=runs, round_steps=round_steps)
        half = len(found.steps) // 2 - 1
        print(f"{name}: {mdp.n_states} states, seen after {found.steps[half]} steps")
        for way, seen in found.seen.items():
            print(f"  {way:26} {seen[:, half].mean():6.1f}")
        words = {"xlabel": "steps", "ylabel": "states seen", "legend": False}
        panels.append(plots.curve_panel(found.steps, found.seen, name, **words))
    plots.save(plots.figure(panels, width=plots.PAGE, legend=True), "exploration.svg")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 2)
