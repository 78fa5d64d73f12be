"""A warehouse robot's log
=======================

A robot turned and drove at random through a warehouse with two walls. Its log
has x, y, the sine and cosine of its heading, and the battery.

The battery falls in every episode, so it would take over the first
eigenvectors. `discover` says so, and names the columns that leave it out. The
vectors become cells of a table, and options of the table lead towards the ends
of the warehouse, round the walls. At a corner some give up, since their values
promise more than they get.

In the picture: the paths of four options from five places over the floor.
Squares are where they end; the grey dots are the log.
"""

import matplotlib.pyplot as plt
import numpy as np
from gymnasium.spaces import Box

import eigenoptions as eo


def move(robots, actions, rng):
    """Drive half a metre forward or backward, or turn by 45 degrees."""
    x, y, heading = robots.T
    distance = np.choose(actions, [0.5, -0.5, 0.0, 0.0])
    turn = np.choose(actions, [0.0, 0.0, np.pi / 4, -np.pi / 4])
    noise = rng.normal(0, 0.02, (2, len(robots))) * (distance != 0)
    new_x = x + distance * np.cos(heading) + noise[0]
    new_y = y + distance * np.sin(heading) + noise[1]
    in_wall = (abs(new_x - 3) < 0.3) & (new_y < 7)
    in_wall |= (abs(new_x - 7) < 0.3) & (new_y > 3)
    is_outside = (np.minimum(new_x, new_y) < 0) | (
        np.maximum(new_x, new_y) > 10
    )
    is_blocked = in_wall | is_outside
    x = np.where(is_blocked, x, new_x)
    y = np.where(is_blocked, y, new_y)
    return np.stack([x, y, heading + turn], axis=1)


def observe(robots, battery):
    """Columns of the log: x, y, sine, cosine, battery."""
    x, y, heading = robots.T
    full = np.full(len(robots), battery)
    return np.stack([x, y, np.sin(heading), np.cos(heading), full], axis=1)


# Two hundred drives of a hundred steps. This stands for your data.
rng = np.random.default_rng(0)
robots = rng.uniform((0, 0, 0), (2.6, 10, 2 * np.pi), (200, 3))
robots[:, 0] += rng.choice([0.0, 3.7, 7.4], 200)
log = [observe(robots, 1.0)]
actions = rng.integers(4, size=(100, 200))
for i, action in enumerate(actions):
    robots = move(robots, action, rng)
    log.append(observe(robots, 1 - 0.01 * (i + 1)))
log = np.stack(log, axis=1)
steps = (
    log[:, :-1].reshape(-1, 5),
    actions.T.ravel(),
    log[:, 1:].reshape(-1, 5),
)

# `discover` looks at the columns, too, and warns of the battery.
print(eo.check_columns(steps))
space = Box(-np.inf, np.inf, (5,), np.float64)
options = eo.discover(
    steps, n_options=4, n_actions=4, space=space, columns=[0, 1, 2, 3]
)
print(options)
print(options.exploration)

figure, axes = plt.subplots(1, 4, figsize=(9, 2.6), layout="constrained")
for ax, option in zip(axes, options, strict=True):
    ax.plot(*log[:, ::20, :2].reshape(-1, 2).T, ",", color="0.7")
    for start in [(1, 1, 0), (1, 9, 0), (5, 5, 0), (9, 1, 0), (9, 9, 0)]:
        robots = np.array([start], dtype=float)
        running = eo.options.execution.RunningOption(option, rng)
        path = [robots[0]]
        while (action := running.act(observe(robots, 0.5)[0])) >= 0:
            robots = move(robots, np.array([action]), rng)
            path.append(robots[0])
        ax.plot(*np.array(path)[:, :2].T)
        ax.plot(*path[-1][:2], "s", markersize=4, color="black")
        end = path[-1][:2].round(1)
        print(f"{option.label}: {len(path) - 1:3d} steps to {end}")
    ax.set(title=option.label, xlabel="x", ylabel="y")
eo.plots.save_figure(figure, "warehouse.svg")
