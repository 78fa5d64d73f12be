"""Skills from pixels
==================

Two rooms as 64 x 64 x 3 frames, and options that cross them, without a reward.

A red square moves in two rooms. The agent sees frames, and no place.
``discover`` trains features on random steps, cuts them into clusters, and finds
options on the table of clusters. Then ``action_space.sample()`` takes options
as often as helps. Needs ``pip install '.[deep]'`` (in a clone).

In the picture: options as strips of frames, from where they start to where they
end.
"""

import gymnasium as gym
import numpy as np

import eigenoptions as eo

ROOMS = eo.maze("""
XXXXXXXXXXXXXXXXXXXXX
XS.......XX.........X
X........XX.........X
X........XX.........X
X........XX.........X
X...................X
X........XX.........X
X........XX.........X
X........XX.........X
XXXXXXXXXXXXXXXXXXXXX
""")

# One frame per cell: walls are dark, the floor is grey, the agent is red.
row, column = ROOMS.coords.T
frames = np.full((ROOMS.n_states, 22, 22, 3), 40, dtype=np.uint8)
frames[:, row + 6, column] = (190, 190, 180)
frames[np.arange(ROOMS.n_states), row + 6, column] = (220, 30, 30)
# Each cell has 3 x 3 pixels.
frames = frames.repeat(3, axis=1).repeat(3, axis=2)[:, :64, :64]


def make_env() -> gym.Env:
    """Make the rooms with frames as observations, in episodes of 150 steps."""
    rooms = gym.wrappers.TimeLimit(eo.envs.MazeEnv(ROOMS), 150)
    space = gym.spaces.Box(0, 255, (64, 64, 3), np.uint8)
    return gym.wrappers.TransformObservation(rooms, frames.__getitem__, space)


skills = eo.discover(
    make_env, 8, features="deep", steps=10_000, training_steps=100
)

# Random decisions with and without options. The agent is the only thing that is
# red: look for it on the right.
for chance in (0.0, "auto"):
    walk = eo.collect(
        make_env, 4_000, policy=skills, option_chance=chance, rng=0
    )
    share = (walk.obs[:, :, 33:, 0] == 220).any(axis=(1, 2)).mean()
    print(f"option chance {chance}: {share:.0%} in the second room")
print(f"the chance that was tuned: {skills.exploration.option_chance}")

figure = eo.plots.plot_options(skills[:6], frames)
eo.plots.save_figure(figure, "pixels.svg")
