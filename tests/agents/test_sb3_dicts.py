"""Stable-Baselines3 with options where observations are dicts or tuples."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.wrappers import FlattenObservation
from sb3_contrib import TRPO, MaskablePPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.evaluation import evaluate_policy

import eigenoptions as eo
from eigenoptions.agents.sb3 import (
    OptionsDQN,
    SMDPDiscounts,
    SMDPMaskableRolloutBuffer,
    SMDPReplayBuffer,
    SMDPRolloutBuffer,
    fill_replay,
)

N_CELLS = 6


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


class Corridor(gym.Env[Any, int]):
    """Cells in a row, observed as a dict or a tuple; the last one is the goal."""

    def __init__(self, kind: str = "dict", slip_probability: float = 0.0) -> None:
        self.kind = kind
        self.slip_probability = slip_probability
        self.action_space = spaces.Discrete(2)
        cell = spaces.Discrete(N_CELLS)
        flags = spaces.MultiDiscrete([2, 3])
        image = spaces.Box(0, 255, (40, 36, 3), np.uint8)
        space: spaces.Space[Any] = spaces.Dict(cell=cell, flags=flags)
        if kind == "image":
            space = spaces.Dict(cell=cell, image=image)
        elif kind == "tuple":
            space = spaces.Tuple((cell, flags))
        self.observation_space = space

    def observe(self) -> Any:
        cell = np.int64(self.cell)
        flags = np.array([self.cell % 2, self.cell // 2])
        if self.kind == "image":
            return {"cell": cell, "image": np.full((40, 36, 3), self.cell, np.uint8)}
        if self.kind == "tuple":
            return (cell, flags)
        return {"cell": cell, "flags": flags}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.cell = 0
        self.n_steps = 0
        return self.observe(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        slips = self.np_random.random() < self.slip_probability
        move = 2 * int(action) - 1
        if slips:
            move = -move
        self.cell = int(np.clip(self.cell + move, 0, N_CELLS - 1))
        self.n_steps += 1
        is_goal = self.cell == N_CELLS - 1
        return self.observe(), float(is_goal), is_goal, self.n_steps >= 60, {}


def make_env(
    kind: str, place: str = "nowhere", record_steps: bool = False
) -> gym.Env[Any, Any]:
    """A corridor with options; `place` says where `FlattenObservation` stands."""
    env: gym.Env[Any, Any] = Corridor(kind)
    options = eo.discover(env, 2)
    if place == "inside":
        env = FlattenObservation(env)
    settings = {"gamma": 0.9, "option_chance": 0.1, "record_steps": record_steps}
    env = eo.OptionsWrapper(env, options, **settings)
    if place == "outside":
        env = FlattenObservation(env)
    return env


def make_off_policy(kind: type[DQN], env: gym.Env[Any, Any]) -> DQN:
    settings: dict[str, Any] = {}
    if kind is DQN:
        settings["replay_buffer_class"] = SMDPReplayBuffer
    policy = "MlpPolicy"
    if isinstance(env.observation_space, spaces.Dict):
        policy = "MultiInputPolicy"
    return kind(
        policy,
        env,
        gamma=0.9,
        learning_rate=3e-3,
        learning_starts=50,
        train_freq=1,
        target_update_interval=50,
        exploration_fraction=0.5,
        buffer_size=2000,
        seed=0,
        **settings,
    )


def check_steps_follow_the_corridor(buffer: Any) -> None:
    """Every stored step moves by one cell, or its option by several."""
    size = buffer.size()
    cells = buffer.observations["cell"][:size, 0].ravel()
    next_cells = buffer.next_observations["cell"][:size, 0].ravel()
    actions = buffer.actions[:size].ravel()
    is_primitive = actions < 2
    expected = np.clip(cells + 2 * actions - 1, 0, N_CELLS - 1)
    np.testing.assert_array_equal(next_cells[is_primitive], expected[is_primitive])
    assert np.abs(next_cells - cells)[~is_primitive].max() > 1


@pytest.mark.parametrize("record_steps", [False, True])
@pytest.mark.parametrize("kind", [OptionsDQN, DQN])
def test_dqn_learns_from_dicts(kind: type[DQN], record_steps: bool) -> None:
    env = make_env("dict", record_steps=record_steps)
    agent = make_off_policy(kind, env).learn(600)
    check_steps_follow_the_corridor(agent.replay_buffer)
    mean_return, _ = evaluate_policy(agent, env, 1, warn=False)
    assert mean_return > 0


@pytest.mark.parametrize("kind", ["dict", "tuple"])
def test_options_recognise_what_was_flattened(kind: str) -> None:
    env = make_env(kind, "inside")
    plain = make_env(kind)
    env.reset(seed=0)
    plain.reset(seed=0)
    for action in (1, 1, 2, 0, 3, 1):
        *_, info = env.step(action)
        *_, expected = plain.step(action)
        assert info["option"] == expected["option"]
        assert info["duration"] == expected["duration"]
        np.testing.assert_array_equal(info["action_mask"], expected["action_mask"])


@pytest.mark.parametrize("record_steps", [False, True])
@pytest.mark.parametrize("place", ["inside", "outside"])
@pytest.mark.parametrize("space", ["dict", "tuple"])
def test_dqn_learns_from_flattened_observations(
    space: str, place: str, record_steps: bool
) -> None:
    env = make_env(space, place, record_steps)
    agent = make_off_policy(OptionsDQN, env).learn(600)
    buffer = agent.replay_buffer
    assert buffer is not None
    # The cell is the first part, as a row with a single 1.
    cells = np.arange(N_CELLS)
    before = buffer.observations[: buffer.size(), 0, :N_CELLS] @ cells
    after = buffer.next_observations[: buffer.size(), 0, :N_CELLS] @ cells
    actions = buffer.actions[: buffer.size()].ravel()
    is_right = actions == 1
    np.testing.assert_array_equal(after[is_right], before[is_right] + 1)
    mean_return, _ = evaluate_policy(agent, env, 1, warn=False)
    assert mean_return > 0


def test_images_in_dicts_are_stored_with_the_channels_first() -> None:
    agent = make_off_policy(OptionsDQN, make_env("image", record_steps=True))
    # Small networks: nothing is learned here.
    buffer = agent.learn(40).replay_buffer
    check_steps_follow_the_corridor(buffer)
    assert buffer.observations["image"].shape[2:] == (3, 40, 36)
    images = buffer.observations["image"][: buffer.size(), 0, 0, 0, 0]
    cells = buffer.observations["cell"][: buffer.size(), 0].ravel()
    np.testing.assert_array_equal(images, cells)


@pytest.mark.parametrize("kind", [PPO, A2C, TRPO, MaskablePPO])
def test_on_policy_agents_learn_from_dicts(kind: Any) -> None:
    settings: dict[str, Any] = {"rollout_buffer_class": SMDPRolloutBuffer}
    if kind is MaskablePPO:
        settings["rollout_buffer_class"] = SMDPMaskableRolloutBuffer
    if kind is not A2C:
        settings["batch_size"] = 16
    env = make_env("dict")
    agent = kind(
        "MultiInputPolicy",
        env,
        gamma=0.9,
        n_steps=64,
        learning_rate=3e-3,
        seed=0,
        **settings,
    )
    agent.learn(64 * 30, callback=SMDPDiscounts())
    buffer = agent.rollout_buffer
    assert isinstance(buffer, settings["rollout_buffer_class"])
    assert buffer.discounts.shape == (64, 1)
    assert buffer.discounts.min() < 0.9
    obs, info = env.reset(seed=0)
    ended = False
    while not ended:
        masks = {}
        if kind is MaskablePPO:
            masks["action_masks"] = info["action_mask"]
        action, _ = agent.predict(obs, deterministic=True, **masks)
        obs, reward, terminated, truncated, info = env.step(action)
        ended = terminated or truncated
    assert reward > 0


def test_buffers_of_dicts_are_copied_and_stored() -> None:
    agent = make_off_policy(OptionsDQN, make_env("dict")).learn(60)
    buffer: Any = agent.replay_buffer
    copied = pickle.loads(pickle.dumps(buffer))
    assert type(copied) is type(buffer)
    np.testing.assert_array_equal(
        copied.observations["cell"], buffer.observations["cell"]
    )


def test_replay_of_dicts_is_filled() -> None:
    env = Corridor("dict")
    found = eo.explore(env, 200, until="reward")
    options = eo.discover(found, 2)
    wrapped = eo.OptionsWrapper(env, options, gamma=0.9, option_chance=0.1)
    agent = make_off_policy(OptionsDQN, wrapped)
    fill_replay(agent, found)
    buffer: Any = agent.replay_buffer
    assert buffer.size() == found.n_steps
    next_cells = buffer.next_observations["cell"][: buffer.size()].ravel()
    rewards = buffer.rewards[: buffer.size()].ravel()
    np.testing.assert_array_equal(rewards > 0, next_cells == N_CELLS - 1)


@pytest.mark.parametrize("kind", ["dict", "tuple"])
def test_stochastic_environments_are_explored_by_their_observations(kind: str) -> None:
    env = Corridor(kind, slip_probability=0.2)
    options = eo.discover(env, 2)
    assert options.n_states == N_CELLS
    assert options.provenance["source"] == "explored"

    # Followed by its own observations, an option reaches the end that it leads to.
    obs, _ = env.reset(seed=0)
    first = options[0]
    while first.act(obs) >= 0:
        action = first.act(obs)
        obs, *_ = env.step(action)
    wrapped = eo.OptionsWrapper(env, options)
    wrapped.reset(seed=0)
    *_, info = wrapped.step(2)
    assert info["action_mask"][2] == 0
    np.testing.assert_array_equal(options.choices(obs), [o.act(obs) for o in options])


@pytest.mark.parametrize("kind", [OptionsDQN, PPO])
def test_tuples_are_refused_with_a_remedy(kind: Any) -> None:
    settings = {}
    if kind is PPO:
        settings["rollout_buffer_class"] = SMDPRolloutBuffer
    with pytest.raises(ValueError, match="FlattenObservation"):
        kind("MultiInputPolicy", make_env("tuple"), gamma=0.9, **settings)


def test_steps_seen_through_other_wrappers_are_refused() -> None:
    """Another unit has the same shape: only the spaces tell."""
    maze = eo.envs.MazeEnv("S..G")
    space = spaces.Box(0.0, 1.0, (1,), np.float64)
    inner = gym.wrappers.TransformObservation(
        maze, lambda obs: np.array([obs / 3.0]), space
    )
    options = eo.discover(eo.maze("S..G"), 2)
    env = eo.OptionsWrapper(
        inner,
        options,
        gamma=0.9,
        state=lambda obs: round(3 * float(obs[0])),
        option_chance=1.0,
        record_steps=True,
    )
    outer = gym.wrappers.RescaleObservation(env, np.float64(-1.0), np.float64(1.0))
    with pytest.raises(ValueError, match="inside of OptionsWrapper"):
        OptionsDQN("MlpPolicy", outer, gamma=0.9, seed=0).learn(20)
