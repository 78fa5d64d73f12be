"""Feature maps: from observations ``(N, ...)`` to rows phi(s) ``(N, d)``.

Any function of a batch is a feature map (paper, Section 5.2). The classes here also
have a name, by which `discover` and options files refer to them. A new map is one
subclass of `FeatureMap` with a `name`, or of `BoundedMap` if it needs bounds of the
observations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, fields
from functools import cached_property
from itertools import combinations, product
from math import comb, inf, prod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from eigenoptions._registry import feature_maps
from eigenoptions._splitmix import GOLDEN, mix_bits
from eigenoptions._ties import COMPUTED_TOLERANCE, find_first_maximum
from eigenoptions._types import (
    BoolArray,
    FeatureFunction,
    FeatureMatrix,
    FloatArray,
    IndexArray,
)
from eigenoptions._validation import (
    check_csr,
    check_int,
    check_memory,
    readonly,
)

__all__ = ["OneHot", "Raw", "Bits", "Fourier", "Tiles", "Cells"]


class FeatureMap:
    """Base class of the feature maps that have a name: frozen dataclasses.

    Attributes
    ----------
    name : str
        Under this name `discover` and options files find the class.
    """

    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            feature_maps.add(cls.name, cls)

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """Make the map for observations of a Gymnasium space, or for those like `obs`.

        Parameters
        ----------
        space : gymnasium.Space, optional
            The space of the observations.
        obs : array (N, ...), optional
            Some observations, which show what the space does not tell.
        **settings
            Fields of the class.
        """
        return cls(**settings)

    @classmethod
    def list_settings(cls) -> list[str]:
        """Names of the settings that `for_space` does not find in the space."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        of_space = ("low", "high", "columns", "n_states")
        return [name for name in names if name not in of_space]

    @classmethod
    def has_columns(cls) -> bool:
        """Whether `for_space` takes the columns of vectors that are used."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        return "columns" in names

    def __call__(self, obs: Any) -> FeatureMatrix:
        """Map observations ``(N, ...)`` to features ``(N, d)``."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The map as plain JSON values."""
        return {"map": self.name, **asdict(self)}  # type: ignore[call-overload]


def get_feature_map(name: str) -> type[FeatureMap]:
    """The class of feature maps with a name."""
    found: type[FeatureMap] = feature_maps.find(name)
    return found


def make_features(
    name: str, space: Any = None, obs: ArrayLike | None = None, **settings: Any
) -> FeatureFunction:
    """Make a feature map by name.

    Parameters
    ----------
    name : str
        Name of the map.
    space : gymnasium.Space, optional
        The space of the observations.
    obs : array (N, ...), optional
        Some observations: they give the bounds that the space does not have.
    **settings
        Settings of the map.
    """
    return get_feature_map(name).for_space(space, obs, **settings)


def features_to_dict(features: FeatureFunction | None) -> dict[str, Any] | None:
    """A feature map as plain JSON values; of a function only the name."""
    if features is None:
        return None
    if isinstance(features, FeatureMap):
        return features.to_dict()

    # Other callable objects are known by their class.
    function = features if hasattr(features, "__qualname__") else type(features)
    return {"function": f"{function.__module__}.{function.__qualname__}"}


def features_from_dict(
    record: Mapping[str, Any] | None, features: FeatureFunction | None = None
) -> FeatureFunction | None:
    """The feature map that `features_to_dict` described.

    Parameters
    ----------
    record : mapping, optional
        What `features_to_dict` returned.
    features : callable, optional
        The map itself, which is returned. It must be given if the record has only the
        name of a function.
    """
    if record is None or features is not None:
        return features
    if "function" in record:
        raise ValueError(
            f"the file has no features, which are {record['function']}: pass features="
        )

    settings = {}
    for name, value in record.items():
        if name != "map":
            # JSON has no tuples.
            settings[name] = tuple(value) if isinstance(value, list) else value
    try:
        return get_feature_map(record["map"])(**settings)
    except (KeyError, TypeError):
        raise ValueError(f"unknown feature map {dict(record)}") from None


