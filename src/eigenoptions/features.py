"""Feature maps: from batches of observations ``(N, ...)`` to rows phi(s) ``(N, d)`` (paper, Section 5.2).

Any function of a batch is a feature map. The classes here also have a name, by which `discover` and options files
refer to them. A new map is one subclass of `FeatureMap` with a `name`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations, product
from math import comb, prod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from eigenoptions._registry import feature_maps
from eigenoptions._splitmix import GOLDEN, mix_bits
from eigenoptions._validation import check_csr, check_int

__all__ = ["OneHot", "Raw", "Bits", "Fourier", "Tiles"]

Map = Callable[[Any], Any]


class FeatureMap:
    """Base class of feature maps that are found by name: frozen dataclasses with a `name`."""

    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            feature_maps.add(cls.name, cls)

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """The map for the observations of a Gymnasium space, or for those like `obs`."""
        return cls(**settings)

    def __call__(self, obs: Any) -> Any:
        """``(N, ...)`` observations to ``(N, d)`` features."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The map as plain JSON values."""
        return {"map": self.name, **asdict(self)}  # type: ignore[call-overload]


def get_feature_map(name: Any) -> Any:
    """The class of a feature map."""
    return feature_maps.find(name)


def make_features(
    name: str, space: Any = None, obs: ArrayLike | None = None, **settings: Any
) -> Map:
    """A feature map by name, for the observations of a Gymnasium space or those like `obs`: `find_bounds`."""
    return get_feature_map(name).for_space(space, obs, **settings)  # type: ignore[no-any-return]


def features_to_dict(features: Map | None) -> dict[str, Any] | None:
    """A feature map as plain JSON values; of a function only the name."""
    if features is None or isinstance(features, FeatureMap):
        return None if features is None else features.to_dict()
    function = features if hasattr(features, "__qualname__") else type(features)
    return {"function": f"{function.__module__}.{function.__qualname__}"}


def features_from_dict(
    record: Mapping[str, Any] | None, features: Map | None = None
) -> Map | None:
    """The feature map of `features_to_dict`; a function, of which there is only the name, must be given."""
    if record is None or features is not None:
        return features
    if "function" in record:
        raise ValueError(
            f"the file has no features, which are {record['function']}: pass features="
        )
    settings = {
        k: tuple(v) if isinstance(v, list) else v
        for k, v in record.items()
        if k != "map"
    }
    try:
        return get_feature_map(record["map"])(**settings)  # type: ignore[no-any-return]
    except (KeyError, TypeError):
        raise ValueError(f"unknown feature map {dict(record)}") from None


def compute_features(
    features: Map, obs: Any, n_features: int | None = None, count: int | None = None
) -> Any:
    """``(N, d)`` checked features of a batch, dense or csr; `count` is N for batches of a Dict space."""
    rows = features(obs)
    phi: Any = check_csr("features", rows) if issparse(rows) else np.asarray(rows)
    n = (
        count
        if count is not None
        else obs.shape[0]
        if hasattr(obs, "shape")
        else len(obs)
    )
    if phi.ndim != 2 or phi.shape[0] != n or n_features not in (None, phi.shape[1]):
        raise ValueError(
            f"features of {n} observations must be ({n}, {n_features or 'd'}), got {phi.shape}"
        )
    if isinstance(features, BoundedMap) and features.low is not None:
        return phi
    # Squares of larger numbers overflow.
    if (
        phi.dtype.kind not in "biuf"
        or not float(abs(phi).max() if n and phi.shape[1] else 0.0) < 1e150
    ):
        raise ValueError(
            f"features must be finite numbers below 1e150, got {phi.dtype}"
        )
    return phi


