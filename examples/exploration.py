"""Explore with options of a graph that is not known yet
=====================================================

States seen against steps, with options and without.

``python examples/exploration.py 30`` averages over 30 seeds (20 seconds).

In the picture: options chosen uniformly see fewer states than actions alone; in one decision of twenty they see more.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo
from eigenoptions.mdp.mazes import rooms_map

CHANCES = {
    "actions only": 0.0,
    "options, uniform choice": None,
    "options, 1 decision in 20": 0.05,
}


def seen(
    mdp: eo.MDP, at: np.ndarray, round_steps: int, chance: float | None, seed: int
) -> np.ndarray:
    """States that a walk has visited by each of the steps `at`."""
    rounds = eo.cycle(
        mdp,
        steps=round_steps,
        rounds=at[-1] // round_steps,
        option_chance=chance,
        rng=seed,
    )
    visits = np.concatenate(
        [np.stack([r.transitions.obs, r.transitions.next_obs], axis=1) for r in rounds]
    )
    first = np.unique(visits.ravel(), return_index=True)[1] // 2 + 1
    return np.searchsorted(np.sort(first), at, side="right")


def main(runs: int) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    mazes = (
        ("four rooms", "four-rooms", 40),
        ("nine rooms", rooms_map(3, 3, size=5), 80),
    )
    for ax, (name, text, every) in zip(axes, mazes, strict=True):
        mdp, at = eo.MDP(eo.maze(text).transition, start=0), every * np.arange(1, 101)
        curves = {}
        for way, chance in CHANCES.items():
            curves[way] = np.array(
                [seen(mdp, at, 10 * every, chance, seed) for seed in range(runs)]
            )
            print(
                f"{name}: {way:26} {curves[way][:, 49].mean():6.1f} states after {at[49]} steps"
            )
        eo.plots.draw_curves(ax, at, curves)
        ax.set(title=name, xlabel="steps", ylabel="states seen")
    axes[0].legend()
    eo.plots.save_figure(figure, "exploration.svg")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 4)
