"""Training runs of deep agents by equal primitive steps: what surrounds the agent, and what a run measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from eigenoptions.envs import OptionsWrapper
from reproduction.arena.tasks import (
    Task,
    draw_goals,
    get_known_options,
    make_table_env,
    make_task,
    measure_coverage,
    measure_goal,
)

Act = Callable[[Any, Any], int]
# Deep agents are slow (0.3 to 1 ms per step): fewer tasks, ways and steps, and one random goal per seed.
DEEP_STEPS = {"FourRooms": 8000, "two-keys": 8000, "rooms-5x5": 8000, "Taxi": 4000, "CliffWalking": 2000}


class BudgetSpentError(Exception):
    """A training run has taken all of its primitive steps."""


class Record(gym.Wrapper[Any, Any, Any, Any]):
    """Counts primitive steps, notes the first visit to each state, and ends a run at its budget.

    It goes around the environment with its time limit, inside all other wrappers. `first_visit` (S,) is -1 where there
    was none. Entering a state n times gives ``bonus / sqrt(n)``. What `OptionsDQN` needs of an environment without
    options is here, too: discount and masks.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        budget: int,
        first_visit: NDArray[np.int64],
        bonus: float = 0.0,
        gamma: float = 0.99,
    ) -> None:
        super().__init__(env)
        self.budget, self.steps, self.first_visit = budget, 0, first_visit
        self.bonus, self.gamma, self.counts = bonus, gamma, np.zeros(len(first_visit))

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


@dataclass
class Run:
    """What an agent needs for one training run: `env` has all wrappers, `record` is inside it.

    An agent sets `act`, its greedy policy ``act(obs, mask)``, and learns until the budget is spent.
    """

    env: Any
    record: Record
    seed: int
    act: Act | None = None

    def epsilon(self) -> float:
        """Probability of a random decision: linear from 1 to 0.05 over the first half of the primitive steps."""
        return max(0.05, 1.0 - 0.95 * self.record.steps / (0.5 * self.record.budget))

    def learning_rate(self) -> float:
        """Share of the first learning rate: 1 in the first half of the primitive steps, then linear to 0."""
        return min(1.0, 2.0 - 2.0 * self.record.steps / self.record.budget)


def train(
    agent: str,
    task: Task,
    goal: NDArray[np.bool_],
    *,
    budget: int,
    seed: int,
    options: Any = None,
    first_visit: NDArray[np.int64],
    bonus: float = 0.0,
) -> bool:
    """Train an agent; fills `first_visit`, and returns whether its greedy policy reaches the goal."""

    def add_options(env: Any) -> Any:
        return env if options is None else OptionsWrapper(env, options, record_steps=True)

    record = Record(make_table_env(task, goal), budget, first_visit, bonus)
    run = Run(add_options(record), record, seed)
    first_visit[task.mdp.start] = 0
    with suppress(BudgetSpentError):
        if agent == "PyTorch DQN":
            from reproduction.arena.dqn import train_dqn

            train_dqn(run)
        else:
            from reproduction.arena.sb3_agents import train_sb3

            train_sb3(agent, run)
    assert run.act is not None
    return play_episode(add_options(make_table_env(task, goal)), run.act, seed)


def play_episode(env: Any, act: Act, seed: int) -> bool:
    """Whether a greedy episode reaches the goal; the policy is asked once per state."""
    obs, info = env.reset(seed=seed)
    reward, is_over, choices = 0.0, False, {}
    while not is_over:
        if obs not in choices:
            choices[obs] = act(obs, info.get("action_mask"))
        obs, reward, terminated, truncated, info = env.step(choices[obs])
        is_over = terminated or truncated
    return bool(reward > 0)


def train_deep(
    agent: str, task: str, way: str, seed: int, settings: Mapping[str, float], share: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """One run of a deep agent toward the first random goal of its seed."""
    about, budget = make_task(task), int(share * DEEP_STEPS[task])
    known = get_known_options(task)
    goal, first_visit = int(draw_goals(about, known, 20, seed)[0]), np.full(about.mdp.n_states, -1)
    is_goal = np.arange(about.mdp.n_states) == goal
    learning: Any = {"options": known if way == "options" else None, "bonus": settings.get("bonus", 0.0)}
    is_learned = train(agent, about, is_goal, budget=budget, seed=seed, first_visit=first_visit, **learning)
    key = {"task": task, "agent": agent, "way": way, "seed": seed}
    row = {**key, "goal": goal, **measure_goal(is_goal, first_visit, budget, is_learned)}
    return [row], [{**key, **measure_coverage(about, first_visit, budget)}]
