"""Options that go to a place, in actions of the environment itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions.options import TERMINATE
from eigenoptions.vectors.pilot import Pilot


class Place:
    """The option to go to a place; ``planner.places(n)`` makes them.

    It ends at the place, where the data show no way or end, and after `patience` steps
    in which it came no nearer.

    Parameters
    ----------
    pilot : Pilot
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

    def __init__(self, pilot: Pilot, goal: Any) -> None:
        self.goal = goal
        self.label = f"to {np.round(goal, 2)}"
        self.patience = pilot.limit_circles(3)
        self._pilot = pilot
        self._point, self._state = pilot.locate(goal)
        self._course = pilot.find_course(self._state)

    def act(self, obs: Any) -> Any:
        """The action at an observation, or TERMINATE."""
        point, state = self._pilot.find(obs)
        if state < 0:
            # Outside of the data nothing is known.
            return TERMINATE
        if self._pilot.is_at(point, state, self._point, self._state):
            return TERMINATE
        has_no_way = self._course.policy[state] == TERMINATE
        if has_no_way and state != self._state:
            return TERMINATE
        return self._pilot.decide(
            self._course, point, state, self._point, self._state, obs
        )[1]

    def potential(self, obs: Any) -> float:
        """What an observation is worth: 1 at the place, less far away."""
        state = self._pilot.find(obs)[1]
        return float(self._course.value[state])

    def __repr__(self) -> str:
        return f"Place({self.label})"
