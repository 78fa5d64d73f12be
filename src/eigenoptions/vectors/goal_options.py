"""Options that go to a place, in actions of the environment itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions.options import TERMINATE
from eigenoptions.vectors.controller import Controller


class GoalOption:
    """The option to go to a place; ``planner.places(n)`` makes them.

    It ends at the place, where the data show no way or end, and after `patience` steps
    in which it came no nearer.

    Parameters
    ----------
    controller : Controller
        The part of the planner that acts.
    goal : object
        The place: an observation, or the number of a state.

    Attributes
    ----------
    label : str
        The place as text.
    patience : int
        Steps without progress after which `OptionsWrapper` ends the option.
    """

    def __init__(self, controller: Controller, goal: Any) -> None:
        self.goal = goal
        self.label = f"to {np.round(goal, 2)}"
        self.patience = controller.limit_circles(3)
        self._controller = controller
        self._point, self._state = controller.locate(goal)
        self._policy = controller.find_policy(self._state)

    def act(self, obs: Any) -> Any:
        """The action at an observation, or TERMINATE."""
        point, state = self._controller.find(obs)
        if state < 0:
            # Outside of the data nothing is known.
            return TERMINATE
        if self._controller.is_at(point, state, self._point, self._state):
            return TERMINATE
        has_no_path = self._policy.moves[state] == TERMINATE
        if has_no_path and state != self._state:
            return TERMINATE
        return self._controller.decide(
            self._policy, point, state, self._point, self._state, obs
        )[1]

    def potential(self, obs: Any) -> float:
        """What an observation is worth: 1 at the place, less far away."""
        state = self._controller.find(obs)[1]
        return float(self._policy.value[state])

    def __repr__(self) -> str:
        return f"GoalOption({self.label})"