def flatten_observations(obs: Any) -> NDArray[np.float64]:
    """``(N, D)`` floats of a batch of observations, checked; of goal environments (Dict) those of "observation"."""
    batch = np.asarray(
        obs["observation"] if isinstance(obs, Mapping) and "observation" in obs else obs
    )
    if batch.dtype.kind not in "biuf" or batch.ndim < 2:
        kind = f"{batch.dtype} {batch.shape}"
        raise ValueError(
            f"observations must be a batch (N, ...) of numbers, got {kind}: pass features="
        )
    rows = batch.reshape(len(batch), prod(batch.shape[1:])).astype(np.float64)
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise ValueError(
            f"observation {row} must be finite, got {rows[row, column]} in dimension {column}"
        )
    return rows


def add_batch_axis(obs: Any) -> Any:
    """A batch of one observation."""
    if isinstance(obs, dict):
        return {name: np.asarray(part)[None] for name, part in obs.items()}
    return (
        tuple(np.asarray(part)[None] for part in obs)
        if isinstance(obs, tuple)
        else np.asarray(obs)[None]
    )


@dataclass(frozen=True)
class OneHot(FeatureMap):
    """One feature per state: phi(s) is a unit vector. Sparse.

    >>> OneHot(3)(np.array([2, 0])).toarray().tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    n_states: int
    name: ClassVar[str] = "one-hot"

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """One feature per number of a Discrete space; without one, up to the largest of `obs`."""
        if space is not None and (not hasattr(space, "n") or space.shape):
            raise ValueError(
                f"one-hot features need Discrete observations, got {space}: use fourier"
            )
        return cls(
            int(np.max(obs)) + 1 if space is None and obs is not None else int(space.n)
        )

    def __call__(self, obs: ArrayLike) -> csr_array:
        """``(N, ...)`` observations to ``(N, d)`` features."""
        states = np.asarray(obs)
        if states.ndim != 1 or states.dtype.kind not in "iu":
            raise ValueError(
                f"one-hot features need state numbers (N,), got {states.dtype} {states.shape}"
            )
        if len(states) and not 0 <= states.min() <= states.max() < self.n_states:
            raise ValueError(
                f"states must be in 0..{self.n_states - 1}, got {states.min()}..{states.max()}"
            )
        n = len(states)
        return csr_array(
            (np.ones(n), states.astype(np.int64), np.arange(n + 1)),
            shape=(n, self.n_states),
        )


@dataclass(frozen=True)
class Bits(FeatureMap):
    """Bits of bytes, the lowest first: the paper's 1,024 features of Atari's RAM (Section 5.2). Booleans.

    >>> Bits()(np.array([[5, 128]], dtype=np.uint8)).astype(int).tolist()
    [[1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]]
    """

    name: ClassVar[str] = "bits"

    def __call__(self, obs: ArrayLike) -> NDArray[np.bool_]:
        """``(N, ...)`` observations to ``(N, d)`` features."""
        batch = np.asarray(obs)
        if batch.ndim < 2 or batch.dtype not in (np.uint8, np.bool_):
            raise ValueError(
                f"bits need bytes (uint8) of shape (N, ...), got {batch.dtype} {batch.shape}"
            )
        flat = batch.reshape(len(batch), -1)
        return (
            flat
            if flat.dtype == np.bool_
            else np.unpackbits(flat, 1, bitorder="little").view(np.bool_)
        )


@dataclass(frozen=True)
class BoundedMap(FeatureMap):
    """A map of observations between `low` and `high`, one number per dimension; what lies outside is clipped.

    `for_space` takes the first of the `defaults` that make at most 2,048 features.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    defaults: ClassVar[Sequence[Mapping[str, Any]]] = ({},)
    max_features: ClassVar[int] = 1 << 16

    def __post_init__(self) -> None:
        low, high = (np.asarray(end, dtype=np.float64) for end in (self.low, self.high))
        ordered = (
            low.ndim == 1
            and low.size
            and low.shape == high.shape
            and (low < high).all()
        )
        if not (ordered and np.isfinite([low, high]).all()):
            raise ValueError(
                f"low must be below high, both finite, got {self.low} and {self.high}"
            )
        object.__setattr__(self, "low", tuple(low.tolist()))
        object.__setattr__(self, "high", tuple(high.tolist()))
        for name in ("order", "coupled", "tiles", "tilings", "size"):
            number = getattr(self, name, None)
            if number is not None:
                object.__setattr__(self, name, check_int(name, number))

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """The map with the bounds of a Box."""
        bounds = find_bounds(space, obs)
        for default in cls.defaults:
            made = cls(*bounds, **{**default, **settings})
            if made.n_features <= 2048:
                break
        return made

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return len(self.low)

    def __call__(self, obs: ArrayLike) -> Any:
        """``(N, ...)`` observations to ``(N, d)`` features."""
        rows = flatten_observations(obs)
        if self.low is None:
            return rows
        low, extent = self._bounds
        if rows.shape[1] != len(low):
            raise ValueError(
                f"observations must have {len(low)} dimensions, got {rows.shape[1]}"
            )
        # Not np.clip, which takes longer than all features of a single observation.
        return self._map(np.minimum(np.maximum((rows - low) / extent, 0.0), 1.0))

    @cached_property
    def _bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """``(D,)`` low and high - low."""
        if self.n_features > self.max_features:
            limit, settings = self.max_features, ", ".join(self.defaults[-1])
            raise ValueError(
                f"{self.n_features} features are more than {limit}: set {settings} lower"
            )
        return np.array(self.low), np.subtract(self.high, self.low)

    def _map(self, x: NDArray[np.float64]) -> Any:
        """Features of observations x ``(N, D)`` that are scaled from `low` and `high` to [0, 1]."""
        return x


