"""Calls of environments, wrappers and the agents of Stable-Baselines3."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from tests.fuzz_given import LINE, Calls, Given

import eigenoptions as eo


def wrapped(x: Given) -> Any:
    env = eo.OptionsWrapper(eo.envs.MazeEnv(x.line), x.options, gamma=x.a, option_chance=x.b)
    env.reset(seed=0)
    return env.step(env.action_space.sample())


CALLS: Calls = {
    "from_env": [
        lambda x: eo.from_env(eo.envs.MazeEnv(x.line), max_states=x.a),
        lambda x: eo.from_env(x.a),
        lambda x: eo.from_env("FrozenLake-v1", seed=x.b),
    ],
    "collect": [
        lambda x: eo.collect(x.mdp, x.count(20), rng=x.b),
        lambda x: eo.collect(x.line, 9, policy=x.a, option_chance=x.b),
    ],
    "envs.stream": [lambda x: list(eo.envs.stream(x.line, x.count(20), n_envs=x.count(3)))],
    "envs.MazeEnv": [
        lambda x: eo.envs.MazeEnv(LINE, start=x.a, goal=x.b).reset(seed=0),
        lambda x: eo.envs.MazeEnv(x.a),
    ],
    "envs.MazeVectorEnv": [
        lambda x: eo.envs.MazeVectorEnv(LINE, x.count(4), max_episode_steps=x.b).reset(seed=0)
    ],
    "envs.Numbered": [lambda x: eo.envs.Numbered(gym.make("FrozenLake-v1"), max_states=x.a).reset(seed=0)],
    "envs.StateLimitReached": [lambda x: eo.envs.StateLimitReached("full", x.mdp, 3)],
    "envs.Recording": [lambda x: len(eo.envs.Recording(x.folder, (1, 2)))],
    "envs.load_transitions": [lambda x: eo.envs.load_transitions(x.a)],
    "envs.CollectionStopped": [lambda x: eo.envs.CollectionStopped("full")],
    "envs.OptionsSpace": [lambda x: eo.envs.OptionsSpace(x.count(9), x.few(9), 0.1).sample()],
    "envs.PrimitiveStep": [lambda x: eo.envs.PrimitiveStep(0, x.a, 0.0, 1, x.b, np.ones(2, np.int8))],
    "OptionsWrapper": [wrapped, lambda x: eo.OptionsWrapper(eo.envs.MazeEnv(x.line), x.a, mode=x.b)],
    "OptionsVectorWrapper": [
        lambda x: eo.OptionsVectorWrapper(
            eo.envs.MazeVectorEnv(x.line, 2), x.options, gamma=x.a, option_chance=x.b
        ),
        lambda x: eo.OptionsVectorWrapper(eo.envs.MazeVectorEnv(x.line, 2), x.a, mode=x.b),
    ],
    "envs.OptionsVectorSpace": [
        lambda x: eo.envs.OptionsVectorSpace(x.count(9), x.count(9), 2, x.b).sample()
    ],
    "run_options": [
        lambda x: eo.run_options(eo.envs.MazeEnv(x.line), x.options, runs=x.count(2), max_steps=9, rng=x.b),
        lambda x: eo.run_options(x.a, x.b),
        lambda x: eo.run_options(eo.envs.MazeEnv(x.line), x.a, warm_up=x.few(2)),
    ],
}


def agent_of(x: Given, kind: str, **settings: Any) -> Any:
    """An agent of Stable-Baselines3 over actions and options; it has learned nothing."""
    from eigenoptions.envs import sb3

    env = eo.OptionsWrapper(eo.envs.MazeEnv(x.line, max_episode_steps=9), x.options, gamma=0.9)
    if kind == "dqn":
        return sb3.OptionsDQN(
            "MlpPolicy", env, **{"learning_starts": 2, "batch_size": 2, "seed": 0, **settings}
        )
    from stable_baselines3 import PPO

    buffers = {"rollout_buffer_class": getattr(sb3, kind)}
    return PPO(
        "MlpPolicy", env, **{"n_steps": 4, "batch_size": 4, "n_epochs": 1, "seed": 0, **buffers, **settings}
    )


def adapter(name: str) -> Any:
    from eigenoptions.envs import sb3

    return getattr(sb3, name)


SLOW: Calls = {
    "envs.sb3.OptionsDQN": [
        lambda x: agent_of(x, "dqn").learn(3),
        lambda x: agent_of(x, "dqn").predict(np.array(x.a), action_masks=x.b),
    ],
    "envs.sb3.as_table": [
        lambda x: adapter("as_table")(x.a),
        lambda x: adapter("as_table")(agent_of(x, "dqn")),
    ],
    "envs.sb3.prefer_actions": [
        lambda x: adapter("prefer_actions")(x.a, 0.1),
        lambda x: adapter("prefer_actions")(agent_of(x, "SMDPRolloutBuffer"), x.b),
        lambda x: adapter("prefer_actions")(agent_of(x, "dqn")),
    ],
    "envs.sb3.SMDPReplayBuffer": [
        lambda x: adapter("SMDPReplayBuffer")(9, gym.spaces.Discrete(4), gym.spaces.Discrete(2)).add(
            np.array([0]),
            np.array([1]),
            np.array([0]),
            np.array([0.0]),
            np.array([False]),
            [{"discount": x.a}],
        ),
    ],
    "envs.sb3.SMDPRolloutBuffer": [lambda x: agent_of(x, "SMDPRolloutBuffer").learn(4)],
    "envs.sb3.SMDPMaskableRolloutBuffer": [
        lambda x: adapter("SMDPMaskableRolloutBuffer")(
            2, gym.spaces.Discrete(4), gym.spaces.Discrete(2)
        ).reset()
    ],
    "envs.sb3.SMDPDiscounts": [
        lambda x: agent_of(x, "SMDPRolloutBuffer").learn(4, callback=adapter("SMDPDiscounts")()),
        lambda x: agent_of(x, "dqn").learn(4, callback=adapter("SMDPDiscounts")()),
    ],
}
