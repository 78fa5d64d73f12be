"""Transitions for training: each distinct observation once, and pairs of them in time.

A network is trained on pairs of observations that are some transitions apart. `Dataset`
numbers the distinct observations and finds the trajectories. `Subset` takes pairs from
some of the transitions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._types import BoolArray, IndexArray
from eigenoptions.samples import Transitions
from eigenoptions.samples.trajectories import Trajectories, find_trajectories


def _has_batches(data: Any) -> bool:
    """Whether data are an iterable of batches, and not one batch of any kind."""
    if isinstance(data, Iterator):
        return True
    is_sequence = isinstance(data, list | tuple)
    return is_sequence and all(isinstance(batch, Transitions) for batch in data)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Transitions between numbered observations.

    Two transitions belong to one trajectory if the second begins with the observation
    with which the first ends. Transitions of several environments may be interleaved,
    as `eigenoptions.collect` returns them.

    Attributes
    ----------
    observations : array (n, ...)
        The distinct observations.
    before, after : array (N,) of int
        Numbers of the observations before and after each transition.
    action : array (N,) of int
        The action of each transition.
    terminated : array (N,) of bool
        Whether the episode ended there.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> from eigenoptions.samples.walking import walk
    >>> corridor = maze("......")
    >>> steps = walk(corridor, 100)
    >>> cells = corridor.coords.astype(float)
    >>> obs, next_obs = cells[steps.obs], cells[steps.next_obs]
    >>> Dataset.of(Transitions(obs, steps.action, next_obs, steps.terminated))
    Dataset(100 transitions, 6 distinct observations)
    """

    observations: NDArray[Any]
    before: IndexArray
    after: IndexArray
    action: IndexArray
    terminated: BoolArray

    @classmethod
    def of(cls, data: Any) -> Dataset:
        """Make a data set of transitions.

        Parameters
        ----------
        data : object
            Whatever `Transitions.of` accepts, or an iterable of batches. Of each batch
            only the observations that are new are kept. A data set is returned as it
            is.

        Returns
        -------
        Dataset
            Floats are stored as float32, the precision of networks.
        """
        if isinstance(data, Dataset):
            return data

        batches: Iterable[Any] = [data]
        if _has_batches(data):
            batches = data
        numbering = _Numbering()
        before = []
        after = []
        actions = []
        terminated = []
        for batch in batches:
            transitions = Transitions.of(batch)
            before.append(numbering.number(transitions.obs))
            after.append(numbering.number(transitions.next_obs))
            actions.append(transitions.action)
            terminated.append(transitions.terminated)

        n_transitions = sum(len(numbers) for numbers in before)
        if n_transitions == 0:
            raise ValueError("there are no transitions: collect some")

        return cls(
            observations=np.concatenate(numbering.distinct),
            before=np.concatenate(before),
            after=np.concatenate(after),
            action=np.concatenate(actions),
            terminated=np.concatenate(terminated),
        )

    def __len__(self) -> int:
        return len(self.before)

    def __repr__(self) -> str:
        return (
            f"Dataset({len(self)} transitions, "
            f"{len(self.observations)} distinct observations)"
        )

    @property
    def repeating(self) -> bool:
        """Whether observations repeat exactly, so that a table can number them."""
        return len(self.observations) < 0.25 * len(self)

    @cached_property
    def all(self) -> Subset:
        """All transitions."""
        return Subset(self, np.arange(len(self)), self._trajectories.last)

    def split(self, offset: int = 0, n_blocks: int = 40) -> tuple[Subset, Subset]:
        """Divide the transitions into those for training and those held out.

        Parameters
        ----------
        offset : int, default=0
            Which blocks are held out, 0 to 3.
        n_blocks : int, default=40
            Number of blocks of consecutive transitions. Every fourth is held out, and
            no pair crosses the end of a block.

        Returns
        -------
        tuple of Subset
            The transitions for training, and those held out.
        """
        n = len(self)
        edges = np.linspace(0, n, min(n_blocks, n) + 1).astype(np.intp)
        block = np.searchsorted(edges, np.arange(n), side="right") - 1
        last_of_block = edges[block + 1] - 1
        last = np.minimum(self._trajectories.last, last_of_block)

        is_held_out = (block + offset) % 4 == 0
        training = Subset(self, np.flatnonzero(~is_held_out), last)
        held_out = Subset(self, np.flatnonzero(is_held_out), last)
        return training, held_out

    def thin_transitions(
        self, max_observations: int
    ) -> tuple[NDArray[Any], Transitions]:
        """Take evenly spaced transitions where there are too many observations.

        Parameters
        ----------
        max_observations : int
            All transitions are taken if there are no more distinct observations.

        Returns
        -------
        observations : array (m, ...)
            The observations of these transitions.
        transitions : Transitions
            Their `obs` and `next_obs` are row numbers of `observations`.
        """
        stride = 1
        if len(self.observations) > max_observations:
            stride = ceil(len(self) / max_observations)

        used, before, after = _renumber(self.before[::stride], self.after[::stride])
        transitions = Transitions(
            before, self.action[::stride], after, self.terminated[::stride]
        )
        return self.observations[used], transitions

    @cached_property
    def _trajectories(self) -> Trajectories:
        """The transitions sorted by trajectory."""
        return find_trajectories(self.before, self.after, self.terminated)


