"""Agents of Stable-Baselines3 for `envs.training`: schedules by primitive steps, with and without options."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.spaces import Discrete
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.type_aliases import TrainFreq

from eigenoptions.envs.sb3 import (
    OptionsDQN,
    SMDPDiscounts,
    SMDPMaskableRolloutBuffer,
    SMDPRolloutBuffer,
    as_table,
    prefer_actions,
)
from reproduction.arena.exploration import Run

# The same for every way of exploring: a small network for few steps, and a table for numbered states.
DQN_SETTINGS = {
    "double": True,
    "buffer_size": 20_000,
    "learning_starts": 64,
    "batch_size": 128,
    "train_freq": 4,
    "target_update_interval": 100,
}
NETWORK = {"learning_rate": lambda share: 3e-3 * share, "policy_kwargs": {"net_arch": [64]}}
TABLE = {
    "learning_rate": lambda share: 20.0 * share,
    "policy_kwargs": {"net_arch": [], "optimizer_class": torch.optim.SGD},
}
PPO_SETTINGS = {"learning_rate": 2e-3, "n_steps": 256, "batch_size": 64, "n_epochs": 5, "ent_coef": 0.01}
# Decisions of a rollout with options: they take four to five primitive steps each, and 256 of them would leave the
# agent a fifth of the updates that it has without options.
OPTIONS_N_STEPS = 64


class OneStep(gym.Wrapper[Any, Any, Any, Any]):
    """An environment without options as masked agents need it: each decision takes one step, and all may be taken."""

    def __init__(self, env: gym.Env[Any, Any], gamma: float) -> None:
        super().__init__(env)
        self.gamma = gamma
        self.mask = np.ones(int(env.action_space.n), dtype=np.bool_)  # type: ignore[attr-defined]

    def step(self, action: Any) -> Any:
        """Take one step."""
        *outcome, info = self.env.step(action)
        return *outcome, {**info, "discount": self.gamma}

    def action_masks(self) -> NDArray[np.bool_]:
        """All actions."""
        return self.mask


class PacedDQN(OptionsDQN):
    """`OptionsDQN` of a `Run`, by primitive steps: random actions, learning rate, gradient steps, target updates.

    Decisions for options are longer, so that by decisions an agent with options would learn less per primitive step.
    """

    run: Run
    # Primitive steps before the first of the agent, in the discovery of options.
    begun: int

    def _on_step(self) -> None:
        elapsed = self.run.record.steps - self.begun - self._n_calls
        for _ in range(elapsed):
            super()._on_step()
        self.exploration_rate = self.run.epsilon()

    def _update_current_progress_remaining(self, *of_decisions: int) -> None:
        self._current_progress_remaining = self.run.rate()

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Take the gradient steps that are due: one per `train_freq` primitive steps."""
        assert isinstance(self.train_freq, TrainFreq)
        due = self._n_calls // self.train_freq.frequency - self._n_updates
        super().train(due, batch_size)

    def predict(self: Any, observation: Any, *args: Any, deterministic: bool = False, **more: Any) -> Any:
        """The action of the highest value, or one of the run's repeated actions while exploring."""
        if deterministic or self.run.explore is None:
            return super().predict(observation, *args, deterministic=deterministic, **more)  # type: ignore[misc]
        action = self.run.explore(self.exploration_rate)
        if action is None:
            return super().predict(observation, *args, deterministic=True, **more)  # type: ignore[misc]
        return np.array([action]), None


def dqn(run: Run) -> tuple[Any, Any]:
    """A DQN for a run, and its callback: none."""
    numbered = isinstance(run.env.observation_space, Discrete)
    settings = {k: v for k, v in run.settings.items() if k != "explore_share"}
    env = OneStep(run.env, run.gamma) if run.option_chance is None else run.env
    env.action_space.seed(run.seed)
    how: dict[str, Any] = {**DQN_SETTINGS, **(TABLE if numbered else NETWORK), **settings}
    agent: Any = PacedDQN("MlpPolicy", env, gamma=run.gamma, seed=run.seed, device="cpu", **how)
    if numbered:
        as_table(agent)
    agent.run, agent.begun = run, run.record.steps
    return agent, None


def ppo(run: Run, maskable: bool = False) -> tuple[Any, Any]:
    """A PPO for a run, and its callback."""
    kind: Any = MaskablePPO if maskable else PPO
    settings = {**PPO_SETTINGS, **run.settings}
    env = run.env
    if maskable and run.option_chance is None:
        env = OneStep(env, run.gamma)
    if run.option_chance is not None:
        settings["n_steps"] = OPTIONS_N_STEPS
        settings["rollout_buffer_class"] = SMDPMaskableRolloutBuffer if maskable else SMDPRolloutBuffer
    agent = kind("MlpPolicy", env, gamma=run.gamma, seed=run.seed, device="cpu", **settings)
    if run.option_chance is None:
        return agent, None
    prefer_actions(agent, run.option_chance)
    return agent, SMDPDiscounts()
