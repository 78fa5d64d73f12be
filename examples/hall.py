"""A robot in a hall
=================

A robot drove at random through a hall with two walls. From this log alone it
goes anywhere. A crate that nobody recorded is found on the way, and passed.

In the picture: distances to the goal that the log implies, the way that the
planner believes in (dashed) and the way that was taken (red), round the crate.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo


def move(position: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Take steps of at most 0.4 m; a step into a wall does not move."""
    following = np.clip(position + 0.4 * action, 0.0, 10.0)
    x, y = following.T
    in_first_wall = (abs(x - 3) < 0.6) & (y < 7)
    in_second_wall = (abs(x - 7) < 0.6) & (y > 3)
    is_blocked = in_first_wall | in_second_wall
    return np.where(is_blocked[:, None], position, following)


def is_in_crate(position: np.ndarray) -> bool:
    """Say whether a place is under a crate, which came after the log."""
    return bool(abs(position - [5.2, 4.6]).max() < 0.7)


# Two hundred short drives, at random. This stands for your data.
rng = np.random.default_rng(0)
positions = rng.uniform(0, (2, 10), (200, 2)) + rng.choice(
    [0, 4, 8], (200, 1)
) * [1, 0]
log = [positions]
actions = rng.uniform(-1, 1, (100, 200, 2))
for action in actions:
    log.append(move(log[-1], action))
planner = eo.Planner(
    (np.concatenate(log[:-1]), np.concatenate(actions), np.concatenate(log[1:]))
)
print(f"{planner} with cells of {planner.cell_size.round(2)} m")
print(planner.fit)

# One journey. It notices that it is stuck at the crate, and plans anew.
start = np.array([1.0, 1.0])
goal = np.array([9.0, 9.0])
run = planner.start(goal)
path = [start]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the warning says where it is stuck
    while not run.arrived and len(path) < 400:
        action = run.act(path[-1])
        following = move(path[-1][None], action)[0]
        path.append(path[-1] if is_in_crate(following) else following)
print(
    f"arrived: {run.arrived} in {run.steps} steps, "
    f"{len(run.blocked)} moves were blocked"
)

figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
cells = eo.plots.draw_plan(ax, planner, start, goal, path)
figure.colorbar(cells, label="distance to the goal, -log Z")
ax.set_aspect("equal")
ax.legend(loc="lower right")
eo.plots.save_figure(figure, "hall.svg")
