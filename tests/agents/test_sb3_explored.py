"""Stable-Baselines3 with what `explore` found: filled replays and cloned policies.

MiniGrid's 7 x 7 view is an image for SB3, whose channels come first in a buffer.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import eigenoptions as eo
from eigenoptions.agents.sb3 import (
    Cloned,
    OptionsDQN,
    SMDPReplayBuffer,
    clone,
    fill_replay,
)
from eigenoptions.envs import MazeEnv, OptionsWrapper
from tests.corridors import CERTAIN, Corridor, Submit, follow

GAMMA = 0.9


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def make_grid(*wrappers: Any, seed: int = 0) -> gym.Env[Any, Any]:
    env = gym.make("minigrid:MiniGrid-DoorKey-5x5-v0", max_steps=200)
    for wrapper in wrappers:
        env = wrapper(env)
    return eo.envs.FixedSeed(env, seed)


def make_view_env(seed: int = 0) -> gym.Env[Any, Any]:
    from minigrid.wrappers import ImgObsWrapper

    return make_grid(ImgObsWrapper, seed=seed)


def make_flat_env() -> gym.Env[Any, Any]:
    from minigrid.wrappers import ImgObsWrapper

    return make_grid(ImgObsWrapper, gym.wrappers.FlattenObservation)


class DictView(gym.ObservationWrapper[Any, Any, Any]):
    """MiniGrid without its mission, and its view as no image, for SB3."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = gym.spaces.Dict(
            direction=gym.spaces.Discrete(4),
            image=gym.spaces.Box(0, 10, (7, 7, 3), np.float32),
        )

    def observation(self, observation: Any) -> Any:
        return {name: observation[name] for name in self.observation_space}


def make_dict_env() -> gym.Env[Any, Any]:
    return make_grid(DictView)


def explore_grid(env: gym.Env[Any, Any]) -> eo.Found:
    return eo.explore(env, 600, until="reward")


def make_filled(env: Any, found: Any, kind: Any = DQN, **settings: Any) -> Any:
    policy = "MlpPolicy"
    if isinstance(env.observation_space, gym.spaces.Dict):
        policy = "MultiInputPolicy"
    settings = {"buffer_size": 1000, "learning_starts": 0, "seed": 0, **settings}
    agent = kind(policy, env, **settings)
    assert fill_replay(agent, found) == found.n_steps
    return agent


def test_filled_replay_holds_the_steps_of_explore() -> None:
    env = MazeEnv("four-rooms")
    found = eo.explore(env, 400, until="reward")
    agent = make_filled(env, found)

    buffer = agent.replay_buffer
    n = found.n_steps
    assert buffer.size() == n
    steps = found.transitions
    np.testing.assert_array_equal(buffer.observations[:n, 0, 0], steps.obs)
    np.testing.assert_array_equal(buffer.next_observations[:n, 0, 0], steps.next_obs)
    np.testing.assert_array_equal(buffer.actions[:n, 0, 0], steps.action)
    np.testing.assert_array_equal(buffer.rewards[:n, 0], steps.reward)
    # The last step ended at the goal.
    assert buffer.dones[n - 1, 0] == 1
    assert buffer.timeouts[n - 1, 0] == 0
    agent.learn(50)


def test_filled_replay_continues_values_after_a_time_limit() -> None:
    env = gym.wrappers.TimeLimit(MazeEnv("four-rooms"), 30)
    found = eo.explore(env, 200)
    buffer = make_filled(env, found).replay_buffer
    n = found.n_steps
    truncated = np.asarray(found.numbers.truncated) & ~found.numbers.terminated
    assert truncated.sum() > 3
    np.testing.assert_array_equal(buffer.dones[: n - 1, 0], truncated[:-1])
    np.testing.assert_array_equal(buffer.timeouts[: n - 1, 0], truncated[:-1])
    # What follows the last step is an episode of the agent.
    assert buffer.dones[n - 1, 0] == buffer.timeouts[n - 1, 0] == 1


def test_replay_without_time_limits_has_only_those_of_the_environment() -> None:
    env = gym.wrappers.TimeLimit(MazeEnv("four-rooms"), 30)
    found = eo.explore(env, 100)
    settings = {"replay_buffer_kwargs": {"handle_timeout_termination": False}}
    buffer = make_filled(env, found, **settings).replay_buffer
    np.testing.assert_array_equal(buffer.dones[:100, 0], found.numbers.truncated)
    assert not buffer.timeouts.any()


