"""Purposes and options: what the paper's Sections 2.2 and 3 speak of, as records of arrays.

A `Purpose` is a potential f; its reward is ``f(s') - f(s)``. An `Option` is an initiation set, a policy and a
termination set; in a table they are one row of actions, with TERMINATE where the option stops and may not start.
`OptionSet` keeps many of them, in order, with where they came from; `planning.solve` makes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from eigenoptions import _sketch as sketch
from eigenoptions import files
from eigenoptions.mdp import MDP
from eigenoptions.spectra import Spectrum

TERMINATE = -1
FORMAT = 1  # of options files


@dataclass(frozen=True, eq=False)
class Purpose:
    """A potential whose differences are an intrinsic reward (Definition 3.1).

    Attributes
    ----------
    direction
        ``(d,)`` the vector e in feature space; in the tabular case one number a state.
    label
        Where it came from: ``"e2+"`` is the second smallest eigenvalue with a plus sign, as the paper counts.
    eigenvalue
        Of the Laplacian, or nan for other purposes.
    initiation
        ``(S,)`` mask of states where its option may be followed, or None for all.
    accuracy
        Bound on the error of the entries of `direction`: 0 where they are exact, `Spectrum.accuracy` for eigenvectors.

    Examples
    --------
    >>> Purpose(np.array([0.0, 1.0]), "goal 1").label
    'goal 1'
    """

    direction: NDArray[np.float64]
    label: str = ""
    eigenvalue: float = float("nan")
    initiation: NDArray[np.bool_] | None = None
    accuracy: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "direction", np.asarray(self.direction, dtype=np.float64))
        if self.initiation is not None:
            object.__setattr__(self, "initiation", np.asarray(self.initiation, dtype=bool))


@dataclass(frozen=True, eq=False)
class Option:
    """One option: initiation set, policy and termination set (Section 2.2).

    Attributes
    ----------
    policy
        ``(S,)`` action in each state, TERMINATE (-1) where the option stops.
    value
        ``(S,)`` intrinsic return still to be had, v(s).
    label, eigenvalue
        As in `Purpose`.
    mean_length
        Expected steps until it stops, averaged over the states where it may start.

    Examples
    --------
    >>> right = Option(np.array([1, 1, -1]), np.array([2.0, 1.0, 0.0]), "goal 2")
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

    def act(self, obs: int) -> int:
        """The action in state `obs`, or TERMINATE."""
        if obs < 0:
            raise IndexError(f"a state is a number in 0..{len(self.policy) - 1}, got {obs}")
        return int(self.policy[obs])

    @property
    def initiation(self) -> NDArray[np.bool_]:
        """``(S,)`` states where it may start."""
        return self.policy >= 0

    @property
    def termination(self) -> NDArray[np.bool_]:
        """``(S,)`` states where it stops."""
        return self.policy < 0


