"""MiniGrid with Stable-Baselines3
===============================

``pip install '.[sb3]' minigrid`` (in a clone).

`Numbered` fixes one layout of MiniGrid and observes the number of the state,
which DQN learns from in a few seconds. Options recognise the states also where
the agent has observations of its own: see ``minigrid_rooms.py``.

In the picture: primitive steps per episode of the training; the goal ends an
episode, at most 200 steps.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import torch
from stable_baselines3.common.monitor import Monitor

import eigenoptions as eo
from eigenoptions.agents.sb3 import OptionsDQN

torch.set_num_threads(1)
grid = gym.make("minigrid:MiniGrid-SimpleCrossingS9N1-v0", max_steps=10**6)
grid = eo.envs.Numbered(grid)
options = eo.discover(grid, n_options=16)

# Time limit and monitor stand inside, where they count primitive steps.
monitor = Monitor(gym.wrappers.TimeLimit(grid, 200))
env = eo.OptionsWrapper(monitor, options, gamma=0.95, record_steps=True)
agent = OptionsDQN(
    "MlpPolicy",
    env,
    learning_rate=4e-3,
    gamma=0.95,
    double=True,
    batch_size=64,
    learning_starts=300,
    train_freq=4,
    gradient_steps=2,
    target_update_interval=40,
    exploration_fraction=0.6,
    policy_kwargs={"net_arch": [64]},
    seed=0,
)
agent.learn(2500)

# An episode of greedy choices.
n_steps = 0
is_over = False
state, info = env.reset(seed=1)
while not is_over:
    action, _ = agent.predict(
        state, deterministic=True, action_masks=info["action_mask"]
    )
    state, _, terminated, truncated, info = env.step(action)
    n_steps += info["duration"]
    is_over = terminated or truncated
outcome = "Reached the goal" if terminated else "Gave up"
print(f"{outcome} after {n_steps} steps")

figure, ax = plt.subplots(figsize=(5, 3), layout="constrained")
lengths = monitor.get_episode_lengths()
ax.plot(np.cumsum(lengths), lengths, ".")
ax.set(xlabel="primitive steps", ylabel="length of the episode")
eo.plots.save_figure(figure, "sb3-minigrid.svg")
