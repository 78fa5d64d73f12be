"""`ShapedReward`: a dense reward that changes no optimal policy (Ng, Harada and Russell, 1999)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import ArrayLike

from eigenoptions._validation import check_float


class ShapedReward(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Potential-based shaping: adds ``gamma * f(next_obs) - f(obs)`` to every reward.

    Where an episode terminates, ``f(next_obs)`` is 0, so that optimal policies stay optimal; truncated episodes go on.
    ``info["unshaped_reward"]`` is the reward of the environment.

    Parameters
    ----------
    env
        The environment.
    potential : array (S,) or callable
        A number for each numbered observation, or a function from an observation to a number: higher is better. Agents
        learn fastest if it resembles the value of a state: with a reward of 1 at the goal, ``1 - distance / farthest``
        of ``distance = -planner.potential(goal)`` of a `Planner`.
    gamma : float
        The discount factor of the agent, in [0, 1].

    Examples
    --------
    >>> import eigenoptions as eo
    >>> env = ShapedReward(eo.envs.MazeEnv("S.G"), [-2.0, -1.0, 0.0], gamma=1.0)
    >>> start = env.reset()
    >>> env.step(1)[1]
    1.0
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        potential: ArrayLike | Callable[[Any], float],
        gamma: float,
    ) -> None:
        RecordConstructorArgs.__init__(self, potential=potential, gamma=gamma)
        super().__init__(env)
        self._gamma = check_float("gamma", gamma, minimum=0, maximum=1)
        if not callable(potential):
            potential = np.asarray(potential, dtype=np.float64)
            n_states = getattr(env.observation_space, "n", None)
            if potential.shape != (n_states,):
                remedy = (
                    f"one number for each of {n_states} states"
                    if n_states
                    else "a function"
                )
                raise ValueError(
                    f"potential has shape {potential.shape}: give {remedy}"
                )
        self._potential = potential if callable(potential) else potential.__getitem__

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment."""
        obs, info = self.env.reset(seed=seed, options=options)
        self._last = self._evaluate(obs)
        return obs, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step of the environment and shape its reward."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        before, self._last = self._last, 0.0 if terminated else self._evaluate(obs)
        shaped = float(reward) + self._gamma * self._last - before
        return obs, shaped, terminated, truncated, {**info, "unshaped_reward": reward}

    def _evaluate(self, obs: Any) -> float:
        value = float(self._potential(obs))
        if not np.isfinite(value):
            raise ValueError(
                f"the potential of {obs} is {value}: give a finite number for every observation"
            )
        return value