def test_dqn_learns_from_a_filled_replay_alone() -> None:
    mdp = eo.maze("S......G")
    env = MazeEnv(mdp)
    found = eo.explore(env, 200, until="known")
    agent = make_filled(
        env,
        found,
        learning_rate=1e-2,
        gamma=GAMMA,
        policy_kwargs={"net_arch": []},
    )
    # SB3 sets up its log when learning begins.
    agent.learn(1)
    for _ in range(40):
        agent.train(30, batch_size=64)
        agent.q_net_target.load_state_dict(agent.q_net.state_dict())
    actions, _ = agent.predict(np.arange(7), deterministic=True)
    assert (actions == 1).all()


@pytest.mark.parametrize("make_env", [make_view_env, make_flat_env, make_dict_env])
def test_filled_replay_has_the_observations_of_the_agent(make_env: Any) -> None:
    env = make_env()
    found = explore_grid(env)
    agent = make_filled(env, found, learning_starts=10_000)
    buffer = agent.replay_buffer
    first = buffer.observations
    agent.learn(1)
    row = found.n_steps
    if isinstance(first, dict):
        for part in first.values():
            # The agent's first observation is that of every episode.
            np.testing.assert_array_equal(part[row], part[0])
    else:
        np.testing.assert_array_equal(first[row], first[0])


def test_several_environments_share_the_steps() -> None:
    env = DummyVecEnv([lambda: MazeEnv("four-rooms")] * 3)
    found = eo.explore(MazeEnv("four-rooms"), 100)
    buffer = make_filled(env, found).replay_buffer
    assert buffer.size() == 34
    order = np.arange(102) % 100
    np.testing.assert_array_equal(
        buffer.observations[:34, :, 0].T.ravel(), found.transitions.obs[order]
    )
    # The last row of each part is followed by something else.
    assert buffer.dones[33].all()


@pytest.mark.parametrize("discovers_env", [False, True])
def test_filled_replay_knows_which_options_are_available(discovers_env: bool) -> None:
    env = make_flat_env()
    found = explore_grid(env)
    options = eo.discover(env if discovers_env else found, n_options=4)
    wrapped = OptionsWrapper(env, options, gamma=GAMMA, record_steps=True)
    agent = make_filled(wrapped, found, OptionsDQN, gamma=GAMMA)

    n = found.n_steps
    buffer = agent.replay_buffer
    np.testing.assert_allclose(buffer.discounts[:n], GAMMA)
    np.testing.assert_array_equal(buffer.actions[:n, 0, 0], found.numbers.action)
    masks = buffer.masks[:n, 0]
    assert masks[:, :7].all()
    # The wrapper itself gives the same masks along the first episode.
    wrapped.reset(seed=0)
    for row in range(20):
        *_, info = wrapped.step(int(found.numbers.action[row]))
        np.testing.assert_array_equal(masks[row], info["action_mask"])
    agent.learn(20)


def test_masks_of_options_that_act_on_observations() -> None:
    class Right:
        label = "right"

        def act(self, obs: int) -> int:
            return 1 if obs < 2 else eo.TERMINATE

    env = MazeEnv("S...G")
    found = eo.explore(env, 50, until="known")
    wrapped = OptionsWrapper(env, [Right()])
    buffer = make_filled(wrapped, found, OptionsDQN).replay_buffer
    masks = buffer.masks[: found.n_steps, 0, 4]
    np.testing.assert_array_equal(masks, found.transitions.next_obs < 2)


def test_masks_of_options_whose_action_is_the_first() -> None:
    class Up:
        def act(self, obs: int) -> int:
            return 0 if obs < 2 else eo.TERMINATE

    env = MazeEnv("S...G")
    found = eo.explore(env, 50, until="known")
    buffer = make_filled(OptionsWrapper(env, [Up()]), found, OptionsDQN).replay_buffer
    masks = buffer.masks[: found.n_steps, 0, 4]
    np.testing.assert_array_equal(masks, found.transitions.next_obs < 2)


