"""Purposes and options as records of arrays (paper, Sections 2.2 and 3).

A `Purpose` is a potential f; its reward is ``f(s') - f(s)``. In a table, an `Option` is
a row of actions, with TERMINATE where it ends and may not start. `solver.solve`
computes an `OptionSet` of them.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, Self, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._registry import environment_checks, notebook_pictures
from eigenoptions._text import count_noun, describe, printable
from eigenoptions._types import (
    BoolArray,
    Environment,
    FloatArray,
    IndexArray,
    IntegerArray,
    Randomness,
)
from eigenoptions._validation import (
    Record,
    check_float,
    check_int,
    check_state,
    check_type,
    readonly,
    show_value,
    suggest_name,
)
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import compute_lengths, sample_successor
from eigenoptions.mdp.recognition import Recognition
from eigenoptions.options.files import Arrays, write_arrays
from eigenoptions.options.maps import draw_text

TERMINATE = -1

T = TypeVar("T")


def set_fields(record: Any, values: dict[str, Any]) -> None:
    """Set fields of a frozen dataclass to checked values."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


@dataclass(frozen=True, eq=False, repr=False)
class Purpose(Record):
    """A potential whose differences are an intrinsic reward (Definition 3.1).

    Parameters
    ----------
    potential : array of shape (d,) or None
        In a table one number per state, in a feature space the vector e of the
        potential ``e . phi(s)``. None for options of a table that were loaded from a
        file.
    label : str, default=""
        Name. By default it follows from the fields below: ``"e2+"``, ``"goal 17"``.
    index : int, default=None
        Number of the eigenvector, counted from 1 as in the paper.
    sign : int, default=None
        1 for an eigenvector, -1 for its negation.
    goal : int, default=None
        The state that the purpose leads to, if it is a single one.
    eigenvalue : float, default=nan
        Eigenvalue of the eigenvector.
    initiation : array of bool of shape (S,), default=None
        States where the option may be followed. None: all.
    exact : bool, default=False
        Whether the potential is exact, such as the indicator of a goal, and not
        computed. Action values of an exact potential are different if they differ by
        more than 1e-12 of its maximum, those of a computed one by more than 1e-9. See
        `solve`.

    Examples
    --------
    >>> Purpose(np.array([-0.7, 0.7]), index=2, sign=1)
    Purpose(e2+: 2 numbers from -0.7 to 0.7)
    """

    potential: FloatArray | None
    label: str = ""
    _: KW_ONLY
    index: int | None = None
    sign: int | None = None
    goal: int | None = None
    eigenvalue: float = float("nan")
    initiation: BoolArray | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {"eigenvalue": _check_eigenvalue(self.eigenvalue)}
        if self.potential is not None:
            checked["potential"] = readonly(
                self.potential, np.float64, name="potential"
            )
        if self.initiation is not None:
            checked["initiation"] = readonly(
                self.initiation, np.bool_, name="initiation"
            )
        for name in ("index", "sign", "goal"):
            number = getattr(self, name)
            if number is not None:
                checked[name] = check_int(name, number, minimum=-1)
        if self.sign not in (None, 1, -1):
            raise ValueError(f"sign must be 1, -1 or None, got {show_value(self.sign)}")
        checked["label"] = str(self.label) or self._make_label()
        set_fields(self, checked)

    def extend(self, states: IndexArray, n_states: int) -> Purpose:
        """Return a purpose on some states as one on all; its option starts in those.

        Parameters
        ----------
        states : ndarray of int of shape (n,)
            The states of its potential. What the potential has besides, additional
            states, is left out.
        n_states : int
            Number of all states.

        Examples
        --------
        >>> purpose = Purpose([0.0, 1.0], goal=1).extend(np.array([4, 2]), 5)
        >>> purpose.label, purpose.potential.tolist()
        ('goal 2', [0.0, 0.0, 1.0, 0.0, 0.0])
        """
        n_own = len(states)
        potential = np.zeros(n_states)
        if self.potential is not None:
            potential[states] = self.potential[:n_own]

        initiation = np.zeros(n_states, dtype=np.bool_)
        initiation[states] = True
        if self.initiation is not None:
            initiation[states] = self.initiation[:n_own]

        goal = self.goal
        label = self.label
        if goal is not None:
            if label == f"goal {goal}":
                # It follows from the number of the goal, which is another one now.
                label = ""
            goal = int(states[goal])
        return replace(
            self, potential=potential, initiation=initiation, goal=goal, label=label
        )

    def _make_label(self) -> str:
        if self.index is not None and self.sign is not None:
            mark = "+" if self.sign > 0 else "-"
            return f"e{self.index}{mark}"
        if self.goal is not None:
            return f"goal {self.goal}"
        return ""

    def __repr__(self) -> str:
        text = printable(self.label) or "no label"
        if self.potential is not None and self.potential.size:
            low = self.potential.min()
            high = self.potential.max()
            text += f": {len(self.potential)} numbers from {low:.4g} to {high:.4g}"
        if np.isfinite(self.eigenvalue):
            text += f", eigenvalue {self.eigenvalue:.4g}"
        return f"Purpose({text})"


