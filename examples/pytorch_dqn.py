"""A single-file DQN in PyTorch that learns with options
=====================================================

``pip install 'eigenoptions[deep]'``.

Three lines differ from an agent without options: the target discounts by ``info["discount"]``, the largest value is
taken over ``info["action_mask"]``, and so is the greedy choice. Exploration is ``env.action_space.sample()`` as ever.

In the picture: the greedy choice in every state. Arrows are actions, digits options (4 is e2+, 5 is e2-, + above 9).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

# First learning rates: Adam's for a network, SGD's for a table (0.16 per transition of a batch).
BATCH, NETWORK_RATE, TABLE_RATE = 128, 3e-3, 20.0


def network(space: gym.Space, n_actions: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A network from observations to the values of all choices, and its optimizer.

    Numbered states have nothing in common that a hidden layer could use: they get one weight per state and choice. With
    a hidden layer, choices that were never tried inherit the values of others, and are taken for the best.
    """
    if isinstance(space, gym.spaces.Discrete):
        table = nn.Embedding(int(space.n), n_actions)
        nn.init.normal_(table.weight, std=1e-3)
        return table, torch.optim.SGD(table.parameters(), TABLE_RATE)
    width = int(np.prod(space.shape))
    net = nn.Sequential(nn.Flatten(), nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, n_actions))
    return net, torch.optim.Adam(net.parameters(), NETWORK_RATE)


class Replay:
    """The last transitions; a discount of 0 is the end of an episode."""

    columns = "obs", "action", "reward", "next_obs", "discount", "next_mask"

    def __init__(self, capacity: int, space: gym.Space, n_actions: int) -> None:
        state, number, mask = (space.dtype, space.shape), (np.float32, ()), (np.bool_, (n_actions,))
        kinds = state, (np.int64, ()), number, state, number, mask
        self.rows = np.zeros(
            capacity, [(name, *kind) for name, kind in zip(self.columns, kinds, strict=True)]
        )
        self.size, self.at = 0, 0

    def add(self, *row: Any) -> None:
        """Store a transition over the oldest."""
        self.rows[self.at] = row
        self.at = (self.at + 1) % len(self.rows)
        self.size = max(self.size, self.at)

    def sample(self, rng: np.random.Generator, n: int) -> tuple[torch.Tensor, ...]:
        """Draw n transitions: one tensor per column."""
        batch = self.rows[rng.integers(self.size, size=n)]
        return tuple(torch.from_numpy(np.ascontiguousarray(batch[name])) for name in self.columns)


def train(
    env: gym.Env,
    decisions: int,
    *,
    gamma: float = 0.95,
    seed: int = 0,
    rate: Callable[[int], float] = lambda decision: 1.0,
    epsilon: Callable[[int], float] = lambda decision: max(0.05, 1.0 - decision / 2000),
    explore: Callable[[float], int | None] | None = None,
    ready: Callable[[Callable[..., int]], object] = lambda act: None,
) -> Callable[..., int]:
    """Learn, and return the greedy policy ``act(obs, mask=None)``; `rate` is the share of the first learning rate."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    env.action_space.seed(seed)
    space, n_actions = env.observation_space, int(env.action_space.n)
    net, optimizer = network(space, n_actions)
    target, first_rate = copy.deepcopy(net), optimizer.param_groups[0]["lr"]
    replay, everything = Replay(20_000, space, n_actions), np.ones(n_actions, dtype=bool)

    def act(obs: Any, mask: np.ndarray | None = None) -> int:
        with torch.no_grad():
            values = net(torch.as_tensor(obs)[None])[0].numpy()
        return int(np.where(everything if mask is None else mask, values, -np.inf).argmax())

    def learn() -> None:
        seen, action, reward, next_seen, discount, mask = replay.sample(rng, BATCH)
        with torch.no_grad():
            # Double DQN: the network chooses, the target network evaluates. A maximum over many options overestimates.
            chosen = net(next_seen).masked_fill(~mask, -torch.inf).argmax(dim=1, keepdim=True)
            best = target(next_seen).gather(1, chosen)[:, 0]
            goal = reward + discount * best
        loss = nn.functional.smooth_l1_loss(net(seen).gather(1, action[:, None])[:, 0], goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    ready(act)
    steps, updates = 0, 0
    obs, info = env.reset(seed=seed)
    for decision in range(decisions):
        chance = epsilon(decision)
        if explore is not None:
            action = explore(chance)
        else:
            action = int(env.action_space.sample()) if rng.random() < chance else None
        if action is None:
            action = act(obs, info.get("action_mask"))
        before = obs
        obs, reward, terminated, truncated, info = env.step(action)
        mask = info.get("action_mask", everything)
        discount = 0.0 if terminated else info.get("discount", gamma)
        replay.add(before, action, reward, obs, discount, mask)
        # The primitive steps inside an option are transitions too (OptionsWrapper(record_steps=True)).
        path = info.get("steps", ())
        for i, step in enumerate(path, 1):
            left = 0.0 if terminated and i == len(path) else step.discount
            replay.add(step.obs, step.action, step.reward, step.next_obs, left, step.action_mask)
        # By primitive steps, not by decisions: with options there are fewer decisions to learn from.
        steps += info.get("duration", 1)
        optimizer.param_groups[0]["lr"] = first_rate * rate(decision)
        while replay.size > 64 and updates < steps // 4:
            learn()
            updates += 1
            if updates % 25 == 0:
                target.load_state_dict(net.state_dict())
        if terminated or truncated:
            obs, info = env.reset()
    return act


def main() -> None:
    import eigenoptions as eo

    torch.set_num_threads(1)
    rooms = eo.maze("four-rooms")
    options = eo.discover(rooms, n_options=8)
    env = gym.make("eigenoptions/FourRooms-v0", max_episode_steps=500)
    env = eo.OptionsWrapper(env, options, gamma=0.95, record_steps=True)
    act = train(env, 3000)
    (state, info), over, steps = env.reset(seed=1), False, 0
    while not over:
        state, _, terminated, truncated, info = env.step(act(state, info["action_mask"]))
        over, steps = terminated or truncated, steps + info["duration"]
    print(f"{'Reached the goal' if terminated else 'Gave up'} after {steps} steps; shortest path: 20.")
    best = [act(s, np.append(np.ones(4, bool), options.initiation[:, s])) for s in range(104)]
    figure, ax = plt.subplots(figsize=(3.5, 3.5), layout="constrained")
    eo.plots.draw_policy(ax, rooms.coords, best)
    ax.set_title("greedy choice")
    eo.plots.save_figure(figure, "pytorch-dqn.svg")


if __name__ == "__main__":
    main()
