"""Eigenpurposes, options and the one solver behind them (paper, Section 3).

A `Purpose` is a potential f; its reward is ``f(s') - f(s)`` and TERMINATE is worth 0 everywhere. `solve` finds the
optimal policies of many purposes at once. An option may start where some action has q > 0 and stops where none has
(Theorem 3.1: for gamma < 1 it stops somewhere; here it in fact ends with probability 1 from every state).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from eigenoptions import sketch, storage
from eigenoptions.mdp import MDP
from eigenoptions.spectra import Spectrum

TERMINATE = -1
FORMAT = 1  # of options files
TIE = 1e-12  # of max|f|: below this a q-value is noise of the eigenvector, and goes to TERMINATE


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

    Examples
    --------
    >>> Purpose(np.array([0.0, 1.0]), "goal 1").label
    'goal 1'
    """

    direction: NDArray[np.float64]
    label: str = ""
    eigenvalue: float = float("nan")
    initiation: NDArray[np.bool_] | None = None


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
        if policy.ndim != 2 or policy.dtype.kind not in "iu":
            raise ValueError(f"policy must be whole numbers of shape (n, S), got {policy.dtype} {policy.shape}")
        if policy.size and not (policy.min() >= TERMINATE and policy.max() < self.n_actions):
            raise ValueError(
                f"policy must hold actions 0..{self.n_actions - 1} or {TERMINATE}, "
                f"got {policy.min()}..{policy.max()}"
            )
        n = len(policy)
        defaults = {
            "policy": policy,
            "value": np.broadcast_to(0.0, policy.shape),
            "labels": tuple(f"option {i + 1}" for i in range(n)),
            "eigenvalues": np.full(n, np.nan),
            "mean_length": np.full(n, np.nan),
        }
        for name, default in defaults.items():
            given = getattr(self, name)
            given = default if given is None or (name == "labels" and not given) else given
            if len(given) != n or (name == "value" and given.shape != policy.shape):
                raise ValueError(f"{name} must have one entry for each of {n} options, got {np.shape(given)}")
            object.__setattr__(self, name, given)

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
            return Option(
                self.policy[i], self.value[i], self.labels[i], float(self.eigenvalues[i]), float(self.mean_length[i])
            )
        chosen = index if isinstance(index, slice) else np.arange(len(self))[np.asarray(index)]
        labels = np.array(self.labels, dtype=object)[chosen]
        return OptionSet(
            self.policy[chosen],
            self.n_actions,
            self.value[chosen],
            tuple(labels),
            self.eigenvalues[chosen],
            self.mean_length[chosen],
            self.state_space,
            self.coords,
            self.provenance,
        )

    def __add__(self, other: OptionSet) -> OptionSet:
        """Both sets, one after the other; they must live on one state space."""
        if (self.state_space, self.n_states, self.n_actions) != (other.state_space, other.n_states, other.n_actions):
            raise ValueError("option sets of different state spaces cannot be joined: discover both on one MDP")
        return OptionSet(
            np.concatenate([self.policy, other.policy]),
            self.n_actions,
            np.concatenate([self.value, other.value]),
            self.labels + other.labels,
            np.concatenate([self.eigenvalues, other.eigenvalues]),
            np.concatenate([self.mean_length, other.mean_length]),
            self.state_space,
            self.coords,
            self.provenance if self.provenance == other.provenance else {"joined": [self.provenance, other.provenance]},
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
        storage.write(path, header, {"policy": self.policy, "value": self.value}, whole)

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
            return f"<code>{self!r}</code>"
        cells = "".join(
            f'<figure style="display:inline-block;margin:6px"><figcaption><code>{o.label}</code> '
            f"mean length {o.mean_length:.1f}</figcaption>{sketch.svg(self.coords, policy=o.policy)}</figure>"
            for o in self[:12]
        )
        return f"<div>{cells}<br><code>{self!r}</code></div>"


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
    first = spectrum.n_zero if skip_zero else 0
    return [
        Purpose(sign * spectrum.vectors[:, i], f"e{i + 1}{'+' if sign > 0 else '-'}", float(spectrum.values[i]))
        for i in range(first, len(spectrum.values))
        for sign in ((1.0, -1.0) if both_signs else (1.0,))
    ]


def solve(
    mdp: MDP,
    purposes: Purpose | Iterable[Purpose],
    gamma: float = 0.9,
    *,
    tol: float = TIE,
    provenance: dict[str, Any] | None = None,
) -> OptionSet:
    """Optimal options of many purposes, exactly: the fixed point of policy iteration (Section 3).

    Parameters
    ----------
    mdp
        Deterministic or stochastic dynamics.
    purposes
        Potentials with one number a state.
    gamma
        Discount in [0, 1): how far the option looks over a valley.
    tol
        Ties within ``tol * max|f|`` go to TERMINATE; of equal actions the first is taken.
    provenance
        What to record in the set beside gamma.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> corridor = eo.maze("S...G")
    >>> solve(corridor, Purpose(np.array([0.0, 0, 0, 0, 1]), "goal 4")).policy.tolist()
    [[1, 1, 1, 1, -1]]
    """
    if not (isinstance(gamma, int | float | np.floating) and 0 <= gamma < 1):
        raise ValueError(f"gamma must be in [0, 1), got {gamma!r}")
    wanted = [purposes] if isinstance(purposes, Purpose) else list(purposes)
    for p in wanted:
        if np.shape(p.direction) != (mdp.n_states,):
            raise ValueError(
                f"purpose {p.label!r} is for another state space: its direction has shape "
                f"{np.shape(p.direction)}, the MDP has {mdp.n_states} states"
            )
        if not np.isfinite(p.direction).all():
            raise ValueError(f"purpose {p.label!r} has entries that are not finite numbers")
        if p.initiation is not None and np.shape(p.initiation) != (mdp.n_states,):
            raise ValueError(f"the initiation mask of {p.label!r} must have shape ({mdp.n_states},)")
    n = len(wanted)
    policy = np.empty((n, mdp.n_states), dtype=np.min_scalar_type(-mdp.n_actions - 1))
    value = np.empty((n, mdp.n_states))
    if mdp.successors is not None:
        _solve_deterministic(mdp.successors, wanted, float(gamma), tol, policy, value)
    else:
        _solve_stochastic(mdp, wanted, float(gamma), tol, policy, value)
    for i, p in enumerate(wanted):
        if p.initiation is not None:
            outside = ~np.asarray(p.initiation, dtype=bool)
            policy[i, outside] = TERMINATE
            value[i, outside] = 0.0
    return OptionSet(
        policy,
        mdp.n_actions,
        value,
        tuple(p.label or f"purpose {i + 1}" for i, p in enumerate(wanted)),
        np.array([p.eigenvalue for p in wanted], dtype=float),
        np.array([_mean(lengths(mdp, row), row >= 0) for row in policy]),
        mdp.fingerprint,
        mdp.coords,
        {"gamma": float(gamma), "mdp": mdp.name, **(provenance or {})},
    )


def load_options(path: str | Path, mdp: MDP | None = None, only: int | slice | Sequence[int] | None = None) -> OptionSet:
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
    header, arrays = storage.read(path, "options", FORMAT, only)
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


def _plain(numbers: NDArray[np.float64]) -> list[float | None]:
    """Numbers as strict JSON has them: null for what is not finite."""
    return [float(x) if np.isfinite(x) else None for x in numbers]


def _floats(numbers: list[float | None], rows: list[int]) -> NDArray[np.float64]:
    return np.array([np.nan if numbers[i] is None else numbers[i] for i in rows], dtype=np.float64)


def lengths(mdp: MDP, policy: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Expected steps until an option stops, from every state; 0 where it may not start, inf where it never stops.

    >>> import eigenoptions as eo
    >>> lengths(eo.maze("S...G"), np.array([1, 1, 1, 1, -1])).tolist()
    [4.0, 3.0, 2.0, 1.0, 0.0]
    """
    from eigenoptions._kernels.planning import run

    if mdp.successors is not None:
        length = np.empty(mdp.n_states, dtype=np.int32)
        stuck = run(mdp.successors, np.ascontiguousarray(policy), length, np.empty_like(length))
        if stuck < 0:
            return length.astype(np.float64)
    P = _followed(mdp, policy)
    reach = csr_array(P)
    ends = np.asarray(policy) < 0
    for _ in range(mdp.n_states):  # states from which a stop can be reached
        wider = ends | (reach @ ends.astype(np.float64) > 0)
        if np.array_equal(wider, ends):
            break
        ends = wider
    for _ in range(mdp.n_states):  # and from which it cannot be missed for ever
        narrower = ends & ~(reach @ (~ends).astype(np.float64) > 0)
        if np.array_equal(narrower, ends):
            break
        ends = narrower
    steps = np.where(np.asarray(policy) < 0, 0.0, 1.0)
    keep = np.flatnonzero(ends)
    result = np.full(mdp.n_states, np.inf)
    if len(keep):
        result[keep] = splu(csc_array(eye_array(len(keep)) - P[keep][:, keep])).solve(steps[keep])
    return result


def _mean(length: NDArray[np.float64], mask: NDArray[np.bool_]) -> float:
    return float(length[mask].mean()) if mask.any() else 0.0


def _solve_deterministic(
    successors: NDArray[np.int32],
    purposes: list[Purpose],
    gamma: float,
    tol: float,
    policy: NDArray[np.integer[Any]],
    value: NDArray[np.float64],
) -> None:
    from eigenoptions._kernels.planning import LANES, climb, feeders, greedy

    n = len(successors)
    here = np.arange(n, dtype=np.int32)
    moving = successors != here[:, None]
    # Backups travel far along a corridor only in breadth-first order; in open rooms the reading order is better.
    order = here
    if n > LANES * 64 and moving.sum() < 2.3 * n:
        rows = np.repeat(here, moving.sum(axis=1))
        edges = csr_array((np.ones(len(rows), dtype=np.int8), (rows, successors[moving])), shape=(n, n))
        order = reverse_cuthill_mckee(csr_array(edges + edges.T), symmetric_mode=True).astype(np.int32)
    place = np.empty_like(order)
    place[order] = here
    nxt = place[successors[order]]
    indptr, indices = feeders(nxt)
    E = np.zeros((n, LANES))
    block_policy = np.empty((LANES, n), dtype=policy.dtype)
    block_value = np.empty((LANES, n))
    for first in range(0, len(purposes), LANES):
        group = purposes[first : first + LANES]
        for j in range(LANES):
            E[:, j] = group[j].direction[order] if j < len(group) else 0.0
        X = E.copy()
        climb(nxt, E, X, gamma, indptr, indices)
        greedy(nxt, E, X, np.abs(E).max(axis=0), gamma, tol, block_policy, block_value)
        policy[first : first + len(group)] = block_policy[: len(group), place]
        value[first : first + len(group)] = block_value[: len(group), place]


def _solve_stochastic(
    mdp: MDP,
    purposes: list[Purpose],
    gamma: float,
    tol: float,
    policy: NDArray[np.integer[Any]],
    value: NDArray[np.float64],
) -> None:
    """Sweeps bring the values close; policy iteration with exact evaluation then finds its fixed point."""
    from eigenoptions._kernels.planning import LANES, climb_stochastic

    P = mdp.transition
    for first in range(0, len(purposes), LANES):
        E = np.stack([p.direction for p in purposes[first : first + LANES]], axis=1).astype(np.float64)
        X = E.copy()
        scales = np.abs(E).max(axis=0)
        rise = 1e-13 * (scales[scales > 0].min() if scales.any() else 1.0)
        climb_stochastic(P.indptr, P.indices, P.data, mdp.n_actions, E, X, gamma, rise, 100_000)
        for j in range(E.shape[1]):
            e, x = np.ascontiguousarray(E[:, j]), X[:, j]
            row, v = _greedy(mdp, e, x, gamma, tol)
            for _ in range(100):
                acting = np.where(row < 0, 0.0, 1.0)
                T = _followed(mdp, row)
                v = splu(csc_array(eye_array(mdp.n_states) - gamma * T)).solve(T @ e - e * acting)
                better, v = _greedy(mdp, e, e + gamma * v, gamma, tol)
                if np.array_equal(better, row):
                    break
                row = better
            else:
                raise ArithmeticError(f"policy iteration did not settle for purpose {purposes[first + j].label!r}")
            policy[first + j], value[first + j] = row, v


def _greedy(
    mdp: MDP, e: NDArray[np.float64], x: NDArray[np.float64], gamma: float, tol: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Best action and value at every state, given what arriving is worth; ties as in the kernel `greedy`."""
    q = (mdp.transition @ x).reshape(mdp.n_states, mdp.n_actions) - e[:, None]
    best = q.max(axis=1)
    limit = tol * np.abs(e).max()
    slack = np.minimum(limit, 0.25 * (1.0 - gamma) * best)
    first = (q >= (best - slack)[:, None]).argmax(axis=1)
    return np.where(best > limit, first, TERMINATE), np.maximum(best, 0.0)


def _followed(mdp: MDP, policy: NDArray[np.integer[Any]]) -> csr_array:
    """``(S, S)`` moves under a policy row; empty rows where it stops."""
    row = np.asarray(policy, dtype=np.int64)
    P = csr_array(mdp.transition[np.arange(mdp.n_states) * mdp.n_actions + np.maximum(row, 0)])
    P.data = P.data * np.repeat(row >= 0, np.diff(P.indptr))
    P.eliminate_zeros()
    return P
