"""One execution of an option, of a table or of features."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions._types import ActsOnObservations
from eigenoptions.options.records import TERMINATE


def is_end(action: Any) -> bool:
    """Whether what an option returned is TERMINATE; actions may be vectors.

    >>> is_end(TERMINATE), is_end(2), is_end(np.array([-1.0, 0.5]))
    (True, False, False)
    """
    if isinstance(action, int):
        return action < 0
    return bool(np.ndim(action) == 0 and action < 0)


class RunningOption:
    """One execution of an option, from its start to its end.

    An option terminates where its policy does. Options of features may also have a
    `patience` and a `stop_chance` (see `LinearOptionSet`), which end them here.

    Parameters
    ----------
    option : object with ``act(obs)``
        An option of a table, of features, or your own.
    rng : Generator
        Draws whether the option stops by chance.
    stop_chance : float, default=0.0
        A further probability that the option terminates after each step.

    Attributes
    ----------
    steps : int
        Number of actions chosen so far.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> option = eo.discover(eo.maze("S..."), 2)["e2+"]
    >>> running = RunningOption(option, np.random.default_rng(0))
    >>> [running.act(state) for state in (2, 1, 0)], running.steps
    ([3, 3, -1], 2)
    """

    def __init__(
        self,
        option: ActsOnObservations,
        rng: np.random.Generator,
        stop_chance: float = 0.0,
    ) -> None:
        self.steps = 0
        self._option: Any = option
        self._rng = rng
        self._patience: int | None = getattr(option, "patience", None)
        own_stop_chance: float = getattr(option, "stop_chance", 0.0)
        self._stop_chance = 1 - (1 - own_stop_chance) * (1 - stop_chance)

        # The highest potential so far, and the steps since then.
        self._highest = -np.inf
        self._steps_since_highest = 0

    def act(self, obs: Any, action: Any = None) -> Any:
        """Return the action at an observation, or TERMINATE; call it once per step.

        If you know the action of the option's policy already, pass it as `action`.
        """
        if action is None:
            action = self._option.act(obs)
        if is_end(action):
            return TERMINATE
        if np.ndim(action) == 0:
            action = int(action)
        if self._patience is not None and self._is_impatient(obs, self._patience):
            return TERMINATE
        # An option takes at least one step.
        if self._stop_chance and self.steps and self._rng.random() < self._stop_chance:
            return TERMINATE
        self.steps += 1
        return action

    def _is_impatient(self, obs: Any, patience: int) -> bool:
        """Note the potential; return whether it has not risen for too many steps."""
        potential = float(self._option.potential(obs))
        if potential > self._highest:
            self._highest = potential
            self._steps_since_highest = 0
        else:
            self._steps_since_highest += 1
        return self._steps_since_highest >= patience
