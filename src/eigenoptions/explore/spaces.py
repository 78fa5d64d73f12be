"""Action spaces whose samples go to the unknown.

Agents that are epsilon-greedy explore by ``action_space.sample()``. So an agent that
knows nothing of `explore` profits from it if its samples are the next actions there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from eigenoptions.envs.sources import count_actions
from eigenoptions.envs.spaces import GuidedSamples


class ExploringSpace(GuidedSamples, Discrete):
    """``Discrete(n)`` whose samples are the next actions to the unknown.

    It is equal to the `Discrete` of the same size. A copy from a file or another
    process does not know the environment: its samples are uniform.

    Parameters
    ----------
    n : int
        Number of actions.
    choose : callable
        Returns the next action to the unknown, or None where all is known.
    seed : int or numpy.random.Generator, default=None
        As in `Discrete`.

    Attributes
    ----------
    n_samples : int
        How often an agent has sampled.

    Examples
    --------
    >>> space = ExploringSpace(4, lambda: 2)
    >>> int(space.sample()), space == Discrete(4)
    (2, True)
    """

    def __init__(
        self,
        n: int,
        choose: Callable[[], int | None] | None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        super().__init__(n, seed)
        self.is_box = False
        self._choose = choose
        self.n_samples = 0

    def sample(
        self,
        mask: NDArray[np.int8] | None = None,
        probability: NDArray[Any] | None = None,
    ) -> np.int64:
        """Return the next action to the unknown.

        Parameters
        ----------
        mask : ndarray of shape (n,), default=None
            The actions that are allowed. Where the next one is not, another is drawn.
        probability : ndarray of shape (n,), default=None
            Probability of each action; then one is drawn.
        """
        self.n_samples += 1
        if probability is not None or self._choose is None:
            return super().sample(mask, probability)
        action = self._choose()
        if action is None or (mask is not None and not mask[action]):
            return super().sample(mask)
        return np.int64(action)

    def __getstate__(self) -> dict[str, Any]:
        # Where a copy is used, the environment is another one.
        return {**self.__dict__, "_choose": None}


class ExploringBox(GuidedSamples, Box):
    """A `Box` of actions whose samples are the next actions to the unknown.

    Parameters
    ----------
    space : gymnasium.spaces.Box
        The actions of the environment.
    choose : callable
        Returns the next action to the unknown, or None where there is none.

    Attributes
    ----------
    n_samples : int
        How often an agent has sampled.
    """

    def __init__(self, space: Box, choose: Callable[[], Any] | None) -> None:
        super().__init__(space.low, space.high, dtype=space.dtype)
        self.is_box = True
        self._choose = choose
        self.n_samples = 0

    def sample(self, mask: None = None, probability: None = None) -> NDArray[Any]:
        """Return the next action to the unknown."""
        self.n_samples += 1
        action = None if self._choose is None else self._choose()
        if action is None:
            return super().sample()
        return np.array(action)

    def __getstate__(self) -> dict[str, Any]:
        # Where a copy is used, the environment is another one.
        return {**self.__dict__, "_choose": None}


def make_exploring_space(
    env: gym.Env[Any, Any], choose: Callable[[], Any]
) -> ExploringSpace | ExploringBox:
    """Return the space of an environment's actions whose samples are chosen."""
    if isinstance(env.action_space, Box):
        return ExploringBox(env.action_space, choose)
    return ExploringSpace(count_actions(env), choose)


@batch_space.register(ExploringSpace)
def _refuse_several(space: ExploringSpace, n: int = 1) -> MultiDiscrete:
    """Return the space of a vector of one environment; several need one table."""
    if n > 1:
        raise ValueError(
            f"Exploring stands in each of {n} environments of a vector, and each would "
            "learn a table of its own: wrap the vector instead, ExploringVector(envs)"
        )
    return MultiDiscrete(np.full(1, space.n))


class ExploringVectorSpace(GuidedSamples, MultiDiscrete):
    """Actions ``(n_envs,)`` of a vector environment, sampled as by `ExploringSpace`.

    Parameters
    ----------
    n : int
        Number of actions.
    n_envs : int
        Number of environments.
    choose : callable
        Returns the next action of each environment, or None where all is known.
    seed : int, default=None
        As in `MultiDiscrete`.

    Examples
    --------
    >>> ExploringVectorSpace(4, 2, lambda: [3, 1]).sample()
    array([3, 1])
    """

    def __init__(
        self,
        n: int,
        n_envs: int,
        choose: Callable[[], list[int | None]] | None,
        seed: int | None = None,
    ) -> None:
        super().__init__([n] * n_envs, seed=seed)
        self._choose = choose
        self.n_samples = 0

    def sample(self, mask: Any = None, probability: Any = None) -> NDArray[np.int64]:
        """Return the next action of each environment to the unknown.

        Parameters
        ----------
        mask, probability : default=None
            As in `MultiDiscrete`; with one of them, actions are drawn.
        """
        self.n_samples += 1
        actions: NDArray[np.int64] = super().sample(mask, probability)
        if self._choose is None or mask is not None or probability is not None:
            return actions
        for i, action in enumerate(self._choose()):
            if action is not None:
                actions[i] = action
        return actions

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_choose": None}
