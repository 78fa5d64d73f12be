"""DQN on MiniGrid, without a map
==============================

``pip install '.[sb3]' minigrid`` (in a clone).

A key, a locked door, a goal behind it; the agent sees 7 x 7 cells. `explore`
finds the goal, `discover` makes options of the part that was seen, and the
replay buffer begins with the steps of `explore`. DQN learns until a greedy
episode reaches the goal.

In the picture: steps per episode, `explore` included. The goal ends an episode,
at most 360 steps.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import torch
from minigrid.wrappers import ImgObsWrapper
from stable_baselines3.common.monitor import Monitor

import eigenoptions as eo
from eigenoptions.agents.sb3 import OptionsDQN, fill_replay

torch.set_num_threads(1)
seed = 0


def make_grid() -> gym.Env:
    """One layout of the task, whose view is a vector."""
    view = ImgObsWrapper(gym.make("MiniGrid-DoorKey-6x6-v0"))
    vector = gym.wrappers.FlattenObservation(view)
    return Monitor(eo.envs.FixedSeed(vector, seed))


def play_greedily(agent: OptionsDQN, env: eo.OptionsWrapper) -> bool:
    """Whether an episode of greedy choices reaches the goal."""
    terminated = truncated = False
    obs, info = env.reset(seed=1)
    while not (terminated or truncated):
        mask = info["action_mask"]
        action, _ = agent.predict(obs, deterministic=True, action_masks=mask)
        obs, _, terminated, truncated, info = env.step(action)
    return terminated


grid = make_grid()
test_grid = make_grid()
found = eo.explore(grid, 4_000, until="reward", seed=seed)
options = eo.discover(found, n_options=8)
settings = {"gamma": 0.95, "record_steps": True, "option_chance": 0.1}
env = eo.OptionsWrapper(grid, options, **settings)
test_env = eo.OptionsWrapper(test_grid, options, **settings)
agent = OptionsDQN(
    "MlpPolicy",
    env,
    learning_rate=1e-3,
    gamma=0.95,
    double=True,
    batch_size=64,
    buffer_size=50_000,
    learning_starts=0,
    gradient_steps=4,
    target_update_interval=200,
    exploration_initial_eps=0.2,
    exploration_final_eps=0.2,
    seed=seed,
)
fill_replay(agent, found)
n_steps = found.n_steps
has_learned = False
while not has_learned and n_steps < 12_000:
    agent.learn(300, reset_num_timesteps=False)
    has_learned = play_greedily(agent, test_env)
    n_steps = grid.get_total_steps() + test_grid.get_total_steps()

print(found)
outcome = "reaches" if has_learned else "does not reach"
print(f"DQN {outcome} the goal after {n_steps:,} steps in all")

figure, ax = plt.subplots(figsize=(5, 3), layout="constrained")
lengths = grid.get_episode_lengths()
ax.plot(np.cumsum(lengths), lengths, ".")
ax.set(xlabel="steps", ylabel="length of the episode")
eo.plots.save_figure(figure, "sb3-explored-dqn.svg")
