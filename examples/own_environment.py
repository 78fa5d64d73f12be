"""An environment of your own
==========================

A deterministic Gymnasium environment that can be copied is explored exactly.

In the picture: the first room without the key (left part of each map), then
both rooms with it. The key lies in the lower left corner; digits mark the moves
that take it. One of the two options fetches the key and goes through the door,
the other one stays away from both. No reward was given for either.
"""

from dataclasses import replace

import gymnasium as gym

import eigenoptions as eo

KEY = (4, 0)
DOOR = (2, 4)
MOVES = [(-1, 0), (0, 1), (1, 0), (0, -1)]

# A state is a row, a column, and whether the agent has the key (0 or 1). The
# first room has columns 0 to 3. The wall in column 4 has a door, which only the
# key opens.
STATES = []
for row in range(5):
    for column in range(4):
        if (row, column) != KEY:
            STATES.append((row, column, 0))
for row in range(5):
    for column in range(9):
        if column != DOOR[1] or row == DOOR[0]:
            STATES.append((row, column, 1))


class KeyAndDoor(gym.Env):
    observation_space = gym.spaces.Discrete(len(STATES))
    action_space = gym.spaces.Discrete(len(MOVES))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = (2, 1, 0)
        return STATES.index(self.state), {}

    def step(self, action):
        row, column, has_key = self.state
        down, right = MOVES[action]
        place = (row + down, column + right)
        if place == KEY:
            has_key = 1

        # Where there is no such state, there is a wall.
        next_state = (*place, has_key)
        if next_state in STATES:
            self.state = next_state
        return STATES.index(self.state), 0.0, False, False, {}


# For the picture, the map with the key stands to the right of the other one.
coords = [(row, column + 6 * has_key) for row, column, has_key in STATES]
mdp = eo.from_env(KeyAndDoor())
mdp = replace(mdp, coords=coords, name="key and door")
options = eo.discover(mdp, n_options=4)
print(mdp, options[:2], sep="\n\n")

figure = eo.plots.plot_options(options, columns=2, width=6.5)
eo.plots.save_figure(figure, "own-environment.svg")
