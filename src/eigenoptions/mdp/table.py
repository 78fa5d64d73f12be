"""`MDP`: finite dynamics as a transition table (paper, Section 2)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from eigenoptions._registry import data_readers, notebook_pictures
from eigenoptions._text import HEADINGS, draw_map, printable
from eigenoptions._types import BoolArray, FloatArray
from eigenoptions._validation import (
    Record,
    check_csr,
    check_int,
    check_real,
    check_state,
    check_type,
    readonly,
    set_readonly,
    show_value,
    suggest_name,
)
from eigenoptions.mdp.keys import make_hashable
from eigenoptions.mdp.recognition import Recognition
from eigenoptions.mdp.spaces import count_states, read_spaces


@dataclass(frozen=True, eq=False, repr=False)
class MDP(Record):
    """Finite dynamics; a task when they have a start and a goal.

    Parameters
    ----------
    transition : csr_array of shape (S * A, S) or ndarray of shape (S, A, S)
        Row ``s * A + a`` is the distribution p(. | s, a). It is copied and checked.
    coords : ndarray of int of shape (S, 2), default=None
        Row and column of each state, for pictures. Additional states may be left out:
        they are placed below the map.
    headings : ndarray of int of shape (S,), default=None
        Where an agent looks in each state, for pictures: 0 right, 1 down, 2 left, 3 up.
        `coords` then has a map of its own for each of them.
    positions : ndarray of shape (S, 2), default=None
        Where the nodes of a graph are drawn: x and y.
    start : int, default=None
        State in which a task begins.
    goal : int, default=None
        State in which a task ends.
    reward : ndarray of shape (S,) or (S * A,), default=None
        Mean reward of leaving each state, or of each action, for methods that need
        rewards.
    name : str, default=""
        A title.
    legend : str, default=""
        What a picture does not show, such as the names of actions.
    states : sequence of length S - n_additional, default=None
        What each state is: the node of a graph, the key of an environment.
    recognition : Recognition, default=None
        How `OptionsWrapper` recognises the `states` in an environment; `from_env` sets
        it.
    weights : csr_array of shape (S, S), default=None
        Weights of the edges of `graph`, where they are not 1.
    n_additional : int, default=0
        How many of the states, the last ones, stand for the end of an episode: steps
        lead there that end it where others go on. They are absorbing, they have no
        entry in `states` and no edge in `graph`, and no walk starts or aims there.
    is_estimated : bool, default=False
        Whether the table was estimated from samples, so that there may be moves that it
        does not show.

    Examples
    --------
    >>> MDP(np.array([[0.0, 1.0], [1.0, 0.0]]))
    MDP(2 states, 1 action, deterministic)
    """

    transition: csr_array
    _: KW_ONLY
    coords: NDArray[np.int_] | None = None
    headings: NDArray[np.int_] | None = None
    positions: FloatArray | None = None
    start: int | None = None
    goal: int | None = None
    reward: FloatArray | None = None
    name: str = ""
    legend: str = ""
    states: Sequence[Any] | None = None
    recognition: Recognition | None = None
    weights: csr_array | None = None
    n_additional: int = 0
    is_estimated: bool = False

    def __post_init__(self) -> None:
        table = _check_table(self.transition)
        n_rows, n_states = table.shape

        checked: dict[str, Any] = {"transition": table}
        n_additional = check_int("n_additional", self.n_additional, 0, n_states - 1)
        n_listed = n_states - n_additional
        checked["n_additional"] = n_additional
        _check_absorbing(table, n_listed)
        if self.coords is not None:
            coords = _place_below(self.coords, n_listed, n_additional)
            checked["coords"] = _check_coords(coords, n_states)
        if self.headings is not None:
            headings = self.headings
            if len(headings) == n_listed:
                headings = np.append(headings, np.zeros(n_additional, dtype=np.int64))
            checked["headings"] = _check_headings(headings, n_states)
        if self.positions is not None:
            positions = _place_below(self.positions, n_listed, n_additional)
            checked["positions"] = _check_positions(positions, n_states)
        if self.reward is not None:
            checked["reward"] = _check_reward(self.reward, n_states, n_rows)
        if self.start is not None:
            checked["start"] = check_int("start", self.start, 0, n_listed - 1)
        if self.goal is not None:
            checked["goal"] = check_int("goal", self.goal, 0, n_listed - 1)
        if self.weights is not None:
            checked["weights"] = _check_edge_weights(self.weights, n_states)
        if self.states is not None:
            _check_states(self.states, n_listed)
        if self.recognition is not None:
            check_type(
                "recognition", self.recognition, Recognition, "from_env makes it"
            )
        check_type("is_estimated", self.is_estimated, bool, "give True or False")
        for field in ("name", "legend"):
            check_type(field, getattr(self, field), str, "give text")

        for field, value in checked.items():
            object.__setattr__(self, field, value)

    @classmethod
    def from_successors(cls, successors: ArrayLike, **fields: Any) -> MDP:
        """Deterministic MDP from the next state of each state and action.

        Parameters
        ----------
        successors : ndarray of int of shape (S, A)
            Next states.
        **fields
            Further fields of the `MDP`.

        Examples
        --------
        >>> MDP.from_successors([[1, 0], [0, 1]], start=0)
        MDP(2 states, 2 actions, deterministic, start 0)
        """
        table = check_real("successors", successors)
        if table.ndim != 2:
            raise ValueError(
                f"successors must be integers (S, A), got {table.dtype} {table.shape}"
            )
        next_states = table.ravel()
        n_rows = table.size
        n_states = _check_numbers("successors", next_states, len(table))

        # One entry per row: the next state, with probability 1.
        entries = (np.ones(n_rows), next_states, np.arange(n_rows + 1))
        return cls(csr_array(entries, shape=(n_rows, n_states)), **fields)

    @classmethod
    def from_transitions(
        cls,
        data: Any,
        n_states: int | None = None,
        n_actions: int | None = None,
        **fields: Any,
    ) -> MDP:
        """MDP of samples between numbered states, by frequencies (Section 5.1).

        An action that was never tried leaves the state unchanged. A state in which
        episodes only end is absorbing. A step that ends an episode in another state
        leads to an additional state, the last one (see `n_additional`).

        Parameters
        ----------
        data : object
            Whatever `Transitions.of` accepts. Observations are numbers of states, or
            names or tuples, which become ``mdp.states``.
        n_states : int, default=None
            Number of states. None: that of the space that the data declare, or one more
            than the largest state in the data.
        n_actions : int, default=None
            Number of actions, likewise.
        **fields
            Further fields of the `MDP`.

        Examples
        --------
        >>> log = ([0, 1, 2], [1, 1, 0], [1, 2, 1])
        >>> MDP.from_transitions(log, n_states=4).successors.tolist()
        [[0, 1], [1, 2], [1, 2], [3, 3]]
        """
        if n_states is not None:
            n_states = check_int("n_states", n_states)
        if n_actions is not None:
            n_actions = check_int("n_actions", n_actions)
        space, declared_actions = read_spaces(data)
        batch = data_readers.find("transitions").of(data)
        if batch.obs.ndim != 1 or batch.next_obs.ndim != 1:
            raise ValueError(
                "a table needs numbers or names as states, got vectors "
                f"{batch.obs.dtype} {batch.obs.shape}: give them to Planner, or to "
                "discover"
            )
        fields = {"is_estimated": True, **fields}
        if batch.states is not None:
            fields = {"states": batch.states, **fields}

        # States before and after each step.
        states = np.concatenate([batch.obs, batch.next_obs])
        S = _check_numbers("states", states, n_states or count_states(space))
        A = _check_numbers("actions", batch.action, n_actions or declared_actions)
        if S * A > 10**8:
            raise ValueError(
                f"{S} states and {A} actions are more than 1e8 rows: number both "
                "without gaps"
            )
        before, after = states.astype(np.int64).reshape(2, -1)
        table = count_outcomes(
            before * A + batch.action,
            after,
            np.asarray(batch.terminated, dtype=np.bool_),
            np.ones(len(batch)),
            n_states=S,
            n_actions=A,
        )
        return cls(table, n_additional=table.shape[1] - S, **fields)

    @property
    def n_states(self) -> int:
        """Number of states S."""
        return int(self.transition.shape[1])

    @property
    def n_listed(self) -> int:
        """Number of states without the additional ones."""
        return self.n_states - self.n_additional

    @property
    def n_actions(self) -> int:
        """Number of actions A."""
        return int(self.transition.shape[0]) // self.n_states

    @cached_property
    def end_chances(self) -> FloatArray:
        """``(S, A)`` how likely each action leads to an additional state."""
        chances = self.transition[:, self.n_listed :].sum(axis=1)
        return set_readonly(chances.reshape(self.n_states, self.n_actions))

    @cached_property
    def successors(self) -> NDArray[np.int32] | None:
        """``(S, A)`` next state of each action; None if some action is stochastic."""
        n_rows = self.transition.shape[0]
        if not np.array_equal(self.transition.indptr, np.arange(n_rows + 1)):
            return None
        next_states = readonly(self.transition.indices, np.int32)
        return next_states.reshape(self.n_states, self.n_actions)

    @cached_property
    def most_likely_successors(self) -> NDArray[np.int32]:
        """``(S, A)`` most likely next state of each action, for pictures.

        Ties go to the state that is nearest to the expected displacement, then to the
        first.
        """
        if self.successors is not None:
            return self.successors
        table = self.transition
        first_entry = table.indptr[:-1]
        row = np.repeat(np.arange(len(first_entry)), np.diff(table.indptr))

        # How far each outcome lies from the mean outcome of its row, on the map.
        deviation = np.zeros(table.nnz)
        if self.coords is not None:
            before = self.coords[row // self.n_actions]
            displacement = (self.coords[table.indices] - before).astype(float)
            weighted = table.data[:, None] * displacement
            expected = np.add.reduceat(weighted, first_entry)
            squares = (displacement - expected[row]) ** 2
            deviation = squares.sum(axis=1).round(9)

        highest = np.maximum.reduceat(table.data, first_entry)
        is_less_likely = table.data < (1.0 - 1e-9) * highest[row]
        order = np.lexsort((table.indices, deviation, is_less_likely, row))
        best = table.indices[order[first_entry]]
        return readonly(best, np.int32).reshape(self.n_states, self.n_actions)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all that options depend on, which matches options and MDPs.

        These are the dynamics, the weights of edges and what each state is. States that
        JSON cannot hold are left out, as in files.
        """
        digest = blake2b(digest_size=16)
        digest.update(f"{self.n_states},{self.n_actions};".encode())
        _update_digest(digest, self.transition)
        if self.weights is not None:
            digest.update(b"weights;")
            _update_digest(digest, self.weights)
        if self.n_additional:
            digest.update(f"additional;{self.n_additional};".encode())

        states = self.describe_states()
        if states is not None:
            digest.update(f"states;{states}".encode())
        return digest.hexdigest()

    def describe_states(self) -> str | None:
        """Return `states` as JSON; None if there are none or JSON cannot hold them.

        Examples
        --------
        >>> MDP(np.eye(2), states=["a", ("b", 1)]).describe_states()
        '["a", ["b", 1]]'
        """
        if self.states is None:
            return None
        try:
            # `item` turns numbers of NumPy into those of Python.
            return json.dumps(list(self.states), default=np.generic.item)
        except (TypeError, ValueError):
            return None

    def find_state(self, state: Any) -> int:
        """The number of a state that is given by its number or its name.

        Parameters
        ----------
        state : int, hashable or observation
            A number in ``0..S-1``, an entry of `states`, or the observation (a dict, a
            tuple or an array) that became one of them.

        Examples
        --------
        >>> rooms = MDP.from_transitions([("hall", 0, "room"), ("room", 0, "hall")])
        >>> rooms.find_state("room")
        1
        """
        # A tuple may also be the name of a state.
        is_obs = isinstance(state, dict | np.ndarray)
        is_obs |= isinstance(state, tuple) and self.recognition is not None
        if isinstance(state, dict | tuple | np.ndarray):
            state = make_hashable(state)
        is_integer = isinstance(state, int | np.integer)
        # Keys of an environment may be integers, too: there, integers are numbers.
        is_key = is_integer and self.recognition is not None
        if self.states is None or is_key or not isinstance(state, Hashable):
            return check_state(state, self.n_listed)

        number = self._numbers_of_states.get(state, -1)
        if isinstance(state, int | np.integer) and 0 <= state < self.n_listed:
            # Nodes 1, 2, 3 of a graph have the numbers 0, 1, 2.
            if number not in (-1, state):
                raise ValueError(
                    f"{state} is the name of state number {number}, and the number of "
                    f"state {self.states[int(state)]!r}: use names that are no integers"
                )
            return int(state)
        if number < 0 and is_obs:
            raise ValueError(
                f"observation {show_value(state)} was never seen among the "
                f"{self.n_listed} states of this table, so no option acts there: take "
                "an action of your own, as OptionsWrapper does, or explore further"
            )
        if number < 0:
            hint = suggest_name(state, [str(name) for name in self.states])
            raise IndexError(f"there is no state {show_value(state)}{hint}")
        return number

    @cached_property
    def _numbers_of_states(self) -> dict[Hashable, int]:
        """The number of each state that has a name."""
        assert self.states is not None
        return {name: number for number, name in enumerate(self.states)}

    def with_task(
        self, start: Hashable | None = None, goal: Hashable | None = None
    ) -> MDP:
        """The same dynamics with another start, another goal, or both.

        The table is shared, not copied.

        Parameters
        ----------
        start : int or name of a state, default=None
            The new start; None keeps the present one.
        goal : int or name of a state, default=None
            The new goal; None keeps the present one.

        Examples
        --------
        >>> MDP.from_successors([[1], [0]], start=0).with_task(goal=1)
        MDP(2 states, 1 action, deterministic, start 0, goal 1)
        """
        task = copy(self)
        for field, state in (("start", start), ("goal", goal)):
            if state is None:
                continue
            if self.states is None:
                number = check_int(field, state, 0, self.n_listed - 1)
            else:
                number = self.find_state(state)
            object.__setattr__(task, field, number)
        return task

    def restrict(self, states: ArrayLike) -> MDP:
        """Return the part of the MDP on some states, which no action leaves.

        The additional states stay the last ones of the part. `recognition` is left out:
        an environment is recognised as a whole. `OptionSet.extend` is the inverse.

        Parameters
        ----------
        states : ndarray of int of shape (n,)
            Numbers of the states, in the order that they have in the part.

        Examples
        --------
        >>> mdp = MDP.from_successors([[0], [2], [1]], states=list("abc"), goal=1)
        >>> part = mdp.restrict([2, 1])
        >>> part.successors.tolist(), part.states, part.goal
        ([[1], [0]], ['c', 'b'], 1)
        """
        listed = _check_part(states, self.n_listed)
        kept = np.append(listed, np.arange(self.n_listed, self.n_states))
        rows = kept[:, None] * self.n_actions + np.arange(self.n_actions)
        moves = self.transition[rows.ravel()]
        self._check_closed(moves, kept)

        reward = self.reward
        if reward is not None:
            reward = reward.reshape(self.n_states, -1)[kept]
        return MDP(
            moves[:, kept],
            coords=None if self.coords is None else self.coords[kept],
            headings=None if self.headings is None else self.headings[kept],
            positions=None if self.positions is None else self.positions[kept],
            start=_find_in_part(listed, self.start),
            goal=_find_in_part(listed, self.goal),
            reward=reward,
            name=self.name,
            legend=self.legend,
            states=None if self.states is None else [self.states[i] for i in listed],
            weights=None if self.weights is None else self.weights[kept][:, kept],
            n_additional=self.n_additional,
            is_estimated=self.is_estimated,
        )

    def _check_closed(self, moves: csr_array, kept: NDArray[np.intp]) -> None:
        """Raise ValueError if an action of a part leaves it."""
        is_outside = np.ones(self.n_states, dtype=np.bool_)
        is_outside[kept] = False
        outside = np.flatnonzero(is_outside[moves.indices])
        if len(outside):
            entry = outside[0]
            row = int(np.searchsorted(moves.indptr, entry, side="right")) - 1
            state = kept[row // self.n_actions]
            raise ValueError(
                f"no action may leave the part, but action {row % self.n_actions} of "
                f"state {state} leads to state {moves.indices[entry]}: add that state"
            )

    def __repr__(self) -> str:
        parts = [
            _count(self.n_states, "state"),
            _count(self.n_actions, "action"),
            "stochastic" if self.successors is None else "deterministic",
        ]
        if self.start is not None:
            parts.append(f"start {self.start}")
        if self.goal is not None:
            parts.append(f"goal {self.goal}")
        text = ", ".join(parts)
        if self.name:
            text = f"{printable(self.name)}: {text}"
        return f"MDP({text})"

    def __str__(self) -> str:
        if self.coords is None:
            return repr(self)
        glyphs = [" "] * self.n_states
        if self.start is not None:
            glyphs[self.start] = "S"
        if self.goal is not None:
            glyphs[self.goal] = "G"

        lines = [draw_map(self.coords, glyphs)]
        if self.legend:
            lines.append(printable(self.legend))
        lines.append(repr(self))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The map, or the graph, as a notebook shows it."""
        return notebook_pictures.find("table")(self)

    @property
    def edges(self) -> NDArray[np.int_]:
        """``(E, 2)`` pairs of different states that some action joins, each once."""
        rows, after = self.transition.nonzero()
        before = rows // self.n_actions
        pairs = np.sort(np.stack([before, after], axis=1), axis=1)
        return np.unique(pairs[before != after], axis=0)

    def _count_parts(self) -> list[tuple[str, int]]:
        """What is counted where there is no map."""
        return [
            ("states", self.n_states),
            ("actions", self.n_actions),
            ("pairs of states that an action joins", len(self.edges)),
        ]


def count_outcomes(
    row: NDArray[np.int64],
    next_state: NDArray[np.int64],
    ended: BoolArray,
    times: FloatArray,
    *,
    n_states: int,
    n_actions: int,
    starts: Sequence[int] = (),
) -> csr_array:
    """Return the table of what was seen, by frequencies.

    Every action stays put where it was never tried, and so in states where episodes
    only end. Where a step ended an episode in a state in which others went on, it leads
    to an additional state, the last one.

    Parameters
    ----------
    row : ndarray of int of shape (N,)
        State and action, as ``state * n_actions + action``.
    next_state : ndarray of int of shape (N,)
        Where the action led.
    ended : ndarray of bool of shape (N,)
        Whether the episode ended there.
    times : ndarray of shape (N,)
        How often this was seen.
    n_states, n_actions : int
        Size of the table.
    starts : sequence of int, default=()
        States in which episodes began; they may have no step yet.

    Returns
    -------
    csr_array of shape (S * n_actions, S)
        S is `n_states`, or one more with the additional state.

    Examples
    --------
    >>> row, next_state = np.array([0, 1, 2]), np.array([1, 1, 0])
    >>> ended = np.array([False, True, False])
    >>> table = count_outcomes(
    ...     row, next_state, ended, np.ones(3), n_states=2, n_actions=2
    ... )
    >>> table.indices.tolist()
    [1, 2, 0, 1, 2, 2]
    """
    goes_on = np.zeros(n_states, dtype=np.bool_)
    goes_on[row // n_actions] = True
    goes_on[next_state[~ended]] = True
    goes_on[list(starts)] = True

    leads_to_end = ended & goes_on[next_state]
    column = np.where(leads_to_end, n_states, next_state)
    n_all_states = n_states + bool(leads_to_end.any())
    shape = (n_all_states * n_actions, n_all_states)
    counts = csr_array((times, (row, column)), shape=shape)

    # An action that was never tried stays put.
    untried = np.flatnonzero(np.diff(counts.indptr) == 0)
    stays = (np.ones(len(untried)), (untried, untried // n_actions))
    counts += csr_array(stays, shape=shape)

    n_tries = counts.sum(axis=1)
    counts.data /= np.repeat(n_tries, np.diff(counts.indptr))
    return counts


def _count(number: int, noun: str) -> str:
    """A number and its noun, as in ``"2 states"``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _join_states_and_actions(transition: Any) -> NDArray[Any]:
    """Return an array ``(S, A, S)`` as ``(S * A, S)``."""
    shape = np.shape(transition)
    if shape[0] == shape[2]:
        return np.reshape(transition, (-1, shape[2]))
    message = f"transition must have shape (S, A, S), got {shape}"
    if shape[1] == shape[2]:
        # As in MDPtoolbox.
        message += ": give transition.transpose(1, 0, 2)"
    raise ValueError(message)


def _check_table(transition: Any) -> csr_array:
    """A read-only copy ``(S * A, S)`` of a table, whose rows sum to 1."""
    if np.ndim(transition) == 3:
        transition = _join_states_and_actions(transition)
    table = check_csr("transition", transition, nonnegative=True)
    n_rows, n_states = table.shape
    if n_states == 0 or n_rows == 0 or n_rows % n_states:
        raise ValueError(
            "transition must have shape (S*A, S), at least one state, "
            f"got {table.shape}"
        )

    sums = table.sum(axis=1)
    row = int(np.abs(sums - 1.0).argmax())
    if abs(sums[row] - 1.0) > 1e-9:
        state, action = divmod(row, n_rows // n_states)
        raise ValueError(
            f"transition rows must sum to 1, row {row} (state {state}, action "
            f"{action}) sums to {sums[row]:.6g}"
        )

    return _seal(table)


def _check_absorbing(table: csr_array, n_listed: int) -> None:
    """Raise ValueError if an action leaves one of the additional states, the last."""
    n_rows, n_states = table.shape
    if n_listed == n_states:
        return
    first_row = n_listed * (n_rows // n_states)
    states = np.arange(first_row, n_rows) // (n_rows // n_states)
    rest = table[first_row:]
    if rest.nnz != len(states) or (rest.indices != states).any():
        raise ValueError(
            f"the last n_additional={n_states - n_listed} states must be absorbing: "
            "let every action stay there"
        )


def _update_digest(digest: Any, matrix: csr_array) -> None:
    """Add a sparse array to a hash."""
    # In types of fixed size and byte order, so that all machines agree.
    for array, kind in (
        (matrix.indptr, "<i8"),
        (matrix.indices, "<i8"),
        (matrix.data, "<f8"),
    ):
        digest.update(np.ascontiguousarray(array, dtype=kind).data)


def _seal(matrix: csr_array) -> csr_array:
    """Make a new sparse array read-only."""
    matrix.data = set_readonly(matrix.data)
    matrix.indices = set_readonly(matrix.indices)
    matrix.indptr = set_readonly(matrix.indptr)
    return matrix


def _check_edge_weights(weights: Any, n_states: int) -> csr_array:
    """A read-only copy ``(S, S)`` of the weights of edges."""
    checked = check_csr("weights", weights, nonnegative=True)
    if checked.shape != (n_states, n_states):
        raise ValueError(
            f"weights must have shape ({n_states}, {n_states}) for {n_states} states, "
            f"got {checked.shape}"
        )
    return _seal(checked)


def _check_states(states: Any, n_states: int) -> None:
    """Raise ValueError unless there is one entry per state, and each only once."""
    is_sequence = isinstance(states, Sequence) or np.ndim(states) > 0
    if not is_sequence or isinstance(states, str):
        raise ValueError(
            f"states must be a sequence of {n_states} entries, got {show_value(states)}"
        )
    if len(states) != n_states:
        raise ValueError(f"states must have {n_states} entries, got {len(states)}")

    try:
        n_different = len(set(states))
    except TypeError:
        # What cannot be hashed cannot be found by its name, either.
        return
    if n_different < n_states:
        (repeated, count), *_ = Counter(states).most_common(1)
        raise ValueError(
            f"states must be different from each other, got {show_value(repeated)} "
            f"{count} times"
        )


def _check_part(states: ArrayLike, n_listed: int) -> NDArray[np.intp]:
    """Numbers of different states, at least one."""
    numbers = check_real("states", states)
    _check_numbers("states", numbers, n_listed)
    if len(np.unique(numbers)) < len(numbers):
        raise ValueError("states must be different from each other")
    checked: NDArray[np.intp] = numbers.astype(np.intp)
    return checked


def _find_in_part(listed: NDArray[np.intp], state: int | None) -> int | None:
    """The number of a state within a part; None if there is none."""
    if state is None:
        return None
    places = np.flatnonzero(listed == state)
    return int(places[0]) if len(places) else None


def _place_below(places: ArrayLike, n_listed: int, n_additional: int) -> ArrayLike:
    """Add places of additional states, if they are missing: below those of a map."""
    if not n_additional or np.shape(places) != (n_listed, 2):
        return places
    rows = np.asarray(places)
    lowest = rows[:, 0].max() + 2
    first = rows[:, 1].min()
    below = [(lowest, first + 2 * number) for number in range(n_additional)]
    return np.concatenate([rows, np.array(below, dtype=rows.dtype)])


def _check_coords(coords: Any, n_states: int) -> NDArray[np.int_]:
    """Read-only coordinates ``(S, 2)``."""
    checked = readonly(coords)
    if checked.shape != (n_states, 2) or checked.dtype.kind not in "iu":
        raise ValueError(
            f"coords must be integers ({n_states}, 2), "
            f"got {checked.dtype} {checked.shape}"
        )
    return checked


def _check_headings(headings: Any, n_states: int) -> NDArray[np.int_]:
    """Read-only headings ``(S,)``."""
    checked = readonly(headings)
    if checked.shape != (n_states,) or checked.dtype.kind not in "iu":
        raise ValueError(
            f"headings must be integers ({n_states},), got {checked.dtype} "
            f"{checked.shape}"
        )
    if checked.min() < 0 or checked.max() >= len(HEADINGS):
        raise ValueError(
            f"headings must be in 0..{len(HEADINGS) - 1} ({', '.join(HEADINGS)}), got "
            f"{checked.min()}..{checked.max()}"
        )
    return checked


def _check_positions(positions: Any, n_states: int) -> FloatArray:
    """Read-only positions ``(S, 2)`` of nodes."""
    checked = readonly(positions, np.float64, name="positions")
    if checked.shape != (n_states, 2) or not np.isfinite(checked).all():
        raise ValueError(
            f"positions must be finite numbers ({n_states}, 2), got shape "
            f"{checked.shape}"
        )
    return checked


def _check_reward(reward: Any, n_states: int, n_rows: int) -> FloatArray:
    """Read-only rewards, one per state or one per state and action."""
    numbers = check_real("reward", reward)
    checked = readonly(np.ravel(numbers), np.float64)
    if len(checked) not in (n_states, n_rows) or not np.isfinite(checked).all():
        raise ValueError(
            f"reward must be {n_states} or {n_rows} finite numbers, got {numbers.shape}"
        )
    return checked


def _check_numbers(kind: str, numbers: NDArray[Any], size: int | None) -> int:
    """The size of a table that has these numbers of states or actions."""
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not len(numbers):
        raise ValueError(
            f"{kind} must be integers (N,), got {numbers.dtype} of shape "
            f"{numbers.shape}"
        )
    lowest = int(numbers.min())
    highest = int(numbers.max())
    if size is None:
        size = highest + 1
    if lowest < 0 or highest >= size:
        raise ValueError(f"{kind} must be in 0..{size - 1}, got {lowest}..{highest}")
    return size
