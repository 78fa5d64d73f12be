"""Training runs of deep agents by equal primitive steps.

Here is what surrounds the agent, and what a run measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from eigenoptions.envs import OptionsWrapper
from reproduction.arena import tasks

# Deep agents are slow (0.3 to 1 ms per step): fewer tasks, ways and steps, and one
# random goal per seed.
DEEP_STEPS = {
    "FourRooms": 8000,
    "two-keys": 8000,
    "rooms-5x5": 8000,
    "Taxi": 4000,
    "CliffWalking": 2000,
}


class BudgetSpentError(Exception):
    """A training run has taken all of its primitive steps."""


class Record(gym.Wrapper[Any, Any, Any, Any]):
    """Counts primitive steps, notes first visits, and ends a run at its budget.

    It goes around the environment with its time limit, inside all other wrappers.
    `first_visit` (S,) is -1 where there was none. Entering a state n times gives
    ``bonus / sqrt(n)``. What `OptionsDQN` needs of an environment without options is
    here, too: discount and masks.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        budget: int,
        bonus: float = 0.0,
        gamma: float = 0.99,
    ) -> None:
        super().__init__(env)
        self.budget, self.bonus, self.gamma, self.steps = budget, bonus, gamma, 0
        self.counts = np.zeros(int(env.observation_space.n))  # type: ignore[attr-defined]
        self.first_visit = np.full(len(self.counts), -1)

    def step(self, action: Any) -> Any:
        """Take one step; raises `BudgetSpentError` after the last."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.steps += 1
        self.counts[obs] += 1
        if self.first_visit[obs] < 0:
            self.first_visit[obs] = self.steps
        if self.steps >= self.budget:
            raise BudgetSpentError
        reward = float(reward) + self.bonus / self.counts[obs] ** 0.5
        return obs, reward, terminated, truncated, {**info, "discount": self.gamma}

    def action_masks(self) -> Any:
        """All actions."""
        return np.ones(int(self.action_space.n), dtype=np.bool_)  # type: ignore[attr-defined]

    def epsilon(self) -> float:
        """Probability of a random decision.

        It falls from 1 to 0.05 over the first half of the primitive steps.
        """
        return max(0.05, 1.0 - 0.95 * self.steps / (0.5 * self.budget))

    def learning_rate(self) -> float:
        """Share of the first learning rate.

        It is 1 in the first half of the primitive steps, then falls to 0.
        """
        return min(1.0, 2.0 - 2.0 * self.steps / self.budget)


def train_deep(
    agent: str,
    task: str,
    way: str,
    seed: int,
    settings: Mapping[str, float],
    share: float,
) -> tuple[tasks.Rows, tasks.Rows]:
    """One run of a deep agent toward the first random goal of its seed."""
    from reproduction.arena.deep_agents import train_dqn, train_sb3

    about, known, budget = (
        tasks.make_task(task),
        tasks.get_known_options(task),
        int(share * DEEP_STEPS[task]),
    )
    goal = int(tasks.draw_goals(about, known, 20, seed)[0])
    is_goal = np.arange(about.mdp.n_states) == goal

    def add_options(env: Any) -> Any:
        return (
            OptionsWrapper(env, known, record_steps=True) if way == "options" else env
        )

    record = Record(tasks.make_table_env(about, is_goal), budget, **settings)
    record.first_visit[about.mdp.start] = 0
    train = train_dqn if agent == "PyTorch DQN" else partial(train_sb3, agent)
    act = train(add_options(record), record, seed)
    is_learned = play_episode(
        add_options(tasks.make_table_env(about, is_goal)), act, seed
    )
    key = {"task": task, "agent": agent, "way": way, "seed": seed}
    row = {
        **key,
        "goal": goal,
        **tasks.measure_goal(is_goal, record.first_visit, budget, is_learned),
    }
    return [row], [{**key, **tasks.measure_coverage(about, record.first_visit, budget)}]


def play_episode(env: Any, act: Callable[[Any, Any], int], seed: int) -> bool:
    """Whether a greedy episode reaches the goal; the policy is asked once per state."""
    obs, info = env.reset(seed=seed)
    reward, is_over, choices = 0.0, False, {}
    while not is_over:
        if obs not in choices:
            choices[obs] = act(obs, info.get("action_mask"))
        obs, reward, terminated, truncated, info = env.step(choices[obs])
        is_over = terminated or truncated
    return bool(reward > 0)
