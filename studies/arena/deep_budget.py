"""What surrounds a deep agent: a budget of steps, a count bonus, and an exam.

Every primitive step counts, also those of exploring and those inside options.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from eigenoptions.envs.recognisers import choose_recognition, make_recogniser

Env = gym.Env[Any, Any]
Mask = NDArray[np.int8]

# From an observation, and the mask of what is available if there are options, to a
# choice.
Policy = Callable[[Any, Mask | None], int]


class BudgetSpentError(Exception):
    """A run has taken all of its primitive steps."""


class Budget(gym.Wrapper[Any, Any, Any, Any]):
    """Counts primitive steps, notes the first goal, and ends a run at its budget.

    It goes around the task's environment, inside all other wrappers.

    Parameters
    ----------
    env : gymnasium.Env
        The environment of a task.
    steps : int
        The primitive steps of a run.

    Attributes
    ----------
    steps : int
        Primitive steps taken.
    first_goal : int
        Steps until the first goal; the budget where there was none.
    goals : int
        How often the goal was reached.
    """

    def __init__(self, env: Env, steps: int) -> None:
        super().__init__(env)
        self.total = steps
        self.steps = 0
        self.first_goal = steps
        self.goals = 0

    @property
    def spent(self) -> float:
        """Share of the budget that is spent."""
        return self.steps / self.total

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        obs, _ = self.env.reset(seed=seed, options=options)
        return obs, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one step; the last one is counted, but raises `BudgetSpentError`.

        The info is empty: Taxi's would tell which actions are useless.
        """
        obs, reward, terminated, truncated, _ = self.env.step(action)
        self.steps += 1
        if reward > 0:
            if self.goals == 0:
                self.first_goal = self.steps
            self.goals += 1
        if self.steps >= self.total:
            raise BudgetSpentError
        return obs, float(reward), terminated, truncated, {}


class CountBonus(gym.Wrapper[Any, Any, Any, Any]):
    """Entering a state for the n-th time gives ``bonus / sqrt(n)`` more.

    States are recognised as `explore` does with the same `key`.

    Parameters
    ----------
    env : gymnasium.Env
        The environment.
    bonus : float
        Its size.
    key : str or None
        How states are recognised.
    """

    def __init__(self, env: Env, bonus: float, key: str | None = None) -> None:
        super().__init__(env)
        self._bonus = bonus
        self._recogniser = make_recogniser(choose_recognition(env, key))
        self._counts: Counter[Hashable] = Counter()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        obs, info = self.env.reset(seed=seed, options=options)
        self._recogniser.begin(self.env, obs)
        return obs, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one step, and add the bonus of the state that it leads to."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        state = self._recogniser.follow(self.env, obs, int(action))
        self._counts[state] += 1
        bonus = self._bonus / np.sqrt(self._counts[state])
        return obs, float(reward) + bonus, terminated, truncated, info


def take_exam(
    env: Env,
    policy: Policy,
    seed: int,
    *,
    episodes: int = 10,
    epsilon: float = 0.05,
) -> float:
    """Return the share of episodes in which a policy reaches the goal.

    One decision in twenty is random, as in evaluations of DQN (Mnih et al., 2015):
    views do not tell where the agent is, and a policy without any chance can go in
    circles for ever.

    Parameters
    ----------
    env : gymnasium.Env
        A new environment of the task.
    policy : callable
        The choice for an observation and a mask. It is asked once for each.
    seed : int
        Of random decisions and of the environment.
    episodes : int, default=10
        How many.
    epsilon : float, default=0.05
        Chance of a random primitive action.
    """
    rng = np.random.default_rng(seed)
    n_primitive = getattr(env.action_space, "n_primitive", None)
    if n_primitive is None:
        n_primitive = env.action_space.n  # type: ignore[attr-defined]

    # By observation and mask, so that networks are not asked twice.
    choices: dict[tuple[bytes, bytes], int] = {}
    n_reached = 0
    for episode in range(episodes):
        obs, info = env.reset(seed=seed + episode)
        is_over = False
        while not is_over:
            mask = info.get("action_mask")
            question = (np.asarray(obs).tobytes(), np.asarray(mask).tobytes())
            if rng.random() < epsilon:
                action = int(rng.integers(n_primitive))
            elif question in choices:
                action = choices[question]
            else:
                action = policy(obs, mask)
                choices[question] = action

            obs, reward, terminated, truncated, info = env.step(action)
            is_over = terminated or truncated
        # Only the goal terminates an episode.
        n_reached += bool(reward > 0)
    return n_reached / episodes
