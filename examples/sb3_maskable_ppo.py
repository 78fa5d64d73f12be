"""Train sb3-contrib's MaskablePPO with eigenoptions as extra actions
==================================================================

``pip install 'eigenoptions[sb3]'``.

It asks the wrapper which options may start, and so never wastes a decision on one that may not.

In the picture: the greedy choice in every state. Arrows are actions, digits options (4 is e2+, 5 is e2-, + above 9).
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.monitor import Monitor

import eigenoptions as eo
from eigenoptions.agents.sb3 import (
    SMDPDiscounts,
    SMDPMaskableRolloutBuffer,
    prefer_actions,
)
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
    kind = {"rollout_buffer_class": SMDPMaskableRolloutBuffer}
    agent = MaskablePPO("MlpPolicy", env, 2e-3, gamma=0.95, seed=0, **size, **kind)
    prefer_actions(agent)  # options are rare at the start
    agent.learn(2500, callback=SMDPDiscounts())

    (state, _), over, steps = env.reset(seed=1), False, 0
    while not over:
        action, _ = agent.predict(
            state, deterministic=True, action_masks=env.action_masks()
        )
        state, _, terminated, truncated, info = env.step(action)
        over, steps = terminated or truncated, steps + info["duration"]
    print(
        f"{'Reached the goal' if terminated else 'Gave up'} after {steps} steps; shortest path: 20."
    )
    masks = np.vstack([np.ones((4, 104)), options.initiation]).T
    best, _ = agent.predict(np.arange(104), action_masks=masks, deterministic=True)
    figure, ax = plt.subplots(figsize=(3.5, 3.5), layout="constrained")
    eo.plots.draw_policy(ax, rooms.coords, best)
    ax.set_title("greedy choice")
    eo.plots.save_figure(figure, "sb3-maskable-ppo.svg")


if __name__ == "__main__":
    main()
