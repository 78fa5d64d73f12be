"""Options in a feature space: acting where states cannot be listed (paper, Section 5.2).

A purpose is a direction e, its reward ``e . (phi(s') - phi(s))``. An option needs a policy for it, and there are two.
*Learned*: linear action values q(s, a) = w_a . psi(s), as `fitting` makes them. *Look-ahead*, the paper's: try every
action in a copy of the environment and take the best, ``argmax_a E[e . phi(s') - e . phi(s)]`` (gamma = 0). Either way
TERMINATE is worth 0: the option stops where no action promises more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from eigenoptions import files
from eigenoptions.features import Map, recalled, record, rows_of
from eigenoptions.options import TERMINATE, Purpose
from eigenoptions.options.lookahead import Clones
from eigenoptions.options.ties import COMPUTED_FLOOR, first_best, tolerance

FORMAT = 1  # of options files

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearOption:
    """One option in a feature space (Section 5.2); see `LinearOptionSet`.

    Attributes
    ----------
    options, index
        The set it belongs to, and its place there.

    Examples
    --------
    >>> from eigenoptions.features import Raw
    >>> right = LinearOptionSet([[1.0]], Raw(), 2, weights=[[[0.0], [-1.0]]], labels=("e1+",))[0]
    >>> right.label, right.act([-3.0]), right.act([3.0])
    ('e1+', 1, -1)
    """

    options: LinearOptionSet
    index: int

    @property
    def label(self) -> str:
        """Where it came from, as in `Purpose`."""
        return self.options.labels[self.index]

    @property
    def eigenvalue(self) -> float:
        """Of its purpose."""
        return float(self.options.eigenvalues[self.index])

    @property
    def direction(self) -> Array:
        """``(d,)`` the vector e."""
        e: Array = self.options.direction[self.index]
        return e

    def act(self, obs: Any) -> int:
        """The action at an observation, or TERMINATE."""
        return int(self.options.choices(obs)[self.index])

    def may_start(self, obs: Any) -> bool:
        """Whether the option may start there: it does not stop at once."""
        return self.act(obs) != TERMINATE

    def reward(self, obs: Any, next_obs: Any) -> float:
        """The intrinsic reward ``e . (phi(s') - phi(s))``."""
        before, after = (self.options.potential(_batch(o), 1)[self.index, 0] for o in (obs, next_obs))
        return float(after - before)


@dataclass(frozen=True, eq=False, repr=False)
class LinearOptionSet(Sequence[LinearOption]):
    """An ordered sequence of options in one feature space, with where they came from (Section 5.2).

    Index for a `LinearOption`, slice for another set, ``+`` to concatenate, `save` to keep. `OptionsWrapper` takes it.

    Attributes
    ----------
    direction
        ``(n, d)`` the vectors e.
    features
        The map phi from a batch of observations to ``(N, d)``.
    n_actions
        Number of primitive actions A.
    weights
        ``(n, A, p)`` of learned action values, linear in `basis`; None for options that look ahead.
    basis
        The map psi to ``(N, p)``; None: phi.
    threshold
        ``(n,)`` an option stops where no action value is larger.
    labels, eigenvalues
        One entry an option, as in `Purpose`.
    provenance
        Method and settings, as they go into the file.
    model
        How to look ahead; see `look_ahead`. It is not saved.

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

    def __post_init__(self) -> None:
        direction = np.asarray(self.direction, dtype=np.float64)
        if direction.ndim != 2 or not np.isfinite(direction).all():
            raise ValueError(f"direction must be finite numbers of shape (n, d), got shape {direction.shape}")
        n = len(direction)
        fields: dict[str, Any] = {
            "direction": direction,
            "threshold": np.zeros(n)
            if self.threshold is None
            else np.asarray(self.threshold, dtype=np.float64),
            "labels": tuple(self.labels) or tuple(f"option {i + 1}" for i in range(n)),
            "eigenvalues": np.full(n, np.nan)
            if self.eigenvalues is None
            else np.asarray(self.eigenvalues, float),
        }
        for name, value in fields.items():
            if len(value) != n:
                raise ValueError(f"{name} must have one entry for each of {n} options, got {len(value)}")
            object.__setattr__(self, name, value)
        if self.weights is not None:
            weights = np.asarray(self.weights, dtype=np.float64)
            if weights.ndim != 3 or weights.shape[:2] != (n, self.n_actions):
                raise ValueError(f"weights must have shape ({n}, {self.n_actions}, p), got {weights.shape}")
            object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "_last", (None, None, None))

    def potential(self, obs: Any, count: int | None = None) -> Array:
        """``(n, N)`` the potentials e . phi(s) of a batch; `count` is N where the batch does not tell (Dict)."""
        phi = rows_of(self.features, obs, self.direction.shape[1], count)
        return np.asarray(phi @ self.direction.T).T

    def values(self, obs: Any, count: int | None = None) -> Array:
        """``(n, N, A)`` learned action values of a batch."""
        if self.weights is None:
            raise ValueError("options that look ahead have no values: learn them with fitting.fit")
        n, n_actions, p = self.weights.shape
        psi = rows_of(self.basis or self.features, obs, p, count)
        flat = np.asarray(psi @ self.weights.reshape(n * n_actions, p).T)
        return flat.reshape(len(flat), n, n_actions).transpose(1, 0, 2)

    def actions(self, obs: Any, count: int | None = None) -> NDArray[np.int64]:
        """``(n, N)`` the action of every option at every observation of a batch, or TERMINATE."""
        q = self.values(obs, count)
        return np.where(q.max(axis=2) > self.threshold[:, None], q.argmax(axis=2), TERMINATE)

    def choices(self, obs: Any) -> NDArray[np.int64]:
        """``(n,)`` the action of every option at one observation; asked again for the same one, nothing is computed."""
        if self.model is None and self.weights is None:
            raise ValueError(
                "these options look ahead: bind them to an environment with options.look_ahead(env)"
            )
        # Options are asked one by one. That the observation is the same object says that the environment has not moved;
        # its bytes, that it has not been written over.
        seen, text, found = self._last  # type: ignore[attr-defined]
        key = obs.tobytes() if isinstance(obs, np.ndarray) else None
        if key is not None and key == text and (self.model is None or seen is obs):
            return found  # type: ignore[no-any-return]
        found = self.actions(_batch(obs), 1)[:, 0] if self.model is None else self._look(obs)
        object.__setattr__(self, "_last", (obs, key, found))
        return found

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
            The environment the options will act in, itself and not a copy: they look ahead from where it is.
        samples
            Copies an action. One copy throws the dice that the environment will throw, so it sees what will happen;
            with more, each has dice of its own, and the mean counts.
        save, restore
            ``saved = save(env.unwrapped)`` and ``restore(env.unwrapped, saved)``, where it cannot be copied.
        rng
            Of the dice.
        """
        model = Clones(env, self.n_actions, samples, save, restore, np.random.default_rng(rng))
        return replace(
            self, model=model, weights=None, basis=None, provenance={**self.provenance, "gamma": 0.0}
        )

    def _look(self, obs: Any) -> NDArray[np.int64]:
        assert self.model is not None
        here = self.potential(_batch(obs), 1)[:, 0]
        gains = np.stack(
            [
                np.mean([self.potential(_batch(o), 1)[:, 0] for o in ends], axis=0)
                for ends in self.model.outcomes()
            ]
        )
        gains -= here
        equal = tolerance(np.abs(self.direction).max(axis=1), 0.0, COMPUTED_FLOOR)
        first, acts = first_best(gains.T, equal)
        return np.where(acts, first, TERMINATE)

    def __len__(self) -> int:
        return len(self.direction)

    def __iter__(self) -> Iterator[LinearOption]:
        return (LinearOption(self, i) for i in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> LinearOption: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> LinearOptionSet: ...
    def __getitem__(self, index: Any) -> LinearOption | LinearOptionSet:
        """An option, or the set of those chosen by a slice, a list of numbers or a mask."""
        if isinstance(index, int | np.integer):
            return LinearOption(self, range(len(self))[int(index)])
        chosen = np.arange(len(self))[index if isinstance(index, slice) else np.asarray(index)]
        return replace(
            self,
            direction=self.direction[chosen],
            weights=None if self.weights is None else self.weights[chosen],
            threshold=self.threshold[chosen],
            labels=tuple(self.labels[i] for i in chosen),
            eigenvalues=self.eigenvalues[chosen],
        )

    def __add__(self, other: LinearOptionSet) -> LinearOptionSet:
        """Both sets, one after the other; they must live in one feature space and act in the same way."""
        if (record(self.features), record(self.basis), self.n_actions, self.weights is None, self.model) != (
            *(
                record(other.features),
                record(other.basis),
                other.n_actions,
                other.weights is None,
                other.model,
            ),
        ):
            raise ValueError(
                "option sets of different feature spaces, or with different policies, cannot be joined"
            )
        both = [self.provenance, other.provenance]
        return replace(
            self,
            direction=np.concatenate([self.direction, other.direction]),
            weights=None if self.weights is None else np.concatenate([self.weights, other.weights]),
            threshold=np.concatenate([self.threshold, other.threshold]),
            labels=self.labels + other.labels,
            eigenvalues=np.concatenate([self.eigenvalues, other.eigenvalues]),
            provenance=self.provenance if both[0] == both[1] else {"joined": both},
        )

    def save(self, path: str | Path) -> None:
        """Write a safetensors file, whole or not at all; read it again with `load_linear_options`."""
        header = {
            "kind": "linear options",
            "format": FORMAT,
            "n_actions": self.n_actions,
            "features": record(self.features),
            "basis": record(self.basis),
            "labels": self.labels,
            "eigenvalues": [float(x) if np.isfinite(x) else None for x in self.eigenvalues],
            "provenance": self.provenance,
        }
        rows = {"direction": self.direction, "threshold": self.threshold}
        files.write(path, header, rows if self.weights is None else {**rows, "weights": self.weights})

    def __repr__(self) -> str:
        n, d = self.direction.shape
        names = ", ".join(self.labels[:6]) + (", ..." if n > 6 else "")
        how = "learned" if self.weights is not None else "look-ahead"
        return f"LinearOptionSet({n} {how} option{'s' * (n != 1)} on {d} feature{'s' * (d != 1)}: {names})"


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
    return LinearOptionSet(
        np.stack([p.direction for p in purposes]),
        features,
        n_actions,
        labels=tuple(p.label or f"purpose {i + 1}" for i, p in enumerate(purposes)),
        eigenvalues=np.array([p.eigenvalue for p in purposes]),
        provenance=provenance or {},
    )


def load_linear_options(
    path: str | Path,
    *,
    features: Map | None = None,
    basis: Map | None = None,
    only: int | slice | Sequence[int] | None = None,
) -> LinearOptionSet:
    """Read options that `LinearOptionSet.save` wrote.

    Parameters
    ----------
    path
        The file.
    features, basis
        The maps phi and psi, where they were functions of one's own.
    only
        Read just these (a number, a slice, or numbers).

    Examples
    --------
    >>> from eigenoptions.features import Raw
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "skills.safetensors"
    >>> LinearOptionSet([[1.0], [-1.0]], Raw(), 3).save(file)
    >>> load_linear_options(file, only=1)
    LinearOptionSet(1 look-ahead option on 1 feature: option 2)
    >>> folder.cleanup()
    """
    header, arrays = files.read(path, "linear options", FORMAT, only)
    rows = header["rows"]
    phi = recalled(header["features"], features)
    assert phi is not None
    return LinearOptionSet(
        arrays["direction"],
        phi,
        header["n_actions"],
        arrays.get("weights"),
        recalled(header["basis"], basis),
        arrays["threshold"],
        tuple(header["labels"][i] for i in rows),
        np.array([np.nan if header["eigenvalues"][i] is None else header["eigenvalues"][i] for i in rows]),
        header["provenance"],
    )


def _batch(obs: Any) -> Any:
    """A batch of one observation."""
    if isinstance(obs, dict):
        return {name: np.asarray(part)[None] for name, part in obs.items()}
    return tuple(np.asarray(part)[None] for part in obs) if isinstance(obs, tuple) else np.asarray(obs)[None]
