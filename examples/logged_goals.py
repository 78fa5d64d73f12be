"""Goals from logged data
======================

Five hundred points moved at random through a room with a wall. From this log alone: the way to any place.

In the picture: the distance to the goal that the log implies, and the way that was taken, round the wall.
"""

import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo


def move(position: np.ndarray, action: np.ndarray) -> np.ndarray:
    """One step in a room of 10 x 6 with a wall in the middle, which leaves a gap at the top."""
    following = np.clip(position + 0.2 * action, 0.0, (10.0, 6.0))
    blocked = (np.abs(following[..., 0] - 5) < 1) & (following[..., 1] < 4.5)
    return np.where(blocked[..., None], position, following)


rng = np.random.default_rng(0)
log = [rng.uniform(0, (4, 6), (500, 2)) + rng.choice([0, 6], 500)[:, None] * [1, 0]]
actions = rng.uniform(-1, 1, (100, 500, 2))
for action in actions:
    log.append(move(log[-1], action))
obs, next_obs = np.concatenate(log[:-1]), np.concatenate(log[1:])
# Stands for your data: also a dict of D4RL, a replay buffer, a Minari data set.
planner = eo.Planner((obs, np.concatenate(actions), next_obs))
position, goal = np.array([3.0, 1.0]), np.array([7.0, 1.0])
way = [position]
while np.linalg.norm(way[-1] - goal) > 0.2 and len(way) < 200:
    way.append(move(way[-1], planner.act(way[-1], goal)))
print(
    f"{planner}: from {position} to {goal} in {len(way) - 1} steps; straight on there is a wall"
)
figure, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
image = ax.scatter(
    *planner.centers.T, c=-planner.potential(goal), s=120, marker="s", cmap="viridis"
)
ax.plot(*np.array(way).T, color="red")
figure.colorbar(image, label="distance, -log Z")
eo.plots.save_figure(figure, "logged-goals.svg")
