"""Stable-Baselines3 with options: agents that ignore durations take the long way.

From a fork a short way of 6 steps and a long one of 32 lead to the goal; the option
walks 31 steps of the long way. With gamma 0.9 the short way is worth 0.9**5 = 0.590 and
the option 0.9**31 = 0.038. An agent that takes the option for one step believes it is
worth 0.9.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete
from sb3_contrib import QRDQN, TRPO, MaskablePPO
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

import eigenoptions as eo
from eigenoptions.agents.sb3 import (
    DecisionSamples,
    OptionsDQN,
    SMDPDiscounts,
    SMDPMaskableRolloutBuffer,
    SMDPReplayBuffer,
    SMDPRolloutBuffer,
    prefer_actions,
)
from eigenoptions.envs import MazeEnv, OptionsWrapper
from eigenoptions.envs.spaces import OptionsSpace
from eigenoptions.envs.wrapper import PrimitiveStep
from tests import reference
from tests.tables import make_options

GAMMA = 0.9
# Steps of the short and of the long way to the goal.
SHORT = 6
LONG = 32
# The option's action, after the two primitive ones.
SKILL = 2


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def make_fork() -> eo.MDP:
    """0 is the fork; 1..5 lie on the short way, 6..36 on the long, 37 is the goal."""
    goal = SHORT + LONG - 1
    successors = np.arange(1, goal + 2)
    successors[SHORT - 1] = successors[goal] = goal
    moves = np.stack([successors, successors], axis=1)
    moves[0] = [1, SHORT]
    return eo.MDP.from_successors(moves, start=0, goal=goal, name="fork")


def make_detour() -> eo.OptionSet:
    policy = np.full((1, SHORT + LONG), eo.TERMINATE)
    policy[0, [0, *range(SHORT, SHORT + LONG - 2)]] = 1
    return make_options(policy, 2)


def make_fork_env(mode: str = "call-and-return") -> OptionsWrapper:
    env = Monitor(MazeEnv(make_fork()))
    return OptionsWrapper(env, make_detour(), GAMMA, mode, option_chance=0.05)


def count_greedy_steps(agent: Any, env: OptionsWrapper) -> int:
    """Primitive steps of one greedy episode."""
    obs, _ = env.reset(seed=0)
    steps = 0
    ended = False
    while not ended:
        masks = {}
        if isinstance(agent, MaskablePPO):
            masks["action_masks"] = env.action_masks()
        action, _ = agent.predict(obs, deterministic=True, **masks)
        obs, _, terminated, truncated, info = env.step(action)
        steps += info["duration"]
        ended = terminated or truncated
    return steps


def make_dqn(**settings: Any) -> DQN:
    return DQN(
        "MlpPolicy",
        make_fork_env(),
        learning_rate=2e-2,
        gamma=GAMMA,
        seed=0,
        learning_starts=100,
        train_freq=2,
        gradient_steps=2,
        target_update_interval=50,
        batch_size=64,
        exploration_fraction=0.7,
        # One weight per state and action: a table.
        policy_kwargs={"net_arch": []},
        **settings,
    )


def read_start_values(agent: DQN) -> np.ndarray:
    """The values of the choices at the fork."""
    with torch.no_grad():
        return agent.q_net(torch.zeros(1, dtype=torch.int64)).numpy()[0]


def test_replay_buffer_gives_dqn_the_values_of_durations() -> None:
    stock = make_dqn().learn(1200)
    assert read_start_values(stock)[SKILL] == pytest.approx(GAMMA, abs=0.05)
    assert count_greedy_steps(stock, make_fork_env()) == LONG

    ours = make_dqn(replay_buffer_class=SMDPReplayBuffer).learn(1200)
    values = read_start_values(ours)
    assert values[0] == pytest.approx(GAMMA ** (SHORT - 1), abs=0.06)
    assert values[SKILL] == pytest.approx(GAMMA ** (LONG - 1), abs=0.06)
    assert count_greedy_steps(ours, make_fork_env()) == SHORT


PPO_SIZE = {
    "n_steps": 128,
    "batch_size": 64,
    "n_epochs": 5,
    "learning_rate": 1e-2,
    "gamma": GAMMA,
    "ent_coef": 0.01,
}


@pytest.mark.parametrize(
    ("kind", "buffer"),
    [
        pytest.param(PPO, SMDPRolloutBuffer, id="PPO"),
        pytest.param(
            MaskablePPO,
            SMDPMaskableRolloutBuffer,
            id="MaskablePPO",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_rollout_buffer_gives_ppo_the_values_of_durations(
    kind: Any, buffer: Any
) -> None:
    stock = kind("MlpPolicy", make_fork_env(), seed=0, **PPO_SIZE).learn(2048)
    assert count_greedy_steps(stock, make_fork_env()) == LONG
    ours = kind(
        "MlpPolicy", make_fork_env(), seed=0, rollout_buffer_class=buffer, **PPO_SIZE
    )
    ours.learn(2048, callback=SMDPDiscounts())
    assert count_greedy_steps(ours, make_fork_env()) == SHORT


def test_step_mode_needs_no_adapter() -> None:
    env = make_fork_env("step")
    agent = MaskablePPO("MultiInputPolicy", env, seed=0, **PPO_SIZE)
    agent.learn(4096)
    assert count_greedy_steps(agent, make_fork_env("step")) == SHORT


def test_replay_buffer_keeps_discounts_with_their_transitions() -> None:
    buffer = SMDPReplayBuffer(30, Discrete(1000), Discrete(3), n_envs=3, device="cpu")
    # More than fit: the oldest are overwritten.
    for i in range(25):
        obs = np.array([3 * i, 3 * i + 1, 3 * i + 2])
        infos = [{"discount": 0.5**x, "TimeLimit.truncated": x % 2 == 0} for x in obs]
        buffer.add(obs, obs + 1, np.zeros(3, int), obs.astype(float), np.ones(3), infos)
    batch = buffer.sample(200)
    seen = batch.observations.numpy().ravel()
    assert set(seen) == set(range(45, 75))
    np.testing.assert_array_equal(batch.next_observations.numpy().ravel(), seen + 1)
    np.testing.assert_array_equal(batch.rewards.numpy().ravel(), seen)
    # A time limit is no end.
    np.testing.assert_array_equal(batch.dones.numpy().ravel(), seen % 2)
    discounts = batch.discounts.numpy().ravel()
    np.testing.assert_allclose(discounts, 0.5 ** seen.astype(float))


def test_replay_buffer_optimize_memory_usage() -> None:
    buffer = SMDPReplayBuffer(
        8,
        Discrete(100),
        Discrete(3),
        device="cpu",
        optimize_memory_usage=True,
        handle_timeout_termination=False,
    )
    for i in range(13):
        buffer.add(
            obs=np.array([i]),
            next_obs=np.array([i + 1]),
            action=np.zeros(1, int),
            reward=np.zeros(1),
            done=np.zeros(1),
            infos=[{"discount": 0.5}],
        )
    batch = buffer.sample(100)
    seen = batch.observations.numpy()
    assert len(np.unique(seen)) > 1
    np.testing.assert_array_equal(batch.next_observations.numpy(), seen + 1)


@pytest.mark.parametrize("n_envs", [1, 3])
def test_rollout_buffer_with_equal_discounts_is_the_parents(
    n_envs: int, rng: np.random.Generator
) -> None:
    settings: dict[str, Any] = {
        "buffer_size": 20,
        "observation_space": Discrete(9),
        "action_space": Discrete(3),
        "device": "cpu",
        "gae_lambda": 0.8,
        "gamma": 0.7,
        "n_envs": n_envs,
    }
    ours = SMDPRolloutBuffer(**settings)
    theirs = RolloutBuffer(**settings)
    for _ in range(20):
        step = (
            rng.integers(9, size=n_envs),
            rng.integers(3, size=n_envs),
            rng.normal(size=n_envs),
            rng.random(n_envs) < 0.2,
            torch.tensor(rng.normal(size=n_envs)),
            torch.tensor(rng.normal(size=n_envs)),
        )
        ours.discounts[ours.pos] = 0.7
        ours.add(*step)
        theirs.add(*step)
    last_values = torch.tensor(rng.normal(size=n_envs), dtype=torch.float32)
    dones = rng.random(n_envs) < 0.5
    ours.compute_returns_and_advantage(last_values, dones)
    theirs.compute_returns_and_advantage(last_values, dones)
    np.testing.assert_allclose(ours.advantages, theirs.advantages, rtol=1e-6)
    np.testing.assert_allclose(ours.returns, theirs.returns, rtol=1e-6)


def test_callback_bootstraps_time_limits_with_the_true_discount() -> None:
    """A last reward is R + gamma**k V(last state) at a time limit, R at the goal.

    SB3 alone would add gamma V.
    """
    mdp, _ = make_corridor()
    env = gym.make("eigenoptions/Maze-v0", maze=mdp, max_episode_steps=10)
    right = make_options([[1, 1, 1, 1, 1, -1]], 4)
    agent = PPO(
        "MlpPolicy",
        OptionsWrapper(env, right, gamma=GAMMA, option_chance=0.05),
        gamma=GAMMA,
        n_steps=64,
        batch_size=16,
        rollout_buffer_class=SMDPRolloutBuffer,
        seed=0,
    )
    # The reward that is expected at a place of the buffer.
    expected: dict[int, float] = {}
    kinds: set[bool] = set()

    class Watch(SMDPDiscounts):
        def _on_step(self) -> bool:
            place = self.model.rollout_buffer.pos
            reward = float(self.locals["rewards"][0])
            info = self.locals["infos"][0]
            continues = super()._on_step()
            if "terminal_observation" not in info:
                return continues

            is_truncated = info["TimeLimit.truncated"]
            kinds.add(is_truncated)
            expected[place] = reward
            if is_truncated:
                last = torch.as_tensor(np.array([info["terminal_observation"]]))
                with torch.no_grad():
                    value = float(self.model.policy.predict_values(last)[0])
                expected[place] = info["discount"] * value
            return continues

        def _on_rollout_end(self) -> None:
            rewards = self.model.rollout_buffer.rewards[:, 0]
            for place, reward in expected.items():
                assert rewards[place] == pytest.approx(reward, abs=1e-6)

    agent.learn(64, callback=Watch())
    assert kinds == {True, False}


def make_corridor() -> tuple[eo.MDP, eo.OptionSet]:
    """Six cells with the goal at the right end; an option to each side."""
    mdp = eo.maze("S....G")
    right = np.array([1, 1, 1, -1, -1, -1])
    left = np.array([-1, 3, 3, -1, -1, -1])
    return mdp, make_options(np.stack([right, left]), 4)


def make_table_agent(**settings: Any) -> tuple[OptionsDQN, OptionsWrapper]:
    mdp, options = make_corridor()
    env = OptionsWrapper(
        MazeEnv(mdp), options, gamma=GAMMA, option_chance=0.05, **settings
    )
    agent = OptionsDQN(
        "MlpPolicy",
        env,
        gamma=GAMMA,
        learning_rate=1e-3,
        buffer_size=2000,
        policy_kwargs={"net_arch": []},
        seed=0,
        device="cpu",
    )
    return agent, env


def set_values(net: Any, q: np.ndarray) -> None:
    layer = net.q_net[0] if len(net.q_net) else net.q_net
    with torch.no_grad():
        layer.weight[:] = torch.as_tensor(q.T, dtype=torch.float32)
        layer.bias[:] = 0.0


def add_every_decision(agent: OptionsDQN, env: OptionsWrapper) -> None:
    """Put each decision that is possible in each state into the replay buffer."""
    for state in range(5):
        for action in range(6):
            _, info = env.reset(options={"start": state})
            if info["action_mask"][action]:
                obs, reward, terminated, _, info = env.step(action)
                agent.replay_buffer.add(
                    obs=np.array([state]),
                    next_obs=np.array([obs]),
                    action=np.array([action]),
                    reward=np.array([reward]),
                    done=np.array([float(terminated)]),
                    infos=[info],
                )


@pytest.mark.parametrize("record_steps", [False, True])
def test_targets_of_exact_values_are_exact(record_steps: bool) -> None:
    """Bellman's equation of the SMDP, whatever the values of what is not available."""
    agent, env = make_table_agent(record_steps=record_steps)
    mdp, options = make_corridor()
    exact = reference.choice_values(mdp, options.policy, GAMMA)
    wild = exact.copy()
    wild[:, 4:][(options.policy < 0).T] = 1e6
    wild[mdp.goal] = 1e6
    set_values(agent.q_net_target, wild)
    add_every_decision(agent, env)
    # 4 actions of 5 states, an option to the right from 3 of them, to the left from 2.
    n_decisions = 4 * 5 + 3 + 2
    if record_steps:
        # The steps inside these options.
        n_decisions += (3 + 2 + 1) + (1 + 2)
    assert agent.replay_buffer.size() == n_decisions

    batch = agent.replay_buffer._get_samples(np.arange(n_decisions))
    states = batch.observations.numpy().ravel().astype(int)
    actions = batch.actions.numpy().ravel().astype(int)
    targets = agent.compute_targets(batch).numpy().ravel()
    np.testing.assert_allclose(targets, exact[states, actions], rtol=1e-5)