@dataclass(frozen=True)
class Raw(BoundedMap):
    """The observation itself, flattened; scaled from `low` and `high` to [0, 1] where they are given.

    >>> Raw((0.0, -1.0), (10.0, 1.0))(np.array([[5.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """

    low: tuple[float, ...] = None  # type: ignore[assignment]
    high: tuple[float, ...] = None  # type: ignore[assignment]
    name: ClassVar[str] = "raw"

    def __post_init__(self) -> None:
        if self.low is not None or self.high is not None:
            super().__post_init__()

    @classmethod
    def for_space(
        cls, space: Any = None, obs: ArrayLike | None = None, **settings: Any
    ) -> Self:
        """Scaled where the space is a Box, else as they are."""
        return (
            super().for_space(space, obs)
            if space is None or hasattr(space, "low")
            else cls()
        )


@dataclass(frozen=True)
class Fourier(BoundedMap):
    """Cosines ``cos(pi c . x)`` of the scaled observation x, c integers up to `order` (Konidaris et al., 2011).

    At most `coupled` entries of c are not zero: with 2, order n and D dimensions ``1 + D n + D (D - 1) / 2 n^2``
    features instead of ``(n + 1)^D``. The ends of each dimension, `low` and `high`, are scaled to 0 and 1.

    >>> Fourier((0.0, 0.0), (1.0, 1.0), order=2)(np.array([[0.0, 1.0]])).round(12).tolist()
    [[1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0]]
    """

    order: int = 3
    coupled: int = 2
    name: ClassVar[str] = "fourier"
    defaults = tuple({"coupled": c, "order": n} for c, n in product((2, 1), (3, 2, 1)))

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return sum(
            comb(len(self.low), k) * self.order**k for k in range(self.coupled + 1)
        )

    @cached_property
    def frequencies(self) -> NDArray[np.float64]:
        """``(d, D)`` the vectors c, in lexicographic order."""
        width, vectors = len(self.low), []
        for k in range(min(self.coupled, width) + 1):
            for places in combinations(range(width), k):
                for values in product(range(1, self.order + 1), repeat=k):
                    vector = np.zeros(width)
                    vector[list(places)] = values
                    vectors.append(tuple(vector))
        return np.array(sorted(vectors))

    def _map(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.cos(np.pi * x.dot(self.frequencies.T)))


