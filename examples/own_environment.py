"""An environment of your own
==========================

A deterministic Gymnasium environment that can be copied is searched: its
options are exact.

In the picture: the first room without the key (left part of each map), then
both rooms with it. Observations are (row, column, has_key), so the states have
places without more ado. The key lies in the lower left corner; digits mark the
moves that take it. One of the two options fetches the key and goes through the
door, the other one stays away from both. No reward was given for either.
"""

import gymnasium as gym
import numpy as np

import eigenoptions as eo

KEY = (4, 0)
DOOR = (2, 4)
MOVES = [(-1, 0), (0, 1), (1, 0), (0, -1)]


class KeyAndDoor(gym.Env):
    """Two rooms of 5 x 4 cells, and a wall in column 4 with a locked door."""

    observation_space = gym.spaces.MultiDiscrete([5, 9, 2])
    action_space = gym.spaces.Discrete(len(MOVES))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = (2, 1, 0)
        return np.array(self.state), {}

    def step(self, action):
        row, column, has_key = self.state
        down, right = MOVES[action]
        place = (row + down, column + right)
        is_inside = 0 <= place[0] < 5 and 0 <= place[1] < 9
        is_open = place[1] != DOOR[1] or (place == DOOR and has_key)
        if is_inside and is_open:
            self.state = (*place, int(has_key or place == KEY))
        return np.array(self.state), 0.0, False, False, {}


mdp = eo.from_env(KeyAndDoor())
options = eo.discover(mdp, n_options=4)
print(mdp, options[:2], sep="\n\n")

figure = eo.plots.plot_options(options, columns=2, figsize=(6.5, 3.7))
eo.plots.save_figure(figure, "own-environment.svg")
