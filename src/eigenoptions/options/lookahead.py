"""Look-ahead: try every action of an environment in copies of it (Section 5.2)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from eigenoptions._types import Environment

EnvironmentType = TypeVar("EnvironmentType", bound=Environment)

# From an environment to its state, and from an environment and a state back to it.
Save = Callable[[Any], Any]
Restore = Callable[[Any, Any], object]

# Attributes of environments that hold no state, and that may not be copyable.
_SHARED_ATTRIBUTES = (
    "spec",
    "observation_space",
    "action_space",
    "screen",
    "surf",
    "clock",
    "window",
    "window_surface",
)


class Clones:
    """Copies of an environment in which actions are tried.

    Parameters
    ----------
    env : Environment
        The environment. One that cannot be copied is refused at once.
    n_actions : int
        Number of its actions.
    save, restore : callable, default=None
        Save the state of ``env.unwrapped`` and restore it. None: `env` is copied.
    """

    def __init__(
        self,
        env: Environment,
        n_actions: int,
        save: Save | None = None,
        restore: Restore | None = None,
    ) -> None:
        if (save is None) != (restore is None):
            raise ValueError("save and restore go together, got only one of them")
        action_space = getattr(env, "action_space", None)
        if getattr(action_space, "n", None) != n_actions:
            raise ValueError(
                f"look-ahead needs an environment with {n_actions} actions, got {env}"
            )
        self.env = env
        self.n_actions = n_actions
        self.save = save
        self.restore = restore
        self._is_verified = False
        if save is None:
            # Refuse an environment that cannot be copied now, not during an episode.
            copy_env(env)

    def outcomes(self) -> list[Any]:
        """Return the observation that each action leads to."""
        if not self._is_verified:
            self._verify()
            self._is_verified = True
        return [self.try_action(action) for action in range(self.n_actions)]

    def _verify(self) -> None:
        """Raise ValueError if an action leads to two outcomes from the same state."""
        for action in range(self.n_actions):
            if not _are_equal(self.try_action(action), self.try_action(action)):
                raise ValueError(
                    f"{self.env} cannot be cloned (action {action} has two outcomes): "
                    "pass save= and restore= that keep its whole state, "
                    "or learn the options (fit)"
                )

    def try_action(self, action: int) -> Any:
        """Return the observation that an action would give.

        The environment is left as it was, its random generator included, so the action
        itself will then have the same outcome.
        """
        if self.save is None or self.restore is None:
            return copy_env(self.env).step(action)[0]

        # The functions of the user save and restore what is inside of all wrappers.
        env = self.env.unwrapped
        saved = self.save(env)
        try:
            return copy.deepcopy(env.step(action)[0])
        finally:
            self.restore(env, saved)


def _are_equal(first: Any, second: Any) -> bool:
    """Return whether two observations are equal, also nested ones."""
    if isinstance(first, dict):
        return all(_are_equal(first[name], second[name]) for name in first)
    if isinstance(first, tuple):
        return all(map(_are_equal, first, second))
    return np.array_equal(first, second)


def copy_env(env: EnvironmentType) -> EnvironmentType:
    """Return a copy of an environment with its wrappers, which is not rendered.

    Raise ValueError if it cannot be copied.
    """
    shared = _list_shared_parts(env)
    try:
        twin = copy.deepcopy(env, shared)
    except Exception as error:
        raise ValueError(
            f"{env} cannot be cloned ({type(error).__name__}: {error}): "
            "pass save= and restore= that keep its whole state, "
            "or sample it (discover(env, steps=...))"
        ) from error
    if getattr(twin.unwrapped, "render_mode", None) is not None:
        twin.unwrapped.render_mode = None
    return twin


def _list_shared_parts(env: Environment) -> dict[int, Any]:
    """Return the parts that copies share with `env`, as a memo of `deepcopy`."""
    memo: dict[int, Any] = {}
    layer: object | None = env
    while layer is not None:
        attributes = vars(layer)
        for name in _SHARED_ATTRIBUTES:
            part = attributes.get(name)
            if part is not None:
                memo[id(part)] = part
        layer = attributes.get("env")
    return memo
