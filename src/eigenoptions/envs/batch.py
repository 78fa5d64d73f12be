"""Options in the copies of a vector environment: the action of each at a batch of observations, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.options import OptionSet
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.stopping import Running, begun

Ints = NDArray[np.integer[Any]]


class OptionBatch:
    """Options that act in B copies of an environment, at most one per copy at a time.

    Parameters
    ----------
    options
        An `OptionSet`, a `LinearOptionSet`, or objects with ``act(obs)``.
    n_envs
        Number of copies B.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> batch = OptionBatch(OptionSet(maze("..."), np.array([[1, 1, -1], [-1, 3, 3]])), n_envs=2)
    >>> batch.offers(np.array([0, 2])).tolist()
    [[1, -1], [-1, 3]]
    """

    def __init__(self, options: OptionSet | Sequence[Any], n_envs: int) -> None:
        self.options, self.n_envs = options, n_envs
        self.table: Ints | None = None
        if isinstance(options, OptionSet):
            # Small numbers: the rows of a batch are gathered in every step.
            kind = np.int8 if options.n_actions < 128 else np.int32
            self.table = np.ascontiguousarray(options.policy.T.astype(kind))
        # Options that look ahead do so from one state at a time.
        self.at_once = (
            isinstance(options, LinearOptionSet) and options.weights is not None and options.model is None
        )
        self.each = [] if self.table is not None or self.at_once else list(options)
        self.patience = getattr(options, "patience", None) if self.at_once else None
        self.stop_chance = float(getattr(options, "stop_chance", 0.0)) if self.at_once else 0.0
        self.guarded = bool(self.each) or self.patience is not None or self.stop_chance > 0
        # What runs in each copy: for objects the execution, for a set its highest potential and the steps since.
        self.begun: list[Any] = [None] * n_envs
        self.best = np.full(n_envs, -np.inf)
        self.since = np.zeros(n_envs, dtype=np.int64)

    def offers(self, obs: Any, copies: Ints | None = None) -> Ints:
        """``(B, n)`` the action of every option in every copy (or in some), negative where it may not start."""
        seen, count = (obs, self.n_envs) if copies is None else (one(obs, copies), len(copies))
        if self.table is not None:
            rows: Ints = self.table.take(seen, axis=0)
            return rows
        if self.at_once:
            return np.ascontiguousarray(self.options.actions(seen, count).T)  # type: ignore[union-attr]
        # Sets compute the look ahead of an observation once for all options.
        choices = getattr(self.options, "choices", lambda here: [option.act(here) for option in self.each])
        return np.array([choices(one(seen, b)) for b in range(count)])

    def continued(self, running: Ints, obs: Any, rng: np.random.Generator) -> Ints:
        """``(B,)`` the action with which the option that runs (-1: none) goes on, negative where it ends."""
        actions = np.full(self.n_envs, -1)
        on = np.flatnonzero(running >= 0)
        if not len(on):
            return actions
        if self.each:
            actions[on] = [self.each[running[b]].act(one(obs, b)) for b in on]
        else:
            actions[on] = self.offers(obs, on)[np.arange(len(on)), running[on]]
        if self.guarded:
            actions[self.halted(running, obs, rng)] = -1
        return actions

    def begin(self, chosen: Ints, obs: Any, rng: np.random.Generator) -> None:
        """Note that the options `chosen (B,)` begin at these observations (-1: none begins in this copy)."""
        copies = np.flatnonzero(chosen >= 0)
        if not len(copies):
            return
        for b in copies.tolist() if self.each else ():
            self.begun[b] = begun(self.each[chosen[b]], rng, one(obs, b))
        if self.patience is not None:
            heights = self.options.potential(obs, self.n_envs)  # type: ignore[union-attr]
            self.best[copies], self.since[copies] = heights[chosen[copies], copies], 0

    def halted(self, running: Ints, obs: Any, rng: np.random.Generator) -> NDArray[np.bool_]:
        """``(B,)`` where a guard ends the option that runs (-1: none) after a step to these observations."""
        halted = np.zeros(self.n_envs, dtype=np.bool_)
        for b in np.flatnonzero(running >= 0).tolist() if self.each else ():
            halted[b] = isinstance(self.begun[b], Running) and not self.begun[b].continues(one(obs, b))
        if self.patience is not None:
            heights = self.options.potential(obs, self.n_envs)  # type: ignore[union-attr]
            height = heights[running, np.arange(self.n_envs)]
            self.since = np.where(height > self.best, 0, self.since + 1)
            self.best = np.maximum(self.best, height)
            halted |= self.since >= self.patience
        if self.stop_chance:
            halted |= rng.random(self.n_envs) < self.stop_chance
        return halted & (running >= 0)


def one(obs: Any, j: Any) -> Any:
    """Observation j of a batch, or a batch of those in an array of numbers."""
    if isinstance(obs, dict):
        return {k: one(v, j) for k, v in obs.items()}
    return tuple(one(v, j) for v in obs) if isinstance(obs, tuple) else obs[j]
