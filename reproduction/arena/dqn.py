"""A DQN in one file of PyTorch over actions and options, in the style of CleanRL; see ``examples/pytorch_dqn.py``.

Three lines differ from an agent without options: the target discounts by ``info["discount"]``, the largest value is
taken over ``info["action_mask"]``, and so is the greedy choice.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import nn

from reproduction.arena.training import BudgetSpentError, Record

COLUMNS = ("obs", "action", "reward", "next_obs", "discount", "next_mask")


def train_dqn(name: str, env: Any, record: Record, seed: int) -> Callable[[Any, Any], int]:
    """Learn until the budget is spent, and return the greedy policy; `env` has all wrappers, `record` is inside it."""
    torch.manual_seed(seed)
    rng, n_actions, capacity = np.random.default_rng(seed), int(env.action_space.n), 20_000
    env.action_space.seed(seed)
    # Numbered states have nothing in common that a hidden layer could use: one weight per state and choice.
    net = nn.Embedding(int(env.observation_space.n), n_actions)
    nn.init.normal_(net.weight, std=1e-3)
    optimizer = torch.optim.SGD(net.parameters(), 20.0)
    target, first_rate = copy.deepcopy(net), optimizer.param_groups[0]["lr"]
    # The last transitions; a discount of 0 is the end of an episode.
    types: Any = (np.int64, np.int64, np.float32, np.int64, np.float32, (np.bool_, n_actions))
    dtypes: Any = list(zip(COLUMNS, types, strict=True))
    replay, n_added = np.zeros(capacity, dtypes), 0
    all_actions = np.ones(n_actions, dtype=np.bool_)

    def act(obs: Any, mask: Any = None) -> int:
        with torch.no_grad():
            values = net(torch.as_tensor(obs)[None])[0].numpy()
        return int(np.where(all_actions if mask is None else mask, values, -np.inf).argmax())

    def learn() -> None:
        batch = replay[rng.integers(min(n_added, capacity), size=128)]
        obs, action, reward, next_obs, discount, mask = (
            torch.from_numpy(np.ascontiguousarray(batch[name])) for name in COLUMNS
        )
        with torch.no_grad():
            # Double DQN: the network chooses, the target network evaluates. A maximum over many options overestimates.
            best = net(next_obs).masked_fill(~mask, -torch.inf).argmax(dim=1, keepdim=True)
            goal = reward + discount * target(next_obs).gather(1, best)[:, 0]
        loss = nn.functional.smooth_l1_loss(net(obs).gather(1, action[:, None])[:, 0], goal)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    n_updates = 0
    obs, info = env.reset(seed=seed)
    with suppress(BudgetSpentError):
        while True:
            before, mask = obs, info.get("action_mask")
            action = int(env.action_space.sample()) if rng.random() < record.epsilon() else act(obs, mask)
            obs, reward, terminated, truncated, info = env.step(action)
            discount = 0.0 if terminated else info["discount"]
            rows = [(before, action, reward, obs, discount, info.get("action_mask", all_actions))]
            # The primitive steps inside an option are transitions too (OptionsWrapper(record_steps=True)).
            path = info.get("steps", ())
            for step in path:
                discount = 0.0 if terminated and step is path[-1] else step.discount
                rows.append((step.obs, step.action, step.reward, step.next_obs, discount, step.action_mask))
            for row in rows:
                replay[n_added % capacity] = row
                n_added += 1
            # By primitive steps, not by decisions: with options there are fewer decisions to learn from.
            optimizer.param_groups[0]["lr"] = first_rate * record.learning_rate()
            while n_added > 64 and n_updates < record.steps // 4:
                learn()
                n_updates += 1
                if n_updates % 25 == 0:
                    target.load_state_dict(net.state_dict())
            if terminated or truncated:
                obs, info = env.reset()
    return act
