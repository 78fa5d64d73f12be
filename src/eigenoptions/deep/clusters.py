"""`Clusters`: trained features cut into the states of a table.

The eigenfunctions place each observation on a map, on which squared distances are the
times that a random walk needs. *Centres* are spread evenly over it, and an observation
belongs to the nearest one. So frames that nobody can list become the states of an
`MDP`, and everything that works on tables works on frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from eigenoptions._ties import find_first_maximum
from eigenoptions._types import FloatArray, IndexArray
from eigenoptions._validation import check_csr
from eigenoptions.deep.backend import Module, use_one_core
from eigenoptions.deep.dataset import Dataset
from eigenoptions.deep.encoder import Encoder
from eigenoptions.samples.features.states import StateMap
from eigenoptions.spectra import Spectrum


class _LastPlaced(NamedTuple):
    """The observations that were placed last, and their places."""

    obs: NDArray[Any]
    places: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Clusters(StateMap):
    """One feature per cluster of trained features: phi(s) is a unit vector.

    Attributes
    ----------
    recipe : dict
        That of the encoder.
    arrays : dict of str to array
        Those of the encoder, ``"functions"`` ``(d, k)``, the coefficients of the
        eigenfunctions, ``"scales"`` ``(k,)``, by which they are multiplied on the map,
        ``"centres"`` ``(m, k)``, places on the map, and ``"radius"`` ``(1,)``: no
        observation of the data is farther from a centre.
    module : torch.nn.Module, optional
        Your own module in place of the encoder's layers. A file cannot hold it.
    """

    recipe: dict[str, Any]
    arrays: dict[str, Any] = field(default_factory=dict)
    module: Module | None = None

    name: ClassVar[str] = "clusters"

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """Raise ValueError: clusters are those of trained features."""
        raise ValueError(
            "clusters are found in trained features: "
            "call discover(..., features='deep')"
        )

    def to_dict(self) -> dict[str, Any]:
        """The recipe; a file holds the arrays beside it."""
        return {"map": self.name, "recipe": self.recipe}

    def __repr__(self) -> str:
        n_functions = len(self.arrays["scales"])
        return f"Clusters({self.n_features} of {n_functions} eigenfunctions)"

    @property
    def n_features(self) -> int:
        """Number of clusters m."""
        return len(self.arrays["centres"])

    @property
    def places(self) -> FloatArray:
        """``(m, 2)`` the clusters on a map of e2 (to the right) and e3 (up)."""
        centres: FloatArray = self.arrays["centres"]
        # The first function is constant. There may be only one other.
        return centres[:, [1, min(2, centres.shape[1] - 1)]]

    @cached_property
    def encoder(self) -> Encoder:
        """The trained encoder."""
        own_names = ("functions", "scales", "centres", "radius")
        arrays = {
            name: array for name, array in self.arrays.items() if name not in own_names
        }
        return Encoder(self.recipe, arrays, self.module)

    def read_columns(self, columns: Sequence[int], width: int) -> Self:
        """The same clusters of observations ``(N, width)``, of which they take some."""
        encoder = self.encoder.read_columns(columns, width)
        return replace(self, recipe=encoder.recipe)

    def compute_functions(self, obs: ArrayLike) -> FloatArray:
        """Compute the eigenfunctions ``(N, k)`` of observations, the constant first."""
        functions: FloatArray = self.encoder(obs) @ self.arrays["functions"]
        return functions

    def find_states(self, obs: ArrayLike) -> IndexArray:
        """Return the cluster ``(N,)`` of each observation."""
        return find_nearest(self._find_places(obs), self.arrays["centres"])

    def measure_distances(self, obs: ArrayLike) -> FloatArray:
        """How far ``(N,)`` each observation is from its cluster, in widths of one."""
        places = self._find_places(obs)
        centres = self.arrays["centres"][find_nearest(places, self.arrays["centres"])]
        distances = np.linalg.norm(places - centres, axis=1)
        width = 2.0 * max(float(self.arrays["radius"][0]), 1e-12)
        return np.asarray(np.maximum(distances / width - 0.5, 0.0))

    def _find_places(self, obs: ArrayLike) -> FloatArray:
        """Places ``(N, k)`` of observations on the map.

        An option asks for the action, the value and the potential of one observation,
        so a single one is kept with its place, until the next.
        """
        obs = np.asarray(obs)
        # The class is frozen: what it keeps is no field, as in `cached_property`.
        last: _LastPlaced | None = self.__dict__.get("_last_seen")
        if last is not None and np.array_equal(obs, last.obs):
            return last.places

        places: FloatArray = self.compute_functions(obs) * self.arrays["scales"]
        if len(obs) == 1:
            self.__dict__["_last_seen"] = _LastPlaced(obs.copy(), places)
        return places


class FoundClusters(NamedTuple):
    """What `find_clusters` returns.

    Attributes
    ----------
    clusters : Clusters
        The map from observations to clusters.
    functions : array (n, k)
        Eigenfunctions of the distinct observations of the data.
    states : array (n,)
        The cluster of each of them.
    rows : array (m,)
        Numbers of those that are the centres.
    """

    clusters: Clusters
    functions: FloatArray
    states: IndexArray
    rows: IndexArray


# Most clusters.
_MOST_CLUSTERS = 150

# Centres are added until each observation is within so many typical steps of one.
_RESOLUTION = 0.5

# Where observations repeat exactly and there are no more than this, each of them is a
# cluster of its own.
_MOST_REPEATING = 5_000


def find_clusters(data: Dataset, learned: Spectrum) -> FoundClusters:
    """Cut what was learned into clusters that are about as wide as a step.

    Parameters
    ----------
    data : Dataset
        The transitions.
    learned : Spectrum
        Its trained eigenfunctions, the constant first.
    """
    with use_one_core():
        return _cut_into_clusters(data, learned)


def _cut_into_clusters(data: Dataset, learned: Spectrum) -> FoundClusters:
    """Make clusters: the parameters are those of `find_clusters`."""
    encoder = learned.features
    assert isinstance(encoder, Encoder)
    functions = _compute_functions(encoder, data, learned.vectors)

    # On this map squared distances are commute times of the walk.
    slowness = np.maximum(learned.values[1:], 1e-6)
    scales = np.append(0.0, 1.0 / np.sqrt(slowness))
    places = functions * scales

    # The centres are some of the places.
    n_observations = len(places)
    if data.repeating and n_observations <= _MOST_REPEATING:
        rows = np.arange(n_observations)
        radius = _find_typical_step(data, places)
    else:
        radius = _RESOLUTION * _find_typical_step(data, places)
        rows, radius = _spread_centres(places, radius, _MOST_CLUSTERS)

    # Without those in which the data are caught.
    states = find_nearest(places, places[rows])
    lasting = _find_lasting(data, states, len(rows))
    rows = rows[lasting]
    centres = places[rows]
    arrays = {
        **encoder.arrays,
        "functions": learned.vectors,
        "scales": scales,
        "centres": centres,
        "radius": np.array([radius]),
    }
    clusters = Clusters(encoder.recipe, arrays, encoder.module)
    return FoundClusters(clusters, functions, find_nearest(places, centres), rows)


def _find_lasting(data: Dataset, states: IndexArray, n_clusters: int) -> IndexArray:
    """Numbers of the clusters from which the data lead to all others, and ends.

    The last frames of a recording may be a cluster that is never left. A walk through
    the table would be caught there. Its members belong to the nearest other cluster.
    """
    before = states[data.before]
    after = states[data.after]
    moves = csr_array(
        (np.ones(len(before)), (before, after)), shape=(n_clusters, n_clusters)
    )
    # With indices of 64 bits, the search of SciPy 1.13 does not end.
    moves = check_csr("moves", moves)
    _, component = connected_components(moves, connection="strong")
    is_lasting = component == np.bincount(component).argmax()
    # Where an episode truly ends, nothing is left.
    is_lasting[after[data.terminated]] = True
    return np.flatnonzero(is_lasting)


# Places that are compared with all centres, and observations that are encoded, at a
# time, which bounds the memory.
_BLOCK_OF_PLACES = 4096
_BLOCK_OF_OBSERVATIONS = 2048


def find_nearest(places: FloatArray, centres: FloatArray) -> IndexArray:
    """Return the number ``(N,)`` of the centre that is nearest to each place."""
    half_squares = 0.5 * (centres**2).sum(axis=1)
    nearest = np.empty(len(places), dtype=np.intp)
    for low in range(0, len(places), _BLOCK_OF_PLACES):
        block = slice(low, low + _BLOCK_OF_PLACES)
        # The squared distance, but for the part that is the same for all centres.
        closeness = places[block] @ centres.T - half_squares
        nearest[block] = find_first_maximum(closeness)
    return nearest


def _compute_functions(
    encoder: Encoder, data: Dataset, vectors: FloatArray
) -> FloatArray:
    """Eigenfunctions ``(n, k)`` of the distinct observations, block by block."""
    observations = data.observations
    blocks = []
    for low in range(0, len(observations), _BLOCK_OF_OBSERVATIONS):
        features = encoder(observations[low : low + _BLOCK_OF_OBSERVATIONS])
        blocks.append(features @ vectors)
    return np.concatenate(blocks)


def _find_typical_step(data: Dataset, places: FloatArray) -> float:
    """The median distance of a step that changes the observation."""
    has_moved = data.after != data.before
    steps = places[data.after[has_moved]] - places[data.before[has_moved]]
    return float(np.median(np.linalg.norm(steps, axis=1)))


def _spread_centres(
    places: FloatArray, radius: float, max_centres: int
) -> tuple[IndexArray, float]:
    """Rows of places, each the one that is farthest from those before it.

    It ends when each place is within `radius` of one of them. Rare places are covered
    like those that are visited often. The second result is the radius that was reached.
    """
    rows = [0]
    distances = np.linalg.norm(places - places[0], axis=1)
    farthest = int(find_first_maximum(distances))
    while len(rows) < max_centres and distances[farthest] > radius:
        rows.append(farthest)
        to_new = np.linalg.norm(places - places[farthest], axis=1)
        distances = np.minimum(distances, to_new)
        farthest = int(find_first_maximum(distances))
    return np.array(rows), float(distances[farthest])
