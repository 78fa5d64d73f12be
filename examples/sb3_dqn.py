"""Train Stable-Baselines3's DQN with eigenoptions as extra actions
================================================================

``pip install '.[sb3]'`` (in a clone).

`OptionsDQN` discounts each decision by its true duration, chooses only options
that are available, learns from the steps inside options too, and begins with
primitive actions.

In the picture: the greedy choice in every state. Arrows are actions, digits
options (4 is e2+, 5 is e2-, + above 9).
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import torch
from stable_baselines3.common.monitor import Monitor

import eigenoptions as eo
from eigenoptions.agents.sb3 import OptionsDQN

torch.set_num_threads(1)
rooms = eo.maze("four-rooms")
options = eo.discover(rooms, n_options=8)

# The monitor stands inside, where it counts primitive steps.
maze = gym.make("eigenoptions/FourRooms-v0", max_episode_steps=500)
env = eo.OptionsWrapper(Monitor(maze), options, gamma=0.9, record_steps=True)
agent = OptionsDQN(
    "MlpPolicy",
    env,
    learning_rate=4e-3,
    gamma=0.9,
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
state, _ = env.reset(seed=1)
while not is_over:
    action, _ = agent.predict(
        state, deterministic=True, action_masks=env.action_masks()
    )
    state, _, terminated, truncated, info = env.step(action)
    n_steps += info["duration"]
    is_over = terminated or truncated
outcome = "Reached the goal" if terminated else "Gave up"
print(f"{outcome} after {n_steps} steps; shortest path: 20.")

all_states = np.arange(rooms.n_states)
choices, _ = agent.predict(all_states, deterministic=True)
figure, ax = plt.subplots(figsize=(3.5, 3.5), layout="constrained")
eo.plots.draw_policy(ax, rooms.coords, choices)
ax.set_title("greedy choice")
eo.plots.save_figure(figure, "sb3-dqn.svg")
