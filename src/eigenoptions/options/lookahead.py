"""Look-ahead: where every action of an environment would lead, tried in copies of it (paper, Section 5.2)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

Save = Callable[[Any], Any]
Restore = Callable[[Any, Any], object]


class Clones:
    """Copies of an environment in which actions are tried; the parameters are those of `LinearOptionSet.look_ahead`."""

    def __init__(
        self,
        env: Any,
        n_actions: int,
        save: Save | None = None,
        restore: Restore | None = None,
    ) -> None:
        if (save is None) != (restore is None):
            raise ValueError("save and restore go together, got only one of them")
        if getattr(getattr(env, "action_space", None), "n", None) != n_actions:
            raise ValueError(
                f"look-ahead needs an environment with {n_actions} actions, got {env}"
            )
        self.env, self.n_actions, self.save, self.restore = (
            env,
            n_actions,
            save,
            restore,
        )
        self._verified = False
        if save is None:
            # An environment that cannot be copied is refused here, not in the middle of an episode.
            copy_env(env)

    def outcomes(self) -> list[Any]:
        """For every action the observation that it leads to."""
        if not self._verified:
            for action in range(self.n_actions):
                if not _equal(self.try_action(action), self.try_action(action)):
                    remedy = "pass save= and restore= that keep its whole state, or learn the options (fit)"
                    raise ValueError(
                        f"{self.env} cannot be cloned (action {action} has two outcomes): {remedy}"
                    )
            self._verified = True
        return [self.try_action(action) for action in range(self.n_actions)]

    def try_action(self, action: int) -> Any:
        """The observation after an action in a copy, which has the random generator of the environment."""
        if self.save is None or self.restore is None:
            return copy_env(self.env).step(action)[0]
        env = self.env.unwrapped
        saved = self.save(env)
        try:
            return copy.deepcopy(env.step(action)[0])
        finally:
            self.restore(env, saved)


def _equal(first: Any, second: Any) -> bool:
    """Whether two observations are equal, also nested ones."""
    if isinstance(first, dict):
        first, second = tuple(first.values()), tuple(second[name] for name in first)
    return (
        all(map(_equal, first, second))
        if isinstance(first, tuple)
        else np.array_equal(first, second)
    )


def copy_env(env: Any) -> Any:
    """A copy of an environment with its wrappers, which is not rendered; ValueError where it cannot be copied."""
    # Copies share what holds no state of the environment and may not be copyable: spaces and windows.
    shared = ["spec", "observation_space", "action_space"]
    shared += ["screen", "surf", "clock", "window", "window_surface"]
    memo: dict[int, Any] = {}
    layer = env
    while layer is not None:
        parts = vars(layer)
        memo |= {
            id(parts[name]): parts[name]
            for name in shared
            if parts.get(name) is not None
        }
        layer = parts.get("env")
    try:
        twin = copy.deepcopy(env, memo)
    except Exception as error:
        remedy = "pass save= and restore= that keep its whole state, or sample it (discover(env, steps=...))"
        raise ValueError(
            f"{env} cannot be cloned ({type(error).__name__}: {error}): {remedy}"
        ) from error
    if getattr(twin.unwrapped, "render_mode", None) is not None:
        twin.unwrapped.render_mode = None
    return twin
