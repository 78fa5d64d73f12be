"""Eigenoptions in a feature space (paper, Section 5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions._registry import sample_readers
from eigenoptions._ties import COMPUTED_TOLERANCE
from eigenoptions._types import (
    FeatureFunction,
    FeatureMatrix,
    FloatArray,
    IndexArray,
    Progress,
)
from eigenoptions._validation import check_choice, check_int, check_settings
from eigenoptions.discovery.tables import Request
from eigenoptions.options import Purpose, eigenpurposes
from eigenoptions.options.tuning import Exploration
from eigenoptions.parallel import use_one_blas_thread
from eigenoptions.samples import ColumnReport, Transitions, check_columns
from eigenoptions.samples.features import (
    compute_features,
    flatten_observations,
    get_feature_map,
    make_features,
)
from eigenoptions.samples.fitting import fit
from eigenoptions.samples.incidence import incidence_spectrum, measure_changes
from eigenoptions.samples.linear import LinearOptionSet
from eigenoptions.samples.sampling import Samples, has_vectors
from eigenoptions.samples.tuning import tune_on_places

# Settings of the fit, and what decides between ways to follow a purpose in features.
FIT_SETTINGS = ("policy", "whiten", "per_cell", "iterations", "ridge", "stop", "parts")


class LearnedPurposes(Protocol):
    """What a room that trains features returns; `deep.from_frames` has the one."""

    @property
    def purposes(self) -> list[Purpose]:
        """Coefficients of the trained features."""

    @property
    def provenance(self) -> dict[str, Any]:
        """What the options record of it."""

    @property
    def features(self) -> FeatureFunction:
        """The trained features, of whole observations."""

    def tabulate(self, n_transitions: int) -> tuple[FeatureMatrix, Transitions]:
        """Features of observations, and transitions between rows of them."""

    def solve_clusters(
        self, n_actions: int, gamma: float, provenance: dict[str, Any]
    ) -> LinearOptionSet:
        """Options of the table of clusters, which act on observations."""

    def tune_on_clusters(self, options: LinearOptionSet, n_actions: int) -> Exploration:
        """How random decisions should use options that were fitted."""


@dataclass(frozen=True, eq=False)
class _FeaturePurposes:
    """Purposes in a feature space, and the samples that options are fitted to.

    `numbered` are transitions between rows of `table`, the features of observations:
    each observation is mapped once, and what follows looks its features up.
    """

    purposes: list[Purpose]
    features: FeatureFunction
    table: FeatureMatrix
    numbered: Transitions
    provenance: dict[str, Any]


def discover_features(samples: Samples, request: Request) -> LinearOptionSet:
    """Eigenoptions of samples in a feature space (Section 5.2).

    It computes with one thread where threadpoolctl is installed (`deep` needs it): the
    matrices are small, and threads that wait for a core that others use take seven
    times as long.

    The settings of `request` are these.

    features : str or callable, default=None
        The map phi: a function from a batch of observations to ``(N, d)``, or the name
        of one in `features`; ``"deep"`` trains one (`deep.learn`). None: ``"fourier"``,
        and ``"bits"`` for bytes, as the paper's of Atari's memory.
    columns : sequence of int or str, default=None
        The columns of vectors that a map with a name uses, or on which features are
        trained, by number or name. None: all that vary. One that drifts is named in a
        warning; see `check_columns`.
    both_signs, skip_zero : bool, default=True
        As in `eigenpurposes`.
    policy : str, default=None
        ``"learned"``: action values are fitted to the samples. ``"clusters"``: options
        are those of a table of clusters of trained features. ``"look-ahead"``: every
        action is tried in a copy of the environment; bind the options with
        ``options.look_ahead(env)``. None: clusters for trained features, else fitted.
    whiten : bool, default=True
        Functions ``e . phi`` have variance 1. False: vectors e have length 1, as in the
        paper.
    per_cell : int, default=4
        Number of transitions of one action that are kept in each cell of the
        observations; None for all. A random walk visits some places very often. So that
        they do not outweigh the others, observations are sorted into cells, 40 along
        each dimension, and of each cell and action only the first few transitions are
        kept, as a table counts no transition twice.
    further settings
        Those of the feature map that is given by name (`order`, `tiles`, ...), of
        `deep.learn` for trained features (its `steps` is called `training_steps`), and
        of `samples.fitting.fit`.

    The discount of the options' purposes is 0.99 by default, and 0.9 for trained
    features.
    """
    with use_one_blas_thread():
        return _discover(samples, request)


def _discover(samples: Samples, request: Request) -> LinearOptionSet:
    settings = _read_settings(samples, request)
    gamma = request.gamma
    if gamma is None:
        gamma = 0.9 if settings.is_trained else 0.99
    provenance = {"method": "eigen", "source": "samples", **samples.provenance}

    learned: LearnedPurposes | None = None
    if settings.is_trained:
        learn_purposes = sample_readers.find("trained features")
        learned = learn_purposes(
            samples, request, settings.signs, settings.of_map, settings.report
        )
        if settings.policy == "clusters":
            return learned.solve_clusters(samples.n_actions, gamma, provenance)
        found = _take_learned(learned)
    else:
        found = _find_purposes(samples, request, settings)
    provenance |= found.provenance
    if settings.policy == "look-ahead":
        return LinearOptionSet(
            tuple(found.purposes),
            found.features,
            samples.n_actions,
            provenance=provenance,
        )

    options = fit(
        found.numbered,
        found.purposes,
        found.table.__getitem__,
        n_actions=samples.n_actions,
        gamma=gamma,
        provenance=provenance,
        progress=request.progress,
        **settings.of_fit,
    )
    # The fit looked rows of the table up; options act on observations.
    of_rows = options
    options = replace(options, features=found.features)

    exploration: Exploration | None
    if learned is not None:
        # Values on trained features are never exact: an option whose potential no
        # longer rises could run for ever.
        options = options.with_termination(patience=8)
        exploration = learned.tune_on_clusters(options, samples.n_actions)
    elif has_vectors(samples):
        tune_fitted = sample_readers.find("fitted vectors")
        exploration = tune_fitted(options, samples, settings.report)
    else:
        exploration = tune_on_places(of_rows, found.numbered)
    return replace(options, exploration=exploration)


@dataclass(frozen=True, eq=False)
class _Settings:
    """The settings of `discover_features`, by what takes them.

    Attributes
    ----------
    features : str or callable
        The feature map, or its name.
    policy : str
        How purposes are followed.
    signs : dict
        Those of `eigenpurposes`.
    whiten : bool
        Whether functions have variance 1.
    per_cell : int or None
        Number of transitions of an action that are kept in a cell.
    of_map, of_fit : dict
        Those of the feature map, and of `fit`.
    report : ColumnReport or None
        Which columns are used; None where observations have none.
    """

    features: str | FeatureFunction
    policy: str
    signs: dict[str, Any]
    whiten: bool
    per_cell: int | None
    of_map: dict[str, Any]
    of_fit: dict[str, Any]
    report: ColumnReport | None

    @property
    def is_trained(self) -> bool:
        """Whether the features are to be trained."""
        return isinstance(self.features, str) and self.features == "deep"


def _read_settings(samples: Samples, request: Request) -> _Settings:
    """The settings of a request, with their defaults; ValueError for unknown ones."""
    left = dict(request.settings)
    given = left.pop("features", None)
    features = samples.features or given
    if features is None:
        features = _choose_features(samples.transitions)
    is_trained = isinstance(features, str) and features == "deep"
    policy = _check_policy(left.pop("policy", None), is_trained)
    signs = {
        "both_signs": left.pop("both_signs", True),
        "skip_zero": left.pop("skip_zero", True),
    }
    whiten = left.pop("whiten", True)
    per_cell = left.pop("per_cell", 4)

    report = None
    takes_columns = is_trained
    if isinstance(features, str):
        takes_columns |= get_feature_map(features).has_columns()
    if takes_columns:
        report = _read_columns(samples, left.pop("columns", None), request.progress)

    # What is left belongs to the feature map or to the fit.
    names = _list_map_settings(features)
    of_map = {name: left.pop(name) for name in names if name in left}
    check_settings(
        "discovery in features",
        left,
        ("iterations", "ridge", "stop", "parts"),
        names,
    )
    return _Settings(
        features=features,
        policy=policy,
        signs=signs,
        whiten=whiten,
        per_cell=per_cell,
        of_map=of_map,
        of_fit=left,
        report=report,
    )


def _read_columns(
    samples: Samples,
    columns: Sequence[int | str] | None,
    progress: Progress | None,
) -> ColumnReport | None:
    """What the columns of vectors are; None for observations of other kinds."""
    if columns is None and not has_vectors(samples):
        return None
    return check_columns(samples.transitions, columns, progress=progress)


def _warn_of_columns(
    report: ColumnReport, samples: Samples, found: _FeaturePurposes
) -> None:
    """Name columns that drift, with their share of the first potentials."""
    obs = samples.transitions.obs
    rows = slice(None, None, max(1, len(obs) // 5_000))
    firsts = found.purposes[:6:2]
    vectors = np.stack([np.asarray(purpose.potential) for purpose in firsts], axis=1)
    potentials = np.asarray(compute_features(found.features, obs[rows]) @ vectors)
    labels = [purpose.label for purpose in firsts]
    report.warn(report.explain(obs[rows], potentials, labels))


def _check_policy(policy: str | None, is_trained: bool) -> str:
    """The way to follow purposes; options of trained features have a table."""
    if policy is None:
        return "clusters" if is_trained else "learned"
    choices = ["learned", "look-ahead"]
    if is_trained:
        choices.append("clusters")
    return check_choice("policy", policy, choices)


def _take_learned(learned: LearnedPurposes) -> _FeaturePurposes:
    """Purposes of trained features, with the samples that options can be fitted to."""
    table, numbered = learned.tabulate(20_000)
    return _FeaturePurposes(
        learned.purposes,
        learned.features,
        table,
        numbered,
        learned.provenance,
    )


def _choose_features(transitions: Transitions) -> str:
    """The default feature map: bits of bytes, cosines of other numbers."""
    is_memory = transitions.obs.dtype == np.uint8 and transitions.obs.ndim == 2
    return "bits" if is_memory else "fourier"


def _list_map_settings(features: str | FeatureFunction) -> list[str]:
    """Settings of a feature map that is given by name, without those of its space."""
    if not isinstance(features, str):
        return []
    return get_feature_map(features).list_settings()


def _make_map(
    features: str | FeatureFunction, samples: Samples, settings: dict[str, Any]
) -> FeatureFunction:
    """The feature map with a name, for the observations of the samples."""
    if not isinstance(features, str):
        return features
    # Only a Box has bounds; those of other spaces are taken from the observations.
    space = None if hasattr(samples.space, "nvec") else samples.space
    return make_features(features, space, samples.transitions.obs, **settings)


def _find_purposes(
    samples: Samples, request: Request, settings: _Settings
) -> _FeaturePurposes:
    """Purposes of the incidence matrix of feature differences (Theorem 5.1)."""
    transitions = samples.transitions
    report = settings.report
    of_map = settings.of_map
    if report is not None and len(report.used) < len(report.columns):
        of_map = {**of_map, "columns": report.used}
    phi = _make_map(settings.features, samples, of_map)

    # Each observation is mapped once, by its row.
    kept = find_rare_transitions(transitions, phi, settings.per_cell)
    observations = np.concatenate([transitions.obs[kept], transitions.next_obs[kept]])
    before, after = np.arange(2 * len(kept)).reshape(2, -1)
    numbered = Transitions(
        before, transitions.action[kept], after, transitions.terminated[kept]
    )

    # Observations that are no arrays were mapped while sampling.
    table = observations
    if samples.features is None:
        table = compute_features(phi, observations)
    T, covariance = measure_changes(numbered, table.__getitem__, settings.whiten)
    purposes = _find_first_purposes(T, covariance, request.n_options, settings.signs)
    request.check_number(purposes, "signs and eigenvectors of these transitions")

    provenance = {"operator": "incidence", "whiten": settings.whiten}
    found = _FeaturePurposes(purposes, phi, table, numbered, provenance)
    if report is not None:
        _warn_of_columns(report, samples, found)
    return found


def _find_first_purposes(
    T: csr_array,
    covariance: FloatArray | None,
    n_options: int | None,
    signs: dict[str, Any],
) -> list[Purpose]:
    """Purposes of the smallest singular values; all of them for None.

    A few eigenvectors are found sooner than all. How many of them are zero is not known
    before, so some more are asked for, and all if these are too few.
    """
    if n_options is not None:
        k = n_options + 8
        if covariance is not None and 4 * k < len(covariance):
            found = incidence_spectrum(T, k, covariance=covariance)
            purposes = eigenpurposes(found, **signs)[:n_options]
            if len(purposes) == n_options:
                return purposes
    found = incidence_spectrum(T, covariance=covariance)
    return eigenpurposes(found, **signs)[:n_options]


def find_rare_transitions(
    transitions: Transitions,
    features: FeatureFunction | None,
    per_cell: int | None = 4,
    n_cells: int = 40,
) -> IndexArray:
    """Numbers of the first few transitions of each action in each cell.

    Parameters
    ----------
    transitions : Transitions
        The samples.
    features : callable, default=None
        Cells lie between its bounds where it has some, else between those of the
        observations, in the columns that it uses.
    per_cell : int, default=4
        Number of transitions that are kept; None for all.
    n_cells : int, default=40
        Cells along each dimension.
    """
    obs = transitions.obs
    if per_cell is None:
        return np.arange(len(obs))
    per_cell = check_int("per_cell", per_cell)

    low, high = _find_cell_bounds(obs, features)
    columns = getattr(features, "columns", None)
    # Without columns of its own, a map uses all.
    used = slice(None) if columns is None else list(columns)
    n_dimensions = flatten_observations(obs[:1])[:, used].shape[1]
    if n_dimensions != len(low):
        raise ValueError(
            f"observations must have {len(low)} dimensions, got {n_dimensions}"
        )
    extent = high - low
    scale = n_cells / np.where(extent > 0, extent, 1.0)

    # A cell and an action become one number, their hash.
    weights = np.random.default_rng(0).integers(2**63, size=n_dimensions + 1)
    hashed = []
    for block in _iterate_blocks(obs):
        places = (block[:, used] - low) * scale
        cells = np.floor(places + COMPUTED_TOLERANCE).astype(np.int64)
        hashed.append(cells @ weights[1:])
    key = np.concatenate(hashed) + transitions.action * weights[0]

    # The rank of each transition among those with its key.
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=~key[order[:1]]))
    n_members = np.diff(first, append=len(key))
    rank = np.arange(len(key)) - np.repeat(first, n_members)
    return np.sort(order[rank < per_cell])


def _find_cell_bounds(
    obs: NDArray[Any], features: FeatureFunction | None
) -> tuple[FloatArray, FloatArray]:
    """``(D,)`` lower and upper ends of the dimensions that are cut into cells."""
    low = getattr(features, "low", None)
    high = getattr(features, "high", None)
    if low is None or high is None:
        rows = obs.reshape(len(obs), -1)
        low = rows.min(axis=0).astype(float)
        high = rows.max(axis=0).astype(float)
    return np.asarray(low), np.asarray(high)


def _iterate_blocks(obs: NDArray[Any], size: int = 256) -> Iterator[FloatArray]:
    """Observations as rows of floats, block by block.

    As floats, images would need eight times their memory.
    """
    for first in range(0, len(obs), size):
        yield flatten_observations(obs[first : first + size])
