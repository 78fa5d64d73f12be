"""One execution of an option, of a table or of features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.options.records import TERMINATE

Array = NDArray[np.float64]


class RunningOption:
    """One execution of an option, which terminates by its `patience` and `stop_chance`, too, if it has them.

    `stop_chance` is a further probability that it terminates after each step.
    """

    def __init__(
        self, option: Any, rng: np.random.Generator, stop_chance: float = 0.0
    ) -> None:
        self.option, self.rng = option, rng
        self.patience = getattr(option, "patience", None)
        self.stop_chance = 1 - (1 - getattr(option, "stop_chance", 0.0)) * (
            1 - stop_chance
        )
        self.steps, self.highest, self.steps_since_highest = 0, -np.inf, 0

    def act(self, obs: Any, action: int | None = None) -> int:
        """The action at an observation (`action`, where it is known), or TERMINATE; to be called once per step."""
        action = int(self.option.act(obs)) if action is None else action
        if action == TERMINATE:
            return TERMINATE
        if self.patience is not None:
            potential = float(self.option.potential(obs))
            self.steps_since_highest = (
                0 if potential > self.highest else self.steps_since_highest + 1
            )
            self.highest = max(self.highest, potential)
            if self.steps_since_highest >= self.patience:
                return TERMINATE
        if self.stop_chance and self.steps and self.rng.random() < self.stop_chance:
            return TERMINATE
        self.steps += 1
        return action
