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
    `patience` and a `stop_chance` (see `LinearOptionSet`), which end them here. If they
    know the discount of their values (`gamma`), they also end when they do not keep
    what their values predict (see `PredictedRise`).

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

        # Options of others may call something else their gamma or value.
        gamma: float | None = getattr(option, "gamma", None)
        has_values = callable(getattr(option, "value", None))
        self._predicted_rise: PredictedRise | None = None
        if gamma is not None and has_values:
            self._predicted_rise = PredictedRise(gamma)

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
        if self._gives_up(obs):
            return TERMINATE
        # An option takes at least one step.
        if self._stop_chance and self.steps and self._rng.random() < self._stop_chance:
            return TERMINATE
        self.steps += 1
        return action

    def _gives_up(self, obs: Any) -> bool:
        """Return whether the potential rises too slowly."""
        if self._patience is None and self._predicted_rise is None:
            return False
        potential = float(self._option.potential(obs))
        if self._patience is not None and self._is_impatient(potential, self._patience):
            return True
        if self._predicted_rise is None:
            return False
        return not self._predicted_rise.is_met(potential, self._option.value(obs))

    def _is_impatient(self, potential: float, patience: int) -> bool:
        """Note the potential; return whether it has not risen for too many steps."""
        if potential > self._highest:
            self._highest = potential
            self._steps_since_highest = 0
        else:
            self._steps_since_highest += 1
        return self._steps_since_highest >= patience


class PredictedRise:
    """Whether an option still delivers what its values predicted.

    The value v of a state predicts that the potential f will rise by v at least, the
    sooner the better: ``v(s) = E[f(s') - f(s) + gamma v(s')]``. Suppose that the option
    began at potential f0 and value v0, and has not yet risen by v0 / 2 after T steps.
    Where its values hold, ``gamma**(T - 1) (f(s) + v(s) - f0) >= v0 / 2`` then (sum the
    rewards by parts). So where this fails, they do not: the option is stuck, and ends.
    Once it has risen by v0 / 2, the same is asked of the rest.

    Hence every option ends. With values of at least c, a potential of range R and a
    discount gamma, it has risen by c / 2 or ended after ``1 + log(2 R / c) /
    log(1 / gamma)`` steps, and it can rise that often ``2 R / c`` times only. An option
    that stands still ends after ``2 + log(2) / log(1 / gamma)`` steps.

    Parameters
    ----------
    gamma : float
        Discount of the values.

    Examples
    --------
    >>> rise = PredictedRise(gamma=0.5)
    >>> [rise.is_met(potential=0.0, value=1.0) for _ in range(4)]
    [True, True, True, False]
    """

    def __init__(self, gamma: float) -> None:
        self._gamma = gamma
        self._potential = 0.0
        self._value = 0.0
        # Discount of what is predicted now: gamma**(T - 1), and 1 in the first steps.
        self._discount = 1.0
        self._steps = -1

    def is_met(self, potential: float, value: float) -> bool:
        """Note where the option is; call it once per step."""
        rise = potential - self._potential
        if self._steps < 0 or rise >= 0.5 * self._value:
            self._potential = potential
            self._value = value
            self._discount = 1.0
            self._steps = 0
            return True

        self._steps += 1
        if self._steps > 1:
            self._discount *= self._gamma
        return self._discount * (rise + value) >= 0.5 * self._value
