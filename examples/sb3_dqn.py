"""Train Stable-Baselines3's DQN with eigenoptions as extra actions
================================================================

``pip install 'eigenoptions[sb3]'``.

`OptionsDQN` discounts each decision by its true duration, chooses only options that are available, learns from the
steps inside options too, and begins with primitive actions.

In the picture: the greedy choice in every state. Arrows are actions, digits options (4 is e2+, 5 is e2-, + above 9).
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import torch
from stable_baselines3.common.monitor import Monitor

import eigenoptions as eo
from eigenoptions.agents.sb3 import OptionsDQN
from eigenoptions.envs import OptionsWrapper


def main() -> None:
    torch.set_num_threads(1)
    rooms = eo.maze("four-rooms")
    options = eo.discover(rooms, n_options=8)
    maze = gym.make("eigenoptions/FourRooms-v0", max_episode_steps=500)
    env = OptionsWrapper(
        Monitor(maze), options, gamma=0.9, record_steps=True
    )  # Monitor counts primitive steps
    often = {
        "learning_starts": 300,
        "train_freq": 4,
        "gradient_steps": 2,
        "target_update_interval": 40,
    }
    kind = {"double": True, "policy_kwargs": {"net_arch": [64]}}
    kind |= {"batch_size": 64, "exploration_fraction": 0.6}
    agent = OptionsDQN("MlpPolicy", env, 4e-3, gamma=0.9, seed=0, **often, **kind)
    agent.learn(2500)

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
    best, _ = agent.predict(np.arange(104), deterministic=True)
    figure, ax = plt.subplots(figsize=(3.5, 3.5), layout="constrained")
    eo.plots.draw_policy(ax, rooms.coords, best)
    ax.set_title("greedy choice")
    eo.plots.save_figure(figure, "sb3-dqn.svg")


if __name__ == "__main__":
    main()
