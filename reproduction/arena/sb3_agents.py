"""Agents of Stable-Baselines3 for training runs: schedules by primitive steps, with and without options."""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.type_aliases import TrainFreq

from eigenoptions.envs.sb3 import OptionsDQN, SMDPDiscounts, SMDPRolloutBuffer, prefer_actions
from reproduction.arena.training import ConstantDiscount, Run

# The same for every way of exploring. The network is a table, see `make_tabular`.
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
    "learning_rate": 2e-3, "n_steps": 256, "batch_size": 64, "n_epochs": 5, "ent_coef": 0.01
}  # fmt: skip
# Decisions of a rollout with options: they take four to five primitive steps each, and 256 of them would leave the
# agent a fifth of the updates that it has without options.
OPTIONS_N_STEPS = 64


class PacedDQN(OptionsDQN):
    """`OptionsDQN` of a `Run`, by primitive steps: random actions, learning rate, gradient steps, target updates.

    Decisions for options are longer, so that by decisions an agent with options would learn less per primitive step.
    """

    run: Run
    # Primitive steps before the first of the agent, in the discovery of options.
    first_step: int

    def _on_step(self) -> None:
        for _ in range(self.run.record.steps - self.first_step - self._n_calls):
            super()._on_step()
        self.exploration_rate = self.run.epsilon()

    def _update_current_progress_remaining(self, *decisions: int) -> None:
        self._current_progress_remaining = self.run.learning_rate()

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Take the gradient steps that are due: one per `train_freq` primitive steps."""
        assert isinstance(self.train_freq, TrainFreq)
        super().train(self._n_calls // self.train_freq.frequency - self._n_updates, batch_size)


def make_agent(name: str, run: Run) -> tuple[Any, Any]:
    """An agent of Stable-Baselines3 for a run, and its callback."""
    common: Any = {"gamma": run.gamma, "seed": run.seed, "device": "cpu"}
    if name == "DQN":
        env = run.env if run.has_options else ConstantDiscount(run.env, run.gamma)
        env.action_space.seed(run.seed)
        agent = PacedDQN("MlpPolicy", env, **common, **DQN_SETTINGS)
        make_tabular(agent)
        agent.run, agent.first_step = run, run.record.steps
        return agent, None
    if not run.has_options:
        return PPO("MlpPolicy", run.env, **common, **PPO_SETTINGS), None
    settings: Any = {**PPO_SETTINGS, "n_steps": OPTIONS_N_STEPS, "rollout_buffer_class": SMDPRolloutBuffer}
    ppo = PPO("MlpPolicy", run.env, **common, **settings)
    prefer_actions(ppo)
    return ppo, SMDPDiscounts()


def make_tabular(agent: Any) -> None:
    """Make the network of a DQN with ``net_arch=[]`` a table: one weight per state and choice, all near 0.

    Numbered states have nothing in common that a hidden layer or a bias could use: choices that were never tried would
    inherit the values of others, and be taken for the best.
    """
    layer = agent.q_net.q_net[0]
    # Small random values, so that there are no ties: the first action would win them all.
    torch.nn.init.normal_(layer.weight, std=1e-3)
    torch.nn.init.zeros_(layer.bias)
    layer.bias.requires_grad_(False)
    agent.q_net_target.load_state_dict(agent.q_net.state_dict())
