"""The option to the unknown, on a table that grows while an agent acts.

Nobody has the map of an environment at first. A `GrowingTable` holds the part that was
seen. An untried action of a known state leads to the unknown, whose potential is the
promise of that action: how likely it is to show something new. The option of this
potential, with the usual discount, leads where most is promised per step:

    v(s) = max over a of  promise(s, a)             if a is untried in s
                          gamma * E[v(s')]          if it was tried

The promise of an action is learned from first tries of it, over all states: ``(wins +
hope) / (tries + hope + 1)``, where a win is a try that led to a new state. So turning on
the spot, which never shows anything new, is soon put off, and opening a door is not.

`unknown_mdp` states the same as an `MDP` and a `Purpose`, which `solve` turns into an
option. Deriving it anew after every step would take long, so the table has two faster
ways to the same actions. Where every action has had one outcome, a search from the
present state finds the best untried action, and often a near one is enough. Where
outcomes are random, values are kept and repaired by a few sweeps. There, an action
deserves another try, whose promise falls by `retry` with each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._types import BoolArray, FloatArray
from eigenoptions._validation import check_float, check_int
from eigenoptions.mdp import MDP
from eigenoptions.options.records import Purpose

# The promise of an action in a state, by the numbers of both.
PromiseFunction = Callable[[int, int], float]

UNTRIED = -1


class GrowingTable:
    """What is known of an environment so far.

    States are numbered in the order in which they are added. The episode ends in states
    that are marked as ends; while planning, it continues at a start.

    Parameters
    ----------
    n_actions : int
        Number of actions.
    hope : float, default=10.0
        How many tries with something new an action is credited with in advance.
    gamma : float, default=0.9
        Discount per step: how much nearer the better promise may be.
    retry : float, default=0.3
        Factor on the promise of an action for each time it was tried in a state. It
        matters only where outcomes are random.
    max_states : int, default=1000000
        Most states that are kept.

    Examples
    --------
    >>> table = GrowingTable(n_actions=2)
    >>> first = table.add_state(is_start=True)
    >>> second = table.add_state()
    >>> table.add_step(first, 1, second)
    False
    >>> table.find_path(second, np.random.default_rng(0))
    [0]
    """

    def __init__(
        self,
        n_actions: int,
        *,
        hope: float = 10.0,
        gamma: float = 0.9,
        retry: float = 0.3,
        max_states: int = 1_000_000,
    ) -> None:
        self.n_actions = check_int("n_actions", n_actions)
        self.hope = check_float("hope", hope, minimum=0)
        self.gamma = check_float("gamma", gamma, above=0, below=1)
        self.retry = check_float("retry", retry, minimum=0, below=1)
        self.max_states = check_int("max_states", max_states)

        # The last outcome of each state and action, and how often it was tried. Lists,
        # because a search reads single entries.
        self._successors: list[list[int]] = []
        self._tries: list[list[int]] = []
        self._is_end: list[bool] = []
        self._starts: dict[int, int] = {}

        # How often each outcome of each state and action was seen.
        self._outcomes: dict[tuple[int, int], dict[int, int]] = {}
        self.n_random = 0

        # First tries of each action, and those that led to a new state.
        self.first_tries = np.zeros(self.n_actions, dtype=np.int64)
        self.wins = np.zeros(self.n_actions, dtype=np.int64)
        self._values = np.zeros(0)

    @property
    def n_states(self) -> int:
        """Number of states so far."""
        return len(self._successors)

    @property
    def is_random(self) -> bool:
        """Whether some action had two outcomes in one state."""
        return self.n_random > 0

    @property
    def promises(self) -> FloatArray:
        """``(A,)`` how likely a first try of each action is to show something new."""
        return (self.wins + self.hope) / (self.first_tries + self.hope + 1.0)

    def add_state(self, *, is_start: bool = False) -> int:
        """Add a state; its number."""
        if self.n_states == self.max_states:
            raise ValueError(
                f"more than max_states={self.max_states:,} states were seen: states "
                "that hardly repeat need a coarser key= (cells, say)"
            )
        number = self.n_states
        self._successors.append([UNTRIED] * self.n_actions)
        self._tries.append([0] * self.n_actions)
        self._is_end.append(False)
        if is_start:
            self.add_start(number)
        return number

    def add_start(self, state: int) -> None:
        """Note that an episode began in a state."""
        self._starts[state] = self._starts.get(state, 0) + 1

    def add_step(
        self,
        state: int,
        action: int,
        next_state: int,
        *,
        is_new: bool = False,
        terminated: bool = False,
    ) -> bool:
        """Note what an action did.

        Parameters
        ----------
        state, action, next_state : int
            The step.
        is_new : bool, default=False
            Whether the next state was seen for the first time.
        terminated : bool, default=False
            Whether the episode ended there.

        Returns
        -------
        bool
            Whether this action had another outcome in this state before.
        """
        if self._tries[state][action] == 0:
            self.first_tries[action] += 1
            self.wins[action] += is_new
        self._tries[state][action] += 1
        self._is_end[next_state] = self._is_end[next_state] or terminated

        outcomes = self._outcomes.setdefault((state, action), {})
        is_surprise = bool(outcomes) and next_state not in outcomes
        if is_surprise and len(outcomes) == 1:
            self.n_random += 1
        outcomes[next_state] = outcomes.get(next_state, 0) + 1
        self._successors[state][action] = next_state
        return is_surprise

    def is_untried(self, state: int, action: int) -> bool:
        """Whether an action was never taken in a state."""
        return self._successors[state][action] == UNTRIED

    def count_untried(self) -> int:
        """Number of untried pairs of a state and an action, without ends."""
        rows = zip(self._successors, self._is_end, strict=True)
        return sum(row.count(UNTRIED) for row, is_end in rows if not is_end)

    def find_path(
        self,
        state: int,
        rng: np.random.Generator,
        promise: PromiseFunction | None = None,
    ) -> list[int]:
        """Actions to the best untried action, which is the last of them.

        The search goes forward from the state, level by level. It stops as soon as the
        next level is too far for any promise to be better, so a near frontier is found
        at once. Of equal actions, `rng` decides.

        Parameters
        ----------
        state : int
            Where the agent is.
        rng : numpy.random.Generator
            Orders the actions.
        promise : callable, default=None
            ``promise(state, action)`` in 0 to 1. None: the learned `promises`.

        Returns
        -------
        list of int
            Empty where nothing untried is within reach.
        """
        promises = self.promises.tolist()
        highest = max(promises) if promise is None else 1.0
        actions = rng.permutation(self.n_actions).tolist()

        came_from: dict[int, tuple[int, int]] = {}
        seen = {state}
        level = [state]
        discount = 1.0
        best = 0.0
        best_try: tuple[int, int] | None = None
        while level and discount * highest > best:
            next_level: list[int] = []
            for known in level:
                row = self._successors[known]
                for action in actions:
                    if row[action] == UNTRIED:
                        chance = promises[action]
                        if promise is not None:
                            chance = promise(known, action)
                        if discount * chance > best:
                            best = discount * chance
                            best_try = (known, action)
                        continue
                    for after in self._continue_after(row[action]):
                        if after not in seen:
                            seen.add(after)
                            came_from[after] = (known, action)
                            next_level.append(after)
            level = next_level
            discount *= self.gamma

        if best_try is None:
            return []
        return _trace_back(came_from, *best_try)

    def _continue_after(self, state: int) -> Sequence[int]:
        """Where the agent is after it has arrived in a state: after an end, at a start."""
        if self._is_end[state]:
            return list(self._starts)
        return [state]

    def choose_action(self, state: int, rng: np.random.Generator) -> int | None:
        """The action to the unknown where outcomes are random; None where nothing is.

        Values are those of the last call, repaired by sweeps over the whole table.
        """
        q = self.sweep_values()[state]
        best = q.max()
        if best <= 1e-6:
            return None
        return int(rng.choice(np.flatnonzero(q >= best - 1e-9)))

    def sweep_values(self, max_sweeps: int = 30, tolerance: float = 1e-3) -> FloatArray:
        """``(S, A)`` action values of the unknown, close to their fixed point."""
        n_states = self.n_states
        n_actions = self.n_actions
        rows, columns, counts = self._list_outcomes()
        tries = np.array(self._tries, dtype=np.float64)
        is_untried = tries == 0
        again = np.where(is_untried, self.promises, self.promises * self.retry**tries)
        is_end = np.array(self._is_end)
        starts = np.array(list(self._starts))
        weights = np.array(list(self._starts.values()), dtype=np.float64)

        # New states begin with the highest promise: optimism, which sweeps take back.
        values = np.full(n_states, again.max(initial=0.0))
        values[: len(self._values)] = self._values
        for _ in range(max_sweeps):
            at_start = np.average(values[starts], weights=weights)
            arrival = np.where(is_end, at_start, values)
            sums = np.bincount(
                rows, counts * arrival[columns], minlength=n_states * n_actions
            )
            future = sums.reshape(n_states, n_actions) / np.maximum(tries, 1.0)
            q = np.maximum(again, self.gamma * future)
            last = values
            values = q.max(axis=1)
            if np.abs(values - last).max() <= tolerance * max(values.max(), 1e-300):
                break
        self._values = values
        return q

    def _list_outcomes(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
        """Row (state and action), next state and count of every outcome seen."""
        rows = []
        columns = []
        counts = []
        for (state, action), outcomes in self._outcomes.items():
            for next_state, count in outcomes.items():
                rows.append(state * self.n_actions + action)
                columns.append(next_state)
                counts.append(count)
        return (
            np.array(rows, dtype=np.int64),
            np.array(columns, dtype=np.int64),
            np.array(counts, dtype=np.float64),
        )

    def to_mdp(self, **fields: Any) -> MDP:
        """The table so far as an `MDP`.

        Ends are absorbing, as in `from_env`, and an untried action stays put.
        """
        rows, columns, counts = self._list_outcomes()
        n_states = self.n_states
        n_rows = n_states * self.n_actions
        is_end = np.repeat(np.array(self._is_end), self.n_actions)
        is_kept = ~is_end[rows]
        shape = (n_rows, n_states)
        table = csr_array(
            (counts[is_kept], (rows[is_kept], columns[is_kept])), shape=shape
        )

        stays = np.flatnonzero(np.diff(table.indptr) == 0)
        states = stays // self.n_actions
        table = csr_array(
            table + csr_array((np.ones(len(stays)), (stays, states)), shape=shape)
        )
        total = table.sum(axis=1)
        table.data /= np.repeat(total, np.diff(table.indptr))
        return MDP(table, **fields)

    def find_untried(self) -> BoolArray:
        """``(S, A)`` which actions were never taken; none of an end counts."""
        is_untried = np.array(self._tries).reshape(self.n_states, self.n_actions) == 0
        is_untried[np.array(self._is_end, dtype=np.bool_)] = False
        return is_untried


def unknown_mdp(table: GrowingTable) -> tuple[MDP, Purpose]:
    """The option to the unknown as `solve` takes it: an MDP and a purpose.

    Each action a has an additional state ``S + a``, which every untried a leads to. Its
    potential is the promise of a, and that of known states is 0. An end leads to the
    start, or to each start as often as an episode began there.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> table = GrowingTable(n_actions=2)
    >>> corner = table.add_state(is_start=True)
    >>> table.add_step(corner, 0, corner)
    False
    >>> mdp, purpose = unknown_mdp(table)
    >>> eo.solve(mdp, purpose, gamma=table.gamma).policy[0].tolist()
    [1, -1, -1]
    """
    rows, columns, counts = table._list_outcomes()
    n_states = table.n_states
    n_actions = table.n_actions
    n_all = n_states + n_actions

    # What follows an end: the starts, in place of the end itself.
    is_end = np.array(table._is_end, dtype=np.bool_)
    starts = np.array(list(table._starts), dtype=np.int64)
    weights = np.array(list(table._starts.values()), dtype=np.float64)
    weights /= weights.sum()
    ends_at = is_end[columns]
    restart_rows = np.repeat(rows[ends_at], len(starts))
    restart_columns = np.tile(starts, int(ends_at.sum()))
    restart_counts = np.outer(counts[ends_at], weights).ravel()

    # Untried actions lead to the unknown, and the unknown stays.
    untried = np.argwhere(np.array(table._tries).reshape(n_states, n_actions) == 0)
    unknown = np.arange(n_states, n_all)
    all_rows = np.concatenate(
        [
            rows[~ends_at],
            restart_rows,
            untried[:, 0] * n_actions + untried[:, 1],
            np.arange(n_states * n_actions, n_all * n_actions),
        ]
    )
    all_columns = np.concatenate(
        [
            columns[~ends_at],
            restart_columns,
            n_states + untried[:, 1],
            np.repeat(unknown, n_actions),
        ]
    )
    n_certain = len(untried) + n_actions**2
    all_counts = np.concatenate([counts[~ends_at], restart_counts, np.ones(n_certain)])
    shape = (n_all * n_actions, n_all)
    matrix = csr_array((all_counts, (all_rows, all_columns)), shape=shape)
    matrix.data /= np.repeat(matrix.sum(axis=1), np.diff(matrix.indptr))

    potential = np.concatenate([np.zeros(n_states), table.promises])
    return MDP(matrix), Purpose(potential, "unknown", exact=True)


def _trace_back(
    came_from: dict[int, tuple[int, int]], state: int, action: int
) -> list[int]:
    """The actions that led a search to a state, and then one more."""
    path = [action]
    while state in came_from:
        state, action = came_from[state]
        path.append(action)
    path.reverse()
    return path
