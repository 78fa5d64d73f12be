"""Stable-Baselines3 with options.

On a fork, agents that ignore durations take the long way.

From the fork a short way of 6 steps and a long one of 32 lead to the goal; the option
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
from tests import reference
from tests.tables import make_options

SHORT, LONG, GAMMA = 6, 32, 0.9
SKILL = 2  # the option's action, after the two primitive ones


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def fork() -> eo.MDP:
    """0 is the fork, 1..5 is the short way, 6..36 the long one, 37 the goal."""
    goal = SHORT + LONG - 1
    successors = np.arange(1, goal + 2)
    successors[SHORT - 1] = successors[goal] = goal
    moves = np.stack([successors, successors], axis=1)
    moves[0] = 1, SHORT
    transition = np.zeros((goal + 1, 2, goal + 1))
    for state, row in enumerate(moves):
        transition[state, [0, 1], row] = 1.0
    return eo.MDP(transition, start=0, goal=goal, name="fork")


def detour() -> eo.OptionSet:
    policy = np.full((1, SHORT + LONG), eo.TERMINATE)
    policy[0, [0, *range(SHORT, SHORT + LONG - 2)]] = 1
    return make_options(policy, 2)


def forked(mode: str = "call-and-return") -> OptionsWrapper:
    return OptionsWrapper(
        Monitor(MazeEnv(fork())), detour(), GAMMA, mode, option_chance=0.05
    )


def walked(agent: Any, env: OptionsWrapper) -> int:
    """Primitive steps of one greedy episode."""
    (obs, _), steps, over = env.reset(seed=0), 0, False
    while not over:
        masks = (
            {"action_masks": env.action_masks()}
            if isinstance(agent, MaskablePPO)
            else {}
        )
        action, _ = agent.predict(obs, deterministic=True, **masks)
        obs, _, terminated, truncated, info = env.step(action)
        steps += info["duration"]
        over = terminated or truncated
    return steps


def dqn(**kind: Any) -> DQN:
    how = {
        "learning_starts": 100,
        "train_freq": 2,
        "gradient_steps": 2,
        "target_update_interval": 50,
        "batch_size": 64,
    }
    table = {"policy_kwargs": {"net_arch": []}}  # one weight a state and action
    return DQN(
        "MlpPolicy",
        forked(),
        2e-2,
        gamma=GAMMA,
        seed=0,
        exploration_fraction=0.7,
        **how,
        **table,
        **kind,
    )


def values(agent: DQN) -> np.ndarray:
    with torch.no_grad():
        return agent.q_net(torch.zeros(1, dtype=torch.int64)).numpy()[0]


def test_replay_buffer_gives_dqn_the_values_of_durations() -> None:
    stock = dqn().learn(1200)
    assert values(stock)[SKILL] == pytest.approx(GAMMA, abs=0.05)
    assert walked(stock, forked()) == LONG
    ours = dqn(replay_buffer_class=SMDPReplayBuffer).learn(1200)
    assert values(ours)[[0, SKILL]] == pytest.approx(
        [GAMMA ** (SHORT - 1), GAMMA**31], abs=0.06
    )
    assert walked(ours, forked()) == SHORT


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
    stock = kind("MlpPolicy", forked(), seed=0, **PPO_SIZE).learn(2048)
    assert walked(stock, forked()) == LONG
    ours = kind("MlpPolicy", forked(), seed=0, rollout_buffer_class=buffer, **PPO_SIZE)
    ours.learn(2048, callback=SMDPDiscounts())
    assert walked(ours, forked()) == SHORT


def test_step_mode_needs_no_adapter() -> None:
    agent = MaskablePPO("MultiInputPolicy", forked("step"), seed=0, **PPO_SIZE).learn(
        4096
    )
    assert walked(agent, forked("step")) == SHORT


def test_replay_buffer_keeps_discounts_with_their_transitions() -> None:
    buffer = SMDPReplayBuffer(30, Discrete(1000), Discrete(3), n_envs=3, device="cpu")
    for i in range(25):  # more than fit: the oldest are overwritten
        obs = np.array([3 * i, 3 * i + 1, 3 * i + 2])
        infos = [{"discount": 0.5**x, "TimeLimit.truncated": x % 2 == 0} for x in obs]
        buffer.add(obs, obs + 1, np.zeros(3, int), obs.astype(float), np.ones(3), infos)
    batch = buffer.sample(200)
    seen = batch.observations.numpy().ravel()
    assert set(seen) == set(range(45, 75))
    np.testing.assert_array_equal(batch.next_observations.numpy().ravel(), seen + 1)
    np.testing.assert_array_equal(batch.rewards.numpy().ravel(), seen)
    np.testing.assert_array_equal(
        batch.dones.numpy().ravel(), seen % 2
    )  # a time limit is no end
    np.testing.assert_allclose(
        batch.discounts.numpy().ravel(), 0.5 ** seen.astype(float)
    )


def test_replay_buffer_optimize_memory_usage() -> None:
    how = {"optimize_memory_usage": True, "handle_timeout_termination": False}
    buffer = SMDPReplayBuffer(8, Discrete(100), Discrete(3), device="cpu", **how)
    for i in range(13):
        row = (
            np.array([i]),
            np.array([i + 1]),
            np.zeros(1, int),
            np.zeros(1),
            np.zeros(1),
        )
        buffer.add(*row, [{"discount": 0.5}])
    batch = buffer.sample(100)
    seen = batch.observations.numpy()
    assert len(np.unique(seen)) > 1
    np.testing.assert_array_equal(batch.next_observations.numpy(), seen + 1)


@pytest.mark.parametrize("n_envs", [1, 3])
def test_rollout_buffer_with_equal_discounts_is_the_parents(
    n_envs: int, rng: np.random.Generator
) -> None:
    size = {
        "buffer_size": 20,
        "observation_space": Discrete(9),
        "action_space": Discrete(3),
        "device": "cpu",
    }
    kind = {"gae_lambda": 0.8, "gamma": 0.7, "n_envs": n_envs}
    ours, theirs = SMDPRolloutBuffer(**size, **kind), RolloutBuffer(**size, **kind)
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
    last, dones = (
        torch.tensor(rng.normal(size=n_envs), dtype=torch.float32),
        rng.random(n_envs) < 0.5,
    )
    ours.compute_returns_and_advantage(last, dones)
    theirs.compute_returns_and_advantage(last, dones)
    np.testing.assert_allclose(ours.advantages, theirs.advantages, rtol=1e-6)
    np.testing.assert_allclose(ours.returns, theirs.returns, rtol=1e-6)


def test_callback_bootstraps_time_limits_with_the_true_discount() -> None:
    """The reward in the buffer is R + gamma**k V(last state), and R at the goal.

    SB3 alone would add gamma V.
    """
    env = gym.make("eigenoptions/Maze-v0", maze=loop()[0], max_episode_steps=10)
    env = OptionsWrapper(
        env,
        make_options(np.array([[1, 1, 1, 1, 1, -1]]), 4),
        gamma=GAMMA,
        option_chance=0.05,
    )
    size = {"n_steps": 64, "batch_size": 16, "rollout_buffer_class": SMDPRolloutBuffer}
    agent = PPO("MlpPolicy", env, seed=0, gamma=GAMMA, **size)
    seen: list[tuple[float, float]] = []
    kinds: set[bool] = set()

    class Watch(SMDPDiscounts):
        def _on_step(self) -> bool:
            reward, (info,) = float(self.locals["rewards"][0]), self.locals["infos"]
            going = super()._on_step()
            if "terminal_observation" in info:
                kinds.add(info["TimeLimit.truncated"])
            if info.get("TimeLimit.truncated"):
                last = torch.as_tensor(np.array([info["terminal_observation"]]))
                with torch.no_grad():
                    value = float(self.model.policy.predict_values(last)[0])
                seen.append((self.model.rollout_buffer.pos, info["discount"] * value))
            elif "terminal_observation" in info:
                seen.append((self.model.rollout_buffer.pos, reward))
            return going

        def _on_rollout_end(self) -> None:
            for place, expected in seen:
                assert self.model.rollout_buffer.rewards[place, 0] == pytest.approx(
                    expected, abs=1e-6
                )

    agent.learn(64, callback=Watch())
    assert kinds == {True, False}


def loop() -> tuple[eo.MDP, eo.OptionSet]:
    """A corridor of six cells with the goal at its right end.

    One option leads to the right and one to the left.
    """
    mdp = eo.maze("S....G")
    right = np.array([1, 1, 1, -1, -1, -1])
    left = np.array([-1, 3, 3, -1, -1, -1])
    return mdp, make_options(np.stack([right, left]), 4)


def table_agent(**given: Any) -> tuple[OptionsDQN, OptionsWrapper]:
    mdp, options = loop()
    env = OptionsWrapper(
        MazeEnv(mdp), options, gamma=GAMMA, option_chance=0.05, **given
    )
    table = {
        "policy_kwargs": {"net_arch": []},
        "learning_rate": 1e-3,
        "buffer_size": 2000,
    }
    return OptionsDQN("MlpPolicy", env, gamma=GAMMA, seed=0, device="cpu", **table), env


def set_values(net: Any, q: np.ndarray) -> None:
    layer = net.q_net[0] if len(net.q_net) else net.q_net
    with torch.no_grad():
        layer.weight[:] = torch.as_tensor(q.T, dtype=torch.float32)
        layer.bias[:] = 0.0


def every_decision(agent: OptionsDQN, env: OptionsWrapper) -> None:
    """Put each decision that is possible in each state into the replay buffer."""
    for state in range(5):
        for action in range(6):
            _, info = env.reset(options={"start": state})
            if info["action_mask"][action]:
                obs, reward, terminated, _, info = env.step(action)
                row = (
                    np.array([state]),
                    np.array([obs]),
                    np.array([action]),
                    np.array([reward]),
                )
                agent.replay_buffer.add(*row, np.array([float(terminated)]), [info])


@pytest.mark.parametrize("record_steps", [False, True])
def test_targets_of_exact_values_are_exact(record_steps: bool) -> None:
    """Bellman's equation of the SMDP.

    Also where the end and options that may not start have huge values.
    """
    agent, env = table_agent(record_steps=record_steps)
    mdp, options = loop()
    exact = reference.choice_values(mdp, options.policy, GAMMA)
    wild = exact.copy()
    wild[:, 4:][(options.policy < 0).T] = wild[mdp.goal] = 1e6
    set_values(agent.q_net_target, wild)
    every_decision(agent, env)
    # 5 states of 4 actions, options right from 3 states and left from 2; inside are 3 +
    # 2 + 1 and 1 + 2 steps.
    assert agent.replay_buffer.size() == 25 + (9 if record_steps else 0)
    batch = agent.replay_buffer._get_samples(np.arange(agent.replay_buffer.size()))
    state, action = (
        part.numpy().ravel().astype(int) for part in (batch.observations, batch.actions)
    )
    np.testing.assert_allclose(
        agent.compute_targets(batch).numpy().ravel(), exact[state, action], rtol=1e-5
    )


def test_double_targets_choose_by_the_network() -> None:
    agent, _ = table_agent()
    agent.double = True
    ours, theirs = np.zeros((6, 6)), np.zeros((6, 6))
    # The network prefers action 2 among what is allowed, option 5 may not start; the
    # target network overrates action 0.
    ours[1], theirs[1] = [0, 1, 2, 0, 1, 9], [8, 1, 3, 0, 0, 9]
    set_values(agent.q_net, ours)
    set_values(agent.q_net_target, theirs)
    one, state = torch.ones(1, 1), torch.ones(1, 1, dtype=torch.int64)
    batch = DecisionSamples(
        state, state, state, 0 * one, one, 0.5 * one, torch.tensor([[1.0] * 5 + [0.0]])
    )
    assert agent.compute_targets(batch).item() == 1 + 0.5 * 3
    agent.double = False
    assert agent.compute_targets(batch).item() == 1 + 0.5 * 8


def test_train_converges_to_exact_values() -> None:
    agent, env = table_agent()
    mdp, options = loop()
    exact = reference.choice_values(mdp, options.policy, GAMMA)
    every_decision(agent, env)
    agent.learn(0)  # sets up the logger
    set_values(agent.q_net_target, exact)

    def trained(q: np.ndarray, steps: int) -> np.ndarray:
        set_values(agent.q_net, q)
        agent.train(steps, batch_size=64)
        with torch.no_grad():
            return np.abs(agent.q_net(torch.arange(6)).numpy() - exact)

    assert (
        trained(exact, 5).max() < 6e-3
    )  # Adam turns rounding into steps of the learning rate
    may = np.concatenate([np.ones((6, 4), bool), (options.policy >= 0).T], axis=1)[:5]
    assert trained(exact + 0.05, 30)[:5][may].mean() < 0.03
    set_values(agent.q_net, exact)
    masks = np.zeros(6)
    masks[[0, 3]] = 1
    assert agent.predict(np.array(2), deterministic=True, action_masks=masks)[0] in (
        0,
        3,
    )


def test_dqn_explores_by_the_action_space() -> None:
    """Random actions of SB3 are options as rarely as the wrapper says.

    They may always start.
    """
    mdp, options = loop()
    for kind in (DQN, OptionsDQN):
        env = OptionsWrapper(MazeEnv(mdp), options, gamma=GAMMA, option_chance=0.3)
        agent = kind(
            "MlpPolicy", env, gamma=GAMMA, seed=0, learning_starts=10_000, device="cpu"
        )
        chosen: list[tuple[int, bool]] = []

        def watch(seen: dict[str, Any], _: Any, chosen: list[Any] = chosen) -> bool:
            info = seen["infos"][0]
            chosen.append((info["option"], info.get("unavailable", False)))
            return True

        agent.learn(600, callback=watch)
        assert not any(unavailable for _, unavailable in chosen)
        share = np.mean([option >= 0 for option, _ in chosen])
        assert 0.05 < share < 0.35


@pytest.mark.parametrize("kind", [PPO, TRPO, MaskablePPO])
def test_prefer_actions_sets_the_initial_probability(kind: Any) -> None:
    mdp, options = loop()
    agent = kind(
        "MlpPolicy",
        OptionsWrapper(MazeEnv(mdp), options, option_chance=0.05),
        n_steps=8,
        batch_size=8,
        seed=0,
    )
    prefer_actions(agent, 0.05)
    chances = agent.policy.get_distribution(torch.arange(6)).distribution.probs
    np.testing.assert_allclose(
        chances[:, 4:].sum(dim=1).detach().numpy(), 0.05, rtol=0.1
    )
    with pytest.raises(ValueError, match="option_chance"):
        prefer_actions(agent, 0.0)
    with pytest.raises(ValueError, match="OptionsWrapper"):
        prefer_actions(kind("MlpPolicy", MazeEnv(mdp), n_steps=8, batch_size=8))


@pytest.mark.parametrize("kind", [DQN, OptionsDQN])
def test_dqn_begins_with_actions(kind: Any) -> None:
    """The greedy choice of a new agent is no option in any state."""
    mdp, options = loop()
    env = OptionsWrapper(
        MazeEnv(mdp),
        make_options(np.tile(options.policy, (8, 1)), 4),
        option_chance=0.05,
    )
    for seed in range(5):
        agent = kind("MlpPolicy", env, seed=seed)
        if kind is DQN:
            assert (
                seed > 0
                or (agent.predict(np.arange(6), deterministic=True)[0] >= 4).any()
            )
            prefer_actions(agent)
        assert (agent.predict(np.arange(6), deterministic=True)[0] < 4).all()


def test_missing_parts_raise() -> None:
    bare = PPO("MlpPolicy", forked(), n_steps=8, batch_size=8)
    with pytest.raises(ValueError, match="SMDPRolloutBuffer"):
        bare.learn(8, callback=SMDPDiscounts())
    alone = PPO(
        "MlpPolicy",
        forked(),
        n_steps=8,
        batch_size=8,
        rollout_buffer_class=SMDPRolloutBuffer,
    )
    with pytest.raises(ValueError, match="SMDPDiscounts"):
        alone.learn(8)
    unwrapped = DQN(
        "MlpPolicy",
        MazeEnv(fork()),
        replay_buffer_class=SMDPReplayBuffer,
        learning_starts=4,
    )
    with pytest.raises(ValueError, match="OptionsWrapper"):
        unwrapped.learn(8)
    with pytest.raises(ValueError, match="q_net"):
        prefer_actions(QRDQN("MlpPolicy", forked()))
    with pytest.raises(ValueError, match="n_steps"):
        OptionsDQN("MlpPolicy", forked(), n_steps=3)


@pytest.mark.parametrize(
    "settings", [{"optimize_memory_usage": True}, {"n_envs": 2}], ids=str
)
def test_replay_buffer_refuses_steps_that_it_cannot_store(
    settings: dict[str, Any],
) -> None:
    """With optimize_memory_usage, the row below a decision would be the wrong one.

    It is the decision's own first step, not its next observation.
    """
    n_envs, memory = (
        settings.get("n_envs", 1),
        settings.get("optimize_memory_usage", False),
    )
    how = {"optimize_memory_usage": memory, "handle_timeout_termination": False}
    buffer = SMDPReplayBuffer(
        20, Discrete(38), Discrete(3), n_envs=n_envs, device="cpu", **how
    )
    env = OptionsWrapper(
        MazeEnv(fork()), detour(), GAMMA, option_chance=0.05, record_steps=True
    )
    env.reset(seed=0)
    obs, reward, _, _, info = env.step(SKILL)
    row = (np.full(n_envs, value) for value in (0, obs, SKILL, reward, 0.0))
    with pytest.raises(ValueError, match="record_steps"):
        buffer.add(*row, [info] * n_envs)


@pytest.mark.parametrize("mode", ["call-and-return", "step"])
def test_wrapper_passes_check_env_of_sb3(mode: str, four_rooms: eo.MDP) -> None:
    env = gym.make("eigenoptions/FourRooms-v0", max_episode_steps=50)
    check_env(OptionsWrapper(env, eo.discover(four_rooms, n_options=4), mode=mode))
