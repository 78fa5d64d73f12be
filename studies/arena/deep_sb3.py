"""DQN and PPO of Stable-Baselines3, by primitive steps."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.type_aliases import TrainFreq

from eigenoptions.agents.sb3 import (
    OptionsDQN,
    SMDPDiscounts,
    SMDPRolloutBuffer,
    prefer_actions,
)
from studies.arena.deep_budget import Budget, BudgetSpentError, Env, Mask
from studies.arena.deep_networks import ViewEncoder

# The same for every way. Numbered states have one weight per state and choice, as in
# our own agent.
_DQN: dict[str, Any] = {
    "buffer_size": 20_000,
    "learning_starts": 64,
    "batch_size": 32,
    "train_freq": 4,
}
_TABLE_DQN: dict[str, Any] = {
    # By primitive steps: 25 updates.
    "target_update_interval": 100,
    "learning_rate": lambda share: 20.0 * share,
    "policy_kwargs": {"net_arch": [], "optimizer_class": torch.optim.SGD},
}
_VIEW_DQN: dict[str, Any] = {
    "target_update_interval": 200,
    "learning_rate": lambda share: 1e-3 * share,
    "policy_kwargs": {
        "net_arch": [64, 64],
        "features_extractor_class": ViewEncoder,
        "normalize_images": False,
        "optimizer_kwargs": {"fused": True},
    },
}
_PPO: dict[str, Any] = {
    "learning_rate": 2e-3,
    "n_steps": 256,
    "batch_size": 64,
    "n_epochs": 5,
    "ent_coef": 0.01,
}
_VIEW_PPO: dict[str, Any] = {
    "learning_rate": 1e-3,
    "policy_kwargs": {
        "features_extractor_class": ViewEncoder,
        "normalize_images": False,
    },
}
# Decisions of a rollout with options: they take several primitive steps each, and 256
# of them would leave the agent few updates.
_OPTIONS_N_STEPS = 64


class _Paced:
    """A DQN whose schedules follow the primitive steps of a `Budget`.

    Random actions, learning rate, gradient steps and target updates do. Decisions for
    options are longer: by decisions, an agent with options would learn less.
    """

    budget: Budget
    exploring_share = 0.5
    last_epsilon = 0.05

    def _on_step(self) -> None:
        agent: Any = super()
        own: Any = self
        for _ in range(self.budget.steps - own._n_calls):
            agent._on_step()
        progress = min(1.0, self.budget.spent / self.exploring_share)
        own.exploration_rate = 1.0 - (1.0 - self.last_epsilon) * progress

    def _update_current_progress_remaining(self, *decisions: int) -> None:
        # Constant in the first half of the budget, then falling to 0.
        self._current_progress_remaining = min(1.0, 2.0 - 2.0 * self.budget.spent)

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Take the gradient steps due, one per `train_freq` primitive steps."""
        own: Any = self
        assert isinstance(own.train_freq, TrainFreq)
        n_due = self.budget.steps // own.train_freq.frequency - own._n_updates
        agent: Any = super()
        if n_due > 0:
            agent.train(n_due, batch_size)


class PacedDQN(_Paced, DQN):
    """SB3's DQN, paced by primitive steps."""


class PacedOptionsDQN(_Paced, OptionsDQN):
    """DQN with options, paced by primitive steps."""


def make_dqn(env: Env, budget: Budget, seed: int) -> DQN:
    """Make SB3's DQN; `env` has all wrappers, `budget` is inside it."""
    is_table = hasattr(env.observation_space, "n")
    settings = _DQN | _VIEW_DQN
    if is_table:
        settings = _DQN | _TABLE_DQN
    make: type[PacedDQN | PacedOptionsDQN] = PacedDQN
    if hasattr(env.action_space, "n_primitive"):
        make = PacedOptionsDQN

    # Random actions are samples of the action space.
    env.action_space.seed(seed)
    agent = make("MlpPolicy", env, gamma=0.99, seed=seed, device="cpu", **settings)
    agent.budget = budget
    _begin_near_zero(agent, is_table)
    return agent


def _begin_near_zero(agent: DQN, is_table: bool) -> None:
    """Let all values begin near 0, without ties.

    With large random values, choices that were never tried look best. The networks are
    changed.
    """
    layers = [
        layer for layer in agent.q_net.modules() if isinstance(layer, torch.nn.Linear)
    ]
    last = layers[-1]
    torch.nn.init.normal_(last.weight, std=1e-3)
    torch.nn.init.zeros_(last.bias)
    # Of a table, each state learns its own values: a bias would be shared.
    if is_table:
        last.bias.requires_grad_(False)

    if hasattr(agent.action_space, "n_primitive"):
        prefer_actions(agent)
    agent.q_net_target.load_state_dict(agent.q_net.state_dict())


def make_ppo(env: Env, seed: int) -> PPO:
    """Make SB3's PPO; with options, decisions are discounted by their duration."""
    settings = dict(_PPO)
    if not hasattr(env.observation_space, "n"):
        settings |= _VIEW_PPO
    has_options = hasattr(env.action_space, "n_primitive")
    if has_options:
        settings["n_steps"] = _OPTIONS_N_STEPS
        settings["rollout_buffer_class"] = SMDPRolloutBuffer
    agent = PPO("MlpPolicy", env, gamma=0.99, seed=seed, device="cpu", **settings)
    if has_options:
        prefer_actions(agent)
    return agent


class SB3Agent:
    """An agent of Stable-Baselines3 that learns until the budget is spent."""

    def __init__(self, agent: BaseAlgorithm) -> None:
        self.agent: Any = agent

    def choose(self, obs: Any, mask: Mask | None = None) -> int:
        """Return the choice of the highest value or probability."""
        masks: dict[str, Any] = {}
        if mask is not None and isinstance(self.agent, OptionsDQN):
            masks["action_masks"] = mask.astype(np.bool_)
        action, _ = self.agent.predict(np.asarray(obs), deterministic=True, **masks)
        return int(action)

    def learn(self) -> None:
        """Learn until the budget is spent."""
        callback = None
        if isinstance(getattr(self.agent, "rollout_buffer", None), SMDPRolloutBuffer):
            callback = SMDPDiscounts()
        with suppress(BudgetSpentError):
            # More decisions than any budget: runs end by their primitive steps.
            self.agent.learn(10**9, callback=callback)
