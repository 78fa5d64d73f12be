"""From pixels to a trained agent
==============================

Skills from frames of a maze, without a reward, then Q-learning explores with
them.

Nothing sees the number of a state, only 78 x 78 grey frames. Needs ``pip
install 'eigenoptions[deep]'``.

In the picture: the first four eigenfunctions that were learned from the frames,
drawn over the map, and below them the options that climb them.
"""

from collections import defaultdict

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo

# One frame per state: walls are black, cells are grey, the agent is white.
rooms = eo.maze("four-rooms")
row, column = rooms.coords.T
frames = np.zeros((rooms.n_states, 13, 13), dtype=np.uint8)
frames[:, row, column] = 100
frames[np.arange(rooms.n_states), row, column] = 255

# Each cell has 6 x 6 pixels.
frames = frames.repeat(6, axis=1).repeat(6, axis=2)


def make_env() -> gym.Env:
    """Make four rooms with frames as observations."""
    maze = gym.make("eigenoptions/FourRooms-v0", max_episode_steps=500)
    space = gym.spaces.Box(0, 255, (78, 78), np.uint8)
    return gym.wrappers.TransformObservation(maze, frames.__getitem__, space)


def count_goals(skills, option_chance: float) -> int:
    """Learn for 2,000 steps, and count how often the goal was reached."""
    env = eo.OptionsWrapper(
        make_env(), skills, option_chance=option_chance, record_steps=True
    )
    rng = np.random.default_rng(0)
    # One value per action, of each frame that was seen.
    q = defaultdict(lambda: np.zeros(4))
    n_steps = 0
    n_goals = 0
    obs, _ = env.reset(seed=env.action_space.seed(0))
    while n_steps < 2000:
        values = q[obs.tobytes()]
        if values.any() and rng.random() < 0.5:
            action = values.argmax()
        else:
            action = env.action_space.sample()
        next_obs, reward, terminated, truncated, info = env.step(action)

        # Learn from every step inside an option, or from the single action.
        for step in info.get("steps") or [(obs, action, reward, next_obs)]:
            before, taken, gain, after, *_ = step
            values = q[before.tobytes()]
            target = gain + 0.9 * q[after.tobytes()].max()
            values[taken] += 0.5 * (target - values[taken])

        n_steps += info["duration"]
        n_goals += terminated
        obs = next_obs
        if terminated or truncated:
            obs, _ = env.reset()
    return n_goals


skills = eo.discover(
    make_env,
    8,
    features="deep",
    steps=20_000,
    training_steps=150,
)
for option_chance in (0.0, 0.1):
    n_goals = count_goals(skills, option_chance)
    print(
        f"2,000 steps, an option in {option_chance:.0%} of random decisions: "
        f"goal reached {n_goals} times"
    )

potentials = skills.potential(frames)
policies = skills.actions(frames)
figure, axes = plt.subplots(2, 4, figsize=(8, 4.5), layout="constrained")
for i, (upper, lower) in enumerate(axes.T):
    # Every second option: the + of each eigenfunction.
    skill = 2 * i
    eo.plots.draw_values(upper, rooms.coords, potentials[skill])
    eo.plots.draw_policy(lower, rooms.coords, policies[skill])
    upper.set_title(skills.labels[skill])
eo.plots.save_figure(figure, "pixels.svg")
