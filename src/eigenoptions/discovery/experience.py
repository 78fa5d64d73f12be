"""What has been seen, of a table or of a feature space, grown batch by batch, and the options it gives (Section 5).

States that can be numbered: the stream of differences gives the purposes, and counts of what followed what give an MDP
on which they are solved exactly. Others: the same stream over features, and policies that are learned or look ahead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from eigenoptions.features import Map, OneHot, named, rows_of
from eigenoptions.mdp import MDP, Transitions
from eigenoptions.options import OptionSet, Purpose, eigenpurposes
from eigenoptions.options.fitted import checked_actions, fit
from eigenoptions.options.linear import LinearOptionSet, linear_options
from eigenoptions.options.solver import solve
from eigenoptions.spectra import Spectrum
from eigenoptions.spectra.gram import Gram
from eigenoptions.spectra.rows import RowSet

POLICIES = ("learned", "look-ahead")
OF_FEATURES = (
    "whiten",
    "cells",
    "each",
    "order",
    "coupled",
    "tiles",
    "tilings",
    "size",
)  # settings of `experience`
CELLS, EACH = 40, 4  # cells along a dimension, and the transitions of one action kept in each

Array = NDArray[np.float64]


class TableExperience:
    """What has been seen of an environment whose states are numbered (Section 5.1).

    Parameters
    ----------
    n_states, n_actions
        Size of the table.
    coords
        ``(S, 2)`` for pictures, or None.

    Attributes
    ----------
    gram
        The stream of differences.
    n_transitions
        How many transitions were added.
    seen
        ``(S,)`` which states were seen.

    Examples
    --------
    >>> past = TableExperience(4, 2)
    >>> past.add(Transitions(np.array([0, 1, 2]), np.array([1, 1, 0]), np.array([1, 2, 1]), np.zeros(3, dtype=bool)))
    >>> past.mdp().successors.tolist()
    [[0, 1], [1, 2], [1, 2], [3, 3]]
    >>> past.options(2).policy.tolist()
    [[-1, -1, 0, -1], [1, 1, -1, -1]]
    """

    def __init__(self, n_states: int, n_actions: int, coords: NDArray[np.int_] | None = None) -> None:
        self.n_states, self.n_actions, self.coords = int(n_states), int(n_actions), coords
        self.gram = Gram(self.n_states)
        self.counts = csr_array((self.n_states * self.n_actions, self.n_states))
        self.seen = np.zeros(self.n_states, dtype=np.bool_)
        self.n_transitions = 0

    @property
    def n_seen(self) -> int:
        """Number of states seen."""
        return int(self.seen.sum())

    def add(self, batch: Transitions) -> None:
        """Take note of transitions."""
        action, _ = checked_actions(batch, self.n_actions)
        self.gram.add(batch.obs, batch.next_obs)
        obs, after = np.asarray(batch.obs), np.asarray(batch.next_obs)
        rows = obs.astype(np.int64) * self.n_actions + action
        new = csr_array((np.ones(len(rows)), (rows, after)), shape=self.counts.shape)
        self.counts = csr_array(self.counts + new)
        self.seen[obs], self.seen[after] = True, True
        self.n_transitions += len(batch)

    def mdp(self) -> MDP:
        """The MDP as far as it is known: shares of what followed. An action that was never tried stays put."""
        tried = np.asarray(self.counts.sum(axis=1)).ravel()
        never = np.flatnonzero(tried == 0)
        share = self.counts.copy()
        share.data = share.data / np.repeat(tried, np.diff(share.indptr))
        stay = csr_array((np.ones(len(never)), (never, never // self.n_actions)), shape=share.shape)
        return MDP(csr_array(share + stay), coords=self.coords)

    def spectrum(self, k: int | None = None) -> Spectrum:
        """Spectrum of the stream; see `Gram.spectrum`."""
        return self.gram.spectrum(k, coords=self.coords)

    def options(
        self,
        n_options: int | None = None,
        *,
        gamma: float = 0.9,
        both_signs: bool = True,
        skip_zero: bool = True,
        at_most: bool = False,
        provenance: dict[str, Any] | None = None,
    ) -> OptionSet:
        """Eigenoptions of what has been seen; with `at_most`, fewer where there are not so many."""
        G = self.gram.matrix
        active = np.flatnonzero(G.diagonal() > 0)
        first = int(connected_components(G[active][:, active], directed=False)[0]) if skip_zero else 0
        n = _how_many(n_options, len(active), first, both_signs, at_most)
        found = self.spectrum(first - (-n // (2 if both_signs else 1)))
        purposes = eigenpurposes(found, both_signs=both_signs, skip_zero=skip_zero)[:n]
        record = {"method": "eigen", "operator": "incidence", "transitions": self.n_transitions}
        made = solve(self.mdp(), purposes, gamma, provenance={**record, **(provenance or {})})
        # What is known of the dynamics may not be all of it, so the fingerprint would refuse the environment itself.
        return replace(made, state_space="")


class FeatureExperience:
    """What has been seen of an environment through features (Section 5.2).

    A random walk sees the same places again and again. So that they do not outweigh the others, observations are
    sorted into cells, and of each cell and action only the first few transitions are kept: what "new" means for a
    table, where no transition counts twice. Memory is bounded by the number of cells seen.

    Parameters
    ----------
    features
        The map phi.
    n_actions
        Number of actions.
    whiten
        Functions ``e . phi`` have variance 1 (see `Gram.spectrum`); False: directions e of length 1, as in the paper.
    cells, each
        Cells along a dimension of the observation, and transitions of one action kept in each; `each` None: all.

    Attributes
    ----------
    gram
        The stream of differences.
    n_transitions
        How many transitions were added.

    Examples
    --------
    >>> from eigenoptions.features import Fourier
    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> past = FeatureExperience(Fourier((0.0,), (1.0,), order=3), 1)
    >>> past.add(Transitions(x[:-1], np.zeros(49, dtype=int), x[1:], np.zeros(49, dtype=bool)))
    >>> past.spectrum(2)
    Spectrum(2 of dimension 4, incidence: 0.1007, 0.4026)
    """

    def __init__(
        self,
        features: Map,
        n_actions: int,
        *,
        whiten: bool = True,
        cells: int = CELLS,
        each: int | None = EACH,
    ) -> None:
        for name, value in (("cells", cells), ("each", each)):
            if value is not None and (not isinstance(value, int | np.integer) or value < 1):
                raise ValueError(f"{name} must be at least 1, got {value!r}")
        self.features, self.n_actions, self.whiten = features, int(n_actions), bool(whiten)
        self.cells, self.each = int(cells), each
        self.gram = Gram(features=features)
        self.n_transitions = 0
        self._kept: list[Transitions] = []
        self._places, self._filled = RowSet(), np.zeros(0, dtype=np.int64)
        self._box: tuple[Array, Array] | None = None
        self._moments: tuple[int, Any, Any] = (0, 0.0, 0.0)

    @property
    def n_seen(self) -> int:
        """Number of cells seen, each with an action."""
        return self._places.count

    @property
    def kept(self) -> Transitions:
        """The transitions that were kept."""
        if len(self._kept) != 1:
            parts = ("obs", "action", "next_obs", "terminated")
            self._kept = [Transitions(*(np.concatenate([getattr(t, p) for t in self._kept]) for p in parts))]
        return self._kept[0]

    def add(self, batch: Transitions) -> None:
        """Take note of transitions."""
        action, _ = checked_actions(batch, self.n_actions)
        chosen = self._new(np.asarray(batch.obs), action)
        part = Transitions(
            batch.obs[chosen],
            action[chosen],
            batch.next_obs[chosen],
            np.asarray(batch.terminated, np.bool_)[chosen],
        )
        if len(part):
            phi = rows_of(self.features, part.obs)
            self.gram.add(part.obs, part.next_obs)
            n, total, square = self._moments
            self._moments = n + len(part), total + phi.sum(axis=0), square + phi.T @ phi
            self._kept.append(part)
        self.n_transitions += len(batch)

    def spectrum(self, k: int | None = None) -> Spectrum:
        """Spectrum of the stream; see `Gram.spectrum`."""
        if not self.whiten or not self.gram.n_transitions:
            return self.gram.spectrum(k)
        n, total, square = self._moments
        mean = np.asarray(total, dtype=np.float64).ravel() / n
        square = square.toarray() if hasattr(square, "toarray") else np.asarray(square, dtype=np.float64)
        return self.gram.spectrum(k, metric=square / n - np.outer(mean, mean))

    def purposes(
        self,
        n_options: int | None = None,
        *,
        both_signs: bool = True,
        skip_zero: bool = True,
        at_most: bool = False,
    ) -> list[Purpose]:
        """Eigenpurposes, as directions in feature space."""
        found = self.spectrum()
        first = found.n_zero if skip_zero else 0
        n = _how_many(n_options, len(found.values), first, both_signs, at_most)
        return eigenpurposes(found, both_signs=both_signs, skip_zero=skip_zero)[:n]

    def options(
        self,
        n_options: int | None = None,
        *,
        gamma: float = 0.99,
        both_signs: bool = True,
        skip_zero: bool = True,
        at_most: bool = False,
        policy: str = "learned",
        basis: Map | None = None,
        stop: float = 0.02,
        provenance: dict[str, Any] | None = None,
    ) -> LinearOptionSet:
        """Eigenoptions of what has been seen: learned by `fit`, or to be bound to an environment for look-ahead."""
        if policy not in POLICIES:
            raise ValueError(f'policy must be "learned" or "look-ahead", got {policy!r}')
        purposes = self.purposes(n_options, both_signs=both_signs, skip_zero=skip_zero, at_most=at_most)
        about = {
            "method": "eigen",
            "operator": "incidence",
            "transitions": self.n_transitions,
            "whiten": self.whiten,
        }
        about |= provenance or {}
        if policy == "look-ahead":
            return linear_options(purposes, self.features, self.n_actions, about)
        how: dict[str, Any] = {"gamma": gamma, "basis": basis, "stop": stop, "provenance": about}
        return fit(self.kept, purposes, self.features, n_actions=self.n_actions, **how)

    def _new(self, obs: NDArray[Any], action: NDArray[np.int64]) -> NDArray[np.intp]:
        """Which transitions fall into a cell that is not full."""
        if obs.dtype.kind not in "biuf" or obs.ndim < 2:
            rows_of(self.features, obs)  # a clear complaint, if these are no observations
            return np.arange(len(obs))
        x = obs.reshape(len(obs), -1).astype(np.float64)
        if not np.isfinite(x).all():
            row, column = np.argwhere(~np.isfinite(x))[0]
            raise ValueError(
                f"observation {row} has {x[row, column]} in dimension {column}: it must be finite"
            )
        if self._box is None:
            low, high = getattr(self.features, "low", None), getattr(self.features, "high", None)
            if low is None or high is None:
                low, high = x.min(axis=0), x.max(axis=0)
            low, high = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
            self._box = low, self.cells / np.where(high > low, high - low, 1.0)
        if x.shape[1] != len(self._box[0]):
            raise ValueError(f"observations must have {len(self._box[0])} dimensions, got {x.shape[1]}")
        low, scale = self._box
        cell = np.column_stack([np.floor((x - low) * scale).astype(np.int64), action]).astype(np.uint64)
        slots = self._places.insert(np.arange(len(cell) + 1) * cell.shape[1], cell.ravel())
        if self.each is None:
            return np.arange(len(obs))
        filled = np.zeros(self._places.count, dtype=np.int64)
        filled[: len(self._filled)] = self._filled
        order = np.argsort(slots, kind="stable")
        ordered = slots[order]
        first = np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1])
        rank = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
        chosen = np.sort(order[filled[ordered] + rank < self.each])
        self._filled = np.minimum(filled + np.bincount(slots, minlength=len(filled)), self.each)
        return chosen


def experience(
    space: Any, n_actions: int, features: str | Map | None, first: Transitions | None = None, **settings: Any
) -> TableExperience | FeatureExperience:
    """Experience for the observations of a Gymnasium space: of a table where they are Discrete, else of features.

    Parameters
    ----------
    space
        Of the observations; None: told by `first`.
    n_actions
        Number of actions.
    features
        The map phi, its name, or None: one-hot states where they are numbered, else ``"fourier"``.
    first
        Transitions from which bounds that are not finite are taken.
    settings
        Of the map that is named (`order`, `tiles`, ...), and of `FeatureExperience`.

    Examples
    --------
    >>> from gymnasium.spaces import Box, Discrete
    >>> type(experience(Discrete(5), 2, None)).__name__
    'TableExperience'
    >>> experience(Box(0.0, 1.0, (2,)), 2, "fourier", order=2).features
    Fourier(low=(0.0, 0.0), high=(1.0, 1.0), order=2, coupled=2)
    """
    obs = None if first is None else np.asarray(first.obs)
    numbered = (
        hasattr(space, "n") and not space.shape
        if space is not None
        else obs is not None and obs.ndim == 1 and obs.dtype.kind in "iu"
    )
    if (features is None and numbered) or features == "one-hot" or isinstance(features, OneHot):
        phi: Any = features if isinstance(features, OneHot) else named("one-hot", space, obs)
        return TableExperience(phi.n_states, n_actions, **settings)
    if features is None or isinstance(features, str):
        own: dict[str, Any] = {k: settings.pop(k) for k in ("whiten", "cells", "each") if k in settings}
        features = named(features or "fourier", space, obs, **settings)
        settings = own
    return FeatureExperience(features, n_actions, **settings)


def described(env: Any) -> tuple[Any, int, NDArray[np.int_] | None, str]:
    """Observation space, number of actions, coords for pictures (or None) and name of what can be sampled.

    >>> described("CliffWalking-v1")[:2]
    (Discrete(48), 4)
    """
    from eigenoptions.envs.exploring import name_of
    from eigenoptions.envs.tables import count_actions, known_mdp, made_env

    if isinstance(env, MDP):
        return _Numbers(env.n_states), env.n_actions, env.coords, env.name
    made = env if hasattr(env, "single_observation_space") else made_env(env() if callable(env) else env)
    try:
        space = getattr(made, "single_observation_space", made.observation_space)
        n_actions, coords = count_actions(made), None
        if hasattr(space, "n") and not hasattr(made, "single_observation_space"):
            known = known_mdp(made)
            coords = None if known is None or known.n_states != space.n else known.coords
        return space, n_actions, coords, name_of(made)
    finally:
        if made is not env:
            made.close()


def nested(space: Any, features: str | Map | None) -> bool:
    """Whether observations are no arrays (Dict, Tuple), so that the features of a function are stored in their place.

    >>> from gymnasium.spaces import Dict, Discrete
    >>> nested(Dict({"a": Discrete(2)}), len), nested(Discrete(2), len)
    (True, False)
    """
    return callable(features) and not any(hasattr(space, part) for part in ("n", "low", "nvec"))


@dataclass(frozen=True)
class _Numbers:
    """The observations of a table, as Gymnasium's Discrete shows them."""

    n: int
    shape: tuple[int, ...] = ()


def _how_many(n_options: int | None, k: int, first: int, both_signs: bool, at_most: bool) -> int:
    """The number of options there will be, of k eigenvectors from `first` on."""
    most = (k - first) * (2 if both_signs else 1)
    if n_options is None or (at_most and n_options > most):
        n_options = most
    if not (isinstance(n_options, int | np.integer) and 1 <= n_options <= most):
        raise ValueError(f"n_options must be in 1..{most}, what these transitions tell, got {n_options!r}")
    return int(n_options)
