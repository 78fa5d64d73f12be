"""Options in a feature space: acting where states cannot be listed (paper, Section 5.2).

A policy for a purpose e is *learned*, by linear action values q(s, a) = w_a . psi(s) that `fit` computes from
transitions, or *look-ahead*, the paper's: try every action in a copy of the environment and take the best,
``argmax_a E[e . phi(s')]`` (gamma = 0). In both cases TERMINATE is worth 0: the option ends where no action is worth
more. Learned values are often a little above 0 everywhere, so that an option runs for ever; `with_termination` ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from eigenoptions._text import printable
from eigenoptions._ties import COMPUTED_TOLERANCE, find_first_maximum
from eigenoptions._types import FeatureFunction
from eigenoptions._validation import Record, check_float, check_int, readonly
from eigenoptions.features import (
    add_batch_axis,
    compute_features,
    features_to_dict,
)
from eigenoptions.options.files import Arrays
from eigenoptions.options.lookahead import Clones, Restore, Save
from eigenoptions.options.records import (
    TERMINATE,
    OptionFields,
    OptionSequence,
    Purpose,
    check_purposes,
    set_fields,
)
from eigenoptions.options.solver import choose_actions

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class LinearOption(OptionFields):
    """One option in a feature space (Section 5.2), a member of a `LinearOptionSet`."""

    _set: LinearOptionSet
    purpose: Purpose
    patience = property(lambda self: self._set.patience, doc="See `LinearOptionSet`.")
    stop_chance = property(
        lambda self: self._set.stop_chance, doc="See `LinearOptionSet`."
    )

    def act(self, obs: Any) -> int:
        """The action at an observation, or TERMINATE."""
        return int(self._set.choices(obs)[0])

    def potential(self, obs: Any) -> float:
        """The potential e . phi(s) at an observation."""
        return float(self._set.potential(add_batch_axis(obs), 1)[0, 0])

    def reward(self, obs: Any, next_obs: Any) -> float:
        """The intrinsic reward ``e . (phi(s') - phi(s))``."""
        return self.potential(next_obs) - self.potential(obs)

    def __repr__(self) -> str:
        return f"LinearOption({printable(self.label)}: {self._set.kind})"


@dataclass(frozen=True, eq=False, repr=False)
class LinearOptionSet(Record, OptionSequence[LinearOption]):
    """An ordered sequence of options in one feature space, with their provenance (Section 5.2).

    Index by number or label for a `LinearOption`, by slice, numbers or mask for another set; `save` writes
    a file. `OptionsWrapper` accepts it. All arrays are read-only.

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
    >>> options["right"].act([-3.0]), options["right"].act([3.0])
    (1, -1)
    """

    purposes: Sequence[Purpose]
    features: FeatureFunction
    n_actions: int
    weights: Array | None = None
    basis: FeatureFunction | None = None
    threshold: Array = None  # type: ignore[assignment]
    provenance: dict[str, Any] = field(default_factory=dict)
    model: Clones | None = None
    patience: int | None = None
    stop_chance: float = 0.0
    _row_arrays = ("threshold", "weights")

    def __post_init__(self) -> None:
        purposes, n_actions = (
            check_purposes(self.purposes),
            check_int("n_actions", self.n_actions),
        )
        n, potentials = len(purposes), [np.asarray(p.potential) for p in purposes]
        if {e.ndim for e in potentials} != {1} or not np.isfinite(
            np.stack(potentials)
        ).all():
            raise ValueError(
                "purposes must be at least one, with finite potentials of one shape (d,)"
            )
        threshold = readonly(
            np.zeros(n) if self.threshold is None else self.threshold, np.float64
        )
        weights = None if self.weights is None else readonly(self.weights, np.float64)
        if threshold.shape != (n,):
            raise ValueError(f"threshold must have shape ({n},), got {threshold.shape}")
        if weights is not None and (
            weights.ndim != 3 or weights.shape[:2] != (n, n_actions)
        ):
            raise ValueError(
                f"weights must have shape ({n}, {n_actions}, p), got {weights.shape}"
            )
        patience = self.patience
        if patience is not None:
            patience = check_int("patience", patience)
        stop_chance = check_float("stop_chance", self.stop_chance, minimum=0, below=1)
        checked = {
            "purposes": purposes,
            "n_actions": n_actions,
            "threshold": threshold,
            "weights": weights,
            "patience": patience,
            "stop_chance": stop_chance,
        }
        set_fields(self, checked)

    @cached_property
    def directions(self) -> Array:
        """``(n, d)`` the vectors e."""
        return readonly([p.potential for p in self.purposes], np.float64)

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
            raise ValueError(
                "these options look ahead: bind them to an environment with look_ahead(env)"
            )
        n, n_actions, p = self.weights.shape
        psi = compute_features(self.basis or self.features, obs, p, count)
        # The method: of one observation the operator takes twice the time.
        flat: Array = psi.dot(self.weights.reshape(n * n_actions, p).T)
        return flat.reshape(len(flat), n, n_actions).transpose(1, 0, 2)

    def actions(self, obs: Any, count: int | None = None) -> NDArray[np.int64]:
        """``(n, N)`` the action of every learned option at every observation of a batch, or TERMINATE."""
        q = self.values(obs, count)
        best = q.max(axis=2)
        first = find_first_maximum(q, COMPUTED_TOLERANCE * np.abs(best), maximum=best)
        return np.where(best > self.threshold[:, None], first, TERMINATE)

    def choices(self, obs: Any) -> NDArray[np.int64]:
        """``(n,)`` the action of every option at one observation, or TERMINATE; features are computed once for all."""
        if self.model is None:
            return self.actions(add_batch_axis(obs), 1)[:, 0]
        after = [
            self.potential(add_batch_axis(o), 1)[:, 0] for o in self.model.outcomes()
        ]
        gains = np.array(after) - self.potential(add_batch_axis(obs), 1)[:, 0]
        tolerances = COMPUTED_TOLERANCE * np.abs(self.directions).max(axis=1)
        return choose_actions(gains.T, tolerances)

    def with_termination(
        self, *, patience: int | None = None, stop_chance: float = 0.0
    ) -> LinearOptionSet:
        """The same options with further conditions that end them: see the attributes of the class."""
        return replace(self, patience=patience, stop_chance=stop_chance)

    def look_ahead(
        self, env: Any, *, save: Save | None = None, restore: Restore | None = None
    ) -> Self:
        """The same purposes, followed by trying every action in a copy of `env` (the paper's way, gamma = 0).

        `env` is the environment that the options will act in. A copy has its random generator, so it shows what will
        happen. Where it cannot be copied, give ``saved = save(env.unwrapped)`` and ``restore(env.unwrapped, saved)``.
        """
        model, provenance = (
            Clones(env, self.n_actions, save, restore),
            {**self.provenance, "gamma": 0.0},
        )
        return replace(
            self, model=model, weights=None, basis=None, provenance=provenance
        )

    def _describe_file(self) -> tuple[str, dict[str, Any], Arrays]:
        """Vectors e (n, d), thresholds (n,), weights (n, A, p), and the feature maps."""
        header: dict[str, Any] = {
            "n_actions": self.n_actions,
            "patience": self.patience,
            "stop_chance": self.stop_chance,
        }
        arrays: Arrays = {"directions": self.directions, "threshold": self.threshold}
        if self.weights is not None:
            arrays["weights"] = self.weights
        for name, features in (("features", self.features), ("basis", self.basis)):
            header[name] = features_to_dict(features)
            for part, array in getattr(features, "arrays", {}).items():
                arrays[f"{name}.{part}"] = array
        return "linear options", header, arrays

    def _make_option(self, i: int) -> LinearOption:
        return LinearOption(self[[i]], self.purposes[i])

    def __repr__(self) -> str:
        n, d = self.directions.shape
        size = f"{n} {self.kind} option{'s' * (n != 1)} on {d} feature{'s' * (d != 1)}"
        return f"LinearOptionSet({size}: {self.list_labels()})"
