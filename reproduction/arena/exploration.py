"""Other ways to explore, to compare options with: repeated actions and a count bonus; and the record of a training run.

Every wrapper and every agent of `envs.training` counts primitive steps, so that runs of equal length are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete

# Exponent of the zeta distribution of durations (Dabney et al., 2021), and the longest duration.
ZETA_EXPONENT = 2.0
MAX_REPEATS = 1000
# Cells along each dimension of an observation that is not a number of a state.
COUNT_CELLS = 16

Act = Callable[[Any, Any], int]


class BudgetSpent(Exception):  # noqa: N818 (no error: the normal end of a run)
    """A training run has taken all of its primitive steps.

    Examples
    --------
    >>> issubclass(BudgetSpent, Exception)
    True
    """


class Record(gym.Wrapper[Any, Any, Any, Any]):
    """Counts primitive steps and episodes that reach the goal, and ends a run at a number of steps.

    It goes around the environment with its time limit, inside all other wrappers.

    Parameters
    ----------
    env
        The environment. An episode that terminates has reached the goal.
    budget
        Number of steps after which `BudgetSpent` is raised.
    taken
        Steps taken before, by the discovery of options.
    checkpoints
        Numbers of steps at which `at_checkpoint` is called.

    Attributes
    ----------
    steps, first_goal
        Steps so far, and the step of the first goal, or -1.
    at_checkpoint
        Function without arguments.

    Examples
    --------
    >>> from eigenoptions.envs.mazes import MazeEnv
    >>> env = Record(MazeEnv("S.G"), budget=2)
    >>> env.reset()[0], env.step(1)[0]
    (0, 1)
    >>> try:
    ...     env.step(1)
    ... except BudgetSpent:
    ...     print(env.steps, env.first_goal)
    2 2
    """

    def __init__(
        self, env: gym.Env[Any, Any], budget: int, taken: int = 0, checkpoints: Sequence[int] = ()
    ) -> None:
        super().__init__(env)
        self.steps, self.budget, self.first_goal = taken, budget, -1
        self.at_checkpoint: Callable[[], object] = lambda: None
        self._checkpoints = sorted(c for c in checkpoints if c > taken)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take one step; raises `BudgetSpent` after the last."""
        result = self.env.step(action)
        self.steps += 1
        if result[2] and self.first_goal < 0:
            self.first_goal = self.steps
        if self._checkpoints and self.steps >= self._checkpoints[0]:
            self._checkpoints.pop(0)
            self.at_checkpoint()
        if self.steps >= self.budget:
            raise BudgetSpent
        return result


class CountBonus(gym.Wrapper[Any, Any, Any, Any]):
    """Adds ``beta / sqrt(n)`` to the reward of a step into a state that was entered n times.

    Observations that are not numbers of states are counted by cells, 16 along each bounded dimension.

    Parameters
    ----------
    env, beta
        The environment, and the bonus of a state seen for the first time.

    Examples
    --------
    >>> from eigenoptions.envs.mazes import MazeEnv
    >>> env = CountBonus(MazeEnv("S.G"), beta=0.5)
    >>> env.reset()[0], env.step(0)[1], env.step(1)[1]
    (0, 0.5, 0.5)
    """

    def __init__(self, env: gym.Env[Any, Any], beta: float) -> None:
        super().__init__(env)
        self.beta = beta
        self.counts: Counter[Hashable] = Counter()

    def _cell(self, obs: Any) -> Hashable:
        space: Any = self.observation_space
        if isinstance(space, Discrete):
            return int(obs)
        return tuple(
            np.floor((obs - space.low) / (space.high - space.low) * COUNT_CELLS).astype(int).tolist()
        )

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one step."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        cell = self._cell(obs)
        self.counts[cell] += 1
        return obs, float(reward) + self.beta * self.counts[cell] ** -0.5, terminated, truncated, info


class Repeats:
    """Random actions that are repeated for a random number of steps: epsilon-z-greedy (Dabney et al., 2021).

    Called with a chance, it returns an action, or None to act greedily. The number of repeats has a zeta distribution.

    Parameters
    ----------
    n_actions, seed
        Number of actions, and the seed that draws them.

    Examples
    --------
    >>> explore = Repeats(4, seed=0)
    >>> sorted({explore(1.0) for _ in range(100)})
    [0, 1, 2, 3]
    """

    def __init__(self, n_actions: int, seed: int) -> None:
        self.n_actions, self.rng = n_actions, np.random.default_rng(seed)
        self.action, self.left = 0, 0

    def __call__(self, chance: float) -> int | None:
        """The next action while exploring; otherwise a new one begins with this chance."""
        if self.left == 0:
            if self.rng.random() >= chance:
                return None
            self.action = int(self.rng.integers(self.n_actions))
            self.left = min(int(self.rng.zipf(ZETA_EXPONENT)), MAX_REPEATS)
        self.left -= 1
        return self.action


@dataclass(frozen=True)
class Run:
    """What an agent needs for one training run.

    Attributes
    ----------
    env, record
        The environment with all wrappers, and the `Record` inside it.
    seed, gamma
        Of the agent.
    explore
        Repeated actions, or None: ``env.action_space.sample()``.
    option_chance
        First chance of an option for agents with a policy, or None without options.
    ready
        Called with the greedy policy before the first step.
    settings
        Settings of the agent.
    """

    env: gym.Env[Any, Any]
    record: Record
    seed: int
    gamma: float
    explore: Repeats | None = None
    option_chance: float | None = None
    ready: Callable[[Act], object] = lambda act: None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def epsilon(self, decision: int = 0) -> float:
        """Chance of a random decision: linear from 1 to 0.05 over a share (`explore_share`) of the primitive steps."""
        share = float(self.settings.get("explore_share", 0.5))
        return max(0.05, 1.0 - 0.95 * self.record.steps / (share * self.record.budget))

    def rate(self) -> float:
        """Share of the first learning rate: 1 in the first half of the primitive steps, then linear to 0.

        With a constant rate the greedy policy would still change from one gradient step to the next at the end.
        """
        return min(1.0, 2.0 - 2.0 * self.record.steps / self.record.budget)
