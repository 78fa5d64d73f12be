"""Purposes and options as records of arrays (paper, Sections 2.2 and 3).

A `Purpose` is a potential f; its reward is ``f(s') - f(s)``. In a table, an `Option` is one row of actions, with
TERMINATE where it ends and may not start; `solver.solve` computes an `OptionSet` of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from eigenoptions._registry import environment_checks
from eigenoptions._text import (
    describe,
    draw_arrows,
    draw_map,
    explain_glyphs,
    find_moves,
    printable,
)
from eigenoptions._validation import (
    Record,
    check_int,
    check_state,
    check_type,
    readonly,
    suggest_name,
)
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import compute_lengths, sample_successor
from eigenoptions.options.files import Arrays, write_arrays

TERMINATE = -1
T = TypeVar("T")


def set_fields(record: Any, values: dict[str, Any]) -> None:
    """Set fields of a frozen dataclass to checked values."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


@dataclass(frozen=True, eq=False, repr=False)
class Purpose(Record):
    """A potential whose differences are an intrinsic reward (Definition 3.1).

    Attributes
    ----------
    potential : ndarray of shape (d,) or None
        In a table one number per state, in a feature space the vector e of the potential ``e . phi(s)``. None for
        options that were loaded from a file.
    label : str, default=""
        Name; by default it follows from the fields below: ``"e2+"``, ``"goal 17"``.
    index, sign : int, default=None
        Of an eigenvector: its number, counted from 1 as in the paper, and 1, or -1 for its negation.
    goal : int, default=None
        The state that the purpose leads to, if it is a single one.
    eigenvalue : float, default=nan
        Of an eigenvector: its eigenvalue.
    initiation : ndarray of bool of shape (S,), default=None
        States where the option may be followed; None for all.
    exact : bool, default=False
        Whether the potential is exact, such as the indicator of a goal, and not computed. Then action values that
        differ by more than 1e-12 of its maximum are different; otherwise, 1e-9. See `solve`.

    Examples
    --------
    >>> Purpose(np.array([-0.7, 0.7]), index=2, sign=1)
    Purpose(e2+: 2 numbers from -0.7 to 0.7)
    """

    potential: NDArray[np.float64] | None
    label: str = ""
    _: KW_ONLY
    index: int | None = None
    sign: int | None = None
    goal: int | None = None
    eigenvalue: float = float("nan")
    initiation: NDArray[np.bool_] | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "label": str(self.label),
            "eigenvalue": float(self.eigenvalue),
        }
        for name, dtype in (("potential", np.float64), ("initiation", np.bool_)):
            if (array := getattr(self, name)) is not None:
                checked[name] = readonly(array, dtype)
        for name in ("index", "sign", "goal"):
            if (number := getattr(self, name)) is not None:
                checked[name] = check_int(name, number, minimum=-1)
        if self.sign not in (None, 1, -1):
            raise ValueError(f"sign must be 1, -1 or None, got {self.sign!r}")
        if not self.label and self.index is not None and self.sign is not None:
            checked["label"] = f"e{self.index}{'+' if self.sign > 0 else '-'}"
        elif not self.label and self.goal is not None:
            checked["label"] = f"goal {self.goal}"
        set_fields(self, checked)

    def __repr__(self) -> str:
        text, f = printable(self.label) or "no label", self.potential
        if f is not None and f.size:
            text += f": {len(f)} numbers from {f.min():.4g} to {f.max():.4g}"
        value = (
            f", eigenvalue {self.eigenvalue:.4g}"
            if np.isfinite(self.eigenvalue)
            else ""
        )
        return f"Purpose({text}{value})"


class OptionFields:
    """What an option takes from its purpose."""

    purpose: Purpose
    label = property(lambda self: self.purpose.label, doc="Name of the option.")
    eigenvalue = property(
        lambda self: self.purpose.eigenvalue,
        doc="Eigenvalue of its eigenvector, or nan.",
    )
    index = property(
        lambda self: self.purpose.index, doc="Number of its eigenvector, or None."
    )
    sign = property(
        lambda self: self.purpose.sign, doc="Sign of its eigenvector, or None."
    )
    goal = property(
        lambda self: self.purpose.goal, doc="The state that it leads to, or None."
    )