def test_double_targets_choose_by_the_network() -> None:
    agent, _ = make_table_agent()
    agent.double = True
    # In state 1 the network prefers action 2 among what is available; option 5 may not
    # start. The target network overrates action 0.
    values = np.zeros((6, 6))
    values[1] = [0, 1, 2, 0, 1, 9]
    set_values(agent.q_net, values)
    values[1] = [8, 1, 3, 0, 0, 9]
    set_values(agent.q_net_target, values)
    state = torch.ones(1, 1, dtype=torch.int64)
    batch = DecisionSamples(
        observations=state,
        actions=state,
        next_observations=state,
        dones=torch.zeros(1, 1),
        rewards=torch.ones(1, 1),
        discounts=torch.full((1, 1), 0.5),
        next_masks=torch.tensor([[1.0, 1.0, 1.0, 1.0, 1.0, 0.0]]),
    )
    assert agent.compute_targets(batch).item() == 1 + 0.5 * 3
    agent.double = False
    assert agent.compute_targets(batch).item() == 1 + 0.5 * 8


def test_train_converges_to_exact_values() -> None:
    agent, env = make_table_agent()
    mdp, options = make_corridor()
    exact = reference.choice_values(mdp, options.policy, GAMMA)
    add_every_decision(agent, env)
    # Sets up the logger.
    agent.learn(0)
    set_values(agent.q_net_target, exact)

    def train_from(values: np.ndarray, steps: int) -> np.ndarray:
        """The errors of the network after training."""
        set_values(agent.q_net, values)
        agent.train(steps, batch_size=64)
        with torch.no_grad():
            return np.abs(agent.q_net(torch.arange(6)).numpy() - exact)

    # Adam turns rounding into steps of the learning rate.
    assert train_from(exact, 5).max() < 6e-3
    is_available = np.column_stack([np.ones((6, 4), bool), (options.policy >= 0).T])
    is_available[mdp.goal] = False
    assert train_from(exact + 0.05, 30)[is_available].mean() < 0.03