def test_masks_of_options_on_numbered_states() -> None:
    env = MazeEnv("S...G")
    found = eo.explore(env, 50, until="known")
    options = eo.discover(eo.maze("S...G"), n_options=2)
    wrapped = OptionsWrapper(env, options)
    buffer = make_filled(wrapped, found, OptionsDQN).replay_buffer
    expected = options.initiation.T[found.transitions.next_obs]
    np.testing.assert_array_equal(buffer.masks[: found.n_steps, 0, 4:], expected)


@pytest.mark.parametrize("cells_per_key", [1, 20])
def test_a_key_coarser_than_the_view_is_noticed(
    cells_per_key: int, caplog: pytest.LogCaptureFixture
) -> None:
    env = MazeEnv("S" + "." * 60)
    found = eo.explore(env, 200, key=lambda _, obs: int(obs) // cells_per_key)
    make_filled(env, found, DQN)
    assert ("your key" in caplog.text) == (cells_per_key > 1)


def test_masks_where_the_user_numbers_the_states() -> None:
    env = MazeEnv("S...G")
    found = eo.explore(env, 50, until="known")
    reversed_maze = eo.discover(eo.maze("G...S"), n_options=2)
    wrapped = OptionsWrapper(env, reversed_maze, state=lambda obs: 4 - obs)
    buffer = make_filled(wrapped, found, OptionsDQN).replay_buffer
    expected = reversed_maze.initiation.T[4 - found.transitions.next_obs]
    np.testing.assert_array_equal(buffer.masks[: found.n_steps, 0, 4:], expected)


@pytest.mark.parametrize("kind", [PPO, A2C, MaskablePPO])
def test_cloned_agent_goes_the_known_way(kind: Any) -> None:
    env = MazeEnv("four-rooms")
    found = eo.explore(env, 1000, until="reward")
    agent = kind("MlpPolicy", env, seed=0)
    cloned = clone(agent, found)
    assert cloned.n_states == (found.option().policy >= 0).sum()
    assert cloned.accuracy > 0.95
    assert cloned.possible_accuracy == 1
    assert cloned.value_error < 0.1
    assert cloned.reaches_reward

    obs, _ = env.reset(seed=0)
    steps = 0
    terminated = False
    while not terminated and steps < 100:
        action, _ = agent.predict(obs, deterministic=True)
        obs, _, terminated, _, _ = env.step(int(action))
        steps += 1
    assert steps == found.distances[found.mdp.start]
    if kind is not MaskablePPO:
        agent.learn(16)


def test_cloned_values_are_the_discounted_rewards_of_the_way() -> None:
    # Every step costs 1, so that the value after k steps is -(1 - 0.9**k) / 0.1.
    env = gym.wrappers.TransformReward(MazeEnv("S....G"), lambda reward: -1.0)
    found = eo.explore(env, 200, until="known")
    agent = PPO("MlpPolicy", env, gamma=GAMMA, seed=0)
    cloned = clone(agent, found, steps=1000, start_weight=0.0)
    with torch.no_grad():
        values = agent.policy.predict_values(torch.arange(5)).numpy().ravel()
    distances = np.arange(5.0, 0, -1)
    np.testing.assert_allclose(values, -(1 - GAMMA**distances) / 0.1, atol=0.15)
    assert cloned.value_error < 0.15


def test_clone_warns_of_known_actions_that_training_may_undo(
    caplog: pytest.LogCaptureFixture,
) -> None:
    env = MazeEnv("S....G")
    found = eo.explore(env, 200, until="known")
    agent = PPO("MlpPolicy", env, seed=0)
    cloned = clone(agent, found, min_probability=1.0)
    states = torch.arange(5)
    # To the right in all five states, which are all on the way.
    with torch.no_grad():
        log_probabilities = agent.policy.evaluate_actions(states, torch.full((5,), 1))[
            1
        ]
    assert cloned.least_probability == pytest.approx(log_probabilities.exp().min())
    assert "give more steps=" in caplog.text

    caplog.clear()
    assert clone(agent, found).least_probability > 0.75
    assert caplog.text == ""


def test_clone_is_deterministic_also_in_batches() -> None:
    env = MazeEnv("four-rooms")
    found = eo.explore(env, 1000, until="reward")
    weights = []
    for _ in range(2):
        agent = PPO("MlpPolicy", env, seed=3)
        clone(agent, found, steps=20, batch_size=16, min_accuracy=0)
        weights.append(agent.policy.action_net.weight.detach().numpy())
    np.testing.assert_array_equal(*weights)


def test_clone_reports_its_progress() -> None:
    env = MazeEnv("S..G")
    found = eo.explore(env, 50, until="reward")
    calls = []
    clone(
        PPO("MlpPolicy", env, seed=0),
        found,
        steps=3,
        min_accuracy=0,
        progress=lambda done, steps: calls.append((done, steps)),
    )
    assert calls == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("make_env", [make_view_env, make_flat_env, make_dict_env])
def test_clone_fits_the_observations_of_the_agent(make_env: Any) -> None:
    env = make_env()
    found = explore_grid(env)
    policy = "MlpPolicy"
    if isinstance(env.observation_space, gym.spaces.Dict):
        policy = "MultiInputPolicy"
    cloned = clone(PPO(policy, env, seed=0), found, steps=100, min_accuracy=0)
    assert 0 < cloned.accuracy <= cloned.possible_accuracy


def test_clone_with_options_gives_them_no_part() -> None:
    env = MazeEnv("four-rooms")
    found = eo.explore(env, 1000, until="reward")
    wrapped = OptionsWrapper(env, eo.discover(found, n_options=4))
    agent = PPO("MlpPolicy", wrapped, seed=0)
    assert clone(agent, found).reaches_reward
    assert int(agent.predict(found.mdp.start, deterministic=True)[0]) < 4


def test_states_that_look_the_same_are_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # The agent sees only whether the number of the cell is even. Down the corridor it
    # goes right, in its last part down.
    maze = "S...\n###.\n###.\n###G"
    space = gym.spaces.Discrete(2)
    env = gym.wrappers.TransformObservation(MazeEnv(maze), lambda obs: obs % 2, space)
    found = eo.explore(
        env, 200, until="known", key=lambda inside, obs: int(inside.state)
    )
    cloned = clone(PPO("MlpPolicy", env, seed=0), found, min_accuracy=0)
    # Cells 0 to 2 go right, 3 to 5 down: of the even ones two go right, of the odd ones
    # two go down.
    assert cloned.possible_accuracy == pytest.approx(4 / 6)
    assert not cloned.reaches_reward
    assert "look the same" in caplog.text


def test_a_poor_fit_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    env = MazeEnv("four-rooms")
    found = eo.explore(env, 1000, until="reward")
    cloned = clone(PPO("MlpPolicy", env, seed=0), found, steps=1)
    assert isinstance(cloned, Cloned)
    assert cloned.accuracy < 0.9
    assert "steps=" in caplog.text


def test_agents_in_changing_layouts_are_warned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = explore_grid(make_view_env())
    env = make_view_env().env
    make_filled(env, found)
    assert "FixedSeed(env, 0)" in caplog.text


def test_wrong_agents_and_environments_are_refused() -> None:
    env = MazeEnv("four-rooms")
    found = eo.explore(env, 300, until="reward")
    dqn = DQN("MlpPolicy", env, buffer_size=1000)
    ppo = PPO("MlpPolicy", env)
    with pytest.raises(ValueError, match="clone"):
        fill_replay(ppo, found)
    with pytest.raises(ValueError, match="fill_replay"):
        clone(dqn, found)
    with pytest.raises(TypeError, match="explore"):
        fill_replay(dqn, found.transitions)
    with pytest.raises(TypeError, match="explore"):
        clone(ppo, found.mdp)
    with pytest.raises(ValueError, match="buffer_size="):
        fill_replay(DQN("MlpPolicy", env, buffer_size=50), found)
    saving = DQN(
        "MlpPolicy",
        env,
        buffer_size=1000,
        optimize_memory_usage=True,
        replay_buffer_kwargs={"handle_timeout_termination": False},
    )
    with pytest.raises(ValueError, match="optimize_memory_usage"):
        fill_replay(saving, found)
    with pytest.raises(ValueError, match="numbers"):
        fill_replay(SAC("MlpPolicy", "Pendulum-v1", buffer_size=1000), found)
    with pytest.raises(ValueError, match="primitive actions"):
        fill_replay(DQN("MlpPolicy", "CartPole-v1", buffer_size=1000), found)
    plain = {"replay_buffer_class": SMDPReplayBuffer, "buffer_size": 1000}
    with pytest.raises(ValueError, match="OptionsWrapper"):
        fill_replay(DQN("MlpPolicy", env, **plain), found)
    with pytest.raises(ValueError, match="memory"):
        clone(RecurrentPPO("MlpLstmPolicy", env), found)
    normalized = VecNormalize(DummyVecEnv([lambda: env]), norm_obs=False)
    with pytest.raises(ValueError, match="VecNormalize"):
        clone(PPO("MlpPolicy", normalized), found)
    with pytest.raises(ValueError, match="steps"):
        clone(ppo, found, steps=0)


def test_other_observations_and_layouts_are_refused() -> None:
    view = make_view_env()
    found = explore_grid(view)
    flat = DQN("MlpPolicy", make_flat_env(), buffer_size=1000)
    with pytest.raises(ValueError, match=r"shape \(7, 7, 3\).*wrappers"):
        fill_replay(flat, found)
    parts = DQN("MultiInputPolicy", make_dict_env(), buffer_size=1000)
    with pytest.raises(ValueError, match="wrappers"):
        fill_replay(parts, found)
    with pytest.raises(ValueError, match="a dict"):
        fill_replay(DQN("MlpPolicy", view, buffer_size=1000), explore_grid(make_grid()))
    with pytest.raises(ValueError, match="seed 1"):
        fill_replay(DQN("MlpPolicy", make_view_env(1), buffer_size=1000), found)
    # The seed of FixedSeed is known without saying it again.
    third = make_view_env(3)
    agent = DQN("MlpPolicy", third, buffer_size=1000)
    assert fill_replay(agent, explore_grid(third)) > 0
    # Numbers of other states.
    small = eo.explore(MazeEnv("S.G"), 50, until="known")
    large = eo.explore(MazeEnv("four-rooms"), 300)
    agent = DQN("MlpPolicy", MazeEnv("S.G"), buffer_size=1000)
    assert fill_replay(agent, small) == small.n_steps
    with pytest.raises(ValueError, match="wrappers"):
        fill_replay(agent, large)


def test_options_that_recognise_states_otherwise_are_refused() -> None:
    env = make_flat_env()
    found = eo.explore(env, 300, key="observation")
    wrapped = OptionsWrapper(env, eo.discover(env, n_options=2))
    with pytest.raises(ValueError, match=r"discover\(found\)"):
        fill_replay(OptionsDQN("MlpPolicy", wrapped, buffer_size=1000), found)


def test_clone_needs_a_reward_and_a_way() -> None:
    env = MazeEnv("four-rooms")
    found = eo.explore(env, 5)
    with pytest.raises(ValueError, match='until="reward"'):
        clone(PPO("MlpPolicy", env), found)


@pytest.mark.parametrize("kind", CERTAIN)
def test_clone_earns_the_rewards_of_steps(kind: type[Corridor]) -> None:
    found = eo.explore(kind(), 600, until="known")
    agent = PPO("MlpPolicy", kind(), seed=0)
    cloned = clone(agent, found)
    assert cloned.reaches_reward
    assert cloned.accuracy == 1.0
    states = np.arange(found.mdp.n_listed)
    actions = agent.predict(states, deterministic=True)[0]
    assert follow(kind(), actions) == 1.0
    # Values are the discounted rewards up to the first one.
    option = found.option()
    is_on_way = option.policy >= 0
    values = 0.99 ** (found.distances[is_on_way] - 1.0)
    rows = torch.as_tensor(np.flatnonzero(is_on_way))
    predicted = agent.policy.predict_values(rows).detach().numpy().ravel()
    error = float(np.sqrt(np.square(predicted - values).mean()))
    assert cloned.value_error == pytest.approx(error, abs=1e-4)


class Blurred(gym.ObservationWrapper[Any, Any, Any]):
    """State 3, in which to act is right, looks like state 2."""

    def observation(self, observation: int) -> int:
        return 2 if observation == 3 else observation


def test_clone_does_not_reach_a_reward_whose_last_action_does_not_fit() -> None:
    env = Blurred(Submit())
    found = eo.explore(env, 600, until="known", key=lambda env, _: env.state)
    assert follow(Submit(), found.option().policy) == 1.0
    cloned = clone(PPO("MlpPolicy", env, seed=0), found)
    assert not cloned.reaches_reward
    assert cloned.possible_accuracy < 1.0