class OptionSequence(Sequence[T]):
    """What a set of options takes from its purposes, and the choice of options by number or label."""

    purposes: Sequence[Purpose]
    _row_arrays: tuple[str, ...]  # the fields with one row per option
    labels = property(
        lambda self: tuple(p.label for p in self.purposes), doc="Name of each option."
    )
    indices = property(
        lambda self: tuple(p.index for p in self.purposes),
        doc="`Option.index` of each.",
    )
    signs = property(
        lambda self: tuple(p.sign for p in self.purposes), doc="`Option.sign` of each."
    )
    goals = property(
        lambda self: tuple(p.goal for p in self.purposes), doc="`Option.goal` of each."
    )

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """``(n,)`` eigenvalues, nan where an option belongs to none."""
        return np.array([p.eigenvalue for p in self.purposes], dtype=np.float64)

    def __len__(self) -> int:
        return len(self.purposes)

    def find(self, option: int | np.integer[Any] | str) -> int:
        """The number of an option that is given by number (also from the end) or label."""
        if not isinstance(option, str):
            return range(len(self))[option]
        if option not in self.labels:
            raise KeyError(
                f"no option is called {option!r}{suggest_name(option, self.labels)}"
            )
        return int(self.labels.index(option))

    def _make_option(self, i: int) -> T:
        raise NotImplementedError

    def _describe_file(self) -> tuple[str, dict[str, Any], Arrays]:
        """Kind, header and arrays of a file of these options."""
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int | str) -> T: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> Self: ...
    def __getitem__(self: Any, index: Any) -> Any:
        """The option with a number or label, or the set chosen by a slice, numbers or a mask."""
        if isinstance(index, int | np.integer | str):
            return self._make_option(self.find(index))
        if not isinstance(index, slice):
            index = np.asarray(index) if np.size(index) else np.empty(0, dtype=np.intp)
        chosen = np.arange(len(self))[index]
        arrays = {name: getattr(self, name) for name in self._row_arrays}
        rows = {
            name: array[chosen] for name, array in arrays.items() if array is not None
        }
        return replace(self, purposes=tuple(self.purposes[i] for i in chosen), **rows)

    def save(self: Any, path: str | Path) -> None:
        """Write a safetensors file, completely or not at all; `load_options` reads it."""
        kind, header, arrays = self._describe_file()
        header["provenance"] = self.provenance
        header["purposes"] = [_describe_purpose(purpose) for purpose in self.purposes]
        write_arrays(path, kind, header, arrays)

    def list_labels(self) -> str:
        """The first labels, for a line of text."""
        return printable(", ".join(self.labels[:6])) + (
            ", ..." if len(self) > 6 else ""
        )


def _describe_purpose(purpose: Purpose) -> dict[str, Any]:
    """The fields of a purpose that a file keeps, without those that say nothing."""
    fields = {
        "label": purpose.label,
        "index": purpose.index,
        "sign": purpose.sign,
        "goal": purpose.goal,
    }
    described: dict[str, Any] = {
        name: value for name, value in fields.items() if value is not None
    }
    if not np.isnan(purpose.eigenvalue):
        described["eigenvalue"] = purpose.eigenvalue
    return described


def check_purposes(purposes: Sequence[Purpose]) -> tuple[Purpose, ...]:
    """Purposes, each with a label: ``"option 3"`` for the third where there is none."""
    for purpose in purposes:
        check_type(
            "purposes",
            purpose,
            Purpose,
            "make them with eigenpurposes or Purpose(potential)",
        )
    return tuple(
        p if p.label else replace(p, label=f"option {i}")
        for i, p in enumerate(purposes, 1)
    )


def check_policy(policy: Any, mdp: MDP, ndim: int) -> NDArray[np.integer[Any]]:
    """A read-only policy of one option ``(S,)`` (`ndim` 1) or several ``(n, S)`` (2)."""
    checked = readonly(policy)
    fits = checked.ndim == ndim and checked.shape[-1] == mdp.n_states
    is_table = fits and checked.dtype.kind in "iu"
    if not is_table or not ((checked >= TERMINATE) & (checked < mdp.n_actions)).all():
        shape = f"({mdp.n_states},)" if ndim == 1 else f"(n, {mdp.n_states})"
        raise ValueError(
            f"policy must have shape {shape} and actions "
            f"{TERMINATE}..{mdp.n_actions - 1}, got {describe(checked)}"
        )
    return checked


class TablePolicy:
    """Where options of a table start and end, ``(S,)`` or ``(n, S)`` as the policy."""

    policy: NDArray[np.integer[Any]]
    initiation = property(
        lambda self: self.policy >= 0, doc="States where an option may start."
    )
    termination = property(
        lambda self: self.policy < 0, doc="States where an option terminates."
    )


