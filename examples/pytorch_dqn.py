"""A single-file DQN in PyTorch that learns with options: ``pip install 'eigenoptions[deep]'``.

Three lines differ from an agent without options: the target discounts by ``info["discount"]``, the largest value is
taken over ``info["action_mask"]``, and so is the greedy choice. Exploration is ``env.action_space.sample()`` as ever.

In the picture: the greedy choice in every state. Arrows are actions, digits options (4 is e2+, 5 is e2-, + above 9).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn


def encoder(space: gym.Space) -> tuple[int, Callable[[Any], np.ndarray]]:
    """Size of an input vector, and a function from an observation to it: one-hot states, or the numbers themselves."""
    if isinstance(space, gym.spaces.Discrete):
        one = np.eye(space.n, dtype=np.float32)
        return int(space.n), lambda state: one[state]
    return int(np.prod(space.shape)), lambda obs: np.asarray(obs, dtype=np.float32).ravel()


class Replay:
    """The last transitions: input, action, reward, next input, discount (0 where the episode ended), next mask."""

    def __init__(self, capacity: int, width: int, n_actions: int) -> None:
        self.x, self.next_x = (np.zeros((capacity, width), dtype=np.float32) for _ in range(2))
        self.action, self.reward = np.zeros(capacity, dtype=np.int64), np.zeros(capacity, dtype=np.float32)
        self.discount = np.zeros(capacity, dtype=np.float32)
        self.mask = np.ones((capacity, n_actions), dtype=bool)
        self.size, self.at = 0, 0

    def add(self, *row: Any) -> None:
        """Store a transition over the oldest."""
        columns = self.x, self.action, self.reward, self.next_x, self.discount, self.mask
        for column, value in zip(columns, row, strict=True):
            column[self.at] = value
        self.at = (self.at + 1) % len(self.x)
        self.size = max(self.size, self.at)

    def sample(self, rng: np.random.Generator, n: int) -> tuple[torch.Tensor, ...]:
        """Draw n transitions."""
        i = rng.integers(self.size, size=n)
        columns = self.x, self.action, self.reward, self.next_x, self.discount, self.mask
        return tuple(torch.from_numpy(column[i]) for column in columns)


def train(
    env: gym.Env,
    decisions: int,
    *,
    gamma: float = 0.95,
    seed: int = 0,
    learning_rate: Callable[[int], float] = lambda decision: 3e-3,
    epsilon: Callable[[int], float] = lambda decision: max(0.05, 1.0 - decision / 2000),
    explore: Callable[[float], int | None] | None = None,
    ready: Callable[[Callable[..., int]], object] = lambda act: None,
) -> Callable[..., int]:
    """Learn, and return the greedy policy ``act(obs, mask=None)``, which is passed to `ready` before the first step."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    env.action_space.seed(seed)
    n_actions, (width, encode) = int(env.action_space.n), encoder(env.observation_space)
    net, target = (nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, n_actions)) for _ in range(2))
    target.load_state_dict(net.state_dict())
    optimizer = torch.optim.Adam(net.parameters(), lr=learning_rate(0))
    replay, everything = Replay(20_000, width, n_actions), np.ones(n_actions, dtype=bool)

    def act(obs: Any, mask: np.ndarray | None = None) -> int:
        with torch.no_grad():
            values = net(torch.from_numpy(encode(obs))).numpy()
        return int(np.where(everything if mask is None else mask, values, -np.inf).argmax())

    def learn() -> None:
        x, action, reward, next_x, discount, mask = replay.sample(rng, 128)
        with torch.no_grad():
            # Double DQN: the network chooses, the target network evaluates. A maximum over many options overestimates.
            chosen = net(next_x).masked_fill(~mask, -torch.inf).argmax(dim=1, keepdim=True)
            best = target(next_x).gather(1, chosen)[:, 0]
            goal = reward + discount * best
        loss = nn.functional.smooth_l1_loss(net(x).gather(1, action[:, None])[:, 0], goal)
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
        replay.add(encode(before), action, reward, encode(obs), discount, mask)
        # The primitive steps inside an option are transitions too (OptionsWrapper(record_steps=True)).
        path = info.get("steps", ())
        for i, step in enumerate(path, 1):
            left = 0.0 if terminated and i == len(path) else step.discount
            replay.add(
                encode(step.obs), step.action, step.reward, encode(step.next_obs), left, step.action_mask
            )
        # By primitive steps, not by decisions: with options there are fewer decisions to learn from.
        steps += info.get("duration", 1)
        optimizer.param_groups[0]["lr"] = learning_rate(decision)
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
    panel = eo.plots.policy_panel(rooms.coords, best, "greedy choice")
    eo.plots.save(eo.plots.figure([panel]), "pytorch-dqn.svg")


if __name__ == "__main__":
    main()
