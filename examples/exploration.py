"""Explore with options of a graph that is not known yet
=====================================================

States seen against steps, with options and without.

``python examples/exploration.py 30`` averages over 30 seeds (20 seconds).

In the picture: options chosen uniformly see fewer states than actions alone; in
one decision of twenty they see more.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo
from eigenoptions.mdp.mazes import rooms_map

OPTION_CHANCES = {
    "actions only": 0.0,
    "options, uniform choice": None,
    "options, 1 decision in 20": 0.05,
}


def count_seen_states(
    mdp: eo.MDP,
    at_steps: np.ndarray,
    round_steps: int,
    option_chance: float | None,
    seed: int,
) -> np.ndarray:
    """Count the states that a walk has visited by each of the steps."""
    # In each round the walk uses options of the graph that it has seen so far.
    rounds = eo.cycle(
        mdp,
        steps=round_steps,
        rounds=at_steps[-1] // round_steps,
        option_chance=option_chance,
        rng=seed,
    )
    visits = []
    for one_round in rounds:
        walk = one_round.transitions
        visits.append(np.stack([walk.obs, walk.next_obs], axis=1))

    # Each step has two visits, of the state before it and of that after it.
    states = np.concatenate(visits).ravel()
    _, first_visits = np.unique(states, return_index=True)
    first_steps = np.sort(first_visits // 2 + 1)
    return np.searchsorted(first_steps, at_steps, side="right")


runs = 4
if len(sys.argv) > 1:
    runs = int(sys.argv[1])

# A maze, and every how many steps the seen states are counted.
mazes = {
    "four rooms": ("four-rooms", 40),
    "nine rooms": (rooms_map(3, 3, size=5), 80),
}
figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for ax, (name, (maze, interval)) in zip(axes, mazes.items(), strict=True):
    mdp = eo.MDP(eo.maze(maze).transition, start=0)
    at_steps = interval * np.arange(1, 101)
    curves = {}
    for label, option_chance in OPTION_CHANCES.items():
        curve_of_runs = []
        for seed in range(runs):
            curve = count_seen_states(
                mdp, at_steps, 10 * interval, option_chance, seed
            )
            curve_of_runs.append(curve)
        curves[label] = np.array(curve_of_runs)

        steps = at_steps[49]
        n_seen = curves[label][:, 49].mean()
        print(f"{name}: {label:26} {n_seen:6.1f} states after {steps} steps")
    eo.plots.draw_curves(ax, at_steps, curves)
    ax.set(title=name, xlabel="steps", ylabel="states seen")
axes[0].legend()
eo.plots.save_figure(figure, "exploration.svg")