@dataclass(frozen=True, eq=False, repr=False)
class OptionSet(Sequence[Option]):
    """An ordered sequence of options on one state space, with where they came from.

    Index for an `Option`, slice for another set, ``+`` to concatenate, `save` to keep.

    Attributes
    ----------
    policy
        ``(n, S)`` whole numbers; TERMINATE (-1) where an option stops and may not start.
    n_actions
        Number of primitive actions.
    value
        ``(n, S)`` intrinsic values, zeros where unknown.
    labels, eigenvalues, mean_length
        One entry an option; see `Option`.
    state_space
        Fingerprint of the MDP they were made for (empty: unknown, not checked).
    coords
        ``(S, 2)`` for pictures, or None.
    provenance
        Method and settings, as they go into the file.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> options = eo.discover(eo.maze("four-rooms"), n_options=4)
    >>> options
    OptionSet(4 options on 104 states: e2+, e2-, e3+, e3-)
    >>> len(options[1:3]), options[0].label
    (2, 'e2+')
    """

    policy: NDArray[np.integer[Any]]
    n_actions: int
    value: NDArray[np.float64] = None  # type: ignore[assignment]
    labels: tuple[str, ...] = ()
    eigenvalues: NDArray[np.float64] = None  # type: ignore[assignment]
    mean_length: NDArray[np.float64] = None  # type: ignore[assignment]
    state_space: str = ""
    coords: NDArray[np.int_] | None = None
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        policy = np.asarray(self.policy)
        if not (isinstance(self.n_actions, int | np.integer) and self.n_actions >= 1):
            raise ValueError(f"n_actions must be a whole number from 1, got {self.n_actions!r}")
        if policy.ndim != 2 or policy.dtype.kind not in "iu":
            raise ValueError(
                f"policy must be whole numbers of shape (n, S), got {policy.dtype} {policy.shape}"
            )
        if policy.size and not (policy.min() >= TERMINATE and policy.max() < self.n_actions):
            raise ValueError(
                f"policy must hold actions 0..{self.n_actions - 1} or {TERMINATE}, "
                f"got {policy.min()}..{policy.max()}"
            )
        n = len(policy)
        labels = tuple(self.labels) or tuple(f"option {i + 1}" for i in range(n))
        if len(labels) != n:
            raise ValueError(f"labels must have one entry for each of {n} options, got {len(labels)}")
        checked: dict[str, Any] = {"policy": policy, "n_actions": int(self.n_actions), "labels": labels}
        defaults = {
            "value": np.broadcast_to(0.0, policy.shape),
            "eigenvalues": np.full(n, np.nan),
            "mean_length": np.full(n, np.nan),
        }
        for name, default in defaults.items():
            given = getattr(self, name)
            checked[name] = default if given is None else np.asarray(given, dtype=np.float64)
            if checked[name].shape != default.shape:
                raise ValueError(
                    f"{name} must have shape {default.shape} for {n} options, got {checked[name].shape}"
                )
        for name, array in checked.items():
            object.__setattr__(self, name, array)

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

    def __len__(self) -> int:
        return len(self.policy)

    def __iter__(self) -> Iterator[Option]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Option: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> OptionSet: ...
    def __getitem__(self, index: Any) -> Option | OptionSet:
        """An option, or the set of those chosen by a slice, a list of numbers or a mask."""
        if isinstance(index, int | np.integer):
            i = range(len(self))[int(index)]
            eigenvalue, mean_length = float(self.eigenvalues[i]), float(self.mean_length[i])
            return Option(self.policy[i], self.value[i], self.labels[i], eigenvalue, mean_length)
        numbers = files.pick(len(self), index)
        chosen = index if isinstance(index, slice) else numbers  # a slice makes no copy
        return OptionSet(
            self.policy[chosen],
            self.n_actions,
            self.value[chosen],
            tuple(self.labels[i] for i in numbers),
            self.eigenvalues[chosen],
            self.mean_length[chosen],
            self.state_space,
            self.coords,
            self.provenance,
        )

    def __add__(self, other: OptionSet) -> OptionSet:
        """Both sets, one after the other; they must live on one state space."""
        if not isinstance(other, OptionSet):
            return NotImplemented
        mine, theirs = ((o.state_space, o.n_states, o.n_actions) for o in (self, other))
        if mine != theirs:
            raise ValueError("options of different state spaces cannot be joined: discover both on one MDP")
        made = [self.provenance, other.provenance]
        return OptionSet(
            np.concatenate([self.policy, other.policy]),
            self.n_actions,
            np.concatenate([self.value, other.value]),
            self.labels + other.labels,
            np.concatenate([self.eigenvalues, other.eigenvalues]),
            np.concatenate([self.mean_length, other.mean_length]),
            self.state_space,
            self.coords,
            made[0] if made[0] == made[1] else {"joined": made},
        )

    def check(self, mdp: MDP) -> None:
        """Raise ValueError unless these options were made for this state space."""
        if (self.n_states, self.n_actions) != (mdp.n_states, mdp.n_actions):
            raise ValueError(
                f"options of another state space: they have {self.n_states} states and {self.n_actions} actions, "
                f"the MDP has {mdp.n_states} and {mdp.n_actions}; discover options on this MDP"
            )
        if self.state_space and self.state_space != mdp.fingerprint:
            raise ValueError(
                f"options of another state space: same size, but other dynamics than {mdp!r}; "
                "discover options on this MDP"
            )

    def save(self, path: str | Path) -> None:
        """Write a safetensors file, whole or not at all; read it again with `load_options`."""
        header = {
            "kind": "options",
            "format": FORMAT,
            "state_space": self.state_space,
            "n_actions": self.n_actions,
            "labels": self.labels,
            "eigenvalues": _plain(self.eigenvalues),
            "mean_length": _plain(self.mean_length),
            "provenance": self.provenance,
        }
        whole = {} if self.coords is None else {"coords": self.coords}
        files.write(path, header, {"policy": self.policy, "value": self.value}, whole)

    def __repr__(self) -> str:
        names = ", ".join(self.labels[:6]) + (", ..." if len(self) > 6 else "")
        return f"OptionSet({len(self)} option{'s' * (len(self) != 1)} on {self.n_states} states: {names})"

    def __str__(self) -> str:
        if self.coords is None:
            return repr(self)
        maps = [f"{o.label}\n{sketch.text(self.coords, sketch.arrows(o.policy))}" for o in self[:6]]
        return "\n\n".join([*maps, repr(self)])

    def _repr_html_(self) -> str:
        if self.coords is None:
            return f"<code>{escape(repr(self))}</code>"
        cells = "".join(
            f'<figure style="display:inline-block;margin:6px"><figcaption><code>{escape(o.label)}</code> '
            f"mean length {o.mean_length:.1f}</figcaption>{sketch.svg(self.coords, policy=o.policy)}</figure>"
            for o in self[:12]
        )
        return f"<div>{cells}<br><code>{escape(repr(self))}</code></div>"


