"""From pixels to a trained agent
==============================

Skills from frames of a maze, without a reward, then Q-learning explores with them.

Nothing sees the number of a state, only 78 x 78 grey frames. Needs ``pip install 'eigenoptions[deep]'``.

In the picture: the first four eigenfunctions that were learned from the frames, drawn over the map, and below them
the options that climb them.
"""

from collections import defaultdict

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo

cells, frames = eo.maze("four-rooms").coords, np.zeros((104, 13, 13), dtype=np.uint8)
frames[:, *cells.T], frames[np.arange(104), *cells.T] = (
    100,
    255,
)  # cells are grey, the agent is white
frames = np.kron(frames, np.ones((1, 6, 6), dtype=np.uint8))


def make_env() -> gym.Env:
    maze = gym.make("eigenoptions/FourRooms-v0", max_episode_steps=500)
    seen = gym.spaces.Box(0, 255, (78, 78), np.uint8)
    return gym.wrappers.TransformObservation(maze, frames.__getitem__, seen)


skills = eo.discover(make_env, 8, features="deep", steps=20_000, training_steps=150)
for chance in (0.0, 0.1):
    env = eo.OptionsWrapper(make_env(), skills, option_chance=chance, record_steps=True)
    rng, q, steps, goals = (
        np.random.default_rng(0),
        defaultdict(lambda: np.zeros(4)),
        0,
        0,
    )
    before, _ = env.reset(seed=env.action_space.seed(0))
    while steps < 2000:
        greedy = q[before.tobytes()].any() and rng.random() < 0.5
        action = q[before.tobytes()].argmax() if greedy else env.action_space.sample()
        after, reward, goal, late, info = env.step(action)
        for s, a, r, s2, *_ in info.get("steps") or [(before, action, reward, after)]:
            q[s.tobytes()][a] += 0.5 * (
                r + 0.9 * q[s2.tobytes()].max() - q[s.tobytes()][a]
            )
        steps, goals = steps + info["duration"], goals + goal
        before = env.reset()[0] if goal or late else after
    print(
        f"2,000 steps, an option in {chance:.0%} of random decisions: goal reached {goals} times"
    )

names, heights, policies = (
    skills.labels,
    skills.potential(frames),
    skills.actions(frames),
)
figure, axes = plt.subplots(2, 4, figsize=(8, 4.5), layout="constrained")
for column, i in enumerate(range(0, 8, 2)):
    eo.plots.draw_values(axes[0, column], cells, heights[i])
    eo.plots.draw_policy(axes[1, column], cells, policies[i])
    axes[0, column].set_title(names[i])
eo.plots.save_figure(figure, "pixels.svg")
