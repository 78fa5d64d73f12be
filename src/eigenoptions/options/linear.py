"""Options in a feature space: acting where states cannot be listed (paper, Section 5.2).

A policy for a purpose e is *learned*, by linear action values q(s, a) = w_a . psi(s) that `fitted.fit` computes, or
*look-ahead*, the paper's: try every action in a copy of the environment and take the best, ``argmax_a E[e . phi(s')]``
(gamma = 0). In both cases TERMINATE is worth 0: the option stops where no action is worth more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from eigenoptions._text import printable
from eigenoptions._validation import check_float, check_int, make_generator, readonly
from eigenoptions.features import Map, record, rows_of
from eigenoptions.options import (
    FILE_FORMAT,
    ORIGIN,
    TERMINATE,
    Origin,
    Purpose,
    concatenated,
    entries,
    origins,
    position,
    selected,
)
from eigenoptions.options.lookahead import Clones
from eigenoptions.options.solver import COMPUTED_FLOOR, first_best, tolerance

Array = NDArray[np.float64]
# Most options that a notebook lists.
MAX_ROWS = 12


@dataclass(frozen=True, eq=False, repr=False)
class LinearOption:
    """One option in a feature space (Section 5.2); see `LinearOptionSet`.

    Attributes
    ----------
    alone
        The set of this option only.
    direction
        ``(d,)`` the vector e.
    label, eigenvalue, index, sign, goal
        As in `Purpose`.

    Examples
    --------
    >>> from eigenoptions.features import Raw
    >>> right = LinearOptionSet([[1.0]], Raw(), 2, weights=[[[0.0], [-1.0]]], labels=("e2+",))["e2+"]
    >>> right
    LinearOption(e2+: learned, 1 feature)
    >>> right.act([-3.0]), right.act([3.0])
    (1, -1)
    """

    alone: LinearOptionSet
    direction: Array
    label: str
    eigenvalue: float
    index: int | None
    sign: int | None
    goal: int | None

    def act(self, obs: Any) -> int:
        """The action at an observation, or TERMINATE."""
        return int(self.alone.choices(obs)[0])

    @property
    def patience(self) -> int | None:
        """Steps without a new highest potential after which it stops, as in the set."""
        return self.alone.patience

    @property
    def stop_chance(self) -> float:
        """Probability to stop after each step, as in the set."""
        return self.alone.stop_chance

    def potential(self, obs: Any) -> float:
        """The potential e . phi(s) at an observation."""
        return float(self.alone.potential(batch_of_one(obs), 1)[0, 0])

    def may_start(self, obs: Any) -> bool:
        """Whether the option may start there, which is where it does not stop at once."""
        return self.act(obs) != TERMINATE

    def reward(self, obs: Any, next_obs: Any) -> float:
        """The intrinsic reward ``e . (phi(s') - phi(s))``."""
        return self.potential(next_obs) - self.potential(obs)

    def __repr__(self) -> str:
        return f"LinearOption({printable(self.label)}: {self.alone.kind}, {_features(self.alone)})"


@dataclass(frozen=True, eq=False, repr=False)
class LinearOptionSet(Sequence[LinearOption]):
    """An ordered sequence of options in one feature space, with their provenance (Section 5.2).

    Index by number or label for a `LinearOption`, by slice, numbers or mask for another set; ``+`` concatenates,
    `save` writes a file. `OptionsWrapper` accepts it. All arrays are read-only.

    Attributes
    ----------
    direction
        ``(n, d)`` the vectors e.
    features
        The map phi from a batch of observations to ``(N, d)``.
    n_actions
        Number of primitive actions A.
    weights
        ``(n, A, p)`` weights of learned action values, linear in `basis`; None for options that look ahead.
    basis
        The map psi to ``(N, p)``; None: phi.
    threshold
        ``(n,)`` an option stops where no action value is larger.
    labels, eigenvalues, indices, signs, goals
        One entry per option, as in `OptionSet`.
    provenance
        Method and settings, as they go into the file.
    patience
        An option that runs stops after this many steps without a potential above the highest so far; None: never.
    stop_chance
        Probability that a running option stops after each step.
    model
        Copies of the environment for look-ahead; see `look_ahead`. It is not saved.

    Examples
    --------
    >>> from eigenoptions.features import Raw
    >>> options = LinearOptionSet([[1.0], [-1.0]], Raw(), 2, weights=[[[0.0], [-1.0]], [[1.0], [0.0]]])
    >>> options
    LinearOptionSet(2 learned options on 1 feature: option 1, option 2)
    >>> options.actions([[-3.0], [3.0]]).tolist()
    [[1, -1], [-1, 0]]
    """

    direction: Array
    features: Map
    n_actions: int
    weights: Array | None = None
    basis: Map | None = None
    threshold: Array = None  # type: ignore[assignment]
    labels: tuple[str, ...] = ()
    eigenvalues: Array = None  # type: ignore[assignment]
    provenance: dict[str, Any] = field(default_factory=dict)
    model: Clones | None = None
    indices: Origin = ()
    signs: Origin = ()
    goals: Origin = ()
    patience: int | None = None
    stop_chance: float = 0.0

    def __post_init__(self) -> None:
        if self.patience is not None:
            check_int("patience", self.patience)
        check_float("stop_chance", self.stop_chance, minimum=0, below=1)
        direction = readonly(self.direction, np.float64)
        if direction.ndim != 2 or not np.isfinite(direction).all():
            raise ValueError(f"direction must be finite numbers of shape (n, d), got shape {direction.shape}")
        n = len(direction)
        checked: dict[str, Any] = {"direction": direction, **entries(self, n)}
        checked["n_actions"] = check_int("n_actions", self.n_actions)
        for name, default in (("threshold", 0.0), ("eigenvalues", np.nan)):
            given = getattr(self, name)
            checked[name] = readonly(np.full(n, default) if given is None else given, np.float64)
            if (shape := checked[name].shape) != (n,):
                raise ValueError(f"{name} must have one entry for each of {n} options, got shape {shape}")
        if self.weights is not None:
            weights = checked["weights"] = readonly(self.weights, np.float64)
            if weights.ndim != 3 or weights.shape[:2] != (n, self.n_actions):
                raise ValueError(f"weights must have shape ({n}, {self.n_actions}, p), got {weights.shape}")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def kind(self) -> str:
        """``"learned"`` or ``"look-ahead"``: where the policies come from."""
        return "look-ahead" if self.weights is None else "learned"

    @property
    def _arrays(self) -> tuple[str, ...]:
        return ("direction", "threshold", "eigenvalues", *(["weights"] if self.weights is not None else []))

    def potential(self, obs: Any, count: int | None = None) -> Array:
        """``(n, N)`` the potentials e . phi(s) of a batch; `count` is N for batches without a length (Dict)."""
        phi = rows_of(self.features, obs, self.direction.shape[1], count)
        return np.asarray(phi @ self.direction.T).T

    def values(self, obs: Any, count: int | None = None) -> Array:
        """``(n, N, A)`` learned action values of a batch."""
        if self.weights is None:
            raise ValueError("options that look ahead have no values: learn them with fitted.fit")
        n, n_actions, p = self.weights.shape
        psi = rows_of(self.basis or self.features, obs, p, count)
        flat = np.asarray(psi @ self.weights.reshape(n * n_actions, p).T)
        return flat.reshape(len(flat), n, n_actions).transpose(1, 0, 2)

    def actions(self, obs: Any, count: int | None = None) -> NDArray[np.int64]:
        """``(n, N)`` the action of every learned option at every observation of a batch, or TERMINATE."""
        q = self.values(obs, count)
        return np.where(q.max(axis=2) > self.threshold[:, None], q.argmax(axis=2), TERMINATE)

    def choices(self, obs: Any) -> NDArray[np.int64]:
        """``(n,)`` the action of every option at one observation, or TERMINATE; features are computed once for all."""
        if self.model is not None:
            return self._look(obs)
        if self.weights is None:
            raise ValueError("these options look ahead: bind them to an environment with look_ahead(env)")
        return self.actions(batch_of_one(obs), 1)[:, 0]

    def guarded(self, *, patience: int | None = None, stop_chance: float = 0.0) -> LinearOptionSet:
        """The same options with guards that end them; `OptionsWrapper`, `run_options` and `collect` honour these.

        Parameters
        ----------
        patience
            Stop after this many steps without a potential above the highest so far; None: never. 8 keeps 95 to 97% of
            the climb of exact options, and ends those that would circle for ever.
        stop_chance
            Probability in [0, 1) to stop after each step.

        Examples
        --------
        >>> from eigenoptions.features import Raw
        >>> LinearOptionSet([[1.0]], Raw(), 2, weights=[[[0.0], [-1.0]]]).guarded(patience=8)[0].patience
        8
        """
        return replace(self, patience=patience, stop_chance=stop_chance)

    def look_ahead(
        self,
        env: Any,
        *,
        samples: int = 1,
        save: Callable[[Any], Any] | None = None,
        restore: Callable[[Any, Any], object] | None = None,
        rng: int | np.random.Generator = 0,
    ) -> LinearOptionSet:
        """The same purposes, followed by trying every action in a copy of `env` (the paper's way, gamma = 0).

        Parameters
        ----------
        env
            The environment the options will act in, not a copy: they look ahead from its current state.
        samples
            Number of copies per action. A single copy has the random generator of the environment, so it shows what
            will happen; several copies have their own generators, and the mean gain counts.
        save, restore
            ``saved = save(env.unwrapped)`` and ``restore(env.unwrapped, saved)``, where it cannot be copied.
        rng
            Random generator that seeds the copies where there are several.
        """
        model = Clones(env, self.n_actions, samples, save, restore, make_generator(rng))
        about = {**self.provenance, "gamma": 0.0}
        return replace(self, model=model, weights=None, basis=None, provenance=about)

    def _look(self, obs: Any) -> NDArray[np.int64]:
        assert self.model is not None
        here = self.potential(batch_of_one(obs), 1)[:, 0]
        ahead = [[self.potential(batch_of_one(o), 1)[:, 0] for o in ends] for ends in self.model.outcomes()]
        gains = np.mean(ahead, axis=1) - here
        equal = tolerance(np.abs(self.direction).max(axis=1), 0.0, COMPUTED_FLOOR)
        first, acts = first_best(gains.T, equal)
        return np.where(acts, first, TERMINATE)

    def __len__(self) -> int:
        return len(self.direction)

    @overload
    def __getitem__(self, index: int | str) -> LinearOption: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> LinearOptionSet: ...
    def __getitem__(self, index: Any) -> LinearOption | LinearOptionSet:
        """The option with a number or label, or the set chosen by a slice, numbers or a mask."""
        if isinstance(index, int | np.integer | str):
            i = position(self.labels, index)
            origin = (getattr(self, name)[i] for name in ORIGIN.values())
            alone, eigenvalue = self[i : i + 1], float(self.eigenvalues[i])
            return LinearOption(alone, self.direction[i], self.labels[i], eigenvalue, *origin)
        return replace(self, **selected(self, index, self._arrays))

    def __add__(self, other: LinearOptionSet) -> LinearOptionSet:
        """Both sets, one after the other; they must have the same feature space and kind of policy."""
        if not isinstance(other, LinearOptionSet):
            return NotImplemented
        ways = [
            (record(o.features), record(o.basis), o.n_actions, o.kind, o.model, o.patience, o.stop_chance)
            for o in (self, other)
        ]
        if ways[0] != ways[1]:
            raise ValueError("options of different feature spaces or kinds of policies cannot be joined")
        return replace(self, **concatenated(self, other, self._arrays))

    def save(self, path: str | Path) -> None:
        """Write a safetensors file, completely or not at all; `load_options` reads it."""
        from eigenoptions import files

        header = {
            "kind": "linear options",
            "format": FILE_FORMAT,
            "features": record(self.features),
            "basis": record(self.basis),
            "patience": self.patience,
            "stop_chance": self.stop_chance,
            "eigenvalues": [float(x) if np.isfinite(x) else None for x in self.eigenvalues],
            **{name: getattr(self, name) for name in ("n_actions", "provenance", "labels", *ORIGIN.values())},
        }
        rows = {"direction": self.direction, "threshold": self.threshold}
        maps = {"features": self.features, "basis": self.basis}
        arrays = {f"{m}.{k}": a for m in maps for k, a in getattr(maps[m], "arrays", {}).items()}
        files.write(path, header, rows if self.weights is None else {**rows, "weights": self.weights}, arrays)

    def _repr_html_(self) -> str:
        from eigenoptions import _text as sketch

        values = ["" if np.isnan(x) else f"{x:.5g}" for x in self.eigenvalues[:MAX_ROWS].tolist()]
        rows = zip(self.labels, values, strict=False)
        more = f"{len(self) - MAX_ROWS} more are not shown<br>" if len(self) > MAX_ROWS else ""
        head = f"{self.kind}, {_features(self)}, {self.n_actions} actions"
        return f"<div>{head}{sketch.table(('option', 'eigenvalue'), rows)}{more}<code>{escape(repr(self))}</code></div>"

    def __repr__(self) -> str:
        n = len(self)
        names = printable(", ".join(self.labels[:6])) + (", ..." if n > 6 else "")
        return f"LinearOptionSet({n} {self.kind} option{'s' * (n != 1)} on {_features(self)}: {names})"


def linear_options(
    purposes: Sequence[Purpose], features: Map, n_actions: int, provenance: dict[str, Any] | None = None
) -> LinearOptionSet:
    """Purposes in a feature space as options that look ahead, to be bound to an environment.

    >>> from eigenoptions.features import Raw
    >>> linear_options([Purpose(np.array([0.0, 1.0]), "up")], Raw(), 3)
    LinearOptionSet(1 look-ahead option on 2 features: up)
    """
    if not purposes:
        raise ValueError("there are no purposes: give at least one")
    directions = np.stack([p.direction for p in purposes])
    return LinearOptionSet(directions, features, n_actions, provenance=provenance or {}, **origins(purposes))


def _features(options: LinearOptionSet) -> str:
    d = options.direction.shape[1]
    return f"{d} feature{'s' * (d != 1)}"


def batch_of_one(obs: Any) -> Any:
    """A batch of one observation."""
    if isinstance(obs, dict):
        return {name: np.asarray(part)[None] for name, part in obs.items()}
    return tuple(np.asarray(part)[None] for part in obs) if isinstance(obs, tuple) else np.asarray(obs)[None]