def test_predict_takes_a_mask() -> None:
    agent, _ = make_table_agent()
    # Action 1 is the best.
    values = np.zeros((6, 6))
    values[:, 1] = 1.0
    set_values(agent.q_net, values)
    mask = np.zeros(6)
    mask[[0, 3]] = 1
    action, _ = agent.predict(np.array(2), deterministic=True, action_masks=mask)
    assert action in (0, 3)


def test_dqn_explores_by_the_action_space() -> None:
    """SB3's random choices are options as rarely as the wrapper says, if available."""
    mdp, options = make_corridor()
    for kind in (DQN, OptionsDQN):
        env = OptionsWrapper(MazeEnv(mdp), options, gamma=GAMMA, option_chance=0.3)
        agent = kind("MlpPolicy", env, gamma=GAMMA, seed=0, learning_starts=10_000)
        infos: list[dict[str, Any]] = []

        def watch(
            variables: dict[str, Any], _: Any, infos: list[dict[str, Any]] = infos
        ) -> bool:
            infos.append(variables["infos"][0])
            return True

        agent.learn(600, callback=watch)
        assert not any("unavailable" in info for info in infos)
        share = np.mean([info["option"] >= 0 for info in infos])
        assert 0.05 < share < 0.35


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("learning_starts", [0, 10_000])
def test_random_decisions_are_as_many_as_asked_for_and_available(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    n_envs: int,
    learning_starts: int,
) -> None:
    """Also where each environment is in another state, with other options."""
    mdp, options = make_corridor()
    n_samples = 0
    sample = OptionsSpace.sample

    def count_samples(space: OptionsSpace, *args: Any) -> Any:
        nonlocal n_samples
        n_samples += 1
        return sample(space, *args)

    def make() -> OptionsWrapper:
        return OptionsWrapper(MazeEnv(mdp), options, gamma=GAMMA, option_chance=0.3)

    monkeypatch.setattr(OptionsSpace, "sample", count_samples)
    settings = {
        "gamma": GAMMA,
        "seed": 0,
        "learning_starts": learning_starts,
        "exploration_initial_eps": 0.2,
        "exploration_final_eps": 0.2,
        "train_freq": 100,
        "gradient_steps": 0,
        "policy_kwargs": {"net_arch": []},
    }
    agent = OptionsDQN("MlpPolicy", DummyVecEnv([make] * n_envs), **settings)
    # Greedy choices are options, which are not available everywhere.
    set_values(agent.q_net, np.tile([0.0, 0, 0, 0, 1, 2], (6, 1)))
    infos: list[dict[str, Any]] = []

    def watch(variables: dict[str, Any], _: Any) -> bool:
        infos.extend(variables["infos"])
        return True

    agent.learn(3000, callback=watch)
    share = n_samples / len(infos)
    expected = 1.0 if learning_starts else 0.2
    assert abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / 3000) + 1e-9
    assert not any("unavailable" in info for info in infos)
    assert "OptionsDQN" not in caplog.text


