"""Looking ahead: where every action of an environment would lead, tried in copies of it (paper, Section 5.2)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np


class Clones:
    """Copies of an environment, to see where each action would lead.

    Parameters
    ----------
    env
        The environment itself.
    n_actions
        Its number of actions.
    samples
        Copies an action. One throws the dice that `env` will throw; several throw dice of their own.
    save, restore
        ``saved = save(env.unwrapped)`` and ``restore(env.unwrapped, saved)``, where it cannot be copied. They must
        keep the whole state, random numbers included.
    rng
        Of the dice.

    Examples
    --------
    >>> import gymnasium as gym
    >>> env = gym.make("CliffWalking-v1")
    >>> env.reset(seed=0)[0]
    36
    >>> Clones(env, 4, 1, None, None, np.random.default_rng(0)).outcomes()
    [[24], [36], [36], [36]]
    """

    SHARED = (
        "spec",
        "observation_space",
        "action_space",
        "screen",
        "surf",
        "clock",
        "window",
        "window_surface",
    )

    def __init__(
        self,
        env: Any,
        n_actions: int,
        samples: int,
        save: Callable[[Any], Any] | None,
        restore: Callable[[Any, Any], object] | None,
        rng: np.random.Generator,
    ) -> None:
        if not isinstance(samples, int | np.integer) or samples < 1:
            raise ValueError(f"samples must be at least 1, got {samples!r}")
        if (save is None) != (restore is None):
            raise ValueError(
                f"save and restore go together, got only {'save' if restore is None else 'restore'}"
            )
        if not hasattr(env, "step"):
            raise ValueError(f"look-ahead needs the environment itself, got {type(env).__name__}")
        if int(getattr(env.action_space, "n", 0)) != n_actions:
            raise ValueError(
                f"these options choose among {n_actions} actions, the environment has {env.action_space}"
            )
        self.env, self.n_actions, self.samples = env, n_actions, int(samples)
        self.save, self.restore, self.rng = save, restore, rng
        self.trusted = False
        if save is None:
            self._copy()  # an environment that cannot be copied is refused here, not in the middle of an episode

    def outcomes(self) -> list[list[Any]]:
        """For every action the observations it may lead to; the environment stays as it is."""
        if not self.trusted:
            for action in range(self.n_actions):
                first, second = self._try(action, None), self._try(action, None)
                if not _same(first, second):
                    raise ValueError(
                        f"{_name(self.env)} cannot be cloned: action {action} led two copies to different places; "
                        "pass save= and restore= that keep its whole state, or learn the options (fitting.fit)"
                    )
            self.trusted = True
        dice = [None] if self.samples == 1 else [self.rng.integers(2**63) for _ in range(self.samples)]
        return [[self._try(action, throw) for throw in dice] for action in range(self.n_actions)]

    def _try(self, action: int, dice: Any) -> Any:
        """Take an action in a copy; with `dice`, under other random numbers than the environment's."""
        if self.save is None or self.restore is None:
            twin = self._copy()
            if dice is not None:
                twin.unwrapped.np_random = np.random.default_rng(dice)
            return twin.step(action)[0]
        base = self.env.unwrapped
        saved, own = self.save(base), getattr(base, "_np_random", None)
        try:
            if dice is not None:
                base.np_random = np.random.default_rng(dice)
            return copy.deepcopy(base.step(action)[0])
        finally:
            self.restore(base, saved)
            if dice is not None:
                base.np_random = own

    def _copy(self) -> Any:
        memo: dict[
            int, Any
        ] = {}  # spaces and windows are shared: they hold no state, and some cannot be copied
        layer = self.env
        while layer is not None:
            parts = vars(layer)
            shared = [parts[name] for name in self.SHARED if parts.get(name) is not None]
            memo.update({id(part): part for part in shared})
            layer = parts.get("env")
        try:
            twin = copy.deepcopy(self.env, memo)
        except Exception as error:
            raise ValueError(
                f"{_name(self.env)} cannot be cloned ({type(error).__name__}: {error}): pass save= and restore=, "
                "or learn the options (fitting.fit)"
            ) from error
        if getattr(twin.unwrapped, "render_mode", None) is not None:
            twin.unwrapped.render_mode = None  # a look ahead is not shown
        return twin


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return all(_same(a[k], b[k]) for k in a)
    return all(map(_same, a, b)) if isinstance(a, tuple) else bool(np.array_equal(a, b))


def _name(env: Any) -> str:
    spec = getattr(env, "spec", None)
    return str(spec.id) if spec is not None else type(env.unwrapped).__name__
