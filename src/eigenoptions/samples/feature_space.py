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
from eigenoptions._validation import check_int
from eigenoptions.discovery.features import Fitted, Trained
from eigenoptions.discovery.request import Request
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

    The discount of the options' purposes is 0.99 by default, and 0.9 for trained
    features.
    """
    with use_one_blas_thread():
        return _discover(samples, request)


def _discover(samples: Samples, request: Request) -> LinearOptionSet:
    settings = Fitted() if request.features is None else request.features
    columns = request.columns
    request = replace(request, columns=None)
    _check_request(request)
    if isinstance(settings, Trained):
        return _discover_trained(samples, request, settings, columns)
    return _discover_fitted(samples, request, settings, columns)


def _discover_fitted(
    samples: Samples,
    request: Request,
    settings: Fitted,
    columns: Sequence[int | str] | None,
) -> LinearOptionSet:
    """Options of features that are given."""
    features = _choose_features(samples, settings)
    report = None
    if isinstance(features, str) and get_feature_map(features).has_columns():
        report = _read_columns(samples, columns, request.progress)
    elif columns is not None:
        raise TypeError(
            'columns= is for vectors and features with a name, such as "fourier", not '
            "for a function, which takes whole observations: leave it out"
        )

    found = _find_purposes(samples, request, settings, features, report)
    if settings.looks_ahead:
        return _look_ahead(found, samples)
    gamma = 0.99 if request.gamma is None else request.gamma
    of_rows = _fit_rows(found, samples, request, gamma, settings.iterations)
    # The fit looked rows of the table up; options act on observations.
    options = replace(of_rows, features=found.features)

    exploration: Exploration | None
    if has_vectors(samples):
        tune_fitted = sample_readers.find("fitted vectors")
        exploration = tune_fitted(options, samples, report)
    else:
        exploration = tune_on_places(of_rows, found.numbered)
    return replace(options, exploration=exploration)


def _discover_trained(
    samples: Samples,
    request: Request,
    settings: Trained,
    columns: Sequence[int | str] | None,
) -> LinearOptionSet:
    """Options of features that are trained on the samples."""
    report = _read_columns(samples, columns, request.progress)
    learn_purposes = sample_readers.find("trained features")
    learned: LearnedPurposes = learn_purposes(samples, request, settings.steps, report)
    gamma = 0.9 if request.gamma is None else request.gamma
    if settings.has_clusters:
        provenance = _begin_provenance(samples)
        return learned.solve_clusters(samples.n_actions, gamma, provenance)

    found = _take_learned(learned)
    if settings.looks_ahead:
        return _look_ahead(found, samples)
    of_rows = _fit_rows(found, samples, request, gamma)
    # Values on trained features are never exact: an option whose potential no longer
    # rises could run for ever.
    options = replace(of_rows, features=found.features).with_termination(patience=8)
    exploration = learned.tune_on_clusters(options, samples.n_actions)
    return replace(options, exploration=exploration)


def _begin_provenance(samples: Samples) -> dict[str, Any]:
    """What options of all feature spaces record."""
    return {"method": "eigen", "source": "samples", **samples.provenance}


def _look_ahead(found: _FeaturePurposes, samples: Samples) -> LinearOptionSet:
    """Options that try every action in a copy of the environment."""
    return LinearOptionSet(
        tuple(found.purposes),
        found.features,
        samples.n_actions,
        provenance=_begin_provenance(samples) | found.provenance,
    )


def _fit_rows(
    found: _FeaturePurposes,
    samples: Samples,
    request: Request,
    gamma: float,
    iterations: int = Fitted.iterations,
) -> LinearOptionSet:
    """Options whose values are fitted, and whose observations are rows of the table."""
    return fit(
        found.numbered,
        found.purposes,
        found.table.__getitem__,
        n_actions=samples.n_actions,
        gamma=gamma,
        iterations=iterations,
        provenance=_begin_provenance(samples) | found.provenance,
        progress=request.progress,
    )


def _check_request(request: Request) -> None:
    """Raise TypeError for values that options in a feature space do not use."""
    request.check_use("features=")
    # Of the method's settings, only the signs of the vectors count.
    for name in request.list_settings():
        if name not in ("both_signs", "skip_zero"):
            raise TypeError(
                f"{name}= is for a table, not for options in a feature space: leave it "
                "out"
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


def _choose_features(samples: Samples, settings: Fitted) -> str | FeatureFunction:
    """The feature map; by default bits of bytes, and cosines of other numbers."""
    if samples.features is not None:
        return samples.features
    if settings.features is not None:
        return settings.features
    obs = samples.transitions.obs
    is_memory = obs.dtype == np.uint8 and obs.ndim == 2
    return "bits" if is_memory else "fourier"


def _make_map(
    features: str | FeatureFunction,
    samples: Samples,
    settings: Fitted,
    report: ColumnReport | None,
) -> FeatureFunction:
    """The feature map with a name, for the observations of the samples."""
    of_map: dict[str, Any] = dict(settings.list_map_settings())
    if not isinstance(features, str):
        if of_map:
            raise TypeError(
                f"{next(iter(of_map))}= is for features with a name, not for a function"
            )
        return features

    own_names = get_feature_map(features).list_settings()
    for name in of_map:
        if name not in own_names:
            known = ", ".join(own_names) or "none"
            raise TypeError(
                f"features {features!r} have no setting {name!r}. Settings: {known}"
            )
    if report is not None and len(report.used) < len(report.columns):
        of_map["columns"] = report.used
    # Only a Box has bounds; those of other spaces are taken from the observations.
    space = None if hasattr(samples.space, "nvec") else samples.space
    return make_features(features, space, samples.transitions.obs, **of_map)


def _find_purposes(
    samples: Samples,
    request: Request,
    settings: Fitted,
    features: str | FeatureFunction,
    report: ColumnReport | None,
) -> _FeaturePurposes:
    """Purposes of the incidence matrix of feature differences (Theorem 5.1)."""
    transitions = samples.transitions
    phi = _make_map(features, samples, settings, report)

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
    purposes = _find_first_purposes(T, covariance, request)
    request.check_number(purposes, "signs and eigenvectors of these transitions")

    provenance = {"operator": "incidence", "whiten": settings.whiten}
    found = _FeaturePurposes(purposes, phi, table, numbered, provenance)
    if report is not None:
        _warn_of_columns(report, samples, found)
    return found


def _find_first_purposes(
    T: csr_array,
    covariance: FloatArray | None,
    request: Request,
) -> list[Purpose]:
    """Purposes of the smallest singular values; all of them if nobody says how many.

    A few eigenvectors are found sooner than all. How many of them are zero is not known
    before, so some more are asked for, and all if these are too few.
    """
    n_options = request.n_options
    signs = {"both_signs": request.both_signs, "skip_zero": request.skip_zero}
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


# Rows of a block.
_BLOCK = 256


def _iterate_blocks(obs: NDArray[Any]) -> Iterator[FloatArray]:
    """Observations as rows of floats, block by block.

    As floats, images would need eight times their memory.
    """
    for first in range(0, len(obs), _BLOCK):
        yield flatten_observations(obs[first : first + _BLOCK])