@dataclass(frozen=True)
class Tiles(BoundedMap):
    """Tile coding: several grids over the observations, each shifted a little; one tile of each is on. Sparse.

    There are `tiles` along each dimension, from `low` to `high`. Of `tilings` grids, grid t is shifted by
    ``t (1, 3, 5, ...) / tilings`` tiles, so that no two coincide. Tiles are hashed into `size` features, where two may
    share one by chance; None: no hashing, ``tilings * (tiles + 1)^D`` features.

    >>> grid = Tiles((0.0, 0.0), (1.0, 1.0), tiles=2, tilings=2)
    >>> grid.n_features, np.flatnonzero(grid(np.array([[0.1, 0.9]])).toarray()).tolist()
    (18, [1, 11])
    """

    tiles: int = 8
    tilings: int = 8
    size: int | None = None
    name: ClassVar[str] = "tiles"
    defaults = ({"size": None}, {"size": 2048})
    max_features = 1 << 31

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return self.size or int(self.tilings * (self.tiles + 1) ** len(self.low))

    def _map(self, x: NDArray[np.float64]) -> csr_array:
        n, width = x.shape
        grid = np.arange(self.tilings)
        offsets = grid[:, None] * (2 * np.arange(width) + 1) % self.tilings
        # (N, tilings, D), in 0..tiles
        tile = np.floor(x[:, None, :] * self.tiles + offsets / self.tilings).astype(
            np.int64
        )
        if self.size is None:
            number = np.ravel_multi_index(
                tuple(np.moveaxis(tile, 2, 0)), (self.tiles + 1,) * width
            )
            index = grid * (self.tiles + 1) ** width + number
        else:
            hashed = np.broadcast_to(grid, (n, self.tilings)).astype(np.uint64)
            for j in range(width):
                hashed = np.bitwise_xor(hashed, tile[:, :, j].astype(np.uint64))
                hashed = mix_bits(hashed + GOLDEN)
            index = (hashed % np.uint64(self.size)).astype(np.int64)
        bounds = np.arange(n + 1) * self.tilings
        ones = csr_array(
            (np.ones(index.size), index.ravel(), bounds), shape=(n, self.n_features)
        )
        # Two tiles of one observation may have the same hash.
        ones.sum_duplicates()
        return ones


def find_bounds(
    space: Any = None, obs: ArrayLike | None = None, max_bound: float = 1e6
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Ends of each dimension of a Box; those beyond `max_bound`, or all without a space, come from `obs`."""
    rows = None if obs is None else flatten_observations(obs)
    if space is not None and not hasattr(space, "low"):
        raise ValueError(
            f"these features need Box observations, these are {space}: pass a function"
        )
    if space is None and rows is not None:
        low, high = np.full((2, rows.shape[1]), np.inf)
    else:
        low, high = (
            np.array(end, dtype=np.float64).ravel() for end in (space.low, space.high)
        )
    unbounded = ~(np.maximum(np.abs(low), np.abs(high)) <= max_bound)
    if unbounded.any():
        if rows is None or rows.shape[1:] != low.shape or not len(rows):
            dimension = (
                f"dimension {unbounded.argmax()} of {len(low)} of the observations"
            )
            raise ValueError(
                f"{dimension} has no bounds: give low and high, or observations that show them"
            )
        low[unbounded], high[unbounded] = (
            rows.min(axis=0)[unbounded],
            rows.max(axis=0)[unbounded],
        )
    # A dimension that never changes has no extent, and cannot be scaled.
    high = np.where(high > low, high, low + 1.0)
    return tuple(map(_shorten, low.tolist())), tuple(map(_shorten, high.tolist()))


def _shorten(x: float) -> float:
    """A float without the digits that come from float32: -0.07 and not -0.07000000029802322."""
    short = f"{x:.7g}"
    return float(short) if np.float32(short) == np.float32(x) else x
