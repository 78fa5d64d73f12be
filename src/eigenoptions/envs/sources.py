"""What may be given for an environment: an id, an environment, a function that makes one, a vector environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import SyncVectorEnv, VectorEnv
from gymnasium.wrappers import TimeLimit

from eigenoptions.envs.mazes import MazeEnv
from eigenoptions.mdp import MDP

Source = (
    str
    | gym.Env[Any, Any]
    | Callable[[], gym.Env[Any, Any]]
    | VectorEnv[Any, Any, Any]
    | MDP
)


def make_env(env: str | gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """The environment of an id; an environment is returned as it is."""
    if isinstance(env, gym.Env):
        return env
    if not isinstance(env, str):
        raise ValueError(
            f"give a Gymnasium environment or its id, got {type(env).__name__}"
        )
    try:
        return gym.make(env)
    except (gym.error.Error, ModuleNotFoundError) as error:
        raise ValueError(
            f"no environment {env!r}: {str(error).splitlines()[0]}"
        ) from error


def make_vector_env(
    env: Source, n_envs: int = 1, max_episode_steps: int | None = None
) -> tuple[Any, bool]:
    """The vector environment of a source, and whether it was made here and is to be closed here."""
    if isinstance(env, VectorEnv):
        if n_envs not in (1, env.num_envs) or max_episode_steps is not None:
            raise ValueError(
                "a vector environment has its own n_envs and time limit: leave them out"
            )
        return env, False
    if isinstance(env, str):
        limit: Any = (
            {}
            if max_episode_steps is None
            else {"max_episode_steps": max_episode_steps}
        )
        try:
            return gym.make_vec(env, num_envs=n_envs, **limit), True
        except (gym.error.Error, ModuleNotFoundError) as error:
            raise ValueError(
                f"no environment {env!r}: {str(error).splitlines()[0]}"
            ) from error
    if not isinstance(env, gym.Env | MDP) and not callable(env):
        raise ValueError(
            f"give an environment, its id, a function or an MDP, got {type(env).__name__}"
        )
    if isinstance(env, gym.Env) and n_envs != 1:
        raise ValueError(
            f"n_envs={n_envs} needs an id or a function that makes the environment"
        )

    def make() -> gym.Env[Any, Any]:
        made = (
            env
            if isinstance(env, gym.Env)
            else MazeEnv(env)
            if isinstance(env, MDP)
            else env()
        )
        return made if max_episode_steps is None else TimeLimit(made, max_episode_steps)

    return SyncVectorEnv([make] * n_envs), not isinstance(env, gym.Env)


def env_name(env: Any) -> str:
    """The id of an environment, or the name of its class."""
    spec = getattr(env, "spec", None)
    return str(spec.id) if spec is not None else type(env.unwrapped).__name__


def count_actions(env: Any) -> int:
    """Number of actions of an environment or vector environment; ValueError unless the space is ``Discrete(n)``."""
    space = getattr(env, "single_action_space", env.action_space)
    if isinstance(space, Discrete) and space.start == 0:
        return int(space.n)
    remedy = (
        "DiscretizeAction(env, bins=3)" if isinstance(space, Box) else "TransformAction"
    )
    limit = f"only Discrete(n) is supported: wrap it (gymnasium.wrappers.{remedy})"
    raise ValueError(f"{env_name(env)} has actions {space}: {limit}")
