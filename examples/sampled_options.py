"""Options of samples become the exact ones
========================================

Principal angles and equal actions as transitions grow (Theorem 5.1).

In the picture: on the left the largest principal angle between the spaces of
sampled and exact eigenvectors, on the right the share of states in which
sampled and exact options take the same action. Both reach their ends once every
edge was seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from gymnasium.spaces import Discrete
from scipy.linalg import subspace_angles

import eigenoptions as eo

SIZES = [500, 1000, 2000, 4000, 10_000]
N_VECTORS = 8
N_RUNS = 3

# The exact eigenvectors and options. There is no direction in the first
# eigenvector, which is the same everywhere.
rooms = eo.maze("four-rooms")
table = eo.MDP(rooms.transition, start=rooms.start)
W = eo.graph(table)
spectrum = eo.spectrum(W, N_VECTORS + 1, "combinatorial")
exact_vectors = spectrum.vectors[:, 1:]
exact = eo.discover(table, 2 * N_VECTORS, operator="combinatorial")


def compare(n_transitions: int, seed: int) -> tuple[float, float]:
    """Compare sampled options with the exact ones: angle, equal actions."""
    batch = eo.collect(table, n_transitions, rng=seed)
    options = eo.discover(
        batch,
        2 * N_VECTORS,
        space=Discrete(table.n_states),
        n_actions=table.n_actions,
    )

    # Both signs of an eigenvector have an option; the + comes first.
    vectors = [purpose.potential for purpose in options.purposes[::2]]
    sampled_vectors = np.stack(vectors, axis=1)
    angles = np.rad2deg(subspace_angles(sampled_vectors, exact_vectors))

    # If two eigenvectors point in opposite directions, + and - are swapped.
    products = (sampled_vectors * exact_vectors).sum(axis=0)
    policies = options.policy.reshape(N_VECTORS, 2, -1).copy()
    policies[products < 0] = policies[products < 0, ::-1]
    exact_policies = exact.policy.reshape(N_VECTORS, 2, -1)
    return angles[0], np.mean(policies == exact_policies)


angles = np.zeros((N_RUNS, len(SIZES)))
shares = np.zeros((N_RUNS, len(SIZES)))
for i, size in enumerate(SIZES):
    for run in range(N_RUNS):
        angles[run, i], shares[run, i] = compare(size, seed=run)
    print(
        f"{size:6d} transitions: "
        f"largest angle {angles[:, i].mean():6.2f} degrees, "
        f"equal actions {shares[:, i].mean():.1%}"
    )

curves = {
    "largest principal angle, degrees": angles,
    "share of equal actions": shares,
}
figure, axes = plt.subplots(1, 2, figsize=(6.5, 2.6), layout="constrained")
for ax, (name, curve) in zip(axes, curves.items(), strict=True):
    eo.plots.draw_curves(ax, SIZES, {name: curve})
    ax.set(xlabel="steps", ylabel=name)
eo.plots.save_figure(figure, "sampled-options.svg")
