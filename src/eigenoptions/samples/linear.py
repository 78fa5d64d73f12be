"""Options in a feature space: acting where states cannot be listed (Section 5.2).

The policy of a purpose e is *learned* or *looks ahead*. A learned policy has linear
action values ``q(s, a) = w_a . psi(s)``: `fitting.fit` computes them from transitions,
and of the cells of a grid, which are features too, `solve` does. The paper's policy
looks ahead: it tries every action in a copy of the environment and takes the best one,
``argmax_a E[e . phi(s')]`` (gamma = 0). In both cases TERMINATE is worth 0: the option
ends where no action is worth more. Values of samples are never exact, so an option also
ends when it does not rise as they predict (`execution.PredictedRise`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from eigenoptions._registry import notebook_pictures
from eigenoptions._text import count_noun, printable
from eigenoptions._ties import COMPUTED_TOLERANCE
from eigenoptions._types import (
    Environment,
    FeatureFunction,
    FloatArray,
)
from eigenoptions._validation import Record, check_float, check_int, readonly
from eigenoptions.options.files import Arrays
from eigenoptions.options.lookahead import Clones, Restore, Save
from eigenoptions.options.records import (
    BatchOptions,
    OptionFields,
    Purpose,
    check_purposes,
    set_fields,
)
from eigenoptions.options.solver import choose_actions
from eigenoptions.options.tuning import Exploration
from eigenoptions.samples.features import (
    StateMap,
    add_batch_axis,
    compute_features,
    features_to_dict,
)

# Fitted values have the rounding errors of a regression, relative to the largest entry
# of a purpose.
_FITTED_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class LinearOption(OptionFields):
    """One option in a feature space (Section 5.2), a member of a `LinearOptionSet`."""

    _set: LinearOptionSet
    purpose: Purpose

    @property
    def patience(self) -> int | None:
        """See `LinearOptionSet`."""
        return self._set.patience

    @property
    def stop_chance(self) -> float:
        """See `LinearOptionSet`."""
        return self._set.stop_chance

    @property
    def gamma(self) -> float | None:
        """See `LinearOptionSet`."""
        return self._set.gamma

    def act(self, obs: Any) -> int:
        """Return the action at an observation, or TERMINATE."""
        return int(self._set.choices(obs)[0])

    def value(self, obs: Any) -> float:
        """Return what its best action is worth at an observation, at least 0."""
        q = self._set.values(add_batch_axis(obs), 1)[0, 0]
        return max(float(q.max()), 0.0)

    def potential(self, obs: Any) -> float:
        """Return the potential ``e . phi(s)`` at an observation."""
        return float(self._set.potential(add_batch_axis(obs), 1)[0, 0])

    def reward(self, obs: Any, next_obs: Any) -> float:
        """Return the intrinsic reward ``e . (phi(s') - phi(s))``."""
        return self.potential(next_obs) - self.potential(obs)

    def __repr__(self) -> str:
        return f"LinearOption({printable(self.label)}: {self._set.kind})"

    def _repr_html_(self) -> str:
        """A map of the option, as a notebook shows it."""
        return notebook_pictures.find("options")(self._set, repr(self))


@dataclass(frozen=True, eq=False, repr=False)
class LinearOptionSet(Record, BatchOptions[LinearOption]):
    """An ordered sequence of options in one feature space (Section 5.2).

    Index it by number or label for a `LinearOption`, by a slice, numbers or a mask for
    another set. `save` writes a file. `OptionsWrapper` accepts it. All arrays are
    read-only.

    Parameters
    ----------
    purposes : sequence of Purpose
        One per option. Their potentials are the vectors e ``(d,)``.
    features : callable
        The map phi from a batch of observations to ``(N, d)``.
    n_actions : int
        Number of primitive actions A.
    weights : array of shape (n, A, p), default=None
        Weights of learned action values, linear in `basis`. None for options that look
        ahead.
    basis : callable, default=None
        The map psi to ``(N, p)``. None: phi.
    threshold : array of shape (n,), default=None
        An option terminates where no action value is larger. None: zeros.
    gamma : float, default=None
        Discount of the action values. A running option then also terminates when it
        does not rise as they predict; see `execution.PredictedRise`. None: it does not.
    exploration : Exploration, default=None
        How often random decisions should be for these options, and how soon these then
        stop, as `discover` found it on the data. `OptionsWrapper` reads it.
    provenance : dict, default={}
        Method and settings, as they go into the file.
    model : Clones, default=None
        Copies of the environment for options that look ahead; see `look_ahead`. It is
        not saved.
    patience : int, default=None
        A running option terminates after this many steps without a potential above the
        highest so far. None: never.
    stop_chance : float, default=0.0
        Probability that a running option terminates after each step.

    Examples
    --------
    >>> from eigenoptions.samples.features import Raw
    >>> purposes = [Purpose([1.0], "right"), Purpose([-1.0], "left")]
    >>> weights = [[[0.0], [-1.0]], [[1.0], [0.0]]]
    >>> options = LinearOptionSet(purposes, Raw(), 2, weights=weights)
    >>> options
    LinearOptionSet(2 learned options on 1 feature: right, left)
    >>> options["right"].act([-3.0]), options["right"].act([3.0])
    (1, -1)
    """

    purposes: Sequence[Purpose]
    features: FeatureFunction
    n_actions: int
    weights: FloatArray | None = None
    basis: FeatureFunction | None = None
    # Only the constructor sees None.
    threshold: FloatArray = None  # type: ignore[assignment]
    provenance: dict[str, Any] = field(default_factory=dict)
    model: Clones | None = None
    patience: int | None = None
    stop_chance: float = 0.0
    gamma: float | None = None
    exploration: Exploration | None = None
    _row_arrays = ("threshold", "weights")

    def __post_init__(self) -> None:
        purposes = check_purposes(self.purposes)
        n_actions = check_int("n_actions", self.n_actions)
        n_options = len(purposes)
        _check_potentials(purposes)

        threshold = np.zeros(n_options) if self.threshold is None else self.threshold
        threshold = readonly(threshold, np.float64)
        if threshold.shape != (n_options,):
            raise ValueError(
                f"threshold must have shape ({n_options},), got {threshold.shape}"
            )

        weights = self.weights
        if weights is not None:
            weights = readonly(weights, np.float64)
            if weights.ndim != 3 or weights.shape[:2] != (n_options, n_actions):
                raise ValueError(
                    f"weights must have shape ({n_options}, {n_actions}, p), "
                    f"got {weights.shape}"
                )

        patience = self.patience
        if patience is not None:
            patience = check_int("patience", patience)
        stop_chance = check_float("stop_chance", self.stop_chance, minimum=0, below=1)
        gamma = self.gamma
        if gamma is not None:
            gamma = check_float("gamma", gamma, minimum=0, below=1)

        checked = {
            "purposes": purposes,
            "n_actions": n_actions,
            "threshold": threshold,
            "weights": weights,
            "patience": patience,
            "stop_chance": stop_chance,
            "gamma": gamma,
        }
        set_fields(self, checked)

    @cached_property
    def directions(self) -> FloatArray:
        """The vectors e ``(n, d)``."""
        return readonly([p.potential for p in self.purposes], np.float64)

    @property
    def kind(self) -> str:
        """``"learned"`` or ``"look-ahead"``: where the policies come from."""
        return "look-ahead" if self.weights is None else "learned"

    @property
    def _features_of_values(self) -> Any:
        """The map psi in which learned action values are linear."""
        return self.features if self.basis is None else self.basis

    @cached_property
    def _tolerances(self) -> FloatArray:
        """``(n,)`` differences up to which action values are equal."""
        is_fitted = self.weights is not None and not self._has_cells
        relative = _FITTED_TOLERANCE if is_fitted else COMPUTED_TOLERANCE
        largest: FloatArray = np.abs(self.directions).max(axis=1)
        return relative * largest

    @property
    def _has_cells(self) -> bool:
        """Whether the features are the cells of a table."""
        return isinstance(self._features_of_values, StateMap)

    @cached_property
    def cell_actions(self) -> NDArray[np.int64] | None:
        """``(n, S)`` the action of each option in each cell; None without cells."""
        if self.weights is None or not self._has_cells:
            return None
        return self._choose(np.moveaxis(self.weights, 1, 2))

    def _choose(self, q: FloatArray) -> NDArray[np.int64]:
        """Return the actions ``(n, N)`` of action values ``(n, N, A)``."""
        excess = q - self.threshold[:, None, None]
        gamma = 0.0 if self.gamma is None else self.gamma
        return choose_actions(excess, self._tolerances[:, None], gamma)

    def potential(self, obs: Any, count: int | None = None) -> FloatArray:
        """Return the potentials ``e . phi(s)`` of a batch, as an array ``(n, N)``.

        `count` is N for batches without a length (Dict spaces).
        """
        if isinstance(self.features, StateMap):
            return self.directions[:, self.features.find_states(obs)]
        phi = compute_features(self.features, obs, self.directions.shape[1], count)
        return np.asarray(phi @ self.directions.T).T

    def values(self, obs: Any, count: int | None = None) -> FloatArray:
        """Return the learned action values of a batch, as an array ``(n, N, A)``.

        `count` is N for batches without a length (Dict spaces).
        """
        if self.weights is None:
            raise ValueError(
                "these options look ahead: "
                "bind them to an environment with look_ahead(env)"
            )
        basis = self._features_of_values
        if isinstance(basis, StateMap):
            return np.moveaxis(self.weights[:, :, basis.find_states(obs)], 1, 2)

        n, n_actions, n_features = self.weights.shape
        psi = compute_features(basis, obs, n_features, count)
        # `dot`, since `@` takes twice as long for a single observation.
        q: FloatArray = psi.dot(self.weights.reshape(n * n_actions, n_features).T)
        return q.reshape(len(q), n, n_actions).transpose(1, 0, 2)

    def actions(self, obs: Any, count: int | None = None) -> NDArray[np.int64]:
        """Return the action of every learned option at every observation of a batch.

        The array ``(n, N)`` has TERMINATE where an option ends.
        """
        if self.cell_actions is not None:
            return self.cell_actions[:, self._features_of_values.find_states(obs)]
        return self._choose(self.values(obs, count))

    def choices(self, obs: Any) -> NDArray[np.int64]:
        """Return the action ``(n,)`` of every option at one observation, or TERMINATE.

        Features are computed once for all options.
        """
        if self.model is None:
            return self.actions(add_batch_axis(obs), 1)[:, 0]
        before = self.potential(add_batch_axis(obs), 1)[:, 0]
        after = []
        for outcome in self.model.outcomes():
            after.append(self.potential(add_batch_axis(outcome), 1)[:, 0])
        gains = np.array(after) - before
        return choose_actions(gains.T, self._tolerances)

    def check(self, env: Environment, *, steps: int = 200) -> None:
        """Raise ValueError unless these options can act in an environment.

        It must have their number of actions, and observations that their features
        accept. Options of cells must know most of the places of a random walk. Moves
        are not compared, since features do not say which of them are possible.

        Parameters
        ----------
        env : Environment
            The environment. It takes random steps: reset it before you use it again.
        steps : int, default=200
            Number of random steps.
        """
        steps = check_int("steps", steps)
        n_actions = getattr(env.action_space, "n", None)
        if n_actions != self.n_actions:
            raise ValueError(
                f"options of another environment: they choose among {self.n_actions} "
                f"actions, this one has {env.action_space}; discover options on it"
            )

        rng = np.random.default_rng(0)
        obs, _ = env.reset(seed=0)
        n_far = 0
        for _ in range(steps):
            batch = add_batch_axis(obs)
            self.potential(batch, 1)
            if isinstance(self.features, StateMap):
                n_far += int(self.features.measure_distances(batch)[0] > 2.0)
            obs, _, terminated, truncated, _ = env.step(int(rng.integers(n_actions)))
            if terminated or truncated:
                obs, _ = env.reset()
        if 2 * n_far > steps:
            raise ValueError(
                f"options of another environment: {n_far} of {steps} random steps were "
                "more than two cells away from the data; discover options on it"
            )

    def with_termination(
        self, *, patience: int | None = None, stop_chance: float = 0.0
    ) -> LinearOptionSet:
        """Return the same options with further conditions that end them.

        See the parameters of the class.
        """
        return replace(self, patience=patience, stop_chance=stop_chance)

    def look_ahead(
        self,
        env: Environment,
        *,
        save: Save | None = None,
        restore: Restore | None = None,
    ) -> Self:
        """Return the same purposes, followed by trying every action in a copy of `env`.

        This is the paper's way, with gamma = 0.

        Parameters
        ----------
        env : Environment
            The environment that the options will act in. A copy has its random
            generator, so it shows what will happen.
        save, restore : callable, default=None
            Where the environment cannot be copied: ``saved = save(env.unwrapped)`` and
            ``restore(env.unwrapped, saved)``.
        """
        return replace(
            self,
            model=Clones(env, self.n_actions, save, restore),
            weights=None,
            basis=None,
            gamma=None,
            provenance={**self.provenance, "gamma": 0.0},
        )

    def _collect_file_contents(self) -> tuple[str, dict[str, Any], Arrays]:
        """Vectors e (n, d), thresholds (n,), weights (n, A, p), and feature maps."""
        header: dict[str, Any] = {
            "n_actions": self.n_actions,
            "patience": self.patience,
            "stop_chance": self.stop_chance,
            "gamma": self.gamma,
        }
        if self.exploration is not None:
            header["exploration"] = asdict(self.exploration)
        arrays: Arrays = {
            "directions": self.directions,
            "threshold": self.threshold,
        }
        if self.weights is not None:
            arrays["weights"] = self.weights
        for name, features in (("features", self.features), ("basis", self.basis)):
            header[name] = features_to_dict(features)
            for part, array in getattr(features, "arrays", {}).items():
                arrays[f"{name}.{part}"] = array
        return "linear options", header, arrays

    def _make_option(self, number: int) -> LinearOption:
        return LinearOption(self[[number]], self.purposes[number])

    def __repr__(self) -> str:
        n_options, n_features = self.directions.shape
        options = count_noun(n_options, f"{self.kind} option")
        features = count_noun(n_features, "cell" if self._has_cells else "feature")
        return f"LinearOptionSet({options} on {features}: {self.list_labels()})"

    def _repr_html_(self) -> str:
        """Maps of the first options, as a notebook shows them."""
        return notebook_pictures.find("options")(self, repr(self))


def _check_potentials(purposes: Sequence[Purpose]) -> None:
    """Raise ValueError unless the potentials are finite vectors of one shape."""
    potentials = [np.asarray(purpose.potential) for purpose in purposes]
    are_vectors = {potential.ndim for potential in potentials} == {1}
    if not are_vectors or not np.isfinite(np.stack(potentials)).all():
        raise ValueError(
            "purposes must be at least one, with finite potentials of one shape (d,)"
        )
