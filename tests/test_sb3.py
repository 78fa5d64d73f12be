"""Stable-Baselines3 with options: agents that ignore durations take the long way.

From a fork a short way of 6 steps and a long one of 32 lead to the goal; the option
walks 31 steps of the long way. With gamma 0.9 the short way is worth 0.9**5 = 0.590 and
the option 0.9**31 = 0.038. An agent that takes the option for one step believes it is
worth 0.9.
"""

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
from sb3_contrib import QRDQN, TRPO, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import (
    BaseCallback,
    CallbackList,
    ConvertCallback,
)
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import eigenoptions as eo
from eigenoptions.agents.sb3 import (
    Cloned,
    DecisionSamples,
    OptionsDQN,
    OptionUsage,
    PrimitiveSteps,
    SMDPDiscounts,
    SMDPMaskableRolloutBuffer,
    SMDPReplayBuffer,
    SMDPRolloutBuffer,
    check_discounts,
    clone,
    fill_replay,
    prefer_actions,
)
from eigenoptions.envs import MazeEnv, OptionsWrapper
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
    buffer = SMDPReplayBuffer(10, image_space, Discrete(3), device="cpu")
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


# Steps, discounts and the log.


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


# What `explore` found. MiniGrid's 7 x 7 view is an image for SB3, whose channels come
# first in a buffer.


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


def explore_grid(env: gym.Env[Any, Any], seed: int = 0) -> eo.envs.Found:
    return eo.explore(env, 600, until="reward", seed=seed)


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
