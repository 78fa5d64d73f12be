"""`FixedSeed`: the same first state and layout in every episode."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from eigenoptions._validation import check_int
from eigenoptions.envs.sources import reset_env


class FixedSeed(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment whose episodes all begin with ``reset(seed=seed)``.

    MiniGrid then has one layout. What is random after the reset differs from episode to
    episode; the seed that you give to `reset` draws it.

    Parameters
    ----------
    env : gymnasium.Env
        The environment.
    seed : int, default=0
        The seed of every reset. The default is that of `from_env` and `discover`.

    Examples
    --------
    >>> env = FixedSeed(gym.make("minigrid:MiniGrid-FourRooms-v0"), 0)
    >>> starts = set()
    >>> for _ in range(3):
    ...     obs, info = env.reset()
    ...     starts.add(tuple(map(int, env.unwrapped.agent_pos)))
    >>> len(starts)
    1
    """

    def __init__(self, env: gym.Env[Any, Any], seed: int = 0) -> None:
        RecordConstructorArgs.__init__(self, seed=seed)
        gym.Wrapper.__init__(self, env)
        self.seed = choose_seed(env, check_int("seed", seed, 0))
        self._rng = np.random.default_rng()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode with the fixed seed."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        obs, info = reset_env(self.env, seed=self.seed, options=options)
        # From here on, each episode draws numbers of its own.
        self.env.unwrapped.np_random = self._rng
        return obs, info


def find_fixed_seed(env: Any) -> int | None:
    """Return the seed of a `FixedSeed` among the wrappers of an environment, if any."""
    layer = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, FixedSeed):
            return layer.seed
        layer = layer.env
    return None


def choose_seed(env: Any, seed: int | None) -> int:
    """Return the seed of an environment's resets: that of `FixedSeed`, or one given.

    Without both it is 0. Raise ValueError if they contradict each other.

    >>> env = FixedSeed(gym.make("FrozenLake-v1"), 3)
    >>> choose_seed(env, None), choose_seed(env.unwrapped, None)
    (3, 0)
    """
    if seed is not None:
        seed = check_int("seed", seed, 0)
    fixed_seed = find_fixed_seed(env)
    if fixed_seed is None:
        return 0 if seed is None else seed
    if seed not in (None, fixed_seed):
        raise ValueError(
            f"every episode of this environment begins with FixedSeed(env, "
            f"{fixed_seed}), got seed={seed}: leave out seed"
        )
    return fixed_seed
