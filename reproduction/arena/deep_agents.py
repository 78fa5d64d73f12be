"""Deep agents for training runs, by primitive steps, with and without options.

They are a DQN of our own, and DQN and PPO of Stable-Baselines3.

Each learns until the budget is spent, and returns its greedy policy. The PyTorch DQN is
in the style of CleanRL; see ``examples/pytorch_dqn.py``. Three lines differ from an
agent without options: the target discounts by ``info["discount"]``, the largest value
is taken over ``info["action_mask"]``, and so is the greedy choice.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.type_aliases import TrainFreq
from torch import nn

from eigenoptions.agents.sb3 import (
    OptionsDQN,
    SMDPDiscounts,
    SMDPRolloutBuffer,
    prefer_actions,
)
from reproduction.arena.training import BudgetSpentError, Record

COLUMNS = ("obs", "action", "reward", "next_obs", "discount", "next_mask")
# Of the agents of Stable-Baselines3, the same for every way of exploring.
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
PPO_SETTINGS: Any = {
    "learning_rate": 2e-3,
    "batch_size": 64,
    "n_epochs": 5,
    "ent_coef": 0.01,
}
# Decisions of a rollout with options: they take four to five primitive steps each, and
# 256 of them would leave the agent a fifth of the updates that it has without options.
OPTIONS_N_STEPS = 64


def train_dqn(env: Any, record: Record, seed: int) -> Callable[[Any, Any], int]:
    """The PyTorch DQN; `env` has all wrappers, `record` is inside it."""
    torch.manual_seed(seed)
    rng, n_actions, capacity = (
        np.random.default_rng(seed),
        int(env.action_space.n),
        20_000,
    )
    env.action_space.seed(seed)
    # Numbered states have nothing in common that a hidden layer could use: one weight
    # per state and choice.
    net = nn.Embedding(int(env.observation_space.n), n_actions)
    nn.init.normal_(net.weight, std=1e-3)
    optimizer = torch.optim.SGD(net.parameters(), 20.0)
    target, first_rate = copy.deepcopy(net), optimizer.param_groups[0]["lr"]
    # The last transitions; a discount of 0 is the end of an episode.
    types = (
        np.int64,
        np.int64,
        np.float32,
        np.int64,
        np.float32,
        (np.bool_, n_actions),
    )
    replay, n_added = np.zeros(capacity, list(zip(COLUMNS, types, strict=True))), 0
    all_actions = np.ones(n_actions, dtype=np.bool_)

    def act(obs: Any, mask: Any = None) -> int:
        with torch.no_grad():
            values = net(torch.as_tensor(obs)[None])[0].numpy()
        return int(
            np.where(all_actions if mask is None else mask, values, -np.inf).argmax()
        )

    def learn() -> None:
        batch = replay[rng.integers(min(n_added, capacity), size=128)]
        columns = (
            torch.from_numpy(np.ascontiguousarray(batch[name])) for name in COLUMNS
        )
        obs, action, reward, next_obs, discount, mask = columns
        with torch.no_grad():
            # Double DQN: the network chooses, the target network evaluates. A maximum
            # over many options overestimates.
            best = (
                net(next_obs).masked_fill(~mask, -torch.inf).argmax(dim=1, keepdim=True)
            )
            goal = reward + discount * target(next_obs).gather(1, best)[:, 0]
        loss = nn.functional.smooth_l1_loss(
            net(obs).gather(1, action[:, None])[:, 0], goal
        )
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    n_updates = 0
    obs, info = env.reset(seed=seed)
    with suppress(BudgetSpentError):
        while True:
            before, mask = obs, info.get("action_mask")
            action = (
                int(env.action_space.sample())
                if rng.random() < record.epsilon()
                else act(obs, mask)
            )
            obs, reward, terminated, truncated, info = env.step(action)
            discount = 0.0 if terminated else info["discount"]
            rows = [
                (
                    before,
                    action,
                    reward,
                    obs,
                    discount,
                    info.get("action_mask", all_actions),
                )
            ]
            # The primitive steps inside an option are transitions too
            # (OptionsWrapper(record_steps=True)).
            path = info.get("steps", ())
            for step in path:
                discount = 0.0 if terminated and step is path[-1] else step.discount
                rows.append(
                    (
                        step.obs,
                        step.action,
                        step.reward,
                        step.next_obs,
                        discount,
                        step.action_mask,
                    )
                )
            for row in rows:
                replay[n_added % capacity] = row
                n_added += 1
            # By primitive steps, not by decisions: with options there are fewer
            # decisions to learn from.
            optimizer.param_groups[0]["lr"] = first_rate * record.learning_rate()
            while n_added > 64 and n_updates < record.steps // 4:
                learn()
                n_updates += 1
                if n_updates % 25 == 0:
                    target.load_state_dict(net.state_dict())
            if terminated or truncated:
                obs, info = env.reset()
    return act


class PacedDQN(OptionsDQN):
    """`OptionsDQN` whose schedules follow the primitive steps of a `Record`.

    So do random actions, the learning rate, gradient steps and target updates.

    Decisions for options are longer, so that by decisions an agent with options would
    learn less per primitive step.
    """

    record: Record

    def _on_step(self) -> None:
        for _ in range(self.record.steps - self._n_calls):
            super()._on_step()
        self.exploration_rate = self.record.epsilon()

    def _update_current_progress_remaining(self, *decisions: int) -> None:
        self._current_progress_remaining = self.record.learning_rate()

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Take the gradient steps due, one per `train_freq` primitive steps."""
        assert isinstance(self.train_freq, TrainFreq)
        super().train(
            self._n_calls // self.train_freq.frequency - self._n_updates, batch_size
        )


def make_agent(name: str, env: Any, record: Record, seed: int) -> Any:
    """An agent of Stable-Baselines3; `env` has all wrappers, `record` is inside it."""
    common: Any = {"gamma": record.gamma, "seed": seed, "device": "cpu"}
    if name == "DQN":
        env.action_space.seed(seed)
        agent: Any = PacedDQN("MlpPolicy", env, **common, **DQN_SETTINGS)
        # The network is a table, one weight per state and choice. Numbered states have
        # nothing in common that a hidden layer or a bias could use: choices that were
        # never tried would inherit the values of others. The values are small and
        # random, so that there are no ties, which the first action would win.
        layer = agent.q_net.q_net[0]
        torch.nn.init.normal_(layer.weight, std=1e-3)
        torch.nn.init.zeros_(layer.bias)
        layer.bias.requires_grad_(False)
        agent.q_net_target.load_state_dict(agent.q_net.state_dict())
        agent.record = record
        return agent
    has_options = env is not record
    settings: Any = {**PPO_SETTINGS, "n_steps": OPTIONS_N_STEPS if has_options else 256}
    agent = PPO(
        "MlpPolicy", env, rollout_buffer_class=SMDPRolloutBuffer, **common, **settings
    )
    if has_options:
        prefer_actions(agent)
    return agent


def train_sb3(
    name: str, env: Any, record: Record, seed: int
) -> Callable[[Any, Any], int]:
    """An agent of Stable-Baselines3."""
    agent = make_agent(name, env, record, seed)

    def act(obs: Any, mask: Any) -> int:
        masks = (
            {}
            if name == "PPO" or mask is None
            else {"action_masks": mask.astype(np.bool_)}
        )
        return int(agent.predict(np.asarray(obs), deterministic=True, **masks)[0])

    # More decisions than any budget: runs end by their primitive steps.
    with suppress(BudgetSpentError):
        agent.learn(10**9, callback=SMDPDiscounts() if name == "PPO" else None)
    return act
