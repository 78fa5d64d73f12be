"""A column that takes over the eigenvectors
=========================================

A robot drives through a hall with a wall, and its log has the battery.

In the picture: e2 with all columns, which only tells how full the battery is,
and e2 without it, which leads from one corner of the hall to the other.
`check_columns` finds such columns before they are used.
"""

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo
from eigenoptions.samples.features import make_features

rng = np.random.default_rng(0)
moves = np.array([(0.4, 0.0), (0.0, 0.4), (-0.4, 0.0), (0.0, -0.4)])

# A log as programs write it: a list of (obs, action, next_obs), in episodes.
log = []
for _ in range(60):
    place = rng.uniform(0, 10, 2)
    charge = 1.0
    for _ in range(300):
        action = rng.integers(4)
        after = np.clip(place + moves[action] * rng.uniform(0.5, 1), 0, 10)
        if (place[0] < 5) != (after[0] < 5) and not 4 < after[1] < 6:
            after = place  # the wall
        log.append(([*place, charge], action, [*after, charge - 0.003]))
        place = after
        charge -= 0.003

transitions = eo.Transitions.of(log)
report = eo.check_columns(transitions)
print(report)

figure, axes = plt.subplots(1, 2, figsize=(6.4, 3), layout="constrained")
for ax, columns in zip(axes, ((0, 1, 2), (0, 1)), strict=True):
    waves = make_features(
        "fourier", obs=transitions.obs, columns=columns, order=5
    )
    spectrum = eo.feature_spectrum(transitions, waves, k=3)
    e2 = waves(transitions.obs) @ spectrum.vectors[:, spectrum.n_zero]
    print(columns, report.explain(transitions.obs, e2, ["e2"]))
    ax.scatter(*transitions.obs[::10, :2].T, c=e2[::10], s=3, cmap="PuOr")
    ax.set(title=f"e2, columns={list(columns)}", aspect="equal", xlabel="x, y")
eo.plots.save_figure(figure, "battery.png")