def _check_eigenvalue(value: float) -> float:
    """Check that an eigenvalue is a finite number, or nan for a purpose without one."""
    if isinstance(value, Real) and np.isnan(float(value)):
        return float(value)
    return check_float("eigenvalue", value)


class OptionFields:
    """What an option takes from its purpose."""

    purpose: Purpose

    @property
    def label(self) -> str:
        """Name of the option."""
        return self.purpose.label

    @property
    def eigenvalue(self) -> float:
        """Eigenvalue of its eigenvector, or nan."""
        return self.purpose.eigenvalue

    @property
    def index(self) -> int | None:
        """Number of its eigenvector, or None."""
        return self.purpose.index

    @property
    def sign(self) -> int | None:
        """Sign of its eigenvector, or None."""
        return self.purpose.sign

    @property
    def goal(self) -> int | None:
        """The state that it leads to, or None."""
        return self.purpose.goal


class OptionSequence(Sequence[T]):
    """What sets of options have in common, in a table and in a feature space.

    Labels and numbers come from the purposes. You choose options by number or label.
    The sets are frozen dataclasses, and `_row_arrays` names their fields with one row
    per option.
    """

    purposes: Sequence[Purpose]
    provenance: dict[str, Any]
    _row_arrays: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """Name of each option."""
        return tuple(purpose.label for purpose in self.purposes)

    @property
    def indices(self) -> tuple[int | None, ...]:
        """Number of each option's eigenvector, or None."""
        return tuple(purpose.index for purpose in self.purposes)

    @property
    def signs(self) -> tuple[int | None, ...]:
        """Sign of each option's eigenvector, or None."""
        return tuple(purpose.sign for purpose in self.purposes)

    @property
    def goals(self) -> tuple[int | None, ...]:
        """The state that each option leads to, or None."""
        return tuple(purpose.goal for purpose in self.purposes)

    @property
    def eigenvalues(self) -> FloatArray:
        """Eigenvalues ``(n,)``, nan for an option without one."""
        values = [purpose.eigenvalue for purpose in self.purposes]
        return np.array(values, dtype=np.float64)

    def __len__(self) -> int:
        return len(self.purposes)

    def find(self, option: int | np.integer[Any] | str) -> int:
        """Return the number of an option given by its number or label.

        Negative numbers count from the end.
        """
        if not isinstance(option, str):
            return range(len(self))[option]
        labels = self.labels
        if option not in labels:
            hint = suggest_name(option, labels)
            raise KeyError(f"no option is called {option!r}{hint}")
        return labels.index(option)

    @overload
    def __getitem__(self, index: int | str) -> T: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> Self: ...
    def __getitem__(self, index: Any) -> Any:
        """Return the option with a number or label, or the set that is selected.

        Select a set by a slice, numbers or a mask.
        """
        if isinstance(index, int | np.integer | str):
            return self._make_option(self.find(index))

        # NumPy takes an empty list for floats, which cannot index.
        if not isinstance(index, slice) and not np.size(index):
            index = np.empty(0, dtype=np.intp)
        elif not isinstance(index, slice):
            index = _check_selection(index)
        selected = np.arange(len(self))[index]

        changes: dict[str, Any] = {
            "purposes": tuple(self.purposes[i] for i in selected)
        }
        for name in self._row_arrays:
            array = getattr(self, name)
            if array is not None:
                changes[name] = array[selected]
        record: Any = self
        return replace(record, **changes)

    def _make_option(self, number: int) -> T:
        """Return the option with a number."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write a file, completely or not at all; `load_options` reads it."""
        kind, header, arrays = self._collect_file_contents()
        header["provenance"] = self.provenance
        # One purpose per option.
        header["purposes"] = [_describe_purpose(purpose) for purpose in self.purposes]
        write_arrays(path, kind, header, arrays)

    def _collect_file_contents(self) -> tuple[str, dict[str, Any], Arrays]:
        """Return the kind, the header and the arrays of a file of these options."""
        raise NotImplementedError

    def list_labels(self) -> str:
        """Return the first labels, for a line of text."""
        text = printable(", ".join(self.labels[:6]))
        if len(self) > 6:
            text += ", ..."
        return text


