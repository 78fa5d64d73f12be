"""The option to the unknown, on a table that grows while an agent acts.

Nobody has the map of an environment at first. A `GrowingTable` holds the part that was
seen. An untried action of a known state leads to the unknown, whose potential is the
promise of that action: how likely it is to show something new. The option of this
potential, with the usual discount, leads where most is promised per step:

    v(s) = max over a of  promise(s, a)             if a is untried in s
                          gamma * E[v(s')]          if it was tried

The promise of an action is learned from first tries of it, over all states: ``(wins +
hope) / (tries + hope + 1)``, where a win is a try that led to a new state. So turning
on the spot, which never shows anything new, is soon put off, and opening a door is not.

`solve` could derive the option, with an additional state for every untried action. Anew
after every step that would take long, so the table has two faster ways to the same
actions. Where every action has had one outcome, a search from
the present state finds the best untried action, and often a near one is enough. Where
outcomes are random, values are kept from step to step and repaired by a few sweeps.
There, an action deserves another try, whose promise falls by `retry` with each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._ties import find_first_maximum
from eigenoptions._types import BoolArray, FloatArray, IndexArray
from eigenoptions._validation import check_float, check_int
from eigenoptions.explore.growing import GrowingArray
from eigenoptions.mdp import MDP, reachable
from eigenoptions.mdp.table import count_outcomes

# The promise of an action in a state, by the numbers of both.
PromiseFunction = Callable[[int, int], float]

# What stands in place of the next state of an action: it was never tried, the episode
# ended, or the way there is too long for an episode.
UNTRIED = -1
ENDED = -2
GIVEN_UP = -3


class Outcomes(NamedTuple):
    """Every outcome that was seen, one row each.

    Parameters
    ----------
    row : ndarray of int
        State and action, as ``state * n_actions + action``.
    next_state : ndarray of int
        Where the action led.
    ended : ndarray of bool
        Whether the episode ended there.
    times : ndarray
        How often it was seen.
    """

    row: NDArray[np.int64]
    next_state: NDArray[np.int64]
    ended: BoolArray
    times: FloatArray


class Path(NamedTuple):
    """A way to an untried action.

    Parameters
    ----------
    actions : list of int
        The actions, of which the last is untried; empty where there is no way.
    last_state : int
        The state in which the last action is untried.
    """

    actions: list[int]
    last_state: int


class GrowingTable:
    """What is known of the dynamics of an environment so far.

    States are numbered in the order in which they are added. While planning, an episode
    that ended continues at a start.

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
    least_value : float, default=1e-6
        Where outcomes are random, the value below which nothing is worth a try.

    Attributes
    ----------
    first_tries, wins : ndarray of int of shape (A,)
        First tries of each action, over all states, and those that led to a new state.
    n_surprises : int
        How many outcomes were seen after another one of the same state and action.

    Examples
    --------
    >>> table = GrowingTable(n_actions=2)
    >>> first = table.add_state()
    >>> second = table.add_state()
    >>> table.add_step(first, 1, second)
    False
    >>> table.find_path(first, np.random.default_rng(0))
    Path(actions=[0], last_state=0)
    """

    def __init__(
        self,
        n_actions: int,
        *,
        hope: float = 10.0,
        gamma: float = 0.9,
        retry: float = 0.3,
        max_states: int = 1_000_000,
        least_value: float = 1e-6,
    ) -> None:
        self.n_actions = check_int("n_actions", n_actions)
        self.hope = check_float("hope", hope, minimum=0)
        self.gamma = check_float("gamma", gamma, above=0, below=1)
        self.retry = check_float("retry", retry, minimum=0, below=1)
        self.max_states = check_int("max_states", max_states)
        self.least_value = check_float("least_value", least_value, minimum=0)
        self.first_tries = np.zeros(self.n_actions, dtype=np.int64)
        self.wins = np.zeros(self.n_actions, dtype=np.int64)
        self.n_surprises = 0

        # Where each action led the last time. Lists, because a search reads single
        # entries.
        self._successors: list[list[int]] = []
        # How often an episode began in a state.
        self._starts: dict[int, int] = {}

        # How often each action was tried in each state, and retry to that power: what
        # a promise of the next try is multiplied by. It is 0 where it was given up.
        self._tries = GrowingArray(np.int64, self.n_actions)
        self._again = GrowingArray(np.float64, self.n_actions)

        # The outcomes, and the place of each in their arrays.
        self._places: dict[tuple[int, int, bool], int] = {}
        self._row = GrowingArray(np.int64)
        self._next_state = GrowingArray(np.int64)
        self._ended = GrowingArray(np.bool_)
        self._times = GrowingArray(np.float64)

        # The values of the last sweep, of states and of actions, and what it took the
        # next try of each action to be worth.
        self._values = np.zeros(0)
        self._action_values = np.zeros((0, self.n_actions))
        self._worth_trying = np.zeros((0, self.n_actions))

        # What was found out when all is known, so that it is not searched again: the
        # states from which a search met nothing untried, and, where outcomes are
        # random, whether the last sweep valued nothing in the whole table.
        self._exhausted: set[int] = set()
        self._is_settled = False

    @property
    def n_states(self) -> int:
        """Number of states so far."""
        return len(self._successors)

    @property
    def is_random(self) -> bool:
        """Whether some action had two outcomes in one state."""
        return self.n_surprises > 0

    @property
    def starts(self) -> dict[int, int]:
        """The states in which episodes began, and how many did."""
        return dict(self._starts)

    @property
    def n_starts(self) -> int:
        """Number of states in which episodes began."""
        return len(self._starts)

    @property
    def promises(self) -> FloatArray:
        """``(A,)`` how likely a first try of each action is to show something new."""
        return (self.wins + self.hope) / (self.first_tries + self.hope + 1.0)

    @property
    def outcomes(self) -> Outcomes:
        """Every outcome that was seen, and how often."""
        return Outcomes(
            row=self._row.values,
            next_state=self._next_state.values,
            ended=self._ended.values,
            times=self._times.values,
        )

    def add_state(self) -> int:
        """Add a state and return its number."""
        if self.n_states == self.max_states:
            raise ValueError(
                f"more than max_states={self.max_states:,} states were seen: raise "
                "max_states, or give a coarser key= (cells, say), so that states repeat"
            )
        self._successors.append([UNTRIED] * self.n_actions)
        self._tries.append(0)
        self._again.append(1.0)
        self._is_settled = False
        return self.n_states - 1

    def add_start(self, state: int, count: int = 1) -> None:
        """Note that an episode, or several, began in a state."""
        if state not in self._starts:
            self._exhausted.clear()
        self._starts[state] = self._starts.get(state, 0) + count

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
            Whether it was a surprise: the action had only other outcomes in this state
            before.
        """
        tries = self._tries.values[state]
        is_first_try = tries[action] == 0
        if is_first_try:
            self.first_tries[action] += 1
            self.wins[action] += is_new
            self._is_settled = False

        row = state * self.n_actions + action
        outcome = (row, next_state, terminated)
        place = self._places.get(outcome)
        is_surprise = place is None and not is_first_try
        self.n_surprises += is_surprise
        if place is None:
            place = len(self._row)
            self._places[outcome] = place
            self._row.append(row)
            self._next_state.append(next_state)
            self._ended.append(terminated)
            self._times.append(0.0)
        self._times.values[place] += 1.0

        tries[action] += 1
        self._again.values[state, action] *= self.retry
        successor = ENDED if terminated else next_state
        if self._successors[state][action] != successor:
            self._exhausted.clear()
        self._successors[state][action] = successor
        return is_surprise

    def give_up(self, state: int, action: int) -> None:
        """Leave the next try of an action out of all further plans."""
        self._again.values[state, action] = 0.0
        if self.is_untried(state, action):
            self._successors[state][action] = GIVEN_UP

    def is_untried(self, state: int, action: int) -> bool:
        """Whether an action was never taken in a state, and not given up."""
        return self._successors[state][action] == UNTRIED

    def find_path(
        self,
        state: int,
        rng: np.random.Generator,
        promise: PromiseFunction | None = None,
        claimed: Collection[tuple[int, int]] = (),
    ) -> Path:
        """Return the way to the best untried action.

        The search goes forward from the state, level by level. It stops as soon as the
        next level is too far for any promise to be better, so a near frontier is found
        at once. It passes the end of an episode where only one start is known. Where it
        meets nothing untried, this is remembered until the table changes.

        Parameters
        ----------
        state : int
            Where the agent is.
        rng : numpy.random.Generator
            Decides between equal actions.
        promise : callable, default=None
            ``promise(state, action)`` in 0 to 1. None: the learned `promises`.
        claimed : collection of (state, action), default=()
            Untried actions that others are on their way to.
        """
        promises = self.promises.tolist()
        # What an untried action promises at most.
        highest = 1.0
        if promise is None:
            highest = max(promises)
        # Of equally good actions, the first in this order is taken. It is drawn in any
        # case: what is remembered changes nothing that is random.
        actions = rng.permutation(self.n_actions).tolist()
        if state in self._exhausted:
            return Path([], state)
        # Where an episode that ended continues; with several starts nobody knows.
        after_end = ENDED
        if len(self._starts) == 1:
            after_end = next(iter(self._starts))

        came_from: dict[int, tuple[int, int]] = {}
        seen = {state, ENDED, GIVEN_UP}
        level = [state]
        discount = 1.0
        best = 0.0
        best_try: tuple[int, int] | None = None
        meets_untried = False
        while level and discount * highest > best:
            next_level: list[int] = []
            for known in level:
                successors = self._successors[known]
                for action in actions:
                    after = successors[action]
                    if after == UNTRIED:
                        meets_untried = True
                        if (known, action) in claimed:
                            continue
                        chance = promises[action]
                        if promise is not None:
                            chance = promise(known, action)
                        if discount * chance > best:
                            best = discount * chance
                            best_try = (known, action)
                        continue
                    if after == ENDED:
                        after = after_end
                    if after not in seen:
                        seen.add(after)
                        came_from[after] = (known, action)
                        next_level.append(after)
            level = next_level
            discount *= self.gamma

        if not meets_untried and not level:
            self._exhausted |= seen
        if best_try is None:
            return Path([], state)
        return _trace_path(came_from, state, best_try)

    def choose_action(
        self,
        state: int,
        rng: np.random.Generator,
        promise: PromiseFunction | None = None,
    ) -> int | None:
        """Return the action to the unknown where outcomes are random.

        Values are those of the last call, repaired by sweeps over the whole table.

        Parameters
        ----------
        state, rng, promise
            As in `find_path`.

        Returns
        -------
        int or None
            None where nothing worth a try is within reach.
        """
        action_values = self._repair_values(promise)[state]
        best = action_values.max()
        if best <= self.least_value:
            return None
        return int(rng.choice(np.flatnonzero(action_values >= best - 1e-9)))

    def is_any_worth_trying(self, state: int) -> bool:
        """Whether something worth a try is within reach of a state or of any start.

        For tables whose outcomes are random; `is_known` is for the others.
        """
        action_values = self._repair_values(None)
        highest = action_values[[state, *self._starts]].max()
        return bool(highest > self.least_value)

    def _repair_values(self, promise: PromiseFunction | None) -> FloatArray:
        """Return action values after a few sweeps.

        As many as take a fraction of a millisecond, and at least one: values are
        repaired at every step, so it need not be done at once. None where nothing in
        the whole table is worth a try: tries make it only less.
        """
        if promise is None and self._is_settled:
            return self._action_values
        n_sweeps = int(np.clip(20_000 // (len(self._row) + 1), 1, 30))
        action_values = self.sweep_values(promise, max_sweeps=n_sweeps)
        if promise is None:
            self._is_settled = bool(action_values.max() <= self.least_value)
        return action_values

    def sweep_values(
        self,
        promise: PromiseFunction | None = None,
        *,
        max_sweeps: int = 1000,
        tolerance: float = 1e-3,
    ) -> FloatArray:
        """Return ``(S, A)`` action values of the unknown, close to their fixed point.

        Parameters
        ----------
        promise : callable, default=None
            As in `find_path`.
        max_sweeps : int, default=1000
            Most sweeps.
        tolerance : float, default=0.001
            Change of a value, relative to the largest, at which sweeps stop.
        """
        n_states = self.n_states
        shape = (n_states, self.n_actions)
        worth_trying = self._evaluate_tries(promise)
        row, next_state, ended, _ = self.outcomes
        probability = self._estimate_probabilities()
        starts = np.array(list(self._starts), dtype=np.int64)
        n_begun = np.array(list(self._starts.values()), dtype=np.float64)

        # New states begin with the highest promise: optimism, which sweeps take back.
        values = np.full(n_states, worth_trying.max(initial=0.0))
        values[: len(self._values)] = self._values
        while True:
            # The mean value of the outcomes of each action; an end leads to a start.
            arrival = values[next_state]
            if len(starts):
                arrival[ended] = np.average(values[starts], weights=n_begun)
            future = np.bincount(
                row, probability * arrival, minlength=n_states * self.n_actions
            )
            action_values: FloatArray = np.maximum(
                worth_trying, self.gamma * future.reshape(shape)
            )

            last = values
            values = action_values.max(axis=1)
            max_sweeps -= 1
            is_close = np.abs(values - last).max() <= tolerance * values.max()
            if is_close or max_sweeps <= 0:
                break

        # Where the next sweeps begin.
        self._values = values
        self._action_values = action_values
        self._worth_trying = worth_trying
        return action_values

    def is_worth_trying(self, state: int, action: int) -> bool:
        """Whether the last sweep values an action for its next try, not for its way."""
        worth = self._worth_trying[state, action]
        return bool(worth >= self._action_values[state, action])

    def find_target(self, state: int) -> tuple[int, int] | None:
        """Return the try, a state and an action, that the last sweep leads to.

        Of the outcomes of an action, the best is taken. Its value is higher than that
        of the state before, so the way has no circles; where values are not yet exact
        it may end early, and the result is None. It knows nothing of states that were
        added after the sweep.

        Parameters
        ----------
        state : int
            Where the agent is.
        """
        row, next_state, ended, _ = self.outcomes
        n_swept = len(self._values)
        if state >= n_swept:
            return None
        for _ in range(n_swept):
            action = find_first_maximum(self._action_values[state])
            if self._action_values[state, action] <= 0.0:
                return None
            if self.is_worth_trying(state, action):
                return state, action
            is_outcome = (row == state * self.n_actions + action) & ~ended
            candidates = next_state[is_outcome & (next_state < n_swept)]
            if not len(candidates):
                return None
            state = int(candidates[find_first_maximum(self._values[candidates])])
        return None

    def _evaluate_tries(self, promise: PromiseFunction | None) -> FloatArray:
        """Return ``(S, A)`` what the next try of each action promises."""
        again = self._again.values
        promises = np.broadcast_to(self.promises, again.shape)
        if promise is not None:
            asked = np.argwhere(again > 0.0)
            promises = np.zeros(again.shape)
            for state, action in asked.tolist():
                promises[state, action] = promise(state, action)
        worth: FloatArray = again * promises
        return worth

    def _estimate_probabilities(self) -> FloatArray:
        """Return the share of each of the `outcomes` among the tries of its action."""
        row, _, _, times = self.outcomes
        n_tries = self._tries.values.ravel()[row]
        probability: FloatArray = times / n_tries
        return probability

    def to_mdp(
        self,
        numbers: IndexArray | None = None,
        n_states: int | None = None,
        **fields: Any,
    ) -> MDP:
        """Return the table so far as an `MDP`.

        Where episodes only end every action stays put, and so does an action that was
        not tried. A step that ended an episode elsewhere leads to an additional state.

        Parameters
        ----------
        numbers : ndarray of int, default=None
            Other numbers of the states. None: those of the table.
        n_states : int, default=None
            Number of states of the MDP, of which those without a number here stay put.
        **fields
            Further fields of the `MDP`.
        """
        n_actions = self.n_actions
        if numbers is None:
            numbers = np.arange(self.n_states)
        if n_states is None:
            n_states = self.n_states

        # Rows of the MDP are pairs of a state, by its number there, and an action.
        row, next_state, ended, times = self.outcomes
        state, action = np.divmod(row, n_actions)
        table = count_outcomes(
            numbers[state] * n_actions + action,
            numbers[next_state],
            ended,
            times,
            n_states=n_states,
            n_actions=n_actions,
            starts=numbers[list(self._starts)].tolist(),
        )
        return MDP(table, n_additional=table.shape[1] - n_states, **fields)

    def find_ends(self) -> BoolArray:
        """Return ``(S,)`` where episodes ended and none ever went on."""
        _, next_state, ended, _ = self.outcomes
        is_end = np.zeros(self.n_states, dtype=np.bool_)
        is_end[next_state[ended]] = True
        is_end[next_state[~ended]] = False
        is_end[list(self._starts)] = False
        return is_end

    def find_untried(self) -> BoolArray:
        """Return ``(S, A)`` which actions were never taken; none of an end counts."""
        is_untried: BoolArray = self._tries.values == 0
        is_untried[self.find_ends()] = False
        return is_untried

    def find_given_up(self) -> BoolArray:
        """Return ``(S, A)`` which actions were given up before they were tried."""
        is_given_up: BoolArray = self._again.values == 0.0
        is_given_up[self._tries.values > 0] = False
        return is_given_up

    def is_known(self, state: int) -> bool:
        """Whether nothing untried can be reached from a state, nor from any start."""
        if self._sees_untried([state, *self._starts]):
            return False
        if not self.is_random:
            return True

        # The last outcomes are not all, so that other ways may lead further.
        is_open = self.find_untried() & ~self.find_given_up()
        if not is_open.any():
            return True
        row, next_state, ended, _ = self.outcomes
        # Past the end of an episode one gets to a start.
        row = row[~ended]
        links = csr_array(
            (np.ones(len(row)), (row // self.n_actions, next_state[~ended])),
            shape=(self.n_states, self.n_states),
        )
        is_reached = reachable(links, [state, *self._starts])
        return not is_open[is_reached].any()

    def _sees_untried(self, states: list[int]) -> bool:
        """Whether the last outcomes lead from one of the states to something untried.

        Unlike a search of the whole table, it stops at the first try that it meets.
        """
        seen = {ENDED, GIVEN_UP, *states}
        # What is met is appended, so that the loop goes on with it.
        queue = list(states)
        for state in queue:
            for after in self._successors[state]:
                if after == UNTRIED:
                    return True
                if after not in seen:
                    seen.add(after)
                    queue.append(after)
        return False


def _trace_path(
    came_from: dict[int, tuple[int, int]],
    origin: int,
    last_step: tuple[int, int],
) -> Path:
    """Return the path of a search from its origin to an untried action.

    Parameters
    ----------
    came_from : dict
        The state and the action by which each state was reached first.
    origin : int
        The state in which the search began.
    last_step : (state, action)
        The untried action, and where it is untried.
    """
    last_state, untried_action = last_step
    actions = [untried_action]

    # Backwards, from the end of the path.
    state = last_state
    while state != origin:
        state, action = came_from[state]
        actions.append(action)
    actions.reverse()
    return Path(actions, last_state)
