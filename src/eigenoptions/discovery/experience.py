"""Experience of a table or of a feature space, added batch by batch, and the options it gives (paper, Section 5).

States that can be numbered: the stream of differences gives the purposes, and counts of successors give an MDP on which
they are solved exactly. Others: the same stream over features, and policies that are learned or look ahead.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from eigenoptions._validation import check_choice, check_int, make_generator, set_readonly
from eigenoptions.discovery.methods import Method
from eigenoptions.features import Map, flattened, rows_of
from eigenoptions.mdp import MDP, Transitions
from eigenoptions.options import OptionSet, Purpose, eigenpurposes
from eigenoptions.options.fitted import FitSettings, checked_actions, fit
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.solver import solve
from eigenoptions.spectra import Spectrum
from eigenoptions.spectra.gram import Gram

# Provenance of eigenoptions from samples.
ORIGIN = {"method": "eigen", "source": "samples", "operator": "incidence"}
# Where the policies of options in a feature space come from.
POLICIES = ("learned", "look-ahead")
# Default number of cells along a dimension, and of transitions of one action kept in each.
CELLS, PER_CELL = 40, 4

Array = NDArray[np.float64]


class TableExperience:
    """Transitions of an environment whose states are numbered (Section 5.1).

    Attributes
    ----------
    n_states, n_actions, coords
        Size of the table, and ``(S, 2)`` coordinates of its states for pictures, or None.
    gram, n_transitions, seen
        The stream of differences, the number of transitions added, and ``(S,)`` whether each state was seen.

    Examples
    --------
    >>> past = TableExperience(4, 2)
    >>> past.add(Transitions(np.array([0, 1, 2]), np.array([1, 1, 0]), np.array([1, 2, 1]), np.zeros(3, dtype=bool)))
    >>> past.mdp().successors.tolist()
    [[0, 1], [1, 2], [1, 2], [3, 3]]
    >>> past.options(2).policy.tolist()
    [[-1, -1, 0, -1], [1, 1, -1, -1]]
    """

    option_settings = ("both_signs", "skip_zero")

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
        """Add a batch of transitions."""
        action, _ = checked_actions(batch, self.n_actions)
        obs, after = (state_numbers(part, self.n_states) for part in (batch.obs, batch.next_obs))
        self.gram.add(obs, after)
        rows = obs.astype(np.int64) * self.n_actions + action
        new = csr_array((np.ones(len(rows)), (rows, after)), shape=self.counts.shape)
        self.counts = csr_array(self.counts + new)
        self.seen[obs], self.seen[after] = True, True
        self.n_transitions += len(batch)

    def mdp(self) -> MDP:
        """The sampled MDP, by relative frequencies. An action that was never tried leaves the state unchanged."""
        tried = np.asarray(self.counts.sum(axis=1)).ravel()
        never = np.flatnonzero(tried == 0)
        share = self.counts.copy()
        share.data = share.data / np.repeat(tried, np.diff(share.indptr))
        stay = csr_array((np.ones(len(never)), (never, never // self.n_actions)), shape=share.shape)
        return MDP(csr_array(share + stay), coords=self.coords)

    def spectrum(self, k: int | None = None) -> Spectrum:
        """Spectrum of the stream; see `Gram.spectrum`."""
        return self.gram.spectrum(k)

    def options(
        self,
        n_options: int | None = None,
        *,
        method: Method | None = None,
        gamma: float | None = None,
        at_most: bool = False,
        provenance: dict[str, Any] | None = None,
        **settings: Any,
    ) -> OptionSet:
        """Options of the sampled MDP; with `at_most`, fewer where there are not so many.

        Without a `method` they are eigenoptions of the stream, with the settings `both_signs` and `skip_zero`. Other
        methods have their own, and `rng`; they know only the states that were seen, and one with a setting `visits` is
        given the number of visits of each.

        >>> from eigenoptions.discovery.methods import method
        >>> past = TableExperience(9, 2)
        >>> past.add(Transitions(np.arange(4, 7), np.ones(3, dtype=int), np.arange(5, 8), np.zeros(3, dtype=bool)))
        >>> past.options(2, method=method("covering")).goals
        (4, 7)
        """
        if method is None:
            purposes, default, origin = self._eigenpurposes(n_options, at_most, **settings), 0.9, ORIGIN
        else:
            purposes, default = self._purposes_by(method, n_options, at_most, **settings)
            origin = {"method": method.name, "source": "samples"}
        about = {**origin, "transitions": self.n_transitions, **(provenance or {})}
        made = solve(self.mdp(), purposes, default if gamma is None else gamma, provenance=about)
        # The sampled dynamics may not be complete, so the fingerprint would refuse the environment itself.
        return replace(made, provenance={**made.provenance, "dynamics": "estimated"})

    def _eigenpurposes(
        self, n_options: int | None, at_most: bool, both_signs: bool = True, skip_zero: bool = True
    ) -> list[Purpose]:
        G = self.gram.matrix
        active = np.flatnonzero(G.diagonal() > 0)
        first = int(connected_components(G[active][:, active], directed=False)[0]) if skip_zero else 0
        n = _how_many(n_options, len(active), first, both_signs, at_most)
        found = self.spectrum(first - (-n // (2 if both_signs else 1)))
        return eigenpurposes(found, both_signs=both_signs, skip_zero=skip_zero)[:n]

    def _purposes_by(
        self, method: Method, n_options: int | None, at_most: bool, rng: Any = 0, **settings: Any
    ) -> tuple[list[Purpose], float]:
        """Purposes of a method on the states that were seen, as purposes on all, and its discount."""
        assert method.purposes is not None
        states = np.flatnonzero(self.seen)
        rows = (states[:, None] * self.n_actions + np.arange(self.n_actions)).ravel()
        coords = None if self.coords is None else np.asarray(self.coords)[states]
        known = MDP(self.mdp().transition[rows][:, states], coords=coords)
        if "visits" in method.settings and "visits" not in settings:
            settings["visits"] = self.counts.sum(axis=1).reshape(self.n_states, -1).sum(axis=1)
        inside = {name: self._restricted(value, states) for name, value in settings.items()}
        generator = make_generator(rng)
        try:
            found = method.purposes(known, n_options, generator, **inside)
        except ValueError:
            if not at_most:
                raise
            found = method.purposes(known, None, generator, **inside)[:n_options]
        return [self._lifted(p, states) for p in found], method.default_gamma(known)

    def _restricted(self, value: Any, states: NDArray[np.intp]) -> Any:
        """An array with one entry per state, or per two states, for the given states only."""
        shape = np.shape(value)
        if shape in ((self.n_states,), (self.n_states, self.n_states)):
            return np.asarray(value)[np.ix_(*[states] * len(shape))]
        return value

    def _lifted(self, purpose: Purpose, states: NDArray[np.intp]) -> Purpose:
        """A purpose on the given states as one on all states."""
        potential = np.zeros(self.n_states)
        potential[states] = purpose.potential
        inside = np.zeros(self.n_states, dtype=np.bool_)
        inside[states] = True if purpose.initiation is None else purpose.initiation
        changes: dict[str, Any] = {"potential": potential, "initiation": inside}
        if purpose.goal is not None:
            changes["goal"] = int(states[purpose.goal])
            if purpose.label == Purpose(None, goal=purpose.goal).label:
                # The label is derived from the goal, so it is derived again.
                changes["label"] = ""
        return replace(purpose, **changes)


class Linear:
    """Options of experience in a feature space, whether its features are fixed or trained.

    A subclass has `features`, `n_actions`, `n_transitions`, entries of the provenance `about`, and the functions
    `purposes` and `learned`.
    """

    option_settings = ("both_signs", "skip_zero", "policy", "basis", *(f.name for f in fields(FitSettings)))
    policies: tuple[str, ...] = POLICIES
    gamma = 0.99

    def options(
        self: Any,
        n_options: int | None = None,
        *,
        gamma: float | None = None,
        both_signs: bool = True,
        skip_zero: bool = True,
        at_most: bool = False,
        policy: str = "learned",
        provenance: dict[str, Any] | None = None,
        **fitting: Any,
    ) -> LinearOptionSet:
        """Eigenoptions of the samples: learned, with the settings of `fit`, or to be bound for look-ahead."""
        check_choice("policy", policy, self.policies)
        purposes = self.purposes(n_options, both_signs, skip_zero, at_most)
        about = {**ORIGIN, "transitions": self.n_transitions, **self.about, **(provenance or {})}
        if policy == "look-ahead":
            return LinearOptionSet(tuple(purposes), self.features, self.n_actions, provenance=about)
        gamma = self.gamma if gamma is None else gamma
        how = {"n_actions": self.n_actions, "gamma": gamma, "provenance": about, **fitting}
        return self.learned(policy, purposes, **how)  # type: ignore[no-any-return]


class FeatureExperience(Linear):
    """Transitions of an environment through features (Section 5.2).

    A random walk visits some places very often. So that they do not outweigh the others, observations are sorted into
    cells, and of each cell and action only the first few transitions are kept. This corresponds to a table, where no
    transition counts twice. Memory is bounded by the number of cells seen.

    Parameters
    ----------
    features, n_actions
        The map phi, and the number of actions.
    whiten
        Functions ``e . phi`` have variance 1 (see `Gram.spectrum`); False: directions e of length 1, as in the paper.
    cells, each
        Number of cells along each dimension of the observation, and of transitions of one action kept in each (None:
        all).

    Examples
    --------
    >>> from eigenoptions.features import Fourier
    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> past = FeatureExperience(Fourier((0.0,), (1.0,), order=3), 1)
    >>> past.add(Transitions(x[:-1], np.zeros(49, dtype=int), x[1:], np.zeros(49, dtype=bool)))
    >>> past.spectrum(2)
    Spectrum(2 of dimension 4, incidence: 0.1007, 0.4026)
    """

    settings = ("whiten", "cells", "each")

    def __init__(
        self,
        features: Map,
        n_actions: int,
        *,
        whiten: bool = True,
        cells: int = CELLS,
        each: int | None = PER_CELL,
    ) -> None:
        self.features, self.n_actions, self.whiten = features, int(n_actions), bool(whiten)
        self.cells, self.each = check_int("cells", cells), None if each is None else check_int("each", each)
        self.about = {"whiten": self.whiten}
        self.gram = Gram()
        self.n_transitions = 0
        self._kept: list[Transitions] = []
        # Transitions so far by their cells and actions.
        self._filled: dict[bytes, int] = {}
        self._box: tuple[Array, Array] | None = None
        self._moments: tuple[int, Any, Any] = (0, 0.0, 0.0)

    @property
    def n_seen(self) -> int:
        """Number of different pairs of a cell and an action."""
        return len(self._filled)

    @property
    def kept(self) -> Transitions:
        """The transitions that were kept."""
        parts = ("obs", "action", "next_obs", "terminated")
        if len(self._kept) != 1:
            joined = set_readonly(*(np.concatenate([getattr(t, p) for t in self._kept]) for p in parts))
            self._kept = [Transitions(*joined)]
        return self._kept[0]

    def add(self, batch: Transitions) -> None:
        """Add a batch of transitions."""
        action, _ = checked_actions(batch, self.n_actions)
        chosen = self._new(np.asarray(batch.obs), action)
        ended = np.asarray(batch.terminated, np.bool_)[chosen]
        part = Transitions(batch.obs[chosen], action[chosen], batch.next_obs[chosen], ended)
        if len(part):
            phi = rows_of(self.features, part.obs, self.gram.n_features or None)
            self.gram.add(phi, rows_of(self.features, part.next_obs, phi.shape[1]))
            n, total, square = self._moments
            self._moments = n + len(part), total + phi.sum(axis=0), square + phi.T @ phi
            self._kept.append(part)
        self.n_transitions += len(batch)

    def spectrum(self, k: int | None = None) -> Spectrum:
        """Spectrum of the stream; see `Gram.spectrum`."""
        metric = None
        n, total, square = self._moments
        if self.whiten and n:
            mean = np.asarray(total, dtype=np.float64).ravel() / n
            square = square.toarray() if hasattr(square, "toarray") else np.asarray(square, dtype=np.float64)
            metric = square / n - np.outer(mean, mean)
        return replace(self.gram.spectrum(k, metric=metric), features=self.features)

    def purposes(
        self, n_options: int | None, both_signs: bool, skip_zero: bool, at_most: bool
    ) -> list[Purpose]:
        """Eigenpurposes of the stream."""
        found = self.spectrum()
        n = _how_many(n_options, len(found.values), found.n_zero if skip_zero else 0, both_signs, at_most)
        return eigenpurposes(found, both_signs=both_signs, skip_zero=skip_zero)[:n]

    def learned(self, policy: str, purposes: list[Purpose], **how: Any) -> LinearOptionSet:
        """Options whose action values are fitted to the transitions that were kept."""
        return fit(self.kept, purposes, self.features, **how)

    def _new(self, obs: NDArray[Any], action: NDArray[np.int64]) -> NDArray[np.intp]:
        """Numbers of the transitions that fall into a cell that is not full."""
        if obs.dtype.kind not in "biuf" or obs.ndim < 2:
            # The features check whether these are observations at all.
            rows_of(self.features, obs)
            return np.arange(len(obs))
        x = flattened(obs)
        if self._box is None:
            low, high = (getattr(self.features, end, None) for end in ("low", "high"))
            if low is None or high is None:
                low, high = x.min(axis=0), x.max(axis=0)
            extent = np.subtract(high, low)
            self._box = np.array(low, dtype=np.float64), self.cells / np.where(extent > 0, extent, 1.0)
        low, scale = self._box
        if x.shape[1] != len(low):
            raise ValueError(f"observations must have {len(low)} dimensions, got {x.shape[1]}")
        places = np.column_stack([np.floor((x - low) * scale).astype(np.int64), action])
        chosen = []
        for i, place in enumerate(map(bytes, places)):
            count = self._filled[place] = self._filled.get(place, 0) + 1
            if self.each is None or count <= self.each:
                chosen.append(i)
        return np.array(chosen, dtype=np.intp)


def one_number(obs: Any) -> bool:
    """Whether each observation is a single number, in an array ``(N,)`` or a column ``(N, 1)``."""
    return obs is not None and (obs.ndim == 1 or (obs.ndim == 2 and obs.shape[1] == 1))


def state_numbers(obs: Any, n_states: int) -> NDArray[np.int64]:
    """``(N,)`` numbers of states, from an array or a column of whole numbers.

    >>> state_numbers(np.array([[2.0], [0.0]]), 3).tolist()
    [2, 0]
    """
    given = np.asarray(obs)
    flat = given.ravel() if one_number(given) else given
    if flat.ndim != 1 or flat.dtype.kind not in "iuf" or not (flat == np.floor(flat)).all():
        raise ValueError(f"states must be whole numbers (N,), got {given.dtype} of shape {given.shape}")
    if len(flat) and not 0 <= flat.min() <= flat.max() < n_states:
        raise ValueError(
            f"states must be in 0..{n_states - 1}, got {flat.min()}..{flat.max()}: pass their number, space=Discrete(n)"
        )
    return flat.astype(np.int64)


def _how_many(n_options: int | None, k: int, first: int, both_signs: bool, at_most: bool) -> int:
    """The number of options, given k eigenvectors of which those from `first` on are used."""
    most = (k - first) * (2 if both_signs else 1)
    if n_options is None or (at_most and n_options > most):
        n_options = most
    if not (isinstance(n_options, int | np.integer) and 1 <= n_options <= most):
        raise ValueError(f"n_options must be in 1..{most} for these transitions, got {n_options!r}")
    return int(n_options)