def _check_selection(index: Any) -> NDArray[Any]:
    """Return the numbers or the mask by which options are selected, as an array."""
    selection = np.asarray(index)
    if selection.ndim != 1 or selection.dtype.kind not in "biu":
        raise TypeError(
            "choose options by number, label, slice, list of numbers or mask, got "
            f"{show_value(index)}"
        )
    return selection


def _describe_purpose(purpose: Purpose) -> dict[str, Any]:
    """Return the fields of a purpose that a file keeps, without empty ones."""
    described: dict[str, Any] = {"label": purpose.label}
    for name in ("index", "sign", "goal"):
        number = getattr(purpose, name)
        if number is not None:
            described[name] = number
    if not np.isnan(purpose.eigenvalue):
        described["eigenvalue"] = purpose.eigenvalue
    return described


def check_purposes(purposes: Iterable[Purpose]) -> tuple[Purpose, ...]:
    """Return purposes that all have a label; the third is ``"option 3"`` by default."""
    remedy = "make them with eigenpurposes or Purpose(potential)"
    check_type("purposes", purposes, Iterable, remedy)
    checked = []
    for number, purpose in enumerate(purposes, start=1):
        check_type("each of purposes", purpose, Purpose, remedy)
        if not purpose.label:
            purpose = replace(purpose, label=f"option {number}")
        checked.append(purpose)
    return tuple(checked)


def _check_policy(policy: ArrayLike, mdp: MDP, ndim: int) -> IntegerArray:
    """Return a read-only policy, ``(S,)`` or ``(n, S)`` by its number of dimensions."""
    checked = readonly(policy)
    has_shape = checked.ndim == ndim and checked.shape[-1] == mdp.n_states
    if has_shape and checked.dtype.kind in "iu":
        is_action = (checked >= TERMINATE) & (checked < mdp.n_actions)
        if is_action.all():
            return checked

    shape = f"({mdp.n_states},)" if ndim == 1 else f"(n, {mdp.n_states})"
    raise ValueError(
        f"policy must have shape {shape} and actions "
        f"{TERMINATE}..{mdp.n_actions - 1}, got {describe(checked)}"
    )


class TablePolicy:
    """Where options of a table start and end, ``(S,)`` or ``(n, S)`` as the policy."""

    policy: IntegerArray

    @property
    def initiation(self) -> BoolArray:
        """States where an option may start."""
        return self.policy >= 0

    @property
    def termination(self) -> BoolArray:
        """States where an option terminates."""
        return self.policy < 0


