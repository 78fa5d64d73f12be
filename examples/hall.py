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


def move(positions, actions):
    """Take steps of at most 0.4 m; a step into a wall does not move."""
    following = np.clip(positions + 0.4 * actions, 0.0, 10.0)
    x, y = following.T
    is_blocked = (abs(x - 3) < 0.6) & (y < 7)
    is_blocked |= (abs(x - 7) < 0.6) & (y > 3)
    return np.where(is_blocked[:, None], positions, following)


# Two hundred short drives, at random. This stands for your data.
rng = np.random.default_rng(0)
positions = rng.uniform(0, (2, 10), (200, 2))
positions[:, 0] += rng.choice([0, 4, 8], 200)
log = [positions]
actions = rng.uniform(-1, 1, (100, 200, 2))
for action in actions:
    log.append(move(log[-1], action))

planner = eo.Planner(
    (np.concatenate(log[:-1]), np.concatenate(actions), np.concatenate(log[1:]))
)
print(planner, planner.fit, sep="\n")

# One episode. It notices that it is stuck at a crate, which came after the log,
# and plans anew. The warning says where; here a line at the end does.
warnings.simplefilter("ignore")
start = np.array([1.0, 1.0])
goal = np.array([9.0, 9.0])
run = planner.start(goal)
path = [start]
while not run.arrived and run.steps < 400:
    following = move(path[-1][None], run.act(path[-1]))[0]
    is_in_crate = abs(following - [5.2, 4.6]).max() < 0.7
    path.append(path[-1] if is_in_crate else following)
print(f"arrived: {run.arrived} in {run.steps} steps")
print(f"{len(run.blocked)} moves were blocked")

figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
cells = eo.plots.draw_plan(ax, planner, start, goal, path)
figure.colorbar(cells, label="distance to the goal, -log Z")
ax.legend(loc="lower right")
eo.plots.save_figure(figure, "hall.svg")