def compute_features(
    features: FeatureFunction,
    obs: Any,
    n_features: int | None = None,
    count: int | None = None,
) -> FeatureMatrix:
    """Compute the features of a batch, and check them.

    Parameters
    ----------
    features : callable
        The feature map.
    obs : batch
        Observations.
    n_features : int, optional
        Number of features d that there must be.
    count : int, optional
        Number of observations N; needed for batches without a length (Dict spaces).

    Returns
    -------
    array or csr_array (N, d)
        The features.
    """
    if not callable(features):
        raise TypeError(
            "features must be a function from a batch of observations to an array, got "
            f"{type(features).__name__}"
        )
    phi = features(obs)
    phi = check_csr("features", phi) if issparse(phi) else np.asarray(phi)

    if count is None:
        count = obs.shape[0] if hasattr(obs, "shape") else len(obs)
    has_rows = phi.ndim == 2 and phi.shape[0] == count
    if not has_rows or n_features not in (None, phi.shape[1]):
        raise ValueError(
            f"features of {count} observations must be "
            f"({count}, {n_features or 'd'}), got {phi.shape}"
        )

    # Maps with bounds return small numbers. The check takes longer than the map.
    if isinstance(features, BoundedMap):
        return phi
    if phi.dtype.kind not in "biuf":
        raise ValueError(
            f"features must be finite numbers below 1e150, got {phi.dtype}"
        )
    # Squares of larger numbers overflow.
    if phi.size and not float(abs(phi).max()) < 1e150:
        raise ValueError(
            f"features must be finite numbers below 1e150, got {float(abs(phi).max())}"
        )
    return phi


def flatten_observations(obs: Any) -> FloatArray:
    """Flatten a batch of observations to floats ``(N, D)``, and check them.

    Of goal environments (Dict spaces) it takes the entry ``"observation"``.
    """
    if isinstance(obs, Mapping) and "observation" in obs:
        obs = obs["observation"]
    batch = np.asarray(obs)
    if batch.dtype.kind not in "biuf" or batch.ndim < 2:
        raise ValueError(
            "observations must be a batch (N, ...) of numbers, "
            f"got {batch.dtype} {batch.shape}: pass features="
        )

    n_dimensions = prod(batch.shape[1:])
    rows = batch.reshape(len(batch), n_dimensions).astype(np.float64)
    is_finite = np.isfinite(rows)
    if not is_finite.all():
        row, column = np.argwhere(~is_finite)[0]
        raise ValueError(
            f"observation {row} must be finite, "
            f"got {rows[row, column]} in dimension {column}"
        )
    return rows


def add_batch_axis(obs: Any) -> Any:
    """A batch of one observation, whose space may be a Dict or a Tuple."""
    if isinstance(obs, dict):
        return {name: np.asarray(part)[None] for name, part in obs.items()}
    if isinstance(obs, tuple):
        return tuple(np.asarray(part)[None] for part in obs)
    return np.asarray(obs)[None]