@dataclass(frozen=True, eq=False, repr=False)
class Option(Record, OptionFields, TablePolicy):
    """One option in a table: initiation set, policy and termination set (Section 2.2).

    Parameters
    ----------
    mdp : MDP
        The dynamics it was computed for.
    policy : array of shape (S,)
        Action in each state, TERMINATE (-1) where the option ends.
    value : array of shape (S,)
        Intrinsic return v(s) that the option still obtains from each state.
    purpose : Purpose
        What it was computed for. The option's `label`, `eigenvalue`, `index`, `sign`
        and `goal` are those of its purpose.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> right = eo.solve(eo.maze("S.G"), Purpose([0.0, 0.0, 1.0], goal=2))[0]
    >>> right
    Option(goal 2: may start in 2 of 3 states, mean length 1.5)
    >>> right.act(0), right.act(2)
    (1, -1)
    """

    mdp: MDP
    policy: IntegerArray
    value: FloatArray
    purpose: Purpose

    def __post_init__(self) -> None:
        check_type("mdp", self.mdp, MDP, "make one with maze, from_env or MDP(table)")
        check_type("purpose", self.purpose, Purpose, "make one with Purpose(potential)")
        policy = _check_policy(self.policy, self.mdp, ndim=1)
        value = readonly(self.value, np.float64, name="value")
        if value.shape != policy.shape:
            raise ValueError(f"value must have shape {policy.shape}, got {value.shape}")
        set_fields(self, {"policy": policy, "value": value})

    @cached_property
    def mean_length(self) -> float:
        """Expected steps until it terminates, averaged over where it may start."""
        lengths = compute_lengths(self.mdp, self.policy)
        n_starts = max(self.initiation.sum(), 1)
        return float(lengths.sum() / n_starts)

    def act(self, state: Any) -> int:
        """Return the action in a state, or TERMINATE.

        A state is given by its number, its name, or the observation (a dict, a tuple or
        an array) by which it was discovered.
        """
        if isinstance(state, str | tuple | dict | np.ndarray):
            state = self.mdp.find_state(state)
        return int(self.policy[check_state(state, len(self.policy))])

    def __repr__(self) -> str:
        n_starts = int(self.initiation.sum())
        return (
            f"Option({printable(self.label)}: may start in {n_starts} of "
            f"{len(self.policy)} states, mean length {self.mean_length:.3g})"
        )

    def _repr_html_(self) -> str:
        """The map of the option, as a notebook shows it."""
        alone = OptionSet(
            self.mdp, self.policy[None], self.value[None], (self.purpose,)
        )
        return notebook_pictures.find("options")(alone, repr(self))


class BatchOptions(OptionSequence[T]):
    """Options that act on observations, and look at a whole batch of them at once."""

    @abstractmethod
    def actions(self, obs: Any, count: int | None = None) -> NDArray[np.int64]:
        """Return the action ``(n, N)`` of every option at every observation."""