@dataclass(frozen=True, eq=False)
class Subset:
    """Some transitions of a data set, from which pairs of observations are taken.

    Attributes
    ----------
    data : Dataset
        The data set.
    starts : array (m,) of int
        Places of the first transitions of pairs: indices into ``Trajectories.order``.
    last : array (N,) of int
        For each place, the last one that a pair which begins there may reach.
    """

    data: Dataset
    starts: IndexArray
    last: IndexArray

    @cached_property
    def table(self) -> tuple[IndexArray, csr_array]:
        """The transitions as a symmetric matrix, in which each action counts equally.

        An action that was taken several times in one observation counts once: each of
        its transitions has an equal share.

        Returns
        -------
        numbers : array (n,)
            Numbers of the observations.
        weights : csr_array (n, n)
            Weights between them, of sum 1.
        """
        data = self.data
        transitions = data._trajectories.order[self.starts]
        numbers, before, after = _renumber(
            data.before[transitions], data.after[transitions]
        )
        actions, action = np.unique(data.action[transitions], return_inverse=True)

        # How often the same action was taken in the same observation.
        state_action = before * len(actions) + action
        counts = np.bincount(state_action)
        weight = 1.0 / counts[state_action]

        n = len(numbers)
        directed = csr_array((weight, (before, after)), shape=(n, n))
        weights = csr_array((directed + directed.T) / (2 * weight.sum()))
        return numbers, weights

    def draw_pairs(
        self, n_pairs: int, discount: float, rng: np.random.Generator
    ) -> tuple[IndexArray, IndexArray]:
        """Draw pairs of observations at geometric distances in time.

        Parameters
        ----------
        n_pairs : int
            Number of pairs.
        discount : float
            The distance is d with probability ``(1 - discount) * discount^(d - 1)``. It
            is cut at the end of the trajectory.
        rng : Generator
            Source of the random numbers.

        Returns
        -------
        tuple of array (n_pairs,)
            Numbers of the first and of the second observation of each pair.
        """
        start = self.starts[rng.integers(len(self.starts), size=n_pairs)]
        distance = rng.geometric(1.0 - discount, size=n_pairs)
        end = np.minimum(start + distance - 1, self.last[start])
        return self._get_pairs(start, end)

    def list_pairs(self, lag: int) -> tuple[IndexArray, IndexArray]:
        """Numbers of all pairs of observations that are `lag` transitions apart."""
        end = self.starts + lag - 1
        is_inside = end <= self.last[self.starts]
        return self._get_pairs(self.starts[is_inside], end[is_inside])

    def find_longest_lag(self, n_pairs: int) -> int:
        """Find the longest lag at which there are more than `n_pairs` pairs."""
        longest_lags = np.sort(self.last[self.starts] - self.starts + 1)[::-1]
        if n_pairs >= len(longest_lags):
            return 0
        return int(longest_lags[n_pairs])

    def _get_pairs(
        self, start: IndexArray, end: IndexArray
    ) -> tuple[IndexArray, IndexArray]:
        """Observations before the transitions at `start` and after those at `end`."""
        order = self.data._trajectories.order
        return self.data.before[order[start]], self.data.after[order[end]]


class _Numbering:
    """Numbers distinct observations in the order in which they are first seen."""

    def __init__(self) -> None:
        # One array of new observations per batch.
        self.distinct: list[NDArray[Any]] = []
        self._numbers_by_digest: dict[bytes, int] = {}

    def number(self, obs: NDArray[Any]) -> IndexArray:
        """Return the number of each observation ``(N, ...)``; new ones are kept."""
        obs = _check_observations(obs)
        self._check_same_kind(obs)

        numbers = np.empty(len(obs), dtype=np.intp)
        new_rows = []
        for i, row in enumerate(np.ascontiguousarray(obs)):
            digest = hashlib.blake2b(row.data, digest_size=16).digest()
            if digest not in self._numbers_by_digest:
                self._numbers_by_digest[digest] = len(self._numbers_by_digest)
                new_rows.append(i)
            numbers[i] = self._numbers_by_digest[digest]

        self.distinct.append(obs[new_rows])
        return numbers

    def _check_same_kind(self, obs: NDArray[Any]) -> None:
        """Raise ValueError if observations differ in type or shape from the first."""
        if not self.distinct:
            return

        first = self.distinct[0]
        if first.dtype != obs.dtype or first.shape[1:] != obs.shape[1:]:
            raise ValueError(
                "all observations must have one type and shape, "
                f"got {first.dtype} {first.shape[1:]} and {obs.dtype} {obs.shape[1:]}"
            )


def _check_observations(obs: NDArray[Any]) -> NDArray[Any]:
    """Check a batch of observations; floats are returned as networks see them."""
    if obs.dtype.kind not in "biuf" or obs.ndim < 2:
        raise ValueError(
            "observations must be numbers of shape (N, ...), "
            f"got {obs.dtype} {obs.shape}: "
            "numbered states have a table, which needs no features"
        )
    if obs.dtype.kind != "f":
        return obs

    with np.errstate(over="ignore"):
        # Adding zero turns -0.0 into 0.0: equal observations have equal bytes.
        obs = obs.astype(np.float32) + np.float32(0)

    is_finite = np.isfinite(obs).all(axis=tuple(range(1, obs.ndim)))
    if not is_finite.all():
        raise ValueError(
            "observations must be finite and below 3e38, "
            f"which row {int(is_finite.argmin())} of a batch is not: remove it"
        )
    return obs


def _renumber(
    before: IndexArray, after: IndexArray
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Numbers that occur, ascending, and both arrays as indices into them."""
    used, indices = np.unique(np.append(before, after), return_inverse=True)
    new_before, new_after = np.split(indices, 2)
    return used, new_before, new_after
