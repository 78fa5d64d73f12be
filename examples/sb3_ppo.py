"""Train Stable-Baselines3's PPO with eigenoptions as extra actions
================================================================

``pip install 'eigenoptions[sb3]'``.

The rollout buffer and its callback give PPO the true discount of each decision: gamma to the number of steps it took.

In the picture: the greedy choice in every state. Arrows are actions, digits options (4 is e2+, 5 is e2-, + above 9).
"""

from __future__ import annotations

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.monitor import Monitor

import eigenoptions as eo
from eigenoptions.agents.sb3 import SMDPDiscounts, SMDPRolloutBuffer, prefer_actions
from eigenoptions.envs import OptionsWrapper


def main() -> None:
    torch.set_num_threads(1)
    rooms = eo.maze("four-rooms")
    options = eo.discover(rooms, n_options=8)
    maze = gym.make("eigenoptions/FourRooms-v0", max_episode_steps=500)
    env = OptionsWrapper(
        Monitor(maze), options, gamma=0.95
    )  # Monitor inside: it counts primitive steps
    size = {"n_steps": 64, "batch_size": 64, "n_epochs": 5, "ent_coef": 0.01}
    agent = PPO(
        "MlpPolicy",
        env,
        2e-3,
        gamma=0.95,
        seed=0,
        rollout_buffer_class=SMDPRolloutBuffer,
        **size,
    )
    prefer_actions(agent)  # options are rare at the start
    agent.learn(2500, callback=SMDPDiscounts())

    (state, _), over, steps = env.reset(seed=1), False, 0
    while not over:
        action, _ = agent.predict(state, deterministic=True)
        state, _, terminated, truncated, info = env.step(action)
        over, steps = terminated or truncated, steps + info["duration"]
    print(
        f"{'Reached the goal' if terminated else 'Gave up'} after {steps} steps; shortest path: 20."
    )
    best, _ = agent.predict(np.arange(104), deterministic=True)
    figure, ax = plt.subplots(figsize=(3.5, 3.5), layout="constrained")
    eo.plots.draw_policy(ax, rooms.coords, best)
    ax.set_title("greedy choice")
    eo.plots.save_figure(figure, "sb3-ppo.svg")


if __name__ == "__main__":
    main()