@dataclass(frozen=True)
class OneHot(FeatureMap):
    """One feature per state: phi(s) is a unit vector. The result is sparse.

    Parameters
    ----------
    n_states : int
        Number of states.

    Examples
    --------
    >>> OneHot(3)(np.array([2, 0])).toarray().tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    n_states: int

    name: ClassVar[str] = "one-hot"

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """One feature per number of a Discrete space, or up to the largest of `obs`."""
        if space is None and obs is not None:
            return cls(int(np.max(obs)) + 1)
        # MultiBinary has n, too, but its observations are arrays.
        if not hasattr(space, "n") or space.shape:
            raise ValueError(
                f"one-hot features need Discrete observations, got {space}: use fourier"
            )
        return cls(int(space.n))

    def __call__(self, obs: ArrayLike) -> csr_array:
        """Map numbers of states ``(N,)`` to features ``(N, n_states)``."""
        states = np.asarray(obs)
        if states.ndim != 1 or states.dtype.kind not in "iu":
            raise ValueError(
                "one-hot features need state numbers (N,), "
                f"got {states.dtype} {states.shape}"
            )
        n = len(states)
        if n > 0 and not 0 <= states.min() <= states.max() < self.n_states:
            raise ValueError(
                f"states must be in 0..{self.n_states - 1}, "
                f"got {states.min()}..{states.max()}"
            )
        return csr_array(
            (np.ones(n), states.astype(np.int64), np.arange(n + 1)),
            shape=(n, self.n_states),
        )


@dataclass(frozen=True)
class Bits(FeatureMap):
    """Bits of bytes, the lowest first. The result is boolean.

    Of Atari's memory they are the paper's 1,024 features (Section 5.2).

    Examples
    --------
    >>> Bits()(np.array([[5, 128]], dtype=np.uint8)).astype(int).tolist()
    [[1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]]
    """

    name: ClassVar[str] = "bits"

    def __call__(self, obs: ArrayLike) -> BoolArray:
        """Map bytes ``(N, ...)`` to bits ``(N, d)``; booleans are bits already."""
        batch = np.asarray(obs)
        if batch.ndim < 2 or batch.dtype not in (np.uint8, np.bool_):
            raise ValueError(
                "bits need bytes (uint8) of shape (N, ...), "
                f"got {batch.dtype} {batch.shape}"
            )
        flat = batch.reshape(len(batch), -1)
        if flat.dtype == np.bool_:
            return flat
        return np.unpackbits(flat, axis=1, bitorder="little").view(np.bool_)


@dataclass(frozen=True)
class Raw(FeatureMap):
    """The observation itself, flattened.

    Parameters
    ----------
    low, high : tuple of float, optional
        Ends of each dimension, which are scaled to 0 and 1. What lies outside is
        clipped. By default observations are not scaled.
    columns : tuple of int, optional
        Numbers of the columns that are used; `low` and `high` are theirs. By default
        all are used.

    Examples
    --------
    >>> Raw((0.0, -1.0), (10.0, 1.0))(np.array([[5.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """

    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    columns: tuple[int, ...] | None = None

    name: ClassVar[str] = "raw"
    max_features: ClassVar[int] = 1 << 16

    def __post_init__(self) -> None:
        if self.columns is not None:
            object.__setattr__(self, "columns", _check_columns(self.columns))
        if self.low is not None or self.high is not None:
            low, high = _check_bounds(self.low, self.high)
            object.__setattr__(self, "low", low)
            object.__setattr__(self, "high", high)

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """Scaled if the space is a Box, or if there is only `obs`; else as they are."""
        if space is not None and not hasattr(space, "low"):
            return cls(**settings)
        low, high = find_bounds(space, obs, settings.get("columns"))
        return cls(low, high, **settings)

    @property
    def n_features(self) -> int | None:
        """Number of features d; None if there are no bounds, which show it."""
        return None if self.low is None else len(self.low)

    def __call__(self, obs: ArrayLike) -> FloatArray:
        """Map observations ``(N, ...)`` to features ``(N, D)``."""
        rows = _select_columns(flatten_observations(obs), self.columns)
        if self.low is None:
            return rows
        self._check_size(len(self.low))
        low, extent = self._low_and_extent
        return _scale_to_unit(rows, low, extent)

    def _check_size(self, n_features: int) -> None:
        """Raise ValueError if there are too many features."""
        if n_features > self.max_features:
            raise ValueError(
                f"{n_features} features are more than {self.max_features}: "
                "pass features=, a function of observations that makes fewer"
            )

    @cached_property
    def _low_and_extent(self) -> tuple[FloatArray, FloatArray]:
        """The arrays `low` and ``high - low`` ``(D,)``."""
        low = np.array(self.low)
        return low, np.array(self.high) - low


@dataclass(frozen=True)
class BoundedMap(FeatureMap):
    """Base class of maps of observations that lie between bounds.

    Parameters
    ----------
    low, high : tuple of float
        Ends of each dimension. What lies outside is clipped.
    columns : tuple of int, optional
        Numbers of the columns of the observations that are used, one for each end. By
        default all are used.

    Attributes
    ----------
    defaults : sequence of dict
        Settings that `for_space` tries one after the other, until there are few
        features.
    max_features : int
        Largest number of features.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    _: KW_ONLY
    columns: tuple[int, ...] | None = None

    defaults: ClassVar[Sequence[Mapping[str, Any]]] = ({},)
    max_features: ClassVar[int] = 1 << 16

    def __post_init__(self) -> None:
        low, high = _check_bounds(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if self.columns is not None:
            columns = _check_columns(self.columns)
            if len(columns) != len(low):
                raise ValueError(
                    f"low and high must have one entry for each of {len(columns)} "
                    f"columns, got {len(low)}"
                )
            object.__setattr__(self, "columns", columns)

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """Make the map with the bounds of a Box, or with those of `obs`.

        It has the first of the `defaults` with at most 2,048 features.
        """
        low, high = find_bounds(space, obs, settings.get("columns"))
        for default in cls.defaults:
            features = cls(low, high, **{**default, **settings})
            if features.n_features <= 2048:
                break
        return features

    @property
    def n_features(self) -> int:
        """Number of features d."""
        raise NotImplementedError

    def __call__(self, obs: ArrayLike) -> Any:
        """Map observations ``(N, ...)`` to features ``(N, d)``."""
        rows = _select_columns(flatten_observations(obs), self.columns)
        self._check_size()
        low, extent = self._low_and_extent
        return self._map(_scale_to_unit(rows, low, extent))

    def _check_size(self) -> None:
        """Raise ValueError if there are too many features.

        Not when the map is made: `for_space` makes several and keeps one.
        """
        if self.n_features > self.max_features:
            settings = " or ".join(self.defaults[-1])
            raise ValueError(
                f"{self.n_features} features are more than {self.max_features}: "
                f"set a smaller {settings}"
            )

    @cached_property
    def _low_and_extent(self) -> tuple[FloatArray, FloatArray]:
        """The arrays `low` and ``high - low`` ``(D,)``."""
        low = np.array(self.low)
        return low, np.array(self.high) - low

    def _map(self, x: FloatArray) -> Any:
        """Features of observations ``(N, D)`` that are scaled to [0, 1]."""
        raise NotImplementedError

    def _check_positive(self, *names: str) -> None:
        """Check fields that must be positive integers."""
        for name in names:
            number = check_int(name, getattr(self, name))
            object.__setattr__(self, name, number)


@dataclass(frozen=True)
class Fourier(BoundedMap):
    """Cosines ``cos(pi c . x)`` of the observation x (Konidaris et al., 2011).

    The vectors c hold integers up to `order`.

    Parameters
    ----------
    low, high : tuple of float
        Ends of each dimension, which are scaled to 0 and 1.
    order : int, default=3
        Largest entry of c.
    coupled : int, default=2
        Largest number of entries of c that are not zero. With 2, order n and D
        dimensions there are ``1 + D n + D (D - 1) / 2 n^2`` features instead of ``(n +
        1)^D``.

    Examples
    --------
    >>> waves = Fourier((0.0, 0.0), (1.0, 1.0), order=2)
    >>> waves(np.array([[0.0, 1.0]])).round(12).tolist()
    [[1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0]]
    """

    order: int = 3
    coupled: int = 2

    name: ClassVar[str] = "fourier"
    defaults: ClassVar[Sequence[Mapping[str, Any]]] = (
        {"coupled": 2, "order": 3},
        {"coupled": 2, "order": 2},
        {"coupled": 2, "order": 1},
        {"coupled": 1, "order": 3},
        {"coupled": 1, "order": 2},
        {"coupled": 1, "order": 1},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_positive("order", "coupled")

    @property
    def n_features(self) -> int:
        """Number of features d."""
        n_dimensions = len(self.low)
        # With k entries that are not zero: which they are, times their values.
        return sum(
            comb(n_dimensions, k) * self.order**k for k in range(self.coupled + 1)
        )

    @cached_property
    def frequencies(self) -> FloatArray:
        """The vectors c ``(d, D)``, in lexicographic order."""
        n_dimensions = len(self.low)
        # A number takes 40 bytes while the vectors are sorted as tuples.
        check_memory(
            f"{self.n_features:,} waves in {n_dimensions:,} dimensions",
            40 * self.n_features * n_dimensions,
            "give fewer dimensions, or train features of them (deep.learn)",
        )
        vectors = []
        for n_nonzero in range(min(self.coupled, n_dimensions) + 1):
            for places in combinations(range(n_dimensions), n_nonzero):
                for values in product(range(1, self.order + 1), repeat=n_nonzero):
                    vector = np.zeros(n_dimensions)
                    vector[list(places)] = values
                    vectors.append(tuple(vector))
        return np.array(sorted(vectors))

    def _map(self, x: FloatArray) -> FloatArray:
        # The angles, and the waves.
        check_memory(
            f"{len(self.frequencies):,} waves of {len(x):,} observations",
            16 * len(self.frequencies) * len(x),
            "give fewer transitions, or a lower order",
        )
        return np.asarray(np.cos(np.pi * x.dot(self.frequencies.T)))


@dataclass(frozen=True)
class Tiles(BoundedMap):
    """Tile coding: several grids over the observations, each shifted a little.

    One tile of each grid is on. The result is sparse.

    Parameters
    ----------
    low, high : tuple of float
        Ends of each dimension.
    tiles : int, default=8
        Number of tiles along each dimension, from `low` to `high`.
    tilings : int, default=8
        Number of grids. Grid t is shifted by ``t (1, 3, 5, ...) / tilings`` tiles, so
        that no two coincide.
    size : int, optional
        Number of features into which tiles are hashed; two may share one by chance. By
        default there is no hashing, and there are ``tilings * (tiles + 1)^D`` features.

    Examples
    --------
    >>> grid = Tiles((0.0, 0.0), (1.0, 1.0), tiles=2, tilings=2)
    >>> on = grid(np.array([[0.1, 0.9]])).toarray()
    >>> grid.n_features, np.flatnonzero(on).tolist()
    (18, [1, 11])
    """

    tiles: int = 8
    tilings: int = 8
    size: int | None = None

    name: ClassVar[str] = "tiles"
    defaults: ClassVar[Sequence[Mapping[str, Any]]] = ({"size": None}, {"size": 2048})
    max_features: ClassVar[int] = 1 << 31

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_positive("tiles", "tilings")
        if self.size is not None:
            self._check_positive("size")

    @property
    def n_features(self) -> int:
        """Number of features d."""
        if self.size is not None:
            return self.size
        return self.tilings * self._tiles_per_grid

    @property
    def _tiles_per_grid(self) -> int:
        """Number of tiles of one grid, with those that stick out after its shift."""
        return int((self.tiles + 1) ** len(self.low))

    def _map(self, x: FloatArray) -> csr_array:
        n, n_dimensions = x.shape
        grid = np.arange(self.tilings)
        shifts = grid[:, None] * (2 * np.arange(n_dimensions) + 1) % self.tilings
        places = x[:, None, :] * self.tiles + shifts / self.tilings
        # Opposite headings, say, lie on an edge. Rounding errors must not decide there.
        tiles = np.floor(places + COMPUTED_TOLERANCE).astype(np.int64)

        features = self._number_tiles(tiles)
        row_bounds = np.arange(n + 1) * self.tilings
        phi = csr_array(
            (np.ones(features.size), features.ravel(), row_bounds),
            shape=(n, self.n_features),
        )
        # Two tiles of one observation may have the same hash.
        phi.sum_duplicates()
        return phi

    def _number_tiles(self, tiles: IndexArray) -> IndexArray:
        """The feature ``(N, tilings)`` of the tile ``(N, tilings, D)`` in each grid."""
        n, n_grids, n_dimensions = tiles.shape
        grid = np.arange(n_grids)
        if self.size is None:
            shape = (self.tiles + 1,) * n_dimensions
            places = tuple(np.moveaxis(tiles, 2, 0))
            number_in_grid = np.ravel_multi_index(places, shape)
            return np.asarray(grid * self._tiles_per_grid + number_in_grid)

        hashes = np.broadcast_to(grid, (n, n_grids)).astype(np.uint64)
        for dimension in range(n_dimensions):
            hashes = hashes ^ tiles[:, :, dimension].astype(np.uint64)
            hashes = mix_bits(hashes + GOLDEN)
        return (hashes % np.uint64(self.size)).astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Cells(FeatureMap):
    """One feature per cell of a grid: phi(s) is a unit vector. The result is sparse.

    Only cells in which there are data have a number. An observation in another cell
    belongs to the nearest of them. `discover` makes this map from recorded vectors.

    Parameters
    ----------
    low : tuple of float
        The corner where cells begin, in each of the columns.
    size : tuple of float
        Sides of the cells.
    columns : tuple of int
        Numbers of the columns of the observations that are used.
    arrays : dict
        ``"corners"``: integers ``(S, D)``, the place of each cell in the grid.

    Examples
    --------
    >>> corners = np.array([[0, 0], [1, 0], [1, 1]])
    >>> cells = Cells((0.0, 0.0), (0.5, 0.5), (0, 2), {"corners": corners})
    >>> cells.find_states([[0.7, 99.0, 0.1], [0.6, 99.0, 7.0]]).tolist()
    [1, 2]
    """

    low: tuple[float, ...]
    size: tuple[float, ...]
    columns: tuple[int, ...]
    arrays: dict[str, IndexArray]

    name: ClassVar[str] = "cells"

    def __post_init__(self) -> None:
        columns = _check_columns(self.columns)
        corners = readonly(self.arrays["corners"], np.int64)
        shape = (len(corners), len(columns))
        has_bounds = len(self.low) == len(self.size) == len(columns)
        if not has_bounds or corners.shape != shape or not len(corners):
            raise ValueError(
                f"low, size and corners must have {len(columns)} columns, got "
                f"{len(self.low)}, {len(self.size)} and {corners.shape}"
            )
        high = tuple(np.add(self.low, self.size).tolist())
        low, _ = _check_bounds(self.low, high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "size", tuple(float(side) for side in self.size))
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "arrays", {"corners": corners})

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """Raise ValueError: cells are made from steps, not for a space."""
        raise ValueError(
            "cells are made from recorded steps: leave out features, and discover "
            "makes them"
        )

    @property
    def n_features(self) -> int:
        """Number of cells S."""
        return len(self.arrays["corners"])

    @cached_property
    def centers(self) -> FloatArray:
        """The middle of each cell ``(S, D)``, in the columns that are used."""
        return (self.arrays["corners"] + 0.5) * self._size + self._low

    @property
    def coords(self) -> IndexArray | None:
        """``(S, 2)`` row and column of each cell on a map of the first two columns.

        The first column goes to the right and the second one up. Cells that differ in
        other columns only have the same place. None for a single column.
        """
        corners: IndexArray = self.arrays["corners"]
        if corners.shape[1] < 2:
            return None
        return np.asarray(corners[:, [1, 0]] * [-1, 1], dtype=np.int64)

    @cached_property
    def _low(self) -> FloatArray:
        return np.array(self.low)

    @cached_property
    def _size(self) -> FloatArray:
        return np.array(self.size)

    def to_dict(self) -> dict[str, Any]:
        """The grid as plain JSON values; a file holds the corners beside it."""
        return {
            "map": self.name,
            "low": list(self.low),
            "size": list(self.size),
            "columns": list(self.columns),
        }

    def find_states(self, obs: ArrayLike) -> IndexArray:
        """The number ``(N,)`` of the cell that each observation belongs to."""
        rows = flatten_observations(obs)
        return self.number_points(_select_columns(rows, self.columns))

    def number_points(self, points: FloatArray) -> IndexArray:
        """As `find_states`, of the columns ``(N, D)`` that are used."""
        places = np.floor((points - self._low) / self._size).tolist()
        states = np.empty(len(points), dtype=np.intp)
        for i, place in enumerate(places):
            state = self._numbers.get(tuple(place), -1)
            if state < 0:
                state = self._find_nearest(points[i])
            states[i] = state
        return states

    def __call__(self, obs: ArrayLike) -> csr_array:
        """Map observations ``(N, ...)`` to features ``(N, S)``."""
        states = self.find_states(obs)
        n = len(states)
        return csr_array(
            (np.ones(n), states, np.arange(n + 1)), shape=(n, self.n_features)
        )

    @cached_property
    def _numbers(self) -> dict[tuple[float, ...], int]:
        """The number of each cell by its place in the grid."""
        # As floats, which is what `floor` returns.
        places = self.arrays["corners"].astype(np.float64).tolist()
        return {tuple(place): number for number, place in enumerate(places)}

    def measure_distances(self, obs: ArrayLike) -> FloatArray:
        """How far ``(N,)`` each observation is from its cell, in sides of cells."""
        rows = _select_columns(flatten_observations(obs), self.columns)
        middles = self.centers[self.find_states(obs)]
        # Within a cell, no coordinate is more than half a side off its middle.
        beyond = np.maximum(np.abs(rows - middles) / self._size - 0.5, 0.0)
        return np.asarray(np.sqrt(np.square(beyond).sum(axis=1)))

    def _find_nearest(self, point: FloatArray) -> int:
        """The first of the cells whose middle is nearest to a point, in cells."""
        distances = np.square((self.centers - point) / self._size).sum(axis=1)
        return int(find_first_maximum(-distances))

    def __repr__(self) -> str:
        return f"Cells({self.n_features} cells of {len(self.columns)} columns)"


def find_bounds(
    space: Any = None,
    obs: ArrayLike | None = None,
    columns: Sequence[int] | None = None,
    max_bound: float = 1e6,
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Find the ends of each dimension of observations.

    Parameters
    ----------
    space : gymnasium.spaces.Box, optional
        The space of the observations.
    obs : array (N, ...), optional
        Observations. They give the ends of dimensions that the space does not bound; of
        all dimensions if there is no space.
    columns : sequence of int, optional
        Numbers of the columns whose ends are returned. By default all.
    max_bound : float, default=1e6
        A dimension counts as bounded if neither end is larger than this.

    Returns
    -------
    low, high : tuple of float
        The ends. A dimension that never changes has an extent of 1.
    """
    rows = None if obs is None else flatten_observations(obs)
    if space is not None:
        if not hasattr(space, "low"):
            raise ValueError(
                f"these features need Box observations, these are {space}: "
                "pass a function"
            )
        low = np.array(space.low, dtype=np.float64).ravel()
        high = np.array(space.high, dtype=np.float64).ravel()
    elif rows is not None:
        low = np.full(rows.shape[1], -np.inf)
        high = np.full(rows.shape[1], np.inf)
    else:
        raise ValueError(
            "these features need bounds: give a space, or observations that show them"
        )

    is_bounded = np.maximum(np.abs(low), np.abs(high)) <= max_bound
    if not is_bounded.all():
        if rows is None or rows.shape[1:] != low.shape or len(rows) == 0:
            raise ValueError(
                f"dimension {is_bounded.argmin()} of {len(low)} of the observations "
                "has no bounds: give low and high, or observations that show them"
            )
        low = np.where(is_bounded, low, rows.min(axis=0))
        high = np.where(is_bounded, high, rows.max(axis=0))

    # A dimension that never changes has no extent, and cannot be scaled.
    high = np.where(high > low, high, low + 1.0)
    if columns is not None:
        chosen = list(_check_columns(columns, len(low)))
        low = low[chosen]
        high = high[chosen]
    return (
        tuple(_shorten(end) for end in low.tolist()),
        tuple(_shorten(end) for end in high.tolist()),
    )


def _check_columns(
    columns: Sequence[int], n_columns: int | None = None
) -> tuple[int, ...]:
    """Check the numbers of columns of an observation."""
    highest = inf if n_columns is None else n_columns - 1
    checked = tuple(check_int("a column", number, 0, highest) for number in columns)
    if not checked or len(set(checked)) != len(checked):
        raise ValueError(f"columns must be different numbers, got {list(columns)}")
    return checked


def _select_columns(rows: FloatArray, columns: tuple[int, ...] | None) -> FloatArray:
    """Some columns of observations ``(N, D)``."""
    if columns is None:
        return rows
    if rows.shape[1] <= max(columns):
        raise ValueError(
            f"observations must have at least {max(columns) + 1} columns, "
            f"got {rows.shape[1]}"
        )
    return rows[:, columns]


def _shorten(x: float) -> float:
    """Leave out digits that come from float32: -0.07, not -0.07000000029802322."""
    short = f"{x:.7g}"
    if np.float32(short) == np.float32(x):
        return float(short)
    return x


def _check_bounds(low: Any, high: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Check that each dimension has a finite low end below a finite high end."""
    lows = np.asarray(low, dtype=np.float64)
    highs = np.asarray(high, dtype=np.float64)
    is_vector = lows.ndim == 1 and lows.size > 0 and lows.shape == highs.shape
    is_finite = np.isfinite(lows).all() and np.isfinite(highs).all()
    if not is_vector or not is_finite or not (lows < highs).all():
        raise ValueError(f"low must be below high, both finite, got {low} and {high}")
    return tuple(lows.tolist()), tuple(highs.tolist())


def _scale_to_unit(rows: FloatArray, low: FloatArray, extent: FloatArray) -> FloatArray:
    """Scale and clip observations ``(N, D)`` to [0, 1]."""
    if rows.shape[1] != len(low):
        raise ValueError(
            f"observations must have {len(low)} dimensions, got {rows.shape[1]}"
        )
    x = (rows - low) / extent
    # Not np.clip, which takes longer than all features of a single observation.
    return np.minimum(np.maximum(x, 0.0), 1.0)