def test_stock_dqn_with_several_environments_is_told_of_masks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    mdp, options = make_corridor()

    def make() -> OptionsWrapper:
        return OptionsWrapper(MazeEnv(mdp), options, gamma=GAMMA, option_chance=0.5)

    settings = {"gamma": GAMMA, "seed": 0, "replay_buffer_class": SMDPReplayBuffer}
    agent = DQN("MlpPolicy", DummyVecEnv([make] * 3), **settings)
    agent.learn(300)
    assert caplog.text.count("OptionsDQN uses the mask of each") == 1


@pytest.mark.parametrize("kind", [PPO, TRPO, MaskablePPO])
def test_prefer_actions_sets_the_initial_probability(kind: Any) -> None:
    mdp, options = make_corridor()
    env = OptionsWrapper(MazeEnv(mdp), options, option_chance=0.05)
    agent = kind("MlpPolicy", env, n_steps=8, batch_size=8, seed=0)
    prefer_actions(agent, 0.05)
    distribution = agent.policy.get_distribution(torch.arange(6)).distribution
    option_chances = distribution.probs[:, 4:].sum(dim=1).detach().numpy()
    np.testing.assert_allclose(option_chances, 0.05, rtol=0.1)
    with pytest.raises(ValueError, match="option_chance"):
        prefer_actions(agent, 0.0)
    with pytest.raises(ValueError, match="OptionsWrapper"):
        prefer_actions(kind("MlpPolicy", MazeEnv(mdp), n_steps=8, batch_size=8))


