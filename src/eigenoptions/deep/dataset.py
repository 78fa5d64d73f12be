"""Transitions for training: each distinct observation once, and pairs of observations at a distance in time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions.data import Transitions

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Transitions as numbers of distinct observations.

    Attributes
    ----------
    observations
        ``(n, ...)`` distinct observations.
    before, after
        ``(N,)`` numbers of the observations before and after each transition.
    action, terminated
        ``(N,)`` as in `Transitions`.

    Consecutive transitions belong to one trajectory where one ends with the observation with which the next begins.
    Transitions of several environments may be interleaved, as `envs.collect` returns them.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> from eigenoptions.options.walks import walk
    >>> corridor = maze("......")
    >>> steps = walk(corridor, 100)
    >>> cells = corridor.coords.astype(float)
    >>> Dataset.of(Transitions(cells[steps.obs], steps.action, cells[steps.next_obs], steps.terminated))
    Dataset(100 transitions, 6 distinct observations)
    """

    observations: NDArray[Any]
    before: Index
    after: Index
    action: Index
    terminated: NDArray[np.bool_]
    # Observations count as repeating if the share of distinct ones is below this.
    repeating_below: ClassVar[float] = 0.25

    @classmethod
    def of(cls, data: Dataset | Transitions | Iterable[Transitions]) -> Dataset:
        """The data set of transitions, or of an iterable of batches, of which only distinct observations are kept."""
        if isinstance(data, cls):
            return data
        distinct: list[NDArray[Any]] = []
        numbers_by_digest: dict[bytes, int] = {}
        columns = []
        batches: Any = [data] if isinstance(data, Transitions) else data
        for batch in map(Transitions.of, batches):
            sides = [
                _number_rows(obs, distinct, numbers_by_digest)
                for obs in (batch.obs, batch.next_obs)
            ]
            columns.append((*sides, batch.action, batch.terminated))
        if not sum(len(before) for before, *_ in columns):
            raise ValueError("there are no transitions: collect some")
        return cls(
            np.concatenate(distinct), *map(np.concatenate, zip(*columns, strict=True))
        )

    def __len__(self) -> int:
        return len(self.before)

    def __repr__(self) -> str:
        return f"Dataset({len(self)} transitions, {len(self.observations)} distinct observations)"

    @property
    def repeating(self) -> bool:
        """Whether observations repeat exactly, so that they can be numbered."""
        return len(self.observations) < self.repeating_below * len(self)

    @cached_property
    def _runs(self) -> tuple[Index, Index]:
        """Transitions in the order of their trajectories, and the place of the last of each one's trajectory."""
        n = len(self)
        # The number of interleaved environments, at most 64: the stride at which transitions follow each other best.
        shares = [
            np.mean(self.after[:-s] == self.before[s:])
            for s in range(1, min(64, n - 1) + 1)
        ]
        n_envs = int(np.argmax(np.round(shares, 3))) + 1 if shares else 1
        order = np.concatenate([np.arange(i, n, n_envs) for i in range(n_envs)])
        linked = (self.after[order[:-1]] == self.before[order[1:]]) & ~self.terminated[
            order[:-1]
        ]
        # The last transition of one environment and the first of the next are not linked.
        linked &= np.diff(order) == n_envs
        last = np.append(np.flatnonzero(~linked), n - 1)
        return order, last[np.searchsorted(last, np.arange(n))]

    def split(self, hold_out: bool, offset: int = 0, n_blocks: int = 40) -> Subset:
        """The transitions of every fourth of `n_blocks` blocks, or the others; no pair crosses a block's end."""
        order, end = self._runs
        n = len(order)
        edges = np.linspace(0, n, min(n_blocks, n) + 1).astype(np.int64)
        block = np.searchsorted(edges, np.arange(n), side="right") - 1
        held = (block + offset) % 4 == 0
        return Subset(
            self,
            np.flatnonzero(held == hold_out),
            np.minimum(end, edges[block + 1] - 1),
        )

    def sample(self, max_observations: int) -> tuple[NDArray[Any], Transitions]:
        """Observations, and transitions between their rows: all, or evenly spaced ones if there are too many."""
        stride = (
            1
            if len(self.observations) <= max_observations
            else -(-len(self) // max_observations)
        )
        rows = slice(None, None, stride)
        used, inverse = np.unique(
            np.append(self.before[rows], self.after[rows]), return_inverse=True
        )
        before, after = np.split(inverse, 2)
        return self.observations[used], Transitions(
            before, self.action[rows], after, self.terminated[rows]
        )

    @cached_property
    def all(self) -> Subset:
        """All transitions."""
        return Subset(self, np.arange(len(self)), self._runs[1])


@dataclass(frozen=True, eq=False)
class Subset:
    """Some transitions of a data set, from which pairs are taken."""

    data: Dataset
    # Places of the first transitions of pairs, in the order of trajectories.
    starts: Index
    # ``(N,)`` the last place that a pair may reach, by place of its first transition.
    end: Index

    def draw(
        self, n: int, discount: float, rng: np.random.Generator
    ) -> tuple[Index, Index]:
        """Numbers of n pairs of observations at geometric distances, cut at ends of trajectories."""
        first = self.starts[rng.integers(len(self.starts), size=n)]
        last = np.minimum(
            first + rng.geometric(1.0 - discount, size=n) - 1, self.end[first]
        )
        order = self.data._runs[0]
        return self.data.before[order[first]], self.data.after[order[last]]

    @cached_property
    def table(self) -> tuple[Index, csr_array]:
        """Numbers of the n observations, and weights ``(n, n)`` of sum 1: each action of each counts equally."""
        at, data = self.data._runs[0][self.starts], self.data
        numbers, inverse = np.unique(
            np.append(data.before[at], data.after[at]), return_inverse=True
        )
        i, j = np.split(inverse, 2)
        actions, action = np.unique(data.action[at], return_inverse=True)
        # How often the same action was taken in the same observation.
        state_action = i * len(actions) + action
        weight = 1.0 / np.bincount(state_action)[state_action]
        N = csr_array((weight, (i, j)), shape=(len(numbers), len(numbers)))
        return numbers, csr_array((N + N.T) / (2 * weight.sum()))

    def find_longest_lag(self, n_pairs: int) -> int:
        """The longest lag at which there are more than `n_pairs` pairs."""
        lengths = np.sort(self.end[self.starts] - self.starts + 1)[::-1]
        return int(lengths[n_pairs]) if n_pairs < len(lengths) else 0

    def pairs(self, lag: int) -> tuple[Index, Index]:
        """Numbers of all pairs of observations `lag` transitions apart."""
        first = self.starts[self.starts + lag - 1 <= self.end[self.starts]]
        order = self.data._runs[0]
        return self.data.before[order[first]], self.data.after[order[first + lag - 1]]


def _number_rows(
    obs: NDArray[Any], distinct: list[NDArray[Any]], numbers_by_digest: dict[bytes, int]
) -> Index:
    """Numbers of the observations ``(N, ...)`` of a batch; floats are compared as float32, as networks see them."""
    if obs.dtype.kind not in "biuf" or obs.ndim < 2:
        got = f"{obs.dtype} {obs.shape}: numbered states have a table, which needs no features"
        raise ValueError(f"observations must be numbers of shape (N, ...), got {got}")
    if obs.dtype.kind == "f":
        with np.errstate(over="ignore"):
            obs = obs.astype(np.float32) + np.float32(0)  # -0 becomes 0
        finite = np.isfinite(obs).all(axis=tuple(range(1, obs.ndim)))
        if not finite.all():
            at = int(finite.argmin())
            raise ValueError(
                f"observations must be finite and below 3e38, got {at} of a batch: remove it"
            )
    first = distinct[0] if distinct else obs
    if (first.dtype, first.shape[1:]) != (obs.dtype, obs.shape[1:]):
        kinds = f"{first.dtype} {first.shape[1:]} and {obs.dtype} {obs.shape[1:]}"
        raise ValueError(f"all observations must have one type and shape, got {kinds}")
    numbers, new = np.empty(len(obs), dtype=np.int64), []
    for i, row in enumerate(np.ascontiguousarray(obs)):
        key = hashlib.blake2b(row.data, digest_size=16).digest()
        if key not in numbers_by_digest:
            numbers_by_digest[key] = len(numbers_by_digest)
            new.append(i)
        numbers[i] = numbers_by_digest[key]
    distinct.append(obs[new])
    return numbers
