"""Termination that cannot hang: options that stop by their own value may never do so where it was learned badly.

A learned option stops where no action is worth more than 0. Values learned by gradient descent are often a little above
it everywhere, and the option circles for ever. Two guards end it: `patience`, after a number of steps without a new
highest potential, and `stop_chance`, a probability to stop after every step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions.options import TERMINATE


class Running:
    """One execution of an option: it remembers the highest potential so far, and since when.

    Parameters
    ----------
    option
        The option: its ``act(obs)`` and ``potential(obs)``.
    patience
        Stop after this many steps without a potential above the highest so far; None: never.
    stop_chance
        Probability to stop after each step.
    rng
        Random generator for it.

    Examples
    --------
    >>> class Circle:
    ...     def act(self, obs): return 0
    ...     def potential(self, obs): return float(min(obs, 2))
    >>> run = Running(Circle(), patience=3, stop_chance=0.0, rng=np.random.default_rng(0))
    >>> [run.act(obs) for obs in range(7)]
    [0, 0, 0, 0, 0, -1, -1]
    """

    def __init__(
        self, option: Any, patience: int | None, stop_chance: float, rng: np.random.Generator
    ) -> None:
        self.option, self.patience, self.stop_chance, self.rng = option, patience, stop_chance, rng
        self.steps, self.best, self.since = 0, -np.inf, 0

    def act(self, obs: Any) -> int:
        """The action at an observation, or TERMINATE; to be called once per step."""
        action = int(self.option.act(obs))
        return action if action != TERMINATE and self.goes_on(obs) else TERMINATE

    def goes_on(self, obs: Any) -> bool:
        """Whether no guard stops it at an observation; notes the step."""
        if self.patience is not None:
            height = float(self.option.potential(obs))
            self.since = 0 if height > self.best else self.since + 1
            self.best = max(self.best, height)
            if self.since >= self.patience:
                return False
        if self.stop_chance and self.steps and self.rng.random() < self.stop_chance:
            return False
        self.steps += 1
        return True


def begun(option: Any, rng: np.random.Generator, taken_at: Any = None) -> Any:
    """The object whose `act` chooses the actions of one execution: the option itself unless it has a guard.

    `taken_at` is the observation of its first step, if that was chosen already.

    >>> import eigenoptions as eo
    >>> option = eo.discover(eo.maze("S.G"), 1)[0]
    >>> begun(option, np.random.default_rng(0)) is option
    True
    """
    patience, chance = getattr(option, "patience", None), getattr(option, "stop_chance", 0.0)
    if patience is None and not chance:
        return option
    running = Running(option, patience, chance, rng)
    if taken_at is not None:
        running.goes_on(taken_at)
    return running
