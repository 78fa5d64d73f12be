"""Options in a feature space: acting where states cannot be listed (paper, Section 5.2).

A policy for a purpose e is *learned*, by linear action values q(s, a) = w_a . psi(s) that `fitted.fit` computes, or
*look-ahead*, the paper's: try every action in a copy of the environment and take the best, ``argmax_a E[e . phi(s')]``
(gamma = 0). In both cases TERMINATE is worth 0: the option stops where no action is worth more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from eigenoptions._text import printable
from eigenoptions._validation import check_float, check_int, make_generator, readonly
from eigenoptions.features import Map, compute_features, features_to_dict
from eigenoptions.options import TERMINATE, OptionSequence, Purpose, check_purposes, merge_provenance
from eigenoptions.options.lookahead import Clones
from eigenoptions.options.solver import COMPUTED_TOLERANCE, first_best

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class LinearOption:
    """One option in a feature space (Section 5.2); see `LinearOptionSet`.

    Attributes
    ----------
    purpose : Purpose
        The vector e; `label`, `eigenvalue`, `index`, `sign` and `goal` are those of the purpose.

    Examples
    --------
    >>> from eigenoptions.features import Raw
    >>> right = LinearOptionSet([Purpose([1.0], "e2+")], Raw(), 2, weights=[[[0.0], [-1.0]]])["e2+"]
    >>> right
    LinearOption(e2+: learned, 1 feature)
    >>> right.act([-3.0]), right.act([3.0])
    (1, -1)
    """

    _set: LinearOptionSet

    @property
    def purpose(self) -> Purpose:
        """The purpose, whose potential is the vector e."""
        return self._set.purposes[0]

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

    @property
    def patience(self) -> int | None:
        """Steps without a new highest potential after which it terminates, as in the set."""
        return self._set.patience

    @property
    def stop_chance(self) -> float:
        """Probability to terminate after each step, as in the set."""
        return self._set.stop_chance

    def act(self, obs: Any) -> int:
        """The action at an observation, or TERMINATE."""
        return int(self._set.choices(obs)[0])

    def may_start(self, obs: Any) -> bool:
        """Whether the option may start there, which is where it does not terminate at once."""
        return self.act(obs) != TERMINATE

    def potential(self, obs: Any) -> float:
        """The potential e . phi(s) at an observation."""
        return float(self._set.potential(batch_of_one(obs), 1)[0, 0])

    def reward(self, obs: Any, next_obs: Any) -> float:
        """The intrinsic reward ``e . (phi(s') - phi(s))``."""
        return self.potential(next_obs) - self.potential(obs)

    def __repr__(self) -> str:
        return f"LinearOption({printable(self.label)}: {self._set.kind}, {self._set.describe_features()})"


@dataclass(frozen=True, eq=False, repr=False)
class LinearOptionSet(OptionSequence, Sequence[LinearOption]):
    """An ordered sequence of options in one feature space, with their provenance (Section 5.2).

    Index by number or label for a `LinearOption`, by slice, numbers or mask for another set; ``+`` concatenates,
    `save` writes a file. `OptionsWrapper` accepts it. All arrays are read-only.

    Attributes
    ----------
    purposes : sequence of Purpose
        One per option; their potentials are the vectors e ``(d,)``.
    features : callable
        The map phi from a batch of observations to ``(N, d)``.
    n_actions : int
        Number of primitive actions A.
    weights : ndarray of shape (n, A, p), default=None
        Weights of learned action values, linear in `basis`; None for options that look ahead.
    basis : callable, default=None
        The map psi to ``(N, p)``; None: phi.
    threshold : ndarray of shape (n,), default=zeros
        An option terminates where no action value is larger.
    provenance : dict, default={}
        Method and settings, as they go into the file.
    model : Clones, default=None
        Copies of the environment for look-ahead; see `look_ahead`. It is not saved.
    patience : int, default=None
        A running option terminates after this many steps without a potential above the highest so far; None: never.
    stop_chance : float, default=0.0
        Probability that a running option terminates after each step.

    Examples
    --------
    >>> from eigenoptions.features import Raw
    >>> purposes = [Purpose([1.0], "right"), Purpose([-1.0], "left")]
    >>> options = LinearOptionSet(purposes, Raw(), 2, weights=[[[0.0], [-1.0]], [[1.0], [0.0]]])
    >>> options
    LinearOptionSet(2 learned options on 1 feature: right, left)
    >>> options.actions([[-3.0], [3.0]]).tolist()
    [[1, -1], [-1, 0]]
    """

    purposes: tuple[Purpose, ...]
    features: Map
    n_actions: int
    weights: Array | None = None
    basis: Map | None = None
    threshold: Array = None  # type: ignore[assignment]
    provenance: dict[str, Any] = field(default_factory=dict)
    model: Clones | None = None
    patience: int | None = None
    stop_chance: float = 0.0

    def __post_init__(self) -> None:
        purposes = check_purposes(self.purposes)
        n, n_actions = len(purposes), check_int("n_actions", self.n_actions)
        sizes = {None if p.potential is None else p.potential.shape for p in purposes}
        if n == 0 or None in sizes or len(sizes) > 1 or len(sizes.pop()) != 1:
            raise ValueError("purposes must be at least one, with potentials of one shape (d,)")
        threshold = readonly(np.zeros(n) if self.threshold is None else self.threshold, np.float64)
        if threshold.shape != (n,):
            raise ValueError(f"threshold must have shape ({n},), got {threshold.shape}")
        checked: dict[str, Any] = {"purposes": purposes, "n_actions": n_actions, "threshold": threshold}
        if self.weights is not None:
            weights = checked["weights"] = readonly(self.weights, np.float64)
            if weights.ndim != 3 or weights.shape[:2] != (n, n_actions):
                raise ValueError(f"weights must have shape ({n}, {n_actions}, p), got {weights.shape}")
        if self.patience is not None:
            check_int("patience", self.patience)
        check_float("stop_chance", self.stop_chance, minimum=0, below=1)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if not np.isfinite(self.directions).all():
            raise ValueError("the potentials of the purposes must be finite numbers")

    @cached_property
    def directions(self) -> Array:
        """``(n, d)`` the vectors e."""
        return readonly(np.stack([p.potential for p in self.purposes]))  # type: ignore[arg-type]

    @property
    def kind(self) -> str:
        """``"learned"`` or ``"look-ahead"``: where the policies come from."""
        return "look-ahead" if self.weights is None else "learned"

    def potential(self, obs: Any, count: int | None = None) -> Array:
        """``(n, N)`` the potentials e . phi(s) of a batch; `count` is N for batches without a length (Dict)."""
        phi = compute_features(self.features, obs, self.directions.shape[1], count)
        return np.asarray(phi @ self.directions.T).T

    def values(self, obs: Any, count: int | None = None) -> Array:
        """``(n, N, A)`` learned action values of a batch."""
        if self.weights is None:
            raise ValueError("options that look ahead have no values: learn them with fitted.fit")
        n, n_actions, p = self.weights.shape
        psi = compute_features(self.basis or self.features, obs, p, count)
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
        >>> LinearOptionSet([Purpose([1.0])], Raw(), 2, weights=[[[0.0], [-1.0]]]).guarded(patience=8)[0].patience
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
        first, acts = first_best(gains.T, COMPUTED_TOLERANCE * np.abs(self.directions).max(axis=1))
        return np.where(acts, first, TERMINATE)

    @overload
    def __getitem__(self, index: int | str) -> LinearOption: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> LinearOptionSet: ...
    def __getitem__(self, index: Any) -> LinearOption | LinearOptionSet:
        """The option with a number or label, or the set chosen by a slice, numbers or a mask."""
        if isinstance(index, Integral | str):
            i = self.find(index)
            return LinearOption(self[i : i + 1])
        chosen = self.select(index)
        return replace(
            self,
            purposes=tuple(self.purposes[i] for i in chosen),
            threshold=self.threshold[chosen],
            weights=None if self.weights is None else self.weights[chosen],
        )

    def __add__(self, other: LinearOptionSet) -> LinearOptionSet:
        """Both sets, one after the other; they must have the same feature space and kind of policy."""
        if not isinstance(other, LinearOptionSet):
            return NotImplemented
        names = ("n_actions", "kind", "model", "patience", "stop_chance")
        same = all(getattr(self, name) == getattr(other, name) for name in names)
        for name in ("features", "basis"):
            same &= features_to_dict(getattr(self, name)) == features_to_dict(getattr(other, name))
        if not same:
            raise ValueError("options of different feature spaces or kinds of policies cannot be joined")
        return replace(
            self,
            purposes=self.purposes + other.purposes,
            threshold=np.concatenate([self.threshold, other.threshold]),
            weights=None if self.weights is None else np.concatenate([self.weights, other.weights]),  # type: ignore[list-item]
            provenance=merge_provenance(self.provenance, other.provenance),
        )

    def save(self, path: str | Path) -> None:
        """Write a safetensors file, completely or not at all; `load_options` reads it."""
        from eigenoptions.options.storage import save_options

        save_options(self, path)

    def describe_features(self) -> str:
        """Number of features in words."""
        d = self.directions.shape[1]
        return f"{d} feature{'s' * (d != 1)}"

    def __repr__(self) -> str:
        n = len(self)
        names = printable(", ".join(self.labels[:6])) + (", ..." if n > 6 else "")
        return (
            f"LinearOptionSet({n} {self.kind} option{'s' * (n != 1)} on {self.describe_features()}: {names})"
        )


def batch_of_one(obs: Any) -> Any:
    """A batch of one observation."""
    if isinstance(obs, dict):
        return {name: np.asarray(part)[None] for name, part in obs.items()}
    return tuple(np.asarray(part)[None] for part in obs) if isinstance(obs, tuple) else np.asarray(obs)[None]
