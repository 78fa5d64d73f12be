"""MiniGrid with Stable-Baselines3
===============================

``pip install 'eigenoptions[sb3]' minigrid``.

`Numbered` fixes one layout of MiniGrid and observes the number of the state, which DQN learns from in a few seconds.
Options recognise the states also where the agent has observations of its own: see ``minigrid_rooms.py``.

In the picture: primitive steps per episode of the training; the goal ends an episode, at most 200 steps.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import torch
from stable_baselines3.common.monitor import Monitor

import eigenoptions as eo
from eigenoptions.agents.sb3 import OptionsDQN


def main(seed: int = 0) -> None:
    torch.set_num_threads(1)
    grid = eo.envs.Numbered(
        gym.make("minigrid:MiniGrid-SimpleCrossingS9N1-v0", max_steps=10**6)
    )
    options = eo.discover(grid, n_options=16)
    monitor = Monitor(
        gym.wrappers.TimeLimit(grid, 200)
    )  # inside: they count primitive steps
    env = eo.OptionsWrapper(monitor, options, gamma=0.95, record_steps=True)
    often = {
        "learning_starts": 300,
        "train_freq": 4,
        "gradient_steps": 2,
        "target_update_interval": 40,
    }
    kind = {
        "double": True,
        "policy_kwargs": {"net_arch": [64]},
        "batch_size": 64,
        "exploration_fraction": 0.6,
    }
    agent = OptionsDQN(
        "MlpPolicy", env, 4e-3, gamma=0.95, seed=seed, **often, **kind
    ).learn(2500)

    (state, info), over, steps = env.reset(seed=1), False, 0
    while not over:
        action, _ = agent.predict(
            state, deterministic=True, action_masks=info["action_mask"]
        )
        state, _, terminated, truncated, info = env.step(action)
        over, steps = terminated or truncated, steps + info["duration"]
    print(f"{'Reached the goal' if terminated else 'Gave up'} after {steps} steps")
    figure, ax = plt.subplots(figsize=(5, 3), layout="constrained")
    ax.plot(
        np.cumsum(monitor.get_episode_lengths()), monitor.get_episode_lengths(), "."
    )
    ax.set(xlabel="primitive steps", ylabel="length of the episode")
    eo.plots.save_figure(figure, "sb3-minigrid.svg")


if __name__ == "__main__":
    main()
