"""`Recognition`: what an `MDP` remembers of how its states are recognised."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from eigenoptions._validation import check_int, check_type


@dataclass(frozen=True)
class Recognition:
    """How the present state of an environment is found among those of an `MDP`.

    Parameters
    ----------
    by : str, callable or None
        The name of a family of environments, that of a coarser key of one
        (``"pose"``), or a function ``key(env, obs)``. None: a function that a file
        could not hold, which the user gives again.
    seed : int, default=None
        Seed of the resets of the environment in which states were found.
    layout : str, default=None
        What distinguishes its layout from others of the same id. None: there is only
        one, or any will do.
    is_partial : bool, default=False
        Whether the environment may have further states.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> found = eo.explore("CliffWalking-v1", 50, key=lambda env, obs: divmod(obs, 12))
    >>> found.mdp.recognition.is_partial, found.states[0]
    (True, (3, 0))
    """

    by: str | Callable[[Any, Any], Hashable] | None
    seed: int | None = None
    layout: str | None = None
    is_partial: bool = False

    def __post_init__(self) -> None:
        remedy = "from_env makes it"
        if self.by is not None and not callable(self.by):
            check_type("by", self.by, str, remedy)
        if self.seed is not None:
            check_int("seed", self.seed, 0)
        if self.layout is not None:
            check_type("layout", self.layout, str, remedy)
        check_type("is_partial", self.is_partial, bool, remedy)
