"""Corridors in which rewards and ends belong to steps, and states cannot carry them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete

LEFT, RIGHT, ACT = range(3)


class Corridor(gym.Env[int, int]):
    """States 0 to 5 in a row; `act` says what the third action does.

    An episode is cut off after 60 steps, so that an agent that stands still ends.
    """

    n_states = 6

    def __init__(self) -> None:
        self.observation_space = Discrete(self.n_states)
        self.action_space = Discrete(3)
        self.state = 0
        self.n_steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = 0
        self.n_steps = 0
        return self.state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.n_steps += 1
        before = self.state
        if action == LEFT:
            self.state = max(before - 1, 0)
        elif action == RIGHT:
            self.state = min(before + 1, self.n_states - 1)
        reward, is_over = self.judge(before, action)
        return self.state, reward, is_over, self.n_steps >= 60, {}

    def judge(self, before: int, action: int) -> tuple[float, bool]:
        """Change the state if need be; return the reward, and whether it is the end."""
        raise NotImplementedError


class Submit(Corridor):
    """The last action says "done", and changes nothing: right in state 3 alone."""

    def judge(self, before: int, action: int) -> tuple[float, bool]:
        return float(action == ACT and before == 3), action == ACT


class Drop(Corridor):
    """Something is dropped in state 4, again and again: the episode goes on."""

    def judge(self, before: int, action: int) -> tuple[float, bool]:
        return float(action == ACT and before == 4), False


class Teleport(Corridor):
    """The goal, state 5, pays and leads back to the start; there is no end."""

    def judge(self, before: int, action: int) -> tuple[float, bool]:
        if self.state < 5:
            return 0.0, False
        self.state = 0
        return 1.0, False


class Deadly(Corridor):
    """The third action kills, and shows state 3, next to the goal."""

    def judge(self, before: int, action: int) -> tuple[float, bool]:
        if action == ACT:
            self.state = 3
            return 0.0, True
        return float(self.state == 5), self.state == 5


class Leave(Corridor):
    """It is rewarded to leave state 2, wherever one goes; state 5 is the end."""

    def judge(self, before: int, action: int) -> tuple[float, bool]:
        is_left = before == 2 and self.state != 2
        return float(is_left), self.state == 5


class Door(Corridor):
    """The door, cell 4, pays only with the key of cell 0, which is used up.

    The state is the cell, and 5 more with the key; the start is cell 2.
    """

    n_states = 10

    def reset(self, **settings: Any) -> tuple[int, dict[str, Any]]:
        super().reset(**settings)
        self.state = 2
        return 2, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.n_steps += 1
        has_key, cell = divmod(self.state, 5)
        if action == ACT:
            has_key = int(has_key or cell == 0)
        else:
            cell = int(np.clip(cell + 2 * action - 1, 0, 4))
        is_paid = bool(has_key and cell == 4)
        is_over = cell == 4
        self.state = cell + 5 * (has_key and not is_paid)
        return self.state, float(is_paid), is_over, self.n_steps >= 60, {}


class Risky(Corridor):
    """Each step right ends the episode with a probability of 0.05, wherever it is."""

    def judge(self, before: int, action: int) -> tuple[float, bool]:
        has_ended = action == RIGHT and self.np_random.random() < 0.05
        return float(self.state == 5), has_ended or self.state == 5


KINDS = [Submit, Drop, Teleport, Deadly, Leave, Door, Risky]
CERTAIN = [Submit, Drop, Teleport, Deadly, Leave, Door]


def follow(env: gym.Env[int, int], policy: Any, seed: int = 0) -> float:
    """Rewards of an episode of a policy, which ends where the policy does."""
    state, _ = env.reset(seed=seed)
    total = 0.0
    while policy[state] >= 0:
        state, reward, is_over, is_cut, _ = env.step(int(policy[state]))
        total += reward
        if reward > 0 or is_over or is_cut:
            break
    return total
