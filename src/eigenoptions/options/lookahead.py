"""Look-ahead: where every action of an environment would lead, tried in copies of it (paper, Section 5.2)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from eigenoptions._validation import check_int

# Parts of an environment that its copies share: they hold no state, and some cannot be copied.
SHARED = ("spec", "observation_space", "action_space", "screen", "surf", "clock", "window", "window_surface")


class Clones:
    """Copies of an environment in which actions are tried; the environment itself does not change.

    The parameters are those of `LinearOptionSet.look_ahead`.

    >>> import gymnasium as gym
    >>> env = gym.make("CliffWalking-v1")
    >>> env.reset(seed=0)[0]
    36
    >>> Clones(env, 4).outcomes()
    [[24], [36], [36], [36]]
    """

    def __init__(
        self,
        env: Any,
        n_actions: int,
        samples: int = 1,
        save: Callable[[Any], Any] | None = None,
        restore: Callable[[Any, Any], object] | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        if (save is None) != (restore is None):
            given = "save" if restore is None else "restore"
            raise ValueError(f"save and restore go together, got only {given}")
        if not hasattr(env, "step"):
            raise ValueError(f"look-ahead needs the environment itself, got {type(env).__name__}")
        if int(getattr(env.action_space, "n", 0)) != n_actions:
            raise ValueError(
                f"these options choose among {n_actions} actions, not those of {env.action_space}"
            )
        self.env, self.n_actions, self.samples = env, n_actions, check_int("samples", samples)
        self.save, self.restore = save, restore
        self.rng = np.random.default_rng(0) if rng is None else rng
        self._verified = False
        if save is None:
            # An environment that cannot be copied is refused here, not in the middle of an episode.
            self._copy()

    def outcomes(self) -> list[list[Any]]:
        """For every action the observations it may lead to."""
        if not self._verified:
            for action in range(self.n_actions):
                first, second = self.attempt(action), self.attempt(action)
                if not same(first[0], second[0]):
                    raise ValueError(self._refused(f"action {action} led two copies to different places"))
            self._verified = True
        seeds = [None] if self.samples == 1 else [self.rng.integers(2**63) for _ in range(self.samples)]
        return [[self.attempt(action, seed)[0] for seed in seeds] for action in range(self.n_actions)]

    def attempt(self, action: int, seed: Any = None) -> tuple[Any, ...]:
        """What ``step(action)`` returns in a copy; with a `seed`, under other random numbers than the environment's."""
        if self.save is None or self.restore is None:
            twin = self._copy()
            if seed is not None:
                twin.unwrapped.np_random = np.random.default_rng(seed)
            return tuple(twin.step(action))
        base = self.env.unwrapped
        saved, generator = self.save(base), getattr(base, "_np_random", None)
        try:
            if seed is not None:
                base.np_random = np.random.default_rng(seed)
            obs, *rest = base.step(action)
            return copy.deepcopy(obs), *rest
        finally:
            self.restore(base, saved)
            if seed is not None:
                base.np_random = generator

    def _copy(self) -> Any:
        memo: dict[int, Any] = {}
        layer = self.env
        while layer is not None:
            parts = vars(layer)
            memo |= {id(parts[name]): parts[name] for name in SHARED if parts.get(name) is not None}
            layer = parts.get("env")
        try:
            twin = copy.deepcopy(self.env, memo)
        except Exception as error:
            raise ValueError(self._refused(f"{type(error).__name__}: {error}")) from error
        if getattr(twin.unwrapped, "render_mode", None) is not None:
            # A look ahead is not shown.
            twin.unwrapped.render_mode = None
        return twin

    def _refused(self, why: str) -> str:
        remedy = "pass save= and restore= that keep its whole state, or learn the options (fitted.fit)"
        return f"{name_of(self.env)} cannot be cloned ({why}): {remedy}"


def same(a: Any, b: Any) -> bool:
    """Whether two observations are equal, also nested ones.

    >>> same({"x": np.zeros(2)}, {"x": np.zeros(2)}), same((0, 1), (0, 2))
    (True, False)
    """
    if isinstance(a, dict):
        return all(same(a[k], b[k]) for k in a)
    return all(map(same, a, b)) if isinstance(a, tuple) else bool(np.array_equal(a, b))


def name_of(env: Any) -> str:
    """The id of an environment, or the name of its class."""
    spec = getattr(env, "spec", None)
    return str(spec.id) if spec is not None else type(env.unwrapped).__name__
