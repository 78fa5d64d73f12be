"""PPO that chooses places, where actions are vectors
==================================================

A point moves through a maze by vectors, as in PointMaze. A log of random steps
gives places to go to, and PPO chooses among them: ``Discrete(8)``. It needs
``pip install '.[sb3]'`` (in a clone).

In the picture: the log, the places, and the way to PPO's first choice.
"""

from typing import Any

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import torch
from gymnasium.spaces import Box
from gymnasium.wrappers import TimeLimit
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

import eigenoptions as eo
from eigenoptions.agents.sb3 import SMDPDiscounts, SMDPRolloutBuffer


def move(places: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Move by at most 0.04 in each coordinate, but not into a wall."""
    following = np.clip(places + 0.04 * actions, 0, 1)
    x, y = following.T
    in_wall = (abs(x - 0.3) < 0.05) & (y < 0.7) | (abs(x - 0.7) < 0.05) & (
        y > 0.3
    )
    return np.where(in_wall[:, None], places, following)


class PointMaze(gym.Env):
    """A square with two walls; reward 1 in the far corner."""

    observation_space = Box(0.0, 1.0, (2,), np.float32)
    action_space = Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Begin in the near corner."""
        super().reset(seed=seed)
        self.places = self.np_random.uniform(0, 0.1, (1, 2))
        return self.places[0].astype(np.float32), {}

    def step(self, action: np.ndarray) -> Any:
        """Move, and look whether the far corner is reached."""
        self.places = move(self.places, np.asarray(action))
        at_goal = bool(self.places.min() > 0.75)
        return (
            self.places[0].astype(np.float32),
            float(at_goal),
            at_goal,
            False,
            {},
        )


# Random steps from everywhere. This stands for your data.
rng = np.random.default_rng(0)
starts = rng.uniform(0, (0.24, 1), (300, 2))
starts[:, 0] += rng.choice([0, 0.37, 0.76], 300)
log = [starts]
actions = rng.uniform(-1, 1, (80, 300, 2))
for action in actions:
    log.append(move(log[-1], action))
data = (
    np.concatenate(log[:-1]),
    np.concatenate(actions),
    np.concatenate(log[1:]),
)
planner = eo.Planner(data)
places = planner.places(8)

torch.set_num_threads(1)
env = eo.OptionsWrapper(TimeLimit(PointMaze(), 300), places, gamma=0.99)
agent = PPO(
    "MlpPolicy",
    env,
    gamma=0.99,
    n_steps=64,
    rollout_buffer_class=SMDPRolloutBuffer,
    seed=0,
)
agent.learn(512, callback=SMDPDiscounts())

# Ten episodes of greedy choices; a goal gives a reward.
returns, _ = evaluate_policy(
    agent, env, 10, return_episode_rewards=True, warn=False
)
n_goals = np.count_nonzero(returns)
print(f"{planner}; PPO reaches the goal in {n_goals} of 10 episodes")

figure, ax = plt.subplots(figsize=(4, 4), layout="constrained")
ax.plot(*data[0].T, ",", color="silver")
for place in places:
    ax.plot(*place.goal, "o", color="tab:orange")
choice = agent.predict(np.full(2, 0.05, np.float32), deterministic=True)[0]
ax.plot(*planner.simulate([0.05, 0.05], places[choice].goal).T, color="red")
eo.plots.save_figure(figure, "continuous-actions.svg")