@dataclass(frozen=True, eq=False, repr=False)
class OptionSet(Record, OptionSequence[Option], TablePolicy):
    """An ordered sequence of options in one table, with their provenance.

    Index it by number or label for an `Option`, by a slice, numbers or a mask for
    another set. ``+`` concatenates two sets, `save` writes a file. All arrays are
    read-only.

    Parameters
    ----------
    mdp : MDP
        The dynamics they were computed for.
    policy : array of shape (n, S)
        Actions; TERMINATE (-1) where an option ends and may not start.
    value : array of shape (n, S), default=None
        Intrinsic values. None: zeros.
    purposes : sequence of Purpose, default=()
        One per option. By default options are called ``"option 1"`` and so on.
    provenance : dict, default={}
        Method and settings, as they go into the file. Nothing depends on them.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> options = eo.discover(eo.maze("four-rooms"), n_options=4)
    >>> options
    OptionSet(4 options on 104 states: e2+, e2-, e3+, e3-)
    >>> len(options[1:3]), options["e3+"].index, options[3].sign
    (2, 3, -1)
    """

    mdp: MDP
    policy: IntegerArray
    # Only the constructor sees None.
    value: FloatArray = None  # type: ignore[assignment]
    purposes: Sequence[Purpose] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    _row_arrays = ("policy", "value")

    def __post_init__(self) -> None:
        check_type("mdp", self.mdp, MDP, "make one with maze, from_env or MDP(table)")
        check_type("provenance", self.provenance, dict, "give names and values")
        policy = _check_policy(self.policy, self.mdp, ndim=2)

        if self.value is None:
            value = readonly(np.zeros(policy.shape))
        else:
            value = readonly(self.value, np.float64, name="value")
        purposes = check_purposes(self.purposes)
        if not purposes:
            purposes = check_purposes([Purpose(None)] * len(policy))

        if value.shape != policy.shape or len(purposes) != len(policy):
            raise ValueError(
                f"value and purposes must fit {policy.shape} options and states, "
                f"got {value.shape} and {len(purposes)}"
            )
        set_fields(self, {"policy": policy, "value": value, "purposes": purposes})

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self.mdp.n_states

    @property
    def n_actions(self) -> int:
        """Number of primitive actions."""
        return self.mdp.n_actions

    @cached_property
    def mean_length(self) -> FloatArray:
        """Expected steps ``(n,)`` of each option, averaged over where it may start."""
        return readonly([option.mean_length for option in self], np.float64)

    def choices(self, state: Any) -> IntegerArray:
        """Return the action ``(n,)`` of every option in a state, or TERMINATE.

        The state is given as to `Option.act`.
        """
        if isinstance(state, str | tuple | dict | np.ndarray):
            state = self.mdp.find_state(state)
        return self.policy[:, check_state(state, self.n_states)]

    def follow(
        self,
        option: int | str,
        state: Any,
        rng: Randomness | None = None,
        max_steps: int = 100_000,
    ) -> NDArray[np.int64]:
        """Return the states that an option visits until it terminates.

        Parameters
        ----------
        option : int or str
            Number or label of the option.
        state : int or name of a state
            First state, which is part of the result.
        rng : int, Generator or None, default=None
            Draws the outcomes of stochastic dynamics. None: a random seed.
        max_steps : int, default=100,000
            Number of steps after which the option is stopped.

        Examples
        --------
        >>> import eigenoptions as eo
        >>> eo.discover(eo.maze("S..."), 2).follow("e2+", 3).tolist()
        [3, 2, 1, 0]
        """
        policy = self.policy[self.find(option)]
        states = [self.mdp.find_state(state)]
        generator = np.random.default_rng(rng)

        while len(states) <= max_steps:
            action = int(policy[states[-1]])
            if action == TERMINATE:
                break
            states.append(sample_successor(self.mdp, states[-1], action, generator))
        return np.array(states, dtype=np.int64)

    def extend(self, mdp: MDP, states: IndexArray) -> OptionSet:
        """Return options of a part of an MDP as options of the whole.

        In other states, none may start.

        Parameters
        ----------
        mdp : MDP
            The whole.
        states : ndarray of int of shape (n,)
            Its states that are the first n of these options: the part is
            ``mdp.restrict(states)``.

        Examples
        --------
        >>> import eigenoptions as eo
        >>> mdp = eo.MDP.from_successors([[0], [2], [2]])
        >>> part = eo.solve(mdp.restrict([1, 2]), Purpose([0.0, 1.0]))
        >>> part.policy.tolist(), part.extend(mdp, np.array([1, 2])).policy.tolist()
        ([[0, -1]], [[-1, 0, -1]])
        """
        n_own = len(states)
        policy = np.full((len(self), mdp.n_states), TERMINATE, dtype=self.policy.dtype)
        policy[:, states] = self.policy[:, :n_own]
        value = np.zeros(policy.shape)
        value[:, states] = self.value[:, :n_own]
        purposes = [purpose.extend(states, mdp.n_states) for purpose in self.purposes]
        return OptionSet(mdp, policy, value, purposes, self.provenance)

    def check(self, mdp: MDP | Environment) -> None:
        """Raise ValueError unless these options were computed for an MDP.

        `mdp` may also be an environment; then its dynamics are compared. Of a table
        that was estimated from samples only the sizes are compared.
        """
        if not isinstance(mdp, MDP):
            if not hasattr(mdp, "action_space"):
                raise TypeError(
                    f"mdp must be an MDP or an environment, got {show_value(mdp)}: "
                    "make one with maze(), from_env() or gymnasium.make()"
                )
            environment_checks.find("dynamics")(self, mdp)
            return

        fits = (self.n_states, self.n_actions) == (mdp.n_states, mdp.n_actions)
        difference = ""
        if fits and not self.mdp.is_estimated:
            fits = self.mdp.fingerprint == mdp.fingerprint
            difference = ", which has other dynamics, weights of edges or names"
        if not fits:
            raise ValueError(
                f"options of another state space: options of {self.mdp!r}, "
                f"not of {mdp!r}{difference}; discover options on it"
            )

    def _make_option(self, number: int) -> Option:
        return Option(
            self.mdp, self.policy[number], self.value[number], self.purposes[number]
        )

    def _collect_file_contents(self) -> tuple[str, dict[str, Any], Arrays]:
        """Policies and values (n, S), and the MDP with its table in csr format."""
        mdp = self.mdp
        header: dict[str, Any] = {"state_space": mdp.fingerprint}
        header["mdp"] = {
            "start": mdp.start,
            "goal": mdp.goal,
            "name": mdp.name,
            "legend": mdp.legend,
        }
        if mdp.n_additional:
            header["mdp"]["n_additional"] = mdp.n_additional
        if mdp.is_estimated:
            header["mdp"]["is_estimated"] = True
        arrays: Arrays = {
            "policy": self.policy,
            "value": self.value,
            "transition.data": mdp.transition.data,
            "transition.indices": mdp.transition.indices,
            "transition.indptr": mdp.transition.indptr,
        }
        if mdp.coords is not None:
            arrays["mdp.coords"] = mdp.coords
        if mdp.headings is not None:
            arrays["mdp.headings"] = mdp.headings
        if mdp.positions is not None:
            arrays["mdp.positions"] = mdp.positions
        if mdp.reward is not None:
            arrays["mdp.reward"] = mdp.reward

        if mdp.weights is not None:
            arrays["mdp.weights.data"] = mdp.weights.data
            arrays["mdp.weights.indices"] = mdp.weights.indices
            arrays["mdp.weights.indptr"] = mdp.weights.indptr

        states = mdp.describe_states()
        if states is not None:
            arrays["mdp.states"] = np.frombuffer(states.encode(), dtype=np.uint8)
        elif mdp.states is not None:
            first = type(mdp.states[0]).__name__
            warnings.warn(
                f"the file leaves out mdp.states: JSON cannot hold them (the first is "
                f"of type {first}); use text, numbers or tuples of them",
                stacklevel=3,
            )

        # Without the states, nothing can be recognised.
        if mdp.recognition and states is not None:
            header["mdp"]["recognition"] = _describe_recognition(mdp.recognition)
        return "options", header, arrays

    def __add__(self, other: OptionSet) -> OptionSet:
        """Return both sets, one after the other. They must have one state space."""
        if not isinstance(other, OptionSet):
            return NotImplemented

        # Of a table that was estimated and an exact one, the exact one stays.
        kept = self
        dropped = other
        if self.mdp.is_estimated:
            kept = other
            dropped = self
        dropped.check(kept.mdp)
        _check_same_moves(kept.mdp, dropped.mdp)

        provenance = self.provenance
        if other.provenance != provenance:
            provenance = {"joined": [self.provenance, other.provenance]}
        return OptionSet(
            kept.mdp,
            np.concatenate([self.policy, other.policy]),
            np.concatenate([self.value, other.value]),
            purposes=(*self.purposes, *other.purposes),
            provenance=provenance,
        )

    def __repr__(self) -> str:
        return (
            f"OptionSet({count_noun(len(self), 'option')} on {self.n_states} states: "
            f"{self.list_labels()})"
        )

    def __str__(self) -> str:
        return draw_text(repr(self), self.mdp, self)

    def _repr_html_(self) -> str:
        """Maps of the first options, as a notebook shows them."""
        return notebook_pictures.find("options")(self, repr(self))


def _describe_recognition(recognition: Recognition) -> dict[str, Any]:
    """Return how states are recognised, as a file holds it: without functions.

    A key of the user is asked for again by the wrappers.
    """
    described = dict(vars(recognition))
    if not isinstance(recognition.by, str):
        described["by"] = None
    return described


def _check_same_moves(first: MDP, second: MDP) -> None:
    """Raise ValueError if the actions of two deterministic tables lead elsewhere."""
    if first.successors is None or second.successors is None:
        return
    # An action that was never tried stays in an estimated table.
    stays = np.arange(first.n_states)[:, None]
    was_tried = (first.successors != stays) & (second.successors != stays)
    if np.any(was_tried & (first.successors != second.successors)):
        raise ValueError(
            "options of different environments: their actions lead elsewhere"
        )
