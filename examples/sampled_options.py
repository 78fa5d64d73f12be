"""Options of samples become the exact ones
========================================

Principal angles and equal actions as transitions grow (Theorem 5.1).

In the picture: on the left the largest principal angle between the spaces of sampled and exact eigenvectors, on the
right the share of states in which sampled and exact options take the same action. Both reach their ends once every
edge was seen.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from gymnasium.spaces import Discrete
from scipy.linalg import subspace_angles

import eigenoptions as eo

SIZES, K, RUNS = [500, 1000, 2000, 4000, 10_000], 8, 3


def main() -> None:
    rooms = eo.maze("four-rooms")
    table = eo.MDP(rooms.transition, start=rooms.start)
    exact = eo.spectrum(eo.graph(table), K + 1, "combinatorial").vectors[:, 1:]
    truth = eo.discover(table, 2 * K, operator="combinatorial").policy.reshape(K, 2, -1)
    angle, equal = np.zeros((2, RUNS, len(SIZES)))
    for run in range(RUNS):
        for i, n in enumerate(SIZES):
            batch = eo.collect(table, n, rng=run)
            options = eo.discover(
                batch, 2 * K, space=Discrete(table.n_states), n_actions=table.n_actions
            )
            found = np.stack(
                [purpose.potential for purpose in options.purposes[::2]], axis=1
            )
            angle[run, i] = np.rad2deg(subspace_angles(found, exact))[0]
            signs = np.where((found * exact).sum(axis=0) < 0, -1, 1)
            pairs = zip(options.policy.reshape(K, 2, -1), signs, truth, strict=True)
            equal[run, i] = np.mean(
                [policy[::sign] == other for policy, sign, other in pairs]
            )
    for n, degrees, share in zip(
        SIZES, angle.mean(axis=0), equal.mean(axis=0), strict=True
    ):
        print(
            f"{n:6d} transitions: largest angle {degrees:6.2f} degrees, equal actions {share:.1%}"
        )
    lines = {"largest principal angle, degrees": angle, "share of equal actions": equal}
    figure, axes = plt.subplots(1, 2, figsize=(6.5, 2.6), layout="constrained")
    for ax, (name, y) in zip(axes, lines.items(), strict=True):
        eo.plots.draw_curves(ax, SIZES, {name: y})
        ax.set(xlabel="steps", ylabel=name)
    eo.plots.save_figure(figure, "sampled-options.svg")


main()
