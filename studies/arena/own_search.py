"""What any user would write instead of `explore`: breadth-first search in a dict.

It goes to the nearest action that was not tried, and after the first reward along the
known way to it. It knows one outcome of each action, the last one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

import gymnasium as gym
import numpy as np

Step = tuple[Hashable, int]


class OwnSearch:
    """An agent that plans by breadth-first search in what it has seen.

    Parameters
    ----------
    env : gymnasium.Env
        An environment whose observations are states, such as a `StateNumber`.
    seed : int
        Of the environment, and of the order in which actions are looked at.

    Examples
    --------
    >>> from eigenoptions.envs import MazeEnv
    >>> search = OwnSearch(MazeEnv("S..G"), 0)
    >>> search.explore(lambda: bool(search.rewarded))
    >>> search.choose(0), search.rewarded
    (1, {(2, 1)})
    """

    def __init__(self, env: gym.Env[Any, Any], seed: int) -> None:
        self.env = env
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.n_actions = int(env.action_space.n)  # type: ignore[attr-defined]
        self.outcomes: dict[Step, Hashable] = {}
        self.rewarded: set[Step] = set()

    def explore(self, is_done: Callable[[], bool]) -> None:
        """Go to the nearest untried action, until something is done."""
        state, _ = self.env.reset(seed=self.seed)
        while not is_done():
            action = self.search(state, lambda step: step not in self.outcomes)
            if action < 0:
                action = int(self.rng.integers(self.n_actions))
            new, reward, terminated, truncated, _ = self.env.step(action)
            # Nothing leads on from the end of an episode.
            self.outcomes[state, action] = None if terminated else new
            if reward > 0:
                self.rewarded.add((state, action))
            state = new
            if terminated or truncated:
                state, _ = self.env.reset()

    def choose(self, state: Hashable, mask: Any = None) -> int:
        """Return the next action on the way to a reward, or a random one."""
        action = self.search(state, lambda step: step in self.rewarded)
        return action if action >= 0 else int(self.rng.integers(self.n_actions))

    def search(self, start: Hashable, is_wanted: Callable[[Step], bool]) -> int:
        """Return the first action of the shortest way to a step; -1: there is none."""
        queue = deque([(start, -1)])
        found = {start, None}
        while queue:
            state, first = queue.popleft()
            for action in self.rng.permutation(self.n_actions).tolist():
                begin = action if first < 0 else first
                if is_wanted((state, action)):
                    return begin
                new = self.outcomes.get((state, action))
                if new not in found:
                    found.add(new)
                    queue.append((new, begin))
        return -1
