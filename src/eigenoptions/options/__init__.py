"""Purposes and options as records of arrays (paper, Sections 2.2 and 3).

A `Purpose` is a potential f; its reward is ``f(s') - f(s)``. In a table, an `Option` is one row of actions, with
TERMINATE where it stops and may not start; `solver.solve` computes an `OptionSet` of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from eigenoptions._text import printable
from eigenoptions._validation import check_int, check_state, readonly
from eigenoptions.mdp import MDP, MOVES
from eigenoptions.mdp.maps import grid_successors
from eigenoptions.spectra import OPERATORS, Spectrum

TERMINATE = -1
# Version of the options files that `OptionSet.save` and `LinearOptionSet.save` write.
FILE_FORMAT = 1
# Fields of a purpose and of an option that state its origin, and the fields of a set that hold them, one per option.
ORIGIN = {"index": "indices", "sign": "signs", "goal": "goals"}

# Cells of the smallest rectangle around a maze, per state, up to which its moves are derived from the coordinates.
MAX_CELLS_PER_STATE = 100

Origin = tuple[int | None, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Purpose:
    """A potential whose differences are an intrinsic reward (Definition 3.1).

    Attributes
    ----------
    direction
        ``(d,)`` the vector e in feature space; in the tabular case one number per state. Read-only.
    label
        Name of the purpose, by default derived from the fields below: ``"e2+"``, ``"goal 17"``.
    initiation
        ``(S,)`` mask of the states where its option may be followed; None for all.
    accuracy
        Bound on the error of the entries of `direction`: 0 where they are exact.
    eigenvalue, index, sign
        Of an eigenvector: its eigenvalue, its number, counted from 1 as in the paper, and 1 or -1 for its negation.
        nan and None for other purposes.
    goal
        The state that the purpose leads to; None where there is no single one.

    Examples
    --------
    >>> Purpose(np.array([0.0, 1.0]), goal=1).label
    'goal 1'
    >>> Purpose(np.array([-0.7, 0.7]), index=2, sign=1)
    Purpose(e2+: 2 numbers from -0.7 to 0.7)
    """

    direction: NDArray[np.float64]
    label: str = ""
    eigenvalue: float = float("nan")
    initiation: NDArray[np.bool_] | None = None
    accuracy: float = 0.0
    index: int | None = None
    sign: int | None = None
    goal: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "direction", readonly(self.direction, np.float64))
        if self.initiation is not None:
            object.__setattr__(self, "initiation", readonly(self.initiation, np.bool_))
        if self.sign not in (None, 1, -1):
            raise ValueError(f"sign must be 1, -1 or None, got {self.sign!r}")
        if not self.label and self.index is not None and self.sign is not None:
            object.__setattr__(self, "label", f"e{self.index}{'+' if self.sign > 0 else '-'}")
        elif not self.label and self.goal is not None:
            object.__setattr__(self, "label", f"goal {self.goal}")

    def __repr__(self) -> str:
        e = self.direction
        ends = f" from {e.min():.4g} to {e.max():.4g}" if e.size else ""
        value = f", eigenvalue {self.eigenvalue:.4g}" if np.isfinite(self.eigenvalue) else ""
        return f"Purpose({printable(self.label) or 'no label'}: {len(e)} numbers{ends}{value})"


@dataclass(frozen=True, eq=False, repr=False)
class Option:
    """One option: initiation set, policy and termination set (Section 2.2).

    Attributes
    ----------
    policy
        ``(S,)`` action in each state, TERMINATE (-1) where the option stops.
    value
        ``(S,)`` intrinsic return v(s) that the option still obtains from each state.
    label, eigenvalue, index, sign, goal
        As in `Purpose`.
    mean_length
        Expected steps until it stops, averaged over the states where it may start.
    coords, successors
        As in `OptionSet`, for pictures, or None.

    Examples
    --------
    >>> right = Option(np.array([1, 1, -1]), np.array([2.0, 1.0, 0.0]), "goal 2")
    >>> right
    Option(goal 2: may start in 2 of 3 states)
    >>> right.act(0), right.act(2)
    (1, -1)
    >>> right.termination.tolist()
    [False, False, True]
    """

    policy: NDArray[np.integer[Any]]
    value: NDArray[np.float64]
    label: str = ""
    eigenvalue: float = float("nan")
    mean_length: float = float("nan")
    index: int | None = None
    sign: int | None = None
    goal: int | None = None
    coords: NDArray[np.int_] | None = None
    successors: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        for name, kind in (("policy", None), ("value", np.float64)):
            object.__setattr__(self, name, readonly(getattr(self, name), kind))
        if self.policy.ndim != 1 or self.policy.dtype.kind not in "iu":
            raise ValueError(
                f"policy must be whole numbers of shape (S,), got {self.policy.dtype} {self.policy.shape}"
            )

    def act(self, obs: int) -> int:
        """The action in state `obs`, or TERMINATE."""
        return int(self.policy[check_state(obs, len(self.policy))])

    @property
    def initiation(self) -> NDArray[np.bool_]:
        """``(S,)`` states where it may start."""
        return self.policy >= 0

    @property
    def termination(self) -> NDArray[np.bool_]:
        """``(S,)`` states where it stops."""
        return self.policy < 0

    def __repr__(self) -> str:
        starts = f"may start in {int(self.initiation.sum())} of {len(self.policy)} states"
        length = f", mean length {self.mean_length:.3g}" if np.isfinite(self.mean_length) else ""
        return f"Option({printable(self.label)}: {starts}{length})"

    def _repr_html_(self) -> str:
        from eigenoptions import _text as sketch

        return sketch.options_html([self], repr(self))


class _MeanLength:
    """Default of `OptionSet.mean_length`: computed from the successors when it is asked for, then kept."""

    def __get__(self, options: Any, owner: type) -> Any:
        # Without a set, the default value of the dataclass field.
        if options is None:
            return None
        from eigenoptions._kernels.planning import mean_lengths

        mean = np.empty(len(options))
        policy, to = (np.ascontiguousarray(a, dtype=np.int32) for a in (options.policy, options.successors))
        mean_lengths(to, policy, mean)
        return options.__dict__.setdefault("mean_length", readonly(mean))


@dataclass(frozen=True, eq=False, repr=False)
class OptionSet(Sequence[Option]):
    """An ordered sequence of options on one state space, with their provenance.

    Index by number or label for an `Option`, by slice, numbers or mask for another set; ``+`` concatenates, `save`
    writes a file. All arrays are read-only.

    Attributes
    ----------
    policy
        ``(n, S)`` whole numbers; TERMINATE (-1) where an option stops and may not start.
    n_actions
        Number of primitive actions.
    value
        ``(n, S)`` intrinsic values, zeros where unknown.
    labels, eigenvalues, mean_length, indices, signs, goals
        One entry per option; see `Option`. The last three hold None where there is no such number. A mean length that
        is not given follows from the successors; it is nan where they are not known.
    state_space
        Fingerprint of the MDP they were computed for (empty: unknown, not checked).
    coords
        ``(S, 2)`` for pictures, or None.
    provenance
        Method and settings, as they go into the file.
    successors
        ``(S, A)`` most likely next state of each action (`MDP.most_likely_successors`), for pictures and checks; None: not known.
    legend
        As in `MDP`.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> options = eo.discover(eo.maze("four-rooms"), n_options=4)
    >>> options
    OptionSet(4 options on 104 states: e2+, e2-, e3+, e3-)
    >>> len(options[1:3]), options["e3+"].index, options[3].sign
    (2, 3, -1)
    """

    policy: NDArray[np.integer[Any]]
    n_actions: int
    value: NDArray[np.float64] = None  # type: ignore[assignment]
    labels: tuple[str, ...] = ()
    eigenvalues: NDArray[np.float64] = None  # type: ignore[assignment]
    mean_length: NDArray[np.float64] = _MeanLength()  # type: ignore[assignment]
    state_space: str = ""
    coords: NDArray[np.int_] | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    indices: Origin = ()
    signs: Origin = ()
    goals: Origin = ()
    successors: NDArray[np.int32] | None = None
    legend: str = ""
    arrays: ClassVar = ("policy", "value", "eigenvalues", "mean_length")

    def __post_init__(self) -> None:
        policy = readonly(self.policy)
        checked: dict[str, Any] = {"policy": policy, "n_actions": check_int("n_actions", self.n_actions)}
        if policy.ndim != 2 or policy.dtype.kind not in "iu":
            given = f"{policy.dtype} {policy.shape}"
            raise ValueError(f"policy must be whole numbers of shape (n, S), got {given}")
        if policy.size and not (policy.min() >= TERMINATE and policy.max() < self.n_actions):
            given = f"{policy.min()}..{policy.max()}"
            raise ValueError(f"policy must hold actions 0..{self.n_actions - 1} or {TERMINATE}, got {given}")
        n, size = policy.shape
        defaults = {"value": np.broadcast_to(readonly(0.0), policy.shape)}
        defaults["eigenvalues"] = defaults["mean_length"] = np.full(n, np.nan)
        if self.mean_length is None and self.successors is not None:
            del self.__dict__["mean_length"], defaults["mean_length"]
        for name, default in defaults.items():
            given = getattr(self, name)
            checked[name] = readonly(default if given is None else given, np.float64)
            if (shape := checked[name].shape) != default.shape:
                raise ValueError(f"{name} must have shape {default.shape} for {n} options, got {shape}")
        if self.coords is not None:
            coords = checked["coords"] = readonly(self.coords)
            if coords.shape != (size, 2) or coords.dtype.kind not in "iu":
                given = f"{coords.dtype} {coords.shape}"
                raise ValueError(f"coords must be whole numbers of shape ({size}, 2), got {given}")
        if self.successors is not None:
            to, shape = readonly(self.successors), (size, self.n_actions)
            if to.shape != shape or to.dtype.kind not in "iu" or not 0 <= to.min() <= to.max() < size:
                raise ValueError(f"successors must be states 0..{size - 1} of shape {shape}, got {to.shape}")
            checked["successors"] = to
        checked |= entries(self, n)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def n_states(self) -> int:
        """Number of states."""
        return int(self.policy.shape[1])

    @property
    def initiation(self) -> NDArray[np.bool_]:
        """``(n, S)`` where each option may start."""
        return self.policy >= 0

    @property
    def termination(self) -> NDArray[np.bool_]:
        """``(n, S)`` where each option stops."""
        return self.policy < 0

    @cached_property
    def stops(self) -> tuple[NDArray[np.intp], ...]:
        """For each option, the states where it stops."""
        return tuple(np.flatnonzero(row < 0) for row in self.policy)

    def moves(self, i: int) -> NDArray[np.int64] | None:
        """``(S, 2)`` rows and columns by which option i most likely moves from each state; None: not known.

        >>> import eigenoptions as eo
        >>> eo.discover(eo.maze("..."), 1).moves(0).tolist()
        [[0, 0], [0, -1], [0, -1]]
        """
        from eigenoptions import _text as sketch

        to = self._successors
        return None if self.coords is None or to is None else sketch.moves(self.coords, self.policy[i], to)

    @cached_property
    def _successors(self) -> NDArray[np.int32] | None:
        """Next states; those of a maze for files of version 0.1, which hold none, where the fingerprint proves it."""
        if self.successors is not None or self.coords is None or self.n_actions != len(MOVES):
            return self.successors
        if np.prod(np.ptp(self.coords, axis=0).astype(float) + 1) > MAX_CELLS_PER_STATE * self.n_states:
            return None
        maze = MDP.from_successors(grid_successors(self.coords))
        return maze.successors if maze.fingerprint == self.state_space else None

    def choices(self, obs: int) -> NDArray[np.integer[Any]]:
        """``(n,)`` the action of every option in state `obs`, or TERMINATE."""
        return self.policy[:, check_state(obs, self.n_states)]

    def __len__(self) -> int:
        return len(self.policy)

    def __iter__(self) -> Iterator[Option]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, index: int | str) -> Option: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> OptionSet: ...
    def __getitem__(self, index: Any) -> Option | OptionSet:
        """The option with a number or label, or the set chosen by a slice, numbers or a mask."""
        if isinstance(index, int | np.integer | str):
            i = position(self.labels, index)
            origin = (getattr(self, name)[i] for name in ORIGIN.values())
            numbers = float(self.eigenvalues[i]), float(self.mean_length[i])
            about: Any = (self.labels[i], *numbers, *origin, self.coords, self.successors)
            return Option(self.policy[i], self.value[i], *about)
        return replace(self, **selected(self, index, OptionSet.arrays))

    def __add__(self, other: OptionSet) -> OptionSet:
        """Both sets, one after the other; both must be options of the same state space."""
        if not isinstance(other, OptionSet):
            return NotImplemented
        mine, theirs = ((o.state_space, o.n_states, o.n_actions) for o in (self, other))
        if mine != theirs:
            raise ValueError("options of different state spaces cannot be joined: discover both on one MDP")
        return replace(self, **concatenated(self, other, OptionSet.arrays))

    def check(self, mdp: MDP) -> None:
        """Raise ValueError unless these options were computed for this state space."""
        why = ""
        if (self.n_states, self.n_actions) != (mdp.n_states, mdp.n_actions):
            why = f"they have {self.n_states} states and {self.n_actions} actions, "
            why += f"the MDP has {mdp.n_states} and {mdp.n_actions}"
        elif self.state_space and self.state_space != mdp.fingerprint:
            why = f"same size, but other dynamics than {mdp!r}"
        if why:
            raise ValueError(f"options of another state space: {why}; discover options on this MDP")

    def save(self, path: str | Path) -> None:
        """Write a safetensors file, completely or not at all; `load_options` reads it."""
        from eigenoptions import files

        plain = ("state_space", "n_actions", "provenance", "legend", "labels", *ORIGIN.values())
        header: dict[str, Any] = {name: getattr(self, name) for name in plain}
        for name in ("eigenvalues", "mean_length"):
            # JSON holds finite numbers only; the others are written by name.
            header[name] = [float(x) if np.isfinite(x) else str(x) for x in getattr(self, name)]
        header |= {"kind": "options", "format": FILE_FORMAT}
        whole = {name: getattr(self, name) for name in ("coords", "successors")}
        whole = {name: array for name, array in whole.items() if array is not None}
        files.write(path, header, {"policy": self.policy, "value": self.value}, whole)

    def plot(self, **settings: Any) -> Any:
        """A figure of the options as arrows; `settings` are those of `plots.options`."""
        from eigenoptions import _text as sketch

        return sketch.plot(self, **settings)

    def __repr__(self) -> str:
        names = printable(", ".join(self.labels[:6])) + (", ..." if len(self) > 6 else "")
        return f"OptionSet({len(self)} option{'s' * (len(self) != 1)} on {self.n_states} states: {names})"

    def __str__(self) -> str:
        if self.coords is None:
            return repr(self)
        from eigenoptions import _text as sketch

        drawn = [sketch.arrows(self.policy[i], self.moves(i)) for i in range(min(6, len(self)))]
        maps = [
            f"{printable(label)}\n{sketch.text(self.coords, glyphs)}"
            for label, glyphs in zip(self.labels, drawn, strict=False)
        ]
        key = printable(sketch.key(chain.from_iterable(drawn), self.legend))
        return "\n\n".join([*maps, *filter(None, [key]), repr(self)])

    def _repr_html_(self) -> str:
        from eigenoptions import _text as sketch

        shown = [replace(o, successors=self._successors) for o in self[: sketch.MAX_PICTURES]]
        return sketch.options_html(shown, repr(self), len(self), self.legend)


def eigenpurposes(spectrum: Spectrum, *, both_signs: bool = True, skip_zero: bool = True) -> list[Purpose]:
    """Eigenpurposes of a spectrum, in order of eigenvalue, + before - (Definition 3.1).

    Parameters
    ----------
    spectrum, both_signs
        The eigenvectors, and whether to negate each one, too, as in the paper.
    skip_zero
        Leave out eigenvalue zero: it has no direction (constant on each component, up to the degree). The paper
        counts it, so the labels do too, also where a spectrum of features holds no constant function: the first
        label is ``e2+``.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> W = eo.graph(eo.maze("four-rooms"))
    >>> [p.label for p in eigenpurposes(eo.spectrum(W, k=3))]
    ['e2+', 'e2-', 'e3+', 'e3-']
    """
    if not isinstance(spectrum, Spectrum):
        kind = type(spectrum).__name__
        raise TypeError(f"eigenpurposes takes a Spectrum, got {kind}: call spectrum(graph(mdp))")
    values = spectrum.values.tolist()
    first = 1 if spectrum.n_zero or spectrum.operator in OPERATORS else 2
    found = list(zip(count(first), spectrum.vectors.T, values, strict=False))
    return [
        Purpose(sign * e, eigenvalue=value, accuracy=1e-14, index=i, sign=sign)
        for i, e, value in found[spectrum.n_zero if skip_zero else 0 :]
        for sign in ((1, -1) if both_signs else (1,))
    ]


def origins(purposes: Sequence[Purpose]) -> dict[str, Any]:
    """Labels, eigenvalues and origins of purposes, as the fields of a set of options.

    >>> origins([Purpose(np.array([0.0, 1.0]), goal=1)])["labels"]
    ('goal 1',)
    """
    return {
        "labels": tuple(p.label or f"purpose {i + 1}" for i, p in enumerate(purposes)),
        "eigenvalues": np.array([p.eigenvalue for p in purposes], dtype=np.float64),
        **{plural: tuple(map(attrgetter(name), purposes)) for name, plural in ORIGIN.items()},
    }


def entries(options: Any, n: int) -> dict[str, tuple[Any, ...]]:
    """Labels and origins of a set of n options, with defaults for those that were not given, checked."""
    found: dict[str, tuple[Any, ...]] = {
        "labels": tuple(options.labels) or tuple(f"option {i + 1}" for i in range(n))
    }
    found |= {name: tuple(getattr(options, name)) or (None,) * n for name in ORIGIN.values()}
    for label in found["labels"]:
        if not isinstance(label, str):
            raise ValueError(f"labels must be text, got {label!r}")
    for name in ORIGIN.values():
        for origin in found[name]:
            # Sets have hundreds of plain numbers, which need no call.
            if origin is not None and not (type(origin) is int and origin >= -1):
                check_int(name, origin, minimum=-1)
    if not isinstance(options.provenance, dict):
        raise ValueError(f"provenance must be a dict, got {type(options.provenance).__name__}")
    for name, values in found.items():
        if len(values) != n:
            raise ValueError(f"{name} must have one entry for each of {n} options, got {len(values)}")
    return found


def position(labels: tuple[str, ...], place: Any) -> int:
    """The place of an option, given by number or label.

    >>> position(("e2+", "e2-"), "e2-"), position(("e2+", "e2-"), -1)
    (1, 1)
    """
    n = len(labels)
    if not isinstance(place, str):
        if not -n <= place < n:
            raise IndexError(f"the set has {n} options, numbered from 0, got {place}")
        return range(n)[int(place)]
    if place not in labels:
        near = difflib.get_close_matches(place, labels, n=3, cutoff=0.0)
        raise KeyError(f"no option has the label {place!r}: there are {', '.join(near)} and others")
    return labels.index(place)


def selected(options: Any, index: Any, arrays: Sequence[str]) -> dict[str, Any]:
    """Fields of the set of options that a slice, numbers or a mask choose out of another."""
    if not isinstance(index, slice):
        index = np.asarray(index)
        index = index if index.size else index.astype(np.intp)
    chosen = np.arange(len(options))[index]
    # A slice of an array is a view, a selection by numbers or by a mask a copy.
    rows = index if isinstance(index, slice) else chosen
    names = {name: tuple(getattr(options, name)[i] for i in chosen) for name in ("labels", *ORIGIN.values())}
    return {**names, **{name: getattr(options, name)[rows] for name in arrays}}


def concatenated(first: Any, second: Any, arrays: Sequence[str]) -> dict[str, Any]:
    """Fields of a set of the options of two sets, one after the other."""
    made = [first.provenance, second.provenance]
    joined = {name: getattr(first, name) + getattr(second, name) for name in ("labels", *ORIGIN.values())}
    joined |= {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in arrays}
    return {**joined, "provenance": made[0] if made[0] == made[1] else {"joined": made}}