def eigenpurposes(spectrum: Spectrum, *, both_signs: bool = True, skip_zero: bool = True) -> list[Purpose]:
    """Eigenpurposes of a spectrum, in order of eigenvalue, + before - (Definition 3.1).

    Parameters
    ----------
    spectrum
        Where the eigenvectors come from.
    both_signs
        Also the negation of each eigenvector, as in the paper.
    skip_zero
        Leave out eigenvalue zero: it has no direction (constant on each component, up to the degree). The paper
        counts it, so the labels do too: the first label is ``e2+`` on a connected graph.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> W = eo.graph(eo.maze("four-rooms"))
    >>> [p.label for p in eigenpurposes(eo.spectrum(W, k=3))]
    ['e2+', 'e2-', 'e3+', 'e3-']
    """
    if not isinstance(spectrum, Spectrum):
        raise TypeError(
            f"eigenpurposes takes a Spectrum, got {type(spectrum).__name__}: call spectrum(graph(mdp))"
        )
    first = spectrum.n_zero if skip_zero else 0
    accuracy = np.zeros(len(spectrum.values)) if spectrum.accuracy is None else spectrum.accuracy
    return [
        Purpose(
            column if sign == "+" else -column,
            f"e{i + 1}{sign}",
            float(spectrum.values[i]),
            accuracy=float(accuracy[i]),
        )
        for i, column in enumerate(spectrum.vectors.T[first:], start=first)
        for sign in ("+-" if both_signs else "+")
    ]


def load_options(
    path: str | Path, mdp: MDP | None = None, only: int | slice | Sequence[int] | None = None
) -> OptionSet:
    """Read options that `OptionSet.save` wrote.

    Parameters
    ----------
    path
        The file.
    mdp
        If given, the options must have been made for this state space.
    only
        Read just these (a number, a slice, or numbers); the others are not read from disk.

    Examples
    --------
    >>> import eigenoptions as eo, tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "skills.safetensors"
    >>> eo.discover(eo.maze("i-maze"), n_options=4).save(file)
    >>> eo.load_options(file, only=2)
    OptionSet(1 option on 19 states: e3+)
    >>> folder.cleanup()
    """
    try:
        header, arrays = files.read(path, "options", FORMAT, only)
    except ValueError as error:
        if "holds 'linear options'" in str(error):
            raise ValueError(f"{error}: read it with load_linear_options") from None
        raise
    rows = header["rows"]
    options = OptionSet(
        arrays["policy"],
        header["n_actions"],
        arrays["value"],
        tuple(header["labels"][i] for i in rows),
        _floats(header["eigenvalues"], rows),
        _floats(header["mean_length"], rows),
        header["state_space"],
        arrays.get("coords"),
        header["provenance"],
    )
    if mdp is not None:
        options.check(mdp)
    return options


def _plain(numbers: NDArray[np.float64]) -> list[float | str]:
    """Numbers as strict JSON has them: what is not finite goes as its name."""
    return [float(x) if np.isfinite(x) else str(x) for x in numbers]


def _floats(numbers: list[float | str], rows: list[int]) -> NDArray[np.float64]:
    return np.array([float(numbers[i]) for i in rows], dtype=np.float64)
