"""`MDP`, a transition table, and its `graph` (paper, Section 2)."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from eigenoptions._text import draw_map, printable
from eigenoptions._validation import (
    Record,
    check_csr,
    check_int,
    readonly,
    set_readonly,
)
from eigenoptions.data import Transitions
from eigenoptions.data.spaces import count_states, read_spaces


@dataclass(frozen=True, eq=False, repr=False)
class MDP(Record):
    """Finite dynamics; a task when they have a start and a goal.

    Parameters
    ----------
    transition : csr array (S * A, S) or array (S, A, S)
        Row ``s * A + a`` is the distribution p(. | s, a). It is copied and checked.
    coords : int array (S, 2), optional
        Row and column of each state, for pictures.
    start, goal : int, optional
        States of a task.
    reward : array (S,) or (S * A,), optional
        Mean reward of leaving each state, or of each action, for methods that need rewards.
    name, legend : str
        A title, and what a picture does not show, such as the names of actions.
    states : sequence of length S, optional
        What each state is: the node of a graph, the key of an environment.
    recognition : dict, optional
        How `OptionsWrapper` recognises the `states` in an environment; `from_env` sets it.
    weights : array (S, S), optional
        Weights of the edges of `graph`, where they are not 1.

    Examples
    --------
    >>> MDP(np.array([[0.0, 1.0], [1.0, 0.0]]))
    MDP(2 states, 1 action, deterministic)
    """

    transition: csr_array
    _: KW_ONLY
    coords: NDArray[np.int_] | None = None
    start: int | None = None
    goal: int | None = None
    reward: NDArray[np.float64] | None = None
    name: str = ""
    legend: str = ""
    states: Sequence[Any] | None = None
    recognition: dict[str, Any] | None = None
    weights: csr_array | None = None

    def __post_init__(self) -> None:
        table = self.transition
        if np.ndim(table) == 3 and len(table) == np.shape(table)[2]:
            table = np.reshape(table, (-1, len(table)))
        table = check_csr("transition", table, nonnegative=True)
        rows, n = table.shape
        if n == 0 or rows == 0 or rows % n:
            raise ValueError(
                f"transition must have shape (S*A, S), at least one state, got {table.shape}"
            )
        sums = table.sum(axis=1)
        row = int(np.abs(sums - 1.0).argmax())
        if abs(sums[row] - 1.0) > 1e-9:
            place = (
                f"row {row} (state {row // (rows // n)}, action {row % (rows // n)})"
            )
            raise ValueError(
                f"transition rows must sum to 1, {place} sums to {sums[row]:.6g}"
            )
        table.data = set_readonly(table.data)
        table.indices = set_readonly(table.indices)
        table.indptr = set_readonly(table.indptr)
        checked: dict[str, Any] = {"transition": table}
        if self.coords is not None:
            checked["coords"] = coords = readonly(self.coords)
            if coords.shape != (n, 2) or coords.dtype.kind not in "iu":
                raise ValueError(
                    f"coords must be integers ({n}, 2), got {coords.dtype} {coords.shape}"
                )
        if self.reward is not None:
            checked["reward"] = reward = readonly(np.ravel(self.reward), np.float64)
            if len(reward) not in (n, rows) or not np.isfinite(reward).all():
                raise ValueError(
                    f"reward must be {n} or {rows} finite numbers, got {np.shape(self.reward)}"
                )
        if self.states is not None and len(self.states) != n:
            raise ValueError(f"states must have {n} entries, got {len(self.states)}")
        for field in ("start", "goal"):
            if (state := getattr(self, field)) is not None:
                checked[field] = check_int(field, state, 0, n - 1)
        for field, value in checked.items():
            object.__setattr__(self, field, value)

    @classmethod
    def from_successors(cls, successors: ArrayLike, **fields: Any) -> MDP:
        """Deterministic MDP from the next state of each state and action ``(S, A)``; `fields` as in `MDP`.

        >>> MDP.from_successors([[1, 0], [0, 1]], start=0)
        MDP(2 states, 2 actions, deterministic, start 0)
        """
        table = np.asarray(successors)
        if table.ndim != 2:
            raise ValueError(
                f"successors must be integers (S, A), got {table.dtype} {table.shape}"
            )
        n = _check_numbers("successors", table.ravel(), len(table))
        entries = np.ones(table.size), table.ravel(), np.arange(table.size + 1)
        return cls(csr_array(entries, shape=(table.size, n)), **fields)

    @classmethod
    def from_transitions(
        cls,
        data: Any,
        n_states: int | None = None,
        n_actions: int | None = None,
        **fields: Any,
    ) -> MDP:
        """MDP of samples between numbered states, by relative frequencies (Section 5.1).

        An action that was never tried leaves the state unchanged.

        Parameters
        ----------
        data
            Whatever `Transitions.of` accepts; observations are state numbers, or names, which become ``mdp.states``.
        n_states, n_actions : int, optional
            Size of the table; by default that of the spaces of the data, or up to the largest number in the data.
        fields
            As in `MDP`.

        Examples
        --------
        >>> MDP.from_transitions(([0, 1, 2], [1, 1, 0], [1, 2, 1]), n_states=4).successors.tolist()
        [[0, 1], [1, 2], [1, 2], [3, 3]]
        """
        (space, declared_actions), batch = read_spaces(data), Transitions.of(data)
        states = np.concatenate([batch.obs, batch.next_obs])
        if states.dtype.kind == "U":
            names, states = np.unique(states, return_inverse=True)
            fields = {"states": tuple(names.tolist()), **fields}
        S = _check_numbers("states", states, n_states or count_states(space))
        A = _check_numbers("actions", batch.action, n_actions or declared_actions)
        if S * A > 10**8:
            raise ValueError(
                f"{S} states and {A} actions are more than 1e8 rows: number both without gaps"
            )
        before, after = states.astype(np.int64).reshape(2, -1)
        counts = csr_array(
            (np.ones(len(batch)), (before * A + batch.action, after)), shape=(S * A, S)
        )
        untried = np.flatnonzero(np.diff(counts.indptr) == 0)
        counts += csr_array(
            (np.ones(len(untried)), (untried, untried // A)), shape=counts.shape
        )
        counts.data /= np.repeat(counts.sum(axis=1), np.diff(counts.indptr))
        return cls(counts, **fields)

    @property
    def n_states(self) -> int:
        """Number of states S."""
        return int(self.transition.shape[1])

    @property
    def n_actions(self) -> int:
        """Number of actions A."""
        return int(self.transition.shape[0]) // self.n_states

    @cached_property
    def successors(self) -> NDArray[np.int32] | None:
        """``(S, A)`` next state of each action, or None where some action is stochastic."""
        if not np.array_equal(
            self.transition.indptr, np.arange(len(self.transition.indptr))
        ):
            return None
        return readonly(self.transition.indices, np.int32).reshape(
            self.n_states, self.n_actions
        )

    @cached_property
    def most_likely_successors(self) -> NDArray[np.int32]:
        """``(S, A)`` most likely next state of each action, for pictures.

        Ties go to the state that is nearest to the expected displacement, then to the first.
        """
        if self.successors is not None:
            return self.successors
        table, first = self.transition, self.transition.indptr[:-1]
        row = np.repeat(np.arange(len(first)), np.diff(table.indptr))
        deviation = np.zeros(table.nnz)
        if self.coords is not None:
            displacement = (
                self.coords[table.indices] - self.coords[row // self.n_actions]
            ).astype(float)
            expected = np.add.reduceat(table.data[:, None] * displacement, first)
            deviation = ((displacement - expected[row]) ** 2).sum(axis=1).round(9)
        less_likely = (
            table.data < (1.0 - 1e-9) * np.maximum.reduceat(table.data, first)[row]
        )
        best = np.lexsort((table.indices, deviation, less_likely, row))[first]
        return readonly(table.indices[best], np.int32).reshape(
            self.n_states, self.n_actions
        )

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the state space and its dynamics, by which options are matched with an MDP."""
        table, digest = self.transition, blake2b(digest_size=16)
        digest.update(f"{self.n_states},{self.n_actions};".encode())
        for array, kind in (
            (table.indptr, "<i8"),
            (table.indices, "<i8"),
            (table.data, "<f8"),
        ):
            digest.update(np.ascontiguousarray(array, dtype=kind).data)
        return digest.hexdigest()

    def with_task(self, start: int | None = None, goal: int | None = None) -> MDP:
        """The same dynamics with another start, another goal, or both; the table is shared.

        >>> MDP.from_successors([[1], [0]], start=0).with_task(goal=1)
        MDP(2 states, 1 action, deterministic, start 0, goal 1)
        """
        task = copy(self)
        for field, state in (("start", start), ("goal", goal)):
            if state is not None:
                object.__setattr__(
                    task, field, check_int(field, state, 0, self.n_states - 1)
                )
        return task

    def __repr__(self) -> str:
        sizes = {"state": self.n_states, "action": self.n_actions}
        parts = [f"{count} {noun}{'s' * (count > 1)}" for noun, count in sizes.items()]
        parts += ["stochastic" if self.successors is None else "deterministic"]
        task = {"start": self.start, "goal": self.goal}
        parts += [
            f"{field} {state}" for field, state in task.items() if state is not None
        ]
        return (
            f"MDP({printable(self.name) + ': ' if self.name else ''}{', '.join(parts)})"
        )

    def __str__(self) -> str:
        if self.coords is None:
            return repr(self)
        glyphs = [" "] * self.n_states
        for state, letter in ((self.start, "S"), (self.goal, "G")):
            if state is not None:
                glyphs[state] = letter
        lines = [draw_map(self.coords, glyphs), printable(self.legend), repr(self)]
        return "\n".join(filter(None, lines))


def _check_numbers(kind: str, numbers: NDArray[Any], size: int | None) -> int:
    """The size of a table that has these numbers of states or actions."""
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not len(numbers):
        raise ValueError(
            f"{kind} must be integers (N,), got {numbers.dtype} of shape {numbers.shape}"
        )
    size = int(numbers.max()) + 1 if size is None else size
    if not 0 <= numbers.min() <= numbers.max() < size:
        raise ValueError(
            f"{kind} must be in 0..{size - 1}, got {numbers.min()}..{numbers.max()}"
        )
    return size