@dataclass(frozen=True, eq=False, repr=False)
class Option(Record, OptionFields, TablePolicy):
    """One option in a table: initiation set, policy and termination set (Section 2.2).

    Attributes
    ----------
    mdp : MDP
        The dynamics it was computed for.
    policy : ndarray of shape (S,)
        Action in each state, TERMINATE (-1) where the option ends.
    value : ndarray of shape (S,)
        Intrinsic return v(s) that the option still obtains from each state.
    purpose : Purpose
        What it was computed for; `label`, `eigenvalue`, `index`, `sign` and `goal` are those of its purpose.

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
    policy: NDArray[np.integer[Any]]
    value: NDArray[np.float64]
    purpose: Purpose

    def __post_init__(self) -> None:
        check_type("mdp", self.mdp, MDP, "make one with maze, from_env or MDP(table)")
        check_type("purpose", self.purpose, Purpose, "make one with Purpose(potential)")
        policy = check_policy(self.policy, self.mdp, ndim=1)
        value = readonly(self.value, np.float64)
        if value.shape != policy.shape:
            raise ValueError(f"value must have shape {policy.shape}, got {value.shape}")
        set_fields(self, {"policy": policy, "value": value})

    @cached_property
    def mean_length(self) -> float:
        """Expected number of steps until it terminates, averaged over the states where it may start."""
        return float(
            compute_lengths(self.mdp, self.policy).sum() / max(self.initiation.sum(), 1)
        )

    def act(self, state: int) -> int:
        """The action in a state, or TERMINATE."""
        return int(self.policy[check_state(state, len(self.policy))])

    def __repr__(self) -> str:
        starts = (
            f"may start in {int(self.initiation.sum())} of {len(self.policy)} states"
        )
        return f"Option({printable(self.label)}: {starts}, mean length {self.mean_length:.3g})"


@dataclass(frozen=True, eq=False, repr=False)
class OptionSet(Record, OptionSequence[Option], TablePolicy):
    """An ordered sequence of options in one table, with their provenance.

    Index by number or label for an `Option`, by slice, numbers or mask for another set; ``+`` concatenates, `save`
    writes a file. All arrays are read-only.

    Attributes
    ----------
    mdp : MDP
        The dynamics they were computed for.
    policy : ndarray of shape (n, S)
        Actions; TERMINATE (-1) where an option ends and may not start.
    value : ndarray of shape (n, S), default=zeros
        Intrinsic values.
    purposes : sequence of Purpose, default=()
        One per option; by default options are called ``"option 1"`` and so on.
    provenance : dict, default={}
        Method and settings, as they go into the file. ``"dynamics": "estimated"`` says that the table was estimated
        from samples; `check` then compares sizes only.

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
    policy: NDArray[np.integer[Any]]
    value: NDArray[np.float64] = None  # type: ignore[assignment]
    purposes: Sequence[Purpose] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    _row_arrays = ("policy", "value")

    def __post_init__(self) -> None:
        check_type("mdp", self.mdp, MDP, "make one with maze, from_env or MDP(table)")
        check_type("provenance", self.provenance, dict, "give names and values")
        policy = check_policy(self.policy, self.mdp, ndim=2)
        value = readonly(
            np.zeros(policy.shape) if self.value is None else self.value, np.float64
        )
        purposes = check_purposes(
            tuple(self.purposes) or (Purpose(None),) * len(policy)
        )
        if value.shape != policy.shape or len(purposes) != len(policy):
            sizes = f"{value.shape} and {len(purposes)}"
            raise ValueError(
                f"value and purposes must fit {policy.shape} options and states, got {sizes}"
            )
        set_fields(self, {"policy": policy, "value": value, "purposes": purposes})

    n_states = property(lambda self: self.mdp.n_states, doc="Number of states.")
    n_actions = property(
        lambda self: self.mdp.n_actions, doc="Number of primitive actions."
    )

    @cached_property
    def mean_length(self) -> NDArray[np.float64]:
        """``(n,)`` expected steps until each option terminates, averaged over the states where it may start."""
        return readonly([option.mean_length for option in self], np.float64)

    def choices(self, state: int) -> NDArray[np.integer[Any]]:
        """``(n,)`` the action of every option in a state, or TERMINATE."""
        return self.policy[:, check_state(state, self.n_states)]

    def follow(
        self, option: int | str, state: int, rng: Any = None, max_steps: int = 100_000
    ) -> NDArray[np.int64]:
        """States visited by an option until it terminates, the first one included.

        `option` is its number or label, `rng` draws the outcomes of stochastic dynamics, and `max_steps` interrupts it.

        >>> import eigenoptions as eo
        >>> eo.discover(eo.maze("S..."), 2).follow("e2+", 3).tolist()
        [3, 2, 1, 0]
        """
        policy = self.policy[self.find(option)]
        states = [check_state(state, self.n_states)]
        generator = np.random.default_rng(rng)

        while len(states) <= max_steps:
            action = int(policy[states[-1]])
            if action == TERMINATE:
                break
            states.append(sample_successor(self.mdp, states[-1], action, generator))
        return np.array(states, dtype=np.int64)

    def check(self, mdp: Any) -> None:
        """Raise ValueError unless these options were computed for this MDP, or for one like this environment's.

        Of a table that was estimated from samples only the sizes are compared.
        """
        if not isinstance(mdp, MDP):
            environment_checks.find("dynamics")(self, mdp)
            return
        same = (self.n_states, self.n_actions) == (mdp.n_states, mdp.n_actions)
        if same and self.provenance.get("dynamics") != "estimated":
            same = self.mdp.fingerprint == mdp.fingerprint
        if not same:
            wrong = f"options of {self.mdp!r}, not of {mdp!r}"
            raise ValueError(
                f"options of another state space: {wrong}; discover options on it"
            )

    def _describe_file(self) -> tuple[str, dict[str, Any], Arrays]:
        """Policies and values (n, S), and the MDP with its table in csr format."""
        mdp = self.mdp
        header: dict[str, Any] = {"state_space": mdp.fingerprint}
        header["mdp"] = {
            "start": mdp.start,
            "goal": mdp.goal,
            "name": mdp.name,
            "legend": mdp.legend,
        }
        arrays: Arrays = {
            "policy": self.policy,
            "value": self.value,
            "transition.data": mdp.transition.data,
            "transition.indices": mdp.transition.indices,
            "transition.indptr": mdp.transition.indptr,
        }
        if mdp.coords is not None:
            arrays["mdp.coords"] = mdp.coords
        if mdp.reward is not None:
            arrays["mdp.reward"] = mdp.reward

        # A key that is a function cannot be written, and without it states are of no use.
        if mdp.recognition and isinstance(mdp.recognition["by"], str):
            header["mdp"]["recognition"] = mdp.recognition
            states = json.dumps(list(mdp.states or ()))
            arrays["mdp.states"] = np.frombuffer(states.encode(), dtype=np.uint8)
        return "options", header, arrays

    def _make_option(self, i: int) -> Option:
        return Option(self.mdp, self.policy[i], self.value[i], self.purposes[i])

    def __add__(self, other: OptionSet) -> OptionSet:
        """Both sets, one after the other; both must be options of the same state space."""
        if not isinstance(other, OptionSet):
            return NotImplemented
        # Of a table that was estimated and an exact one, the exact one stays.
        exact, second = (
            (other, self)
            if self.provenance.get("dynamics") == "estimated"
            else (self, other)
        )
        second.check(exact.mdp)
        moves, others = exact.mdp.successors, second.mdp.successors
        if moves is not None and others is not None:
            # An action that was never tried stays in an estimated table.
            stay = np.arange(exact.n_states)[:, None]
            if np.any((moves != others) & (moves != stay) & (others != stay)):
                raise ValueError(
                    "options of different environments: their actions lead elsewhere"
                )
        provenance = self.provenance
        if other.provenance != provenance:
            provenance = {"joined": [provenance, other.provenance]}
            if "dynamics" in second.provenance:
                provenance["dynamics"] = second.provenance["dynamics"]
        both = {
            name: np.concatenate([getattr(o, name) for o in (self, other)])
            for name in self._row_arrays
        }
        return OptionSet(
            exact.mdp,
            **both,
            purposes=(*self.purposes, *other.purposes),
            provenance=provenance,
        )

    def __repr__(self) -> str:
        n = len(self)
        return f"OptionSet({n} option{'s' * (n != 1)} on {self.n_states} states: {self.list_labels()})"

    def __str__(self) -> str:
        coords = self.mdp.coords
        if coords is None:
            return repr(self)
        drawn, used = [], ""
        for option in self[:6]:
            moves = find_moves(coords, option.policy, self.mdp.most_likely_successors)
            glyphs = draw_arrows(option.policy, moves)
            drawn.append(f"{printable(option.label)}\n{draw_map(coords, glyphs)}")
            used += "".join(glyphs)
        key = printable(explain_glyphs(used, self.mdp.legend))
        return "\n\n".join([*drawn, *filter(None, [key]), repr(self)])
