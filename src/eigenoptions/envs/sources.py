"""What may be given for an environment: an id, an object, a function, an MDP."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import Any, TypeAlias

import gymnasium as gym
from gymnasium import wrappers
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import SyncVectorEnv, VectorEnv

from eigenoptions._text import printable
from eigenoptions._validation import show_value
from eigenoptions.envs.mazes import MazeEnv
from eigenoptions.mdp import MDP

Source: TypeAlias = (
    str
    | gym.Env[Any, Any]
    | Callable[[], gym.Env[Any, Any]]
    | VectorEnv[Any, Any, Any]
    | MDP
)


def reset_env(env: gym.Env[Any, Any], **arguments: Any) -> tuple[Any, dict[str, Any]]:
    """Reset an environment; raise TypeError if it does not return ``(obs, info)``."""
    returned: Any = env.reset(**arguments)
    if isinstance(returned, tuple) and len(returned) == 2:
        obs, info = returned
        if isinstance(info, dict):
            return obs, info
    raise TypeError(
        f"reset of {env_name(env)} must return (obs, info) with a dict, got "
        f"{_describe_returned(returned)}: correct its reset"
    )


def step_env(
    env: gym.Env[Any, Any], action: int
) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """Take a step; raise TypeError if the environment does not return five values."""
    returned: Any = env.step(action)
    if isinstance(returned, tuple) and len(returned) == 5:
        obs, reward, terminated, truncated, info = returned
        if isinstance(info, dict):
            _check_reward(env, reward)
            return obs, reward, terminated, truncated, info
    raise TypeError(
        f"step of {env_name(env)} must return (obs, reward, terminated, truncated, "
        f"info) with a dict, got {_describe_returned(returned)}: correct its step"
    )


def _check_reward(env: gym.Env[Any, Any], reward: Any) -> None:
    """Raise TypeError if a reward is no number, or nan."""
    try:
        is_number = not isnan(reward)
    except TypeError:
        is_number = False
    if not is_number:
        raise TypeError(
            f"step of {env_name(env)} must return a number as reward, got "
            f"{show_value(reward)}: correct its step"
        )


def _describe_returned(returned: Any) -> str:
    """Return what an environment returned, in the words of an error message."""
    if not isinstance(returned, tuple):
        return type(returned).__name__
    kinds = ", ".join(type(part).__name__ for part in returned)
    return f"{len(returned)} values ({kinds})"


class CheckedReturns(gym.Wrapper[Any, Any, Any, Any]):
    """An environment whose `reset` and `step` raise TypeError for other returns.

    A vector environment would fail on them with a message that names neither.
    """

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment."""
        return reset_env(self.env, seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step of the environment."""
        return step_env(self.env, action)


# The modules that register ids, by how the ids begin.
_MODULES_OF_IDS = {"MiniGrid-": "minigrid", "BabyAI-": "minigrid", "ALE/": "ale_py"}

# Wrappers that count, check, render or change rewards. Actions and
# observations stay as they are.
PASSIVE_WRAPPERS = (
    wrappers.TimeLimit,
    wrappers.Autoreset,
    wrappers.RecordEpisodeStatistics,
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.RecordVideo,
    wrappers.HumanRendering,
    wrappers.RenderCollection,
    gym.RewardWrapper,
    CheckedReturns,
)


def make_env(env: str | gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Make the environment of an id; return an environment as it is."""
    if isinstance(env, gym.Env):
        return env
    if not isinstance(env, str):
        raise ValueError(
            f"give a Gymnasium environment or its id, got {type(env).__name__}"
        )
    try:
        return gym.make(env)
    except (gym.error.Error, ModuleNotFoundError) as error:
        raise _make_unknown_env_error(env, error) from error


def call_factory(factory: Callable[[], Any]) -> gym.Env[Any, Any]:
    """Return the environment that a function makes."""
    made = factory()
    if not isinstance(made, gym.Env):
        raise TypeError(
            "a function that is given for an environment must return one, got "
            f"{type(made).__name__}"
        )
    return made


def make_vector_env(
    env: Source, n_envs: int = 1, max_episode_steps: int | None = None
) -> tuple[VectorEnv[Any, Any, Any], bool]:
    """Make the vector environment of a source.

    Parameters
    ----------
    env : str, gymnasium.Env, callable, gymnasium.vector.VectorEnv or MDP
        The source. A vector environment is returned as it is.
    n_envs : int, default=1
        Number of environments; more than one needs an id, a function or an MDP.
    max_episode_steps : int, default=None
        Time limit. None: that of the environment.

    Returns
    -------
    env : gymnasium.vector.VectorEnv
        The vector environment.
    is_ours : bool
        Whether it was made here, so that the caller closes it.
    """
    if isinstance(env, VectorEnv):
        if n_envs not in (1, env.num_envs) or max_episode_steps is not None:
            raise ValueError(
                "a vector environment has its own n_envs and time limit: leave them out"
            )
        return env, False
    if isinstance(env, str):
        return _make_registered(env, n_envs, max_episode_steps), True
    if not isinstance(env, gym.Env | MDP) and not callable(env):
        raise ValueError(
            "give an environment, its id, a function or an MDP, got "
            f"{type(env).__name__}"
        )
    if isinstance(env, gym.Env) and n_envs != 1:
        raise ValueError(
            f"n_envs={n_envs} needs an id or a function that makes the environment"
        )

    def make_single() -> gym.Env[Any, Any]:
        if isinstance(env, gym.Env):
            made = env
        elif isinstance(env, MDP):
            made = MazeEnv(env)
        else:
            made = call_factory(env)
        checked = CheckedReturns(made)
        if max_episode_steps is None:
            return checked
        return wrappers.TimeLimit(checked, max_episode_steps)

    is_ours = not isinstance(env, gym.Env)
    return SyncVectorEnv([make_single] * n_envs), is_ours


def _make_registered(
    name: str, n_envs: int, max_episode_steps: int | None
) -> VectorEnv[Any, Any, Any]:
    """Make a vector environment of an id; its time limit holds unless one is given."""
    limit: dict[str, Any] = {}
    if max_episode_steps is not None:
        limit["max_episode_steps"] = max_episode_steps
    try:
        return gym.make_vec(name, num_envs=n_envs, **limit)
    except (gym.error.Error, ModuleNotFoundError) as error:
        raise _make_unknown_env_error(name, error) from error


def _make_unknown_env_error(name: str, error: Exception) -> ValueError:
    """The error for an id that Gymnasium cannot make, with its own first line."""
    reason = printable(str(error).splitlines()[0])
    hint = ""
    for prefix, module in _MODULES_OF_IDS.items():
        if name.startswith(prefix):
            hint = f" Did you mean '{module}:{name}'?"
    return ValueError(f"no environment {name!r}: {reason}{hint}")


def env_name(env: gym.Env[Any, Any] | VectorEnv[Any, Any, Any]) -> str:
    """Return the id of an environment, or the name of its class."""
    spec = getattr(env, "spec", None)
    if spec is not None:
        return str(spec.id)
    return type(env.unwrapped).__name__


def count_actions(env: gym.Env[Any, Any] | VectorEnv[Any, Any, Any]) -> int:
    """Return the number of actions of an environment or vector environment.

    Raises ValueError unless its space is ``Discrete(n)``.
    """
    space = getattr(env, "single_action_space", env.action_space)
    if isinstance(space, Discrete) and space.start == 0:
        return int(space.n)
    wrapper = "TransformAction"
    if isinstance(space, Box):
        wrapper = "DiscretizeAction(env, bins=3)"
    raise ValueError(
        f"{env_name(env)} has actions {space}: only Discrete(n) is supported: wrap it "
        f"(gymnasium.wrappers.{wrapper})"
    )
