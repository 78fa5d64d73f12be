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
    EXPLORATION,
    Task,
    draw_goals,
    get_known_options,
    get_options,
    make_table_env,
    make_task,
    measure_coverage,
    measure_goal,
)

Act = Callable[[Any, Any], int]
# Decisions that no budget reaches: runs end by their primitive steps.
ENDLESS = 1_000_000_000
# Deep agents are slow (0.3 to 1 ms per step): fewer tasks, ways and steps, and one random goal per seed.
DEEP_STEPS = {"FourRooms": 10_000, "rooms-5x5": 8000, "Taxi": 4000, "CliffWalking": 2000}


class BudgetSpentError(Exception):
    """A training run has taken all of its primitive steps."""


class Record(gym.Wrapper[Any, Any, Any, Any]):
    """Counts primitive steps, notes the first visit to each state, and ends a run at its budget.

    It goes around the environment with its time limit, inside all other wrappers. `first_visit` (S,), -1 where there
    was none, already has those of the discovery of options, which took `steps` steps.
    """

    def __init__(
        self, env: gym.Env[Any, Any], budget: int, steps: int, first_visit: NDArray[np.int64]
    ) -> None:
        super().__init__(env)
        self.steps, self.budget, self.first_visit = steps, budget, first_visit

    def step(self, action: Any) -> Any:
        """Take one step; raises `BudgetSpentError` after the last."""
        outcome = self.env.step(action)
        self.steps += 1
        if self.first_visit[outcome[0]] < 0:
            self.first_visit[outcome[0]] = self.steps
        if self.steps >= self.budget:
            raise BudgetSpentError
        return outcome


class CountBonus(gym.Wrapper[Any, Any, Any, Any]):
    """A reward of ``bonus / sqrt(n)`` for entering a state n times."""

    def __init__(self, env: gym.Env[Any, Any], bonus: float, n_states: int) -> None:
        super().__init__(env)
        self.bonus, self.counts = bonus, np.zeros(n_states)

    def step(self, action: Any) -> Any:
        """Take one step."""
        obs, reward, *outcome = self.env.step(action)
        self.counts[obs] += 1
        return obs, float(reward) + self.bonus / self.counts[obs] ** 0.5, *outcome


class ConstantDiscount(gym.Wrapper[Any, Any, Any, Any]):
    """An environment without options as `OptionsDQN` needs it: each decision takes one step, and all are available."""

    def __init__(self, env: gym.Env[Any, Any], gamma: float) -> None:
        super().__init__(env)
        self.gamma = gamma

    def step(self, action: Any) -> Any:
        """Take one step."""
        *outcome, info = self.env.step(action)
        return *outcome, {**info, "discount": self.gamma}

    def action_masks(self) -> Any:
        """All actions."""
        return np.ones(int(self.action_space.n), dtype=np.bool_)  # type: ignore[attr-defined]


@dataclass
class Run:
    """What an agent needs for one training run: `env` has all wrappers, `record` is inside it."""

    env: Any
    record: Record
    seed: int
    has_options: bool
    gamma: float = 0.99
    act: Act | None = None

    def epsilon(self) -> float:
        """Probability of a random decision: linear from 1 to 0.05 over the first half of the primitive steps."""
        return max(0.05, 1.0 - 0.95 * self.record.steps / (0.5 * self.record.budget))

    def learning_rate(self) -> float:
        """Share of the first learning rate: 1 in the first half of the primitive steps, then linear to 0."""
        return min(1.0, 2.0 - 2.0 * self.record.steps / self.record.budget)


def learn(agent: str, run: Run) -> None:
    """Learn until the budget is spent; first set ``run.act`` to the greedy policy ``act(obs, mask)``."""
    if agent == "PyTorch DQN":
        from reproduction.arena.dqn import train_dqn

        return train_dqn(run)
    from reproduction.arena.sb3_agents import make_agent

    model, callback = make_agent(agent, run)

    def act(obs: Any, mask: Any) -> int:
        masks = {} if agent == "PPO" or mask is None else {"action_masks": np.asarray(mask, dtype=np.bool_)}
        return int(model.predict(np.asarray(obs), deterministic=True, **masks)[0])

    run.act = act
    model.learn(ENDLESS, callback=callback)


def train(
    agent: str,
    task: Task,
    goal: NDArray[np.bool_],
    *,
    budget: int,
    seed: int,
    options: Any = None,
    exploration: tuple[Any, float] = ("auto", 0.0),
    first_step: int = 0,
    first_visit: NDArray[np.int64],
    bonus: float = 0.0,
) -> bool:
    """Train an agent; fills `first_visit`, and returns whether its greedy policy reaches the goal.

    `exploration` is the option and stop chance of `OptionsWrapper`; `bonus` is that of `CountBonus`.
    """
    record = Record(make_table_env(task, goal), budget, first_step, first_visit)

    def wrap(inner: Any) -> Any:
        if options is None:
            return inner
        option_chance, stop_chance = exploration
        settings: Any = {"option_chance": option_chance, "stop_chance": stop_chance, "record_steps": True}
        return OptionsWrapper(inner, options, **settings)

    env: Any = wrap(record)
    if bonus:
        env = CountBonus(env, bonus, task.mdp.n_states)
    run = Run(env, record, seed, options is not None)
    first_visit[task.mdp.start] = 0
    with suppress(BudgetSpentError):
        learn(agent, run)
    assert run.act is not None
    return play_episode(wrap(make_table_env(task, goal)), run.act, seed)


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
    own = {name: value for name, value in settings.items() if name != "explore_share"}
    options, first_step, first_visit = get_options(task, way, int(own.pop("discovery", 0) * budget), seed)
    goal = int(draw_goals(about, get_known_options(task), 20, seed)[0])
    is_goal = np.arange(about.mdp.n_states) == goal
    learning: Any = {"budget": budget, "seed": seed, "options": options, "first_step": first_step, **own}
    if options is not None:
        learning["exploration"] = EXPLORATION[way]
    is_learned = train(agent, about, is_goal, first_visit=first_visit, **learning)
    key = {"task": task, "agent": agent, "way": way, "seed": seed}
    row = {**key, "goal": goal, **measure_goal(is_goal, first_visit, budget, is_learned)}
    return [row], [{**key, **measure_coverage(about, first_visit, budget)}]
