"""Agents of Stable-Baselines3 for training runs: schedules by primitive steps, with and without options."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.type_aliases import TrainFreq

from eigenoptions.envs.sb3 import OptionsDQN, SMDPDiscounts, SMDPRolloutBuffer, prefer_actions
from reproduction.arena.training import BudgetSpentError, Record

# The same for every way of exploring.
DQN_SETTINGS: dict[str, Any] = {
    "double": True,
    "buffer_size": 20_000,
    "learning_starts": 64,
    "batch_size": 128,
    "train_freq": 4,
    "target_update_interval": 100,
    "learning_rate": lambda share: 20.0 * share,
    "policy_kwargs": {"net_arch": [], "optimizer_class": torch.optim.SGD},
}
PPO_SETTINGS: dict[str, Any] = {
    "learning_rate": 2e-3, "batch_size": 64, "n_epochs": 5, "ent_coef": 0.01
}  # fmt: skip
# Decisions of a rollout with options: they take four to five primitive steps each, and 256 of them would leave the
# agent a fifth of the updates that it has without options.
OPTIONS_N_STEPS = 64


class PacedDQN(OptionsDQN):
    """`OptionsDQN` by primitive steps of a `Record`: random actions, learning rate, gradient steps, target updates.

    Decisions for options are longer, so that by decisions an agent with options would learn less per primitive step.
    """

    record: Record

    def _on_step(self) -> None:
        for _ in range(self.record.steps - self._n_calls):
            super()._on_step()
        self.exploration_rate = self.record.epsilon()

    def _update_current_progress_remaining(self, *decisions: int) -> None:
        self._current_progress_remaining = self.record.learning_rate()

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Take the gradient steps that are due: one per `train_freq` primitive steps."""
        assert isinstance(self.train_freq, TrainFreq)
        super().train(self._n_calls // self.train_freq.frequency - self._n_updates, batch_size)


def make_agent(name: str, env: Any, record: Record, seed: int) -> Any:
    """An agent of Stable-Baselines3; `env` has all wrappers, `record` is inside it."""
    common: Any = {"gamma": record.gamma, "seed": seed, "device": "cpu"}
    if name == "DQN":
        env.action_space.seed(seed)
        agent: Any = PacedDQN("MlpPolicy", env, **common, **DQN_SETTINGS)
        # The network is a table, one weight per state and choice. Numbered states have nothing in common that a hidden
        # layer or a bias could use: choices that were never tried would inherit the values of others. The values are
        # small and random, so that there are no ties, which the first action would win.
        layer = agent.q_net.q_net[0]
        torch.nn.init.normal_(layer.weight, std=1e-3)
        torch.nn.init.zeros_(layer.bias)
        layer.bias.requires_grad_(False)
        agent.q_net_target.load_state_dict(agent.q_net.state_dict())
        agent.record = record
        return agent
    has_options = env is not record
    settings: Any = {**PPO_SETTINGS, "n_steps": OPTIONS_N_STEPS if has_options else 256}
    agent = PPO("MlpPolicy", env, rollout_buffer_class=SMDPRolloutBuffer, **common, **settings)
    if has_options:
        prefer_actions(agent)
    return agent


def train_sb3(name: str, env: Any, record: Record, seed: int) -> Callable[[Any, Any], int]:
    """Learn until the budget is spent, and return the greedy policy."""
    agent = make_agent(name, env, record, seed)

    def act(obs: Any, mask: Any) -> int:
        masks = {} if name == "PPO" or mask is None else {"action_masks": mask.astype(np.bool_)}
        return int(agent.predict(np.asarray(obs), deterministic=True, **masks)[0])

    # More decisions than any budget: runs end by their primitive steps.
    with suppress(BudgetSpentError):
        agent.learn(10**9, callback=SMDPDiscounts() if name == "PPO" else None)
    return act
