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


def measure_share(option_chance: float | str, n_steps: int = 4_000) -> float:
    """Share of time that random decisions spend in the second room."""
    env = eo.OptionsWrapper(
        make_env(), skills, option_chance=option_chance, record_steps=True
    )
    n_taken = 0
    n_second = 0
    env.reset(seed=env.action_space.seed(0))
    while n_taken < n_steps:
        obs, _, _, truncated, info = env.step(env.action_space.sample())
        passed = [step.next_obs for step in info.get("steps", [])] or [obs]
        n_taken += len(passed)
        # The agent is the only thing that is red: look for it on the right.
        for frame in passed:
            n_second += (frame[:, 33:, 0] == 220).any()
        if truncated:
            env.reset()
    return n_second / n_taken


skills = eo.discover(
    make_env, 8, features="deep", steps=10_000, n_envs=16, training_steps=100
)
for option_chance in (0.0, "auto"):
    share = measure_share(option_chance)
    print(f"option chance {option_chance}: {share:.0%} in the second room")
print(f"the chance that was tuned: {skills.exploration.option_chance}")

figure = eo.plots.plot_options(skills[:6], frames)
eo.plots.save_figure(figure, "pixels.svg")
