"""Goals from logged data
======================

Five hundred points moved at random through a room with a wall. From this log
alone: the way to any place.

In the picture: the distance to the goal that the log implies, and the way that
was taken, round the wall.
"""

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo


def move(position: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Take a step in a room of 10 x 6.

    A wall stands in the middle and leaves a gap at the top.
    """
    following = np.clip(position + 0.2 * action, 0.0, (10.0, 6.0))
    x = following[..., 0]
    y = following[..., 1]
    is_blocked = (np.abs(x - 5) < 1) & (y < 4.5)
    return np.where(is_blocked[..., None], position, following)


# Points start on the left or on the right of the wall, and move at random.
# This stands for your data: a dict of D4RL, a replay buffer, a Minari data set.
rng = np.random.default_rng(0)
positions = rng.uniform(0, (4, 6), (500, 2))
positions[:, 0] += rng.choice([0, 6], 500)
actions = rng.uniform(-1, 1, (100, 500, 2))
log = [positions]
for action in actions:
    log.append(move(log[-1], action))

obs = np.concatenate(log[:-1])
next_obs = np.concatenate(log[1:])
planner = eo.Planner((obs, np.concatenate(actions), next_obs))

# Follow the planner from one side of the wall to the other.
start = np.array([3.0, 1.0])
goal = np.array([7.0, 1.0])
path = [start]
while np.linalg.norm(path[-1] - goal) > 0.2 and len(path) < 200:
    action = planner.act(path[-1], goal)
    path.append(move(path[-1], action))
print(
    f"{planner}: from {start} to {goal} in {len(path) - 1} steps; "
    "straight on there is a wall"
)

figure, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
x, y = planner.centers.T
distance = -planner.potential(goal)
image = ax.scatter(x, y, c=distance, s=120, marker="s", cmap="viridis")
x, y = np.transpose(path)
ax.plot(x, y, color="red")
figure.colorbar(image, label="distance, -log Z")
eo.plots.save_figure(figure, "logged-goals.svg")
