"""A warehouse robot's log
=======================

A robot turned and drove at random through a warehouse with two walls. Its log
has x, y, the sine and cosine of its heading, and the battery.

The battery falls in every episode, so it would take over the first
eigenvectors. `discover` says so, and names the columns that leave it out. The
vectors become cells of a table, and options of the table lead round the walls,
though not from every place: some paths end early at a wall.

In the picture: places of the log over the floor. Options lead from the blue
ones to the orange ones, on paths made of steps of the log.
"""

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
    is_free = (abs(new_x - 5) < 5) & (abs(new_y - 5) < 5)
    is_free &= (abs(new_x - 3) > 0.3) | (new_y > 7)
    is_free &= (abs(new_x - 7) > 0.3) | (new_y < 3)
    moved = np.where(is_free, [new_x, new_y], [x, y])
    return np.stack([*moved, heading + turn], axis=1)


def observe(robots, battery):
    """Columns of the log: x, y, sine, cosine, battery."""
    x, y, heading = robots.T
    full = np.full_like(x, battery)
    return np.stack([x, y, np.sin(heading), np.cos(heading), full], axis=1)


# A thousand drives of a hundred steps. This stands for your data.
rng = np.random.default_rng(0)
robots = rng.uniform((0, 0, 0), (2.6, 10, 2 * np.pi), (1000, 3))
robots[:, 0] += rng.choice([0.0, 3.7, 7.4], 1000)
log = [observe(robots, 1.0)]
actions = rng.integers(4, size=(100, 1000))
for i, action in enumerate(actions):
    robots = move(robots, action, rng)
    log.append(observe(robots, 0.99 - 0.01 * i))
log = np.stack(log, axis=1)
before, after = log[:, :-1].reshape(-1, 5), log[:, 1:].reshape(-1, 5)
steps = (before, actions.T.ravel(), after)

# `discover` looks at the columns, too, and warns of the battery.
print(eo.check_columns(steps))
space = Box(-np.inf, np.inf, (5,), np.float64)
used = [0, 1, 2, 3]
options = eo.discover(steps, 4, n_actions=4, space=space, columns=used)
print(options, options.exploration, sep="\n")

figure = eo.plots.plot_options(options, eo.Transitions.of(steps))
eo.plots.save_figure(figure, "warehouse.svg")