@pytest.mark.parametrize("kind", [DQN, OptionsDQN])
def test_dqn_begins_with_actions(kind: Any) -> None:
    """The greedy choice of a new agent is no option in any state."""
    mdp, options = make_corridor()
    many_options = make_options(np.tile(options.policy, (8, 1)), 4)
    env = OptionsWrapper(MazeEnv(mdp), many_options, option_chance=0.05)
    states = np.arange(6)
    for seed in range(5):
        agent = kind("MlpPolicy", env, seed=seed)
        if kind is DQN:
            if seed == 0:
                stock_choices, _ = agent.predict(states, deterministic=True)
                assert (stock_choices >= 4).any()
            prefer_actions(agent)
        choices, _ = agent.predict(states, deterministic=True)
        assert (choices < 4).all()


def test_missing_parts_raise() -> None:
    bare = PPO("MlpPolicy", make_fork_env(), gamma=GAMMA, n_steps=8, batch_size=8)
    with pytest.raises(ValueError, match="SMDPRolloutBuffer"):
        bare.learn(8, callback=SMDPDiscounts())
    alone = PPO(
        "MlpPolicy",
        make_fork_env(),
        gamma=GAMMA,
        n_steps=8,
        batch_size=8,
        rollout_buffer_class=SMDPRolloutBuffer,
    )
    with pytest.raises(ValueError, match="SMDPDiscounts"):
        alone.learn(8)
    unwrapped = DQN(
        "MlpPolicy",
        MazeEnv(make_fork()),
        replay_buffer_class=SMDPReplayBuffer,
        learning_starts=4,
    )
    with pytest.raises(ValueError, match="OptionsWrapper"):
        unwrapped.learn(8)
    with pytest.raises(ValueError, match="OptionsWrapper"):
        OptionsDQN("MlpPolicy", MazeEnv(make_fork()))
    with pytest.raises(ValueError, match="q_net"):
        prefer_actions(QRDQN("MlpPolicy", make_fork_env(), gamma=GAMMA))
    with pytest.raises(ValueError, match="n_steps"):
        OptionsDQN("MlpPolicy", make_fork_env(), n_steps=3)


