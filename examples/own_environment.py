"""An environment of your own
==========================

A deterministic Gymnasium environment that can be copied is explored exactly.

In the picture: the first room without the key (left part of each map), then both rooms with it. The key lies in the
lower left corner; digits mark the moves that take it. One of the two options fetches the key and goes through the
door, the other one stays away from both. No reward was given for either.
"""

from dataclasses import replace

import gymnasium as gym

import eigenoptions as eo

# Row, column, has the key. Column 4 is a wall with a door in row 2, which only the key opens; it lies at (4, 0).
CELLS = [(r, c, 0) for r in range(5) for c in range(4) if (r, c) != (4, 0)]
CELLS += [(r, c, 1) for r in range(5) for c in range(9) if c != 4 or r == 2]


class KeyAndDoor(gym.Env):
    observation_space = gym.spaces.Discrete(len(CELLS))
    action_space = gym.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = (2, 1, 0)
        return CELLS.index(self.cell), {}

    def step(self, action):
        (row, column, key), (down, right) = (
            self.cell,
            ((-1, 0), (0, 1), (1, 0), (0, -1))[action],
        )
        to = (row + down, column + right)
        to = (*to, int(key or to == (4, 0)))
        self.cell = to if to in CELLS else self.cell
        return CELLS.index(self.cell), 0.0, False, False, {}


mdp = replace(
    eo.from_env(KeyAndDoor()),
    coords=[(r, c + 6 * k) for r, c, k in CELLS],
    name="key and door",
)
options = eo.discover(mdp, n_options=4)
print(mdp, options[:2], sep="\n\n")
eo.plots.save_figure(
    eo.plots.plot_options(options, columns=2, width=6.5), "own-environment.svg"
)
