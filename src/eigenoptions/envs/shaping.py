"""`ShapedReward`: a dense reward that changes no optimal policy (Ng et al., 1999)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import ArrayLike

from eigenoptions._validation import check_float
from eigenoptions.envs.families import Key, Recogniser
from eigenoptions.envs.recognisers import make_recogniser
from eigenoptions.envs.sources import reset_env, step_env
from eigenoptions.envs.wrapper import OptionsWrapper


class KeyPotential(ABC):
    """A potential of states that are recognised by a key, as `explore` does."""

    @property
    @abstractmethod
    def by(self) -> str | Key:
        """How states are recognised."""

    @abstractmethod
    def evaluate(self, key: Hashable) -> float:
        """Return the potential of the state with a key."""


class ShapedReward(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Potential-based shaping: adds ``gamma * f(next_obs) - f(obs)`` to every reward.

    Where an episode terminates, ``f(next_obs)`` is 0, so that optimal policies stay
    optimal (Ng, Harada and Russell, 1999); truncated episodes go on.
    ``info["unshaped_reward"]`` is the reward of the environment.

    Parameters
    ----------
    env : gymnasium.Env
        The environment. `OptionsWrapper` goes around it: an option then discounts each
        of its steps, and its shaped reward is ``gamma**k * f(next_obs) - f(obs)`` more.
    potential : array of shape (S,) or callable
        A number for each numbered observation in ascending order, or a function from an
        observation to a number: higher is better. Agents learn fastest if it resembles
        the value of a state: with a reward of 1 at the goal, ``1 - distance /
        farthest`` of ``distance = -planner.potential(goal)`` of a `Planner`. Or what
        ``found.potential()`` returns after `explore`, whose states are recognised as
        they were found.
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
        potential: ArrayLike | Callable[[Any], float] | KeyPotential,
        gamma: float,
    ) -> None:
        RecordConstructorArgs.__init__(self, potential=potential, gamma=gamma)
        super().__init__(env)
        _refuse_options(env)
        self._gamma = check_float("gamma", gamma, minimum=0, maximum=1)
        self._recogniser: Recogniser | None = None
        if isinstance(potential, KeyPotential):
            self._recogniser = make_recogniser(potential.by)
            self._potential: Callable[[Any], float] = potential.evaluate
        else:
            self._potential = _make_function(potential, env)
        self._last_potential = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment."""
        obs, info = reset_env(self.env, seed=seed, options=options)
        # The potential of a state is that of its key; the agent sees the observation.
        recognised = obs
        if self._recogniser is not None:
            recognised = self._recogniser.begin(self.env, obs)
        self._last_potential = self._compute_potential(recognised)
        return obs, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step of the environment and shape its reward."""
        obs, reward, terminated, truncated, info = step_env(self.env, action)
        recognised = obs
        if self._recogniser is not None:
            recognised = self._recogniser.follow(self.env, obs, int(action))

        # A terminal state has potential 0, so that optimal policies stay optimal.
        before = self._last_potential
        after = 0.0 if terminated else self._compute_potential(recognised)
        self._last_potential = after
        shaped = float(reward) + self._gamma * after - before
        return obs, shaped, terminated, truncated, {**info, "unshaped_reward": reward}

    def _compute_potential(self, recognised: Any) -> float:
        """Return the potential of an observation, or of the key of a state.

        Raises ValueError where it is not finite.
        """
        value = float(self._potential(recognised))
        if not np.isfinite(value):
            raise ValueError(
                f"the potential of {recognised} is {value}: give a finite number for "
                "every observation"
            )
        return value


def _refuse_options(env: gym.Env[Any, Any]) -> None:
    """Raise ValueError if some layer of wrappers adds options to the actions.

    A step is then k primitive steps, of which this wrapper would discount only one.
    """
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, OptionsWrapper):
            raise ValueError(
                "options are among the actions, but ShapedReward discounts single "
                "steps: put it inside, OptionsWrapper(ShapedReward(env, ...), options)"
            )
        layer = layer.env


def _make_function(
    potential: ArrayLike | Callable[[Any], float], env: gym.Env[Any, Any]
) -> Callable[[Any], float]:
    """Return the potential as a function of an observation."""
    if callable(potential):
        return potential

    values = np.asarray(potential, dtype=np.float64)
    space = env.observation_space
    if not isinstance(space, Discrete):
        raise ValueError(
            f"potential has shape {values.shape}, but observations are no numbers of "
            "states: give a function"
        )
    if values.shape != (space.n,):
        raise ValueError(
            f"potential has shape {values.shape}: give one number for each of "
            f"{space.n} states"
        )
    first = int(space.start)
    return lambda obs: float(values[int(obs) - first])
