"""PPO on MiniGrid, without a map
==============================

``pip install '.[sb3]' minigrid`` (in a clone).

A key, a locked door, a goal behind it; the agent sees 7 x 7 cells. `explore`
finds the goal, `clone` fits PPO to the ways that were found, and PPO learns on
from there. Small updates keep what it knows.

In the picture: steps per episode, `explore` included. The goal ends an episode,
at most 360 steps.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import torch
from minigrid.wrappers import ImgObsWrapper
from stable_baselines3 import PPO
from stable_baselines3.common.monitor import Monitor

import eigenoptions as eo
from eigenoptions.agents.sb3 import clone

torch.set_num_threads(1)
seed = 0
grid = gym.wrappers.FlattenObservation(
    ImgObsWrapper(gym.make("MiniGrid-DoorKey-6x6-v0"))
)
env = Monitor(eo.envs.FixedSeed(grid, seed))

found = eo.explore(env, 2_000, until="reward", seed=seed)
agent = PPO(
    "MlpPolicy",
    env,
    learning_rate=1e-4,
    gamma=0.98,
    n_steps=512,
    n_epochs=4,
    seed=seed,
)
print(found)
print(clone(agent, found))
agent.learn(2_048)
print(f"{env.get_total_steps():,} steps in all")

# An episode of greedy choices.
n_steps = 0
is_over = False
obs, _ = env.reset(seed=1)
while not is_over:
    action, _ = agent.predict(obs, deterministic=True)
    obs, _, terminated, truncated, _ = env.step(int(action))
    n_steps += 1
    is_over = terminated or truncated
outcome = "Reached the goal" if terminated else "Gave up"
print(f"{outcome} after {n_steps} steps")

figure, ax = plt.subplots(figsize=(5, 3), layout="constrained")
lengths = env.get_episode_lengths()
ax.plot(np.cumsum(lengths), lengths, ".")
ax.set(xlabel="steps", ylabel="length of the episode")
eo.plots.save_figure(figure, "sb3-explored-ppo.svg")
