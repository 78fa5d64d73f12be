"""`RemoteEnv`: what is known of an environment that another process holds."""

from __future__ import annotations

from typing import Any

import gymnasium as gym


class RemoteEnv:
    """What stands for one environment of an `AsyncVectorEnv`: its spaces and its id.

    You can also ask whether it has an attribute, which is then None. So its family is
    found, but nothing inside is read.

    Parameters
    ----------
    envs : gymnasium.vector.VectorEnv
        The vector environment.
    """

    def __init__(self, envs: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        self.observation_space = envs.single_observation_space
        self.action_space = envs.single_action_space
        self.spec = envs.spec
        self.unwrapped = self
        self._envs: Any = envs

    def __getattr__(self, name: str) -> None:
        # A question that cannot fail: an exception would end the other process.
        if name.startswith("_") or not all(self._envs.call("has_wrapper_attr", name)):
            raise AttributeError(name)


def list_single_envs(env: gym.vector.VectorEnv[Any, Any, Any]) -> list[Any]:
    """Return the environments of a vector, or what stands for them."""
    envs = getattr(env.unwrapped, "envs", None)
    if envs:
        return list(envs)
    return [RemoteEnv(env)] * env.num_envs