@pytest.mark.parametrize(
    "settings", [{"optimize_memory_usage": True}, {"n_envs": 2}], ids=str
)
def test_replay_buffer_refuses_steps_that_it_cannot_store(
    settings: dict[str, Any],
) -> None:
    """To save memory, next observations are in the row below: here a first step."""
    buffer = SMDPReplayBuffer(
        20,
        Discrete(38),
        Discrete(3),
        device="cpu",
        handle_timeout_termination=False,
        **settings,
    )
    env = OptionsWrapper(
        MazeEnv(make_fork()),
        make_detour(),
        GAMMA,
        option_chance=0.05,
        record_steps=True,
    )
    env.reset(seed=0)
    obs, reward, _, _, info = env.step(SKILL)
    n_envs = buffer.n_envs
    with pytest.raises(ValueError, match="record_steps"):
        buffer.add(
            obs=np.zeros(n_envs, int),
            next_obs=np.full(n_envs, obs),
            action=np.full(n_envs, SKILL),
            reward=np.full(n_envs, reward),
            done=np.zeros(n_envs),
            infos=[info] * n_envs,
        )


def test_steps_inside_options_are_stored_with_the_channels_first() -> None:
    """As SB3 stores the images of decisions."""
    image_space = gym.spaces.Box(0, 255, (3, 7, 5), np.uint8)
    choices = OptionsSpace(2, 1)
    choices.step_space = gym.spaces.Box(0, 255, (7, 5, 3), np.uint8)
    buffer = SMDPReplayBuffer(10, image_space, choices, device="cpu")
    view = np.arange(105, dtype=np.uint8).reshape(7, 5, 3)
    moved = view.transpose(2, 0, 1)[None]
    step = PrimitiveStep(
        obs=view,
        action=1,
        reward=0.5,
        next_obs=view,
        discount=0.9,
        action_mask=np.ones(3, dtype=np.int8),
    )
    buffer.add(
        obs=moved,
        next_obs=moved,
        action=np.array([2]),
        reward=np.array([0.5]),
        done=np.zeros(1),
        infos=[{"steps": [step], "discount": 0.9}],
    )
    assert buffer.pos == 2
    np.testing.assert_array_equal(buffer.observations[1], moved)
    np.testing.assert_array_equal(buffer.next_observations[1], moved)


@pytest.mark.parametrize("mode", ["call-and-return", "step"])
def test_wrapper_passes_check_env_of_sb3(mode: str, four_rooms: eo.MDP) -> None:
    env = gym.make("eigenoptions/FourRooms-v0", max_episode_steps=50)
    check_env(OptionsWrapper(env, eo.discover(four_rooms, n_options=4), mode=mode))
