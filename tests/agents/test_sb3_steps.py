"""Stable-Baselines3 with options: primitive steps, discounts and the log."""

from __future__ import annotations

import csv
import itertools
import pickle
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import (
    BaseCallback,
    CallbackList,
    ConvertCallback,
)
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv

import eigenoptions as eo
from eigenoptions.agents.sb3 import (
    OptionsDQN,
    OptionUsage,
    PrimitiveSteps,
    SMDPDiscounts,
    SMDPReplayBuffer,
    SMDPRolloutBuffer,
    check_discounts,
    prefer_actions,
)
from eigenoptions.envs import MazeEnv, OptionsWrapper


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


class StepCounter(gym.Wrapper[Any, Any, Any, Any]):
    """Counts what the environment was asked for."""

    n_steps = 0

    def step(self, action: Any) -> Any:
        self.n_steps += 1
        return self.env.step(action)


def make_counted(
    option_chance: float = 0.5, **settings: Any
) -> tuple[StepCounter, OptionsWrapper]:
    counter = StepCounter(MazeEnv("four-rooms"))
    options = eo.discover(eo.maze("four-rooms"), n_options=4)
    env = OptionsWrapper(counter, options, option_chance=option_chance, **settings)
    return counter, env


class Watch(BaseCallback):
    """Notes the steps and the exploration rate after each decision."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[int, float]] = []

    def _on_step(self) -> bool:
        rate = getattr(self.model, "exploration_rate", 0.0)
        self.rows.append((self.model.num_timesteps, rate))
        return True


def test_primitive_steps_are_the_budget_and_the_schedule_of_dqn() -> None:
    counter, env = make_counted()
    agent = OptionsDQN(
        "MlpPolicy", env, seed=0, exploration_fraction=0.5, learning_starts=10_000
    )
    watch = Watch()
    agent.learn(500, callback=watch, primitive_steps=True)

    assert agent.num_timesteps == counter.n_steps
    assert len(watch.rows) < 400
    # The last decision began before the end of the budget.
    assert watch.rows[-2][0] < 500 <= watch.rows[-1][0]
    # A rate is that of the steps before: half of the way down at a quarter.
    for (n_steps, _), (_, rate) in itertools.pairwise(watch.rows):
        assert rate == pytest.approx(max(1 - 0.95 * n_steps / 250, 0.05), abs=1e-6)


def test_decisions_are_the_budget_without_the_callback() -> None:
    counter, env = make_counted()
    agent = OptionsDQN("MlpPolicy", env, seed=0, learning_starts=10_000)
    agent.learn(200)
    assert agent.num_timesteps == 200 < counter.n_steps


@pytest.mark.parametrize("as_list", [False, True])
def test_primitive_steps_of_ppo_and_further_callbacks(as_list: bool) -> None:
    counter, env = make_counted()
    agent = PPO(
        "MlpPolicy",
        env,
        n_steps=16,
        batch_size=16,
        rollout_buffer_class=SMDPRolloutBuffer,
        seed=0,
    )
    agent.learn(300, callback=[SMDPDiscounts(), PrimitiveSteps()])
    assert agent.num_timesteps == counter.n_steps >= 300

    # Functions and lists are callbacks, too.
    calls: list[int] = []

    def note(variables: dict[str, Any], _: Any) -> bool:
        calls.append(1)
        return True

    dqn = OptionsDQN("MlpPolicy", env, seed=0)
    callback: Any = [Watch()] if as_list else note
    dqn.learn(50, callback=callback, primitive_steps=True)
    assert len(callback[0].rows if as_list else calls) > 0


def test_two_environments_count_primitive_steps_together() -> None:
    counters: list[StepCounter] = []

    def make() -> OptionsWrapper:
        counter, env = make_counted()
        counters.append(counter)
        return env

    agent = DQN(
        "MlpPolicy",
        DummyVecEnv([make, make]),
        replay_buffer_class=SMDPReplayBuffer,
        seed=0,
    )
    agent.learn(200, callback=PrimitiveSteps())
    assert agent.num_timesteps == sum(counter.n_steps for counter in counters)


def test_callbacks_need_the_wrapper() -> None:
    for callback in (PrimitiveSteps(), OptionUsage()):
        agent = DQN("MlpPolicy", MazeEnv("four-rooms"), seed=0)
        with pytest.raises(ValueError, match="OptionsWrapper"):
            agent.learn(4, callback=callback)


def test_two_discounts_are_refused_by_name() -> None:
    _, env = make_counted(gamma=0.95)
    with pytest.raises(ValueError, match=r"0\.99.*0\.95"):
        OptionsDQN("MlpPolicy", env, seed=0)
    with pytest.raises(ValueError, match=r"0\.99.*0\.95"):
        PPO("MlpPolicy", env, rollout_buffer_class=SMDPRolloutBuffer)
    stock = DQN("MlpPolicy", env, replay_buffer_class=SMDPReplayBuffer)
    for check in (check_discounts, prefer_actions):
        with pytest.raises(ValueError, match=r"0\.99.*0\.95"):
            check(stock)
    with pytest.raises(ValueError, match=r"0\.99.*0\.95"):
        stock.learn(4, callback=PrimitiveSteps())


def test_two_discounts_are_refused_where_environments_are_processes() -> None:
    """The space that an agent gets from another process knows the discount."""
    _, env = make_counted(gamma=0.95)
    copied = pickle.loads(pickle.dumps(env.action_space))
    with pytest.raises(ValueError, match="gamma"):
        SMDPRolloutBuffer(8, Discrete(104), copied, gamma=0.99)


@pytest.mark.parametrize("kind", [DQN, PPO])
def test_constant_discount_is_warned_of_once(
    kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    _, env = make_counted()
    agent = kind("MlpPolicy", env, seed=0)
    check_discounts(agent)
    check_discounts(agent)
    (message,) = caplog.messages
    assert kind.__name__ in message
    assert "SMDP" in message


def test_right_discounts_are_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    _, env = make_counted()
    check_discounts(OptionsDQN("MlpPolicy", env))
    check_discounts(DQN("MlpPolicy", env, replay_buffer_class=SMDPReplayBuffer))
    check_discounts(PPO("MlpPolicy", env, rollout_buffer_class=SMDPRolloutBuffer))
    # A constant discount is right where there are no options, or one step at a time.
    check_discounts(DQN("MlpPolicy", MazeEnv("four-rooms"), gamma=0.5))
    _, stepwise = make_counted(mode="step", gamma=0.5)
    check_discounts(DQN("MultiInputPolicy", stepwise))
    # And where nothing is discounted.
    _, undiscounted = make_counted(gamma=1.0)
    check_discounts(DQN("MlpPolicy", undiscounted, gamma=1.0))
    assert caplog.messages == []


def test_usage_is_logged_as_counted(tmp_path: Path) -> None:
    _, env = make_counted(option_chance=0.3)
    agent = OptionsDQN("MlpPolicy", env, seed=0, learning_starts=10_000)
    agent.set_logger(configure(str(tmp_path), ["csv"]))
    seen: list[dict[str, Any]] = []

    def note(variables: dict[str, Any], _: Any) -> bool:
        seen.append(variables["infos"][0])
        return True

    agent.learn(300, callback=CallbackList([OptionUsage(), ConvertCallback(note)]))
    agent.logger.dump(300)
    agent.logger.close()
    with (tmp_path / "progress.csv").open() as file:
        *_, row = csv.DictReader(file)

    option = np.array([info["option"] for info in seen])
    duration = np.array([info["duration"] for info in seen])
    runs = option >= 0
    assert 0 < runs.mean() < 1
    assert float(row["options/share_of_decisions"]) == pytest.approx(runs.mean())
    share_of_steps = duration[runs].sum() / duration.sum()
    assert float(row["options/share_of_steps"]) == pytest.approx(share_of_steps)
    assert float(row["options/mean_length"]) == pytest.approx(duration[runs].mean())
    for number, label in enumerate(env.options.labels):
        share = float(row[f"option_share/{label}"])
        assert share == pytest.approx((option == number).mean())


def test_usage_is_that_of_the_last_decisions() -> None:
    """Of PPO, which also takes options that are not available."""
    _, env = make_counted()
    agent = PPO(
        "MlpPolicy",
        env,
        n_steps=32,
        batch_size=32,
        rollout_buffer_class=SMDPRolloutBuffer,
        seed=0,
    )
    agent.learn(64, callback=[SMDPDiscounts(), OptionUsage(window=10)])
    logged = agent.logger.name_to_value
    shares = [value for name, value in logged.items() if "option_share/" in name]
    total = sum(shares)
    assert total == pytest.approx(logged["options/share_of_decisions"])
    assert (10 * total) % 1 == pytest.approx(0)
    with pytest.raises(ValueError, match="window"):
        OptionUsage(window=0)
