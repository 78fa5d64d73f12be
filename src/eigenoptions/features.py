"""Feature maps: from batches of observations ``(N, ...)`` to rows phi(s) ``(N, d)`` (paper, Section 5.2).

Any function of a batch is a feature map. The maps here are frozen records with a name, so that an options file can hold
them. `MAPS` is their registry: a new map is a class with the decorator `register`, a `name` and, where it depends on
the space of the observations, a class method `for_space`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from importlib import import_module
from math import comb, prod
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from eigenoptions._validation import check_csr, check_int

Map = Callable[[Any], Any]
Kind = TypeVar("Kind", bound=type[Any])

# Bounds of a space beyond this are not taken for the range of its observations.
MAX_BOUND = 1e6
# Most features of a dense map.
MAX_FEATURES = 1 << 16
# Most features that `for_space` gives to tiles and radial basis functions; more tiles are hashed.
DEFAULT_SIZE = 2048

# Feature maps by name: classes, or the module that registers one when it is imported.
MAPS: dict[str, Any] = {}


def register(kind: Kind) -> Kind:
    """Class decorator: enter a feature map into `MAPS` under its `name`."""
    if not (isinstance(kind, type) and isinstance(getattr(kind, "name", None), str)):
        raise TypeError(f"a feature map is a class with a `name`, got {kind!r}")
    MAPS[kind.name] = kind
    return kind


def __getattr__(name: str) -> Any:
    if name == "Ram":
        return map_class("ram")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def map_class(name: str) -> Any:
    """The feature map with a name."""
    if name not in MAPS:
        raise ValueError(f"features must be one of {', '.join(MAPS)} or a function, got {name!r}")
    if isinstance(MAPS[name], str):
        import_module(MAPS[name])
    return MAPS[name]


def settings_of(name: str) -> tuple[str, ...]:
    """Names of the settings of a feature map that do not follow from the space of observations."""
    own = getattr(map_class(name), "settings", None) or (f.name for f in fields(map_class(name)))
    return tuple(n for n in own if n not in ("n_states", "low", "high"))


def named(name: str, space: Any = None, obs: ArrayLike | None = None, **settings: Any) -> Map:
    """A feature map by name, for the observations of a Gymnasium space.

    The space determines the map's bounds; those that are not finite (CartPole's velocities), or all without a space,
    are taken from the observations `obs` ``(N, ...)``. For the settings, such as `order` or `tiles`, see `settings_of`.

    >>> from gymnasium.spaces import Box
    >>> named("fourier", Box(np.array([-1.2, -0.07]), np.array([0.6, 0.07]), dtype=np.float64), order=5)
    Fourier(low=(-1.2, -0.07), high=(0.6, 0.07), order=5, coupled=2)
    """
    kind = map_class(name)
    build = getattr(kind, "for_space", None)
    return kind(**settings) if build is None else build(space, obs, **settings)  # type: ignore[no-any-return]


@register
@dataclass(frozen=True)
class OneHot:
    """One feature per state: phi(s) is a unit vector. Sparse; `Gram` stores such states as numbers.

    >>> OneHot(3)(np.array([2, 0])).toarray().tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    n_states: int
    name: ClassVar[str] = "one-hot"

    def __post_init__(self) -> None:
        # The limit is that of the indices of a sparse array.
        object.__setattr__(self, "n_states", check_int("n_states", self.n_states, maximum=(1 << 63) - 1))

    @classmethod
    def for_space(cls, space: Any, obs: ArrayLike | None = None) -> Self:
        """One feature per number of a Discrete space; without one, up to the largest of `obs`."""
        if space is None and obs is not None:
            return cls(int(np.max(obs)) + 1)
        if not hasattr(space, "n") or space.shape:
            raise ValueError(f"one-hot features need Discrete observations, got {space}: use fourier")
        return cls(int(space.n))

    def __call__(self, obs: ArrayLike) -> csr_array:
        """``(N,)`` state numbers to ``(N, n_states)``."""
        states = np.asarray(obs)
        if states.ndim != 1 or states.dtype.kind not in "iu":
            raise ValueError(f"one-hot features need state numbers (N,), got {states.dtype} {states.shape}")
        if len(states) and not (states.min() >= 0 and states.max() < self.n_states):
            raise ValueError(f"states must be in 0..{self.n_states - 1}, got {states.min()}..{states.max()}")
        n = len(states)
        return csr_array((np.ones(n), states.astype(np.int64), np.arange(n + 1)), shape=(n, self.n_states))


@register
@dataclass(frozen=True)
class Bits:
    """Bits of bytes, the lowest first: the paper's 1,024 features of Atari's RAM (Section 5.2). Booleans.

    >>> Bits()(np.array([[5, 128]], dtype=np.uint8)).astype(int).tolist()
    [[1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]]
    """

    name: ClassVar[str] = "bits"

    def __call__(self, obs: ArrayLike) -> NDArray[np.bool_]:
        """``(N, ...)`` bytes to ``(N, 8 * bytes)``; boolean observations are only flattened."""
        given = np.asarray(obs)
        if given.ndim < 2 or given.dtype not in (np.uint8, np.bool_):
            raise ValueError(f"bits need bytes (uint8) of shape (N, ...), got {given.dtype} {given.shape}")
        flat = given.reshape(len(given), -1)
        return (
            flat if flat.dtype == np.bool_ else np.unpackbits(flat, axis=1, bitorder="little").view(np.bool_)
        )


@dataclass(frozen=True)
class _Bounded:
    """A map of observations between `low` and `high`, one number per dimension; what lies outside is clipped."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    @classmethod
    def for_space(cls, space: Any, obs: ArrayLike | None = None, **settings: Any) -> Self:
        """The map with the `bounds` of a Box; a `size` that is not given is limited to 2,048."""
        ends = bounds(space, obs)
        if "size" in {f.name for f in fields(cls)} - set(settings):
            limited: Any = cls(*ends, **{**settings, "size": DEFAULT_SIZE})
            if limited.full_size > DEFAULT_SIZE:
                return limited  # type: ignore[no-any-return]
        return cls(*ends, **settings)

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ValueError("low and high go together: give both or neither")
        if self.low is None:
            return
        for end in ("low", "high"):
            given = np.asarray(getattr(self, end), dtype=np.float64)
            if given.ndim != 1 or not given.size or not np.isfinite(given).all():
                raise ValueError(f"{end} must be finite, one number per dimension, got {getattr(self, end)}")
            object.__setattr__(self, end, tuple(given.tolist()))
        if len(self.low) != len(self.high) or not np.less(self.low, self.high).all():
            raise ValueError(f"low must be below high in every dimension, got {self.low} and {self.high}")

    @property
    def n_features(self) -> int:
        """Number of features d."""
        full, size = getattr(self, "full_size", 0), getattr(self, "size", None)
        return int(full if size is None else size)

    def _scaled(self, obs: ArrayLike) -> NDArray[np.float64]:
        rows = flattened(obs)
        if self.low is None:
            return rows
        if rows.shape[1] != len(self.low):
            raise ValueError(f"observations must have {len(self.low)} dimensions, got {rows.shape[1]}")
        low = np.array(self.low)
        return np.asarray(np.clip((rows - low) / (np.array(self.high) - low), 0.0, 1.0))


@register
@dataclass(frozen=True)
class Raw(_Bounded):
    """The observation itself, flattened; scaled from `low` and `high` to [0, 1] where they are given.

    >>> Raw((0.0, -1.0), (10.0, 1.0))(np.array([[5.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """

    low: tuple[float, ...] = None  # type: ignore[assignment]
    high: tuple[float, ...] = None  # type: ignore[assignment]
    name: ClassVar[str] = "raw"

    @classmethod
    def for_space(cls, space: Any, obs: ArrayLike | None = None, **settings: Any) -> Self:
        """Scaled where the space is a Box, else as they are."""
        plain = space is not None and not hasattr(space, "low")
        return cls(**settings) if plain else super().for_space(space, obs, **settings)

    def __call__(self, obs: ArrayLike) -> NDArray[np.float64]:
        """``(N, ...)`` to ``(N, d)``."""
        return self._scaled(obs)


@register
@dataclass(frozen=True)
class Fourier(_Bounded):
    """Cosines ``cos(pi c . x)`` of the scaled observation x, c whole numbers up to `order` (Konidaris et al., 2011).

    At most `coupled` entries of c are not zero: with 2, order n and D dimensions ``1 + D n + D (D - 1) / 2 n^2``
    features instead of ``(n + 1)^D``. The ends of each dimension, `low` and `high`, are scaled to 0 and 1.

    >>> Fourier((0.0, 0.0), (1.0, 1.0), order=2)(np.array([[0.0, 1.0]])).round(12).tolist()
    [[1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0]]
    """

    order: int = 3
    coupled: int = 2
    name: ClassVar[str] = "fourier"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_sizes(self, "order", "coupled")

    @cached_property
    def frequencies(self) -> NDArray[np.float64]:
        """``(d, D)`` the vectors c."""
        return np.array(sorted(_sparse_vectors(len(self.low), self.order, self.coupled)), dtype=np.float64)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.frequencies)

    def __call__(self, obs: ArrayLike) -> NDArray[np.float64]:
        """``(N, D)`` to ``(N, d)``."""
        return np.asarray(np.cos(np.pi * (self._scaled(obs) @ self.frequencies.T)))


@register
@dataclass(frozen=True)
class Tiles(_Bounded):
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

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_sizes(self, "tiles", "tilings", "size")
        if self.size is None and self.n_features > 2**31:
            many = f"{self.tilings} tilings of {self.tiles + 1}^{len(self.low)} tiles"
            raise ValueError(f"{many} are too many to number: give size, and tiles are hashed")

    @property
    def full_size(self) -> int:
        """Number of features without hashing."""
        return int(self.tilings * (self.tiles + 1) ** len(self.low))

    def __call__(self, obs: ArrayLike) -> csr_array:
        """``(N, D)`` to ``(N, d)``, with `tilings` ones per row."""
        x = self._scaled(obs) * self.tiles
        n, width = x.shape
        grid = np.arange(self.tilings)
        steps = grid[:, None] * (2 * np.arange(width) + 1) % self.tilings
        # (N, tilings, D), in 0..tiles
        at = np.floor(x[:, None, :] + steps / self.tilings).astype(np.int64)
        if self.size is None:
            place = np.ravel_multi_index(tuple(np.moveaxis(at, 2, 0)), (self.tiles + 1,) * width)
            index = grid * (self.tiles + 1) ** width + place
        else:
            mixed = np.broadcast_to(grid, (n, self.tilings)).astype(np.uint64)
            for j in range(width):
                mixed = _mixed(np.bitwise_xor(mixed, at[:, :, j].astype(np.uint64)))
            index = (mixed % np.uint64(self.size)).astype(np.int64)
        bounds = np.arange(n + 1) * self.tilings
        ones = csr_array((np.ones(index.size), index.ravel(), bounds), shape=(n, self.n_features))
        # Two tiles of one observation may have the same hash.
        ones.sum_duplicates()
        return ones


@register
@dataclass(frozen=True)
class RBF(_Bounded):
    """Radial basis functions: Gaussian bumps ``exp(-|x - c|^2 / (2 w^2))`` of the scaled observation x.

    The centres c are a `grid` of so many along each dimension, from `low` to `high`; with a `size` they are so many
    drawn uniformly at random from `seed`. `width` is w in units of the distance between neighbouring centres.

    >>> RBF((0.0,), (1.0,), grid=3)(np.array([[0.5]])).round(3).tolist()
    [[0.607, 1.0, 0.607]]
    """

    grid: int = 5
    size: int | None = None
    width: float = 1.0
    seed: int = 0
    name: ClassVar[str] = "rbf"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_sizes(self, "grid", "size")
        object.__setattr__(self, "seed", check_int("seed", self.seed, 0))
        if not 0 < self.width < np.inf:
            raise ValueError(f"width must be a positive number, got {self.width!r}")
        if (n := self.n_features) > MAX_FEATURES:
            raise ValueError(f"{n} centres are more than {MAX_FEATURES}: lower grid or give size")

    @property
    def full_size(self) -> int:
        """Number of features of the grid."""
        return int(self.grid ** len(self.low))

    @cached_property
    def centres(self) -> NDArray[np.float64]:
        """``(d, D)`` the centres c."""
        width = len(self.low)
        if self.size is not None:
            return np.random.default_rng(self.seed).random((self.size, width))
        places = np.linspace(0.0, 1.0, self.grid) if self.grid > 1 else [0.5]
        return np.stack(np.meshgrid(*[places] * width, indexing="ij"), axis=-1).reshape(-1, width)

    def __call__(self, obs: ArrayLike) -> NDArray[np.float64]:
        """``(N, D)`` to ``(N, d)``."""
        x = self._scaled(obs)
        near = (x**2).sum(axis=1)[:, None] - 2 * x @ self.centres.T + (self.centres**2).sum(axis=1)
        across = self.grid if self.size is None else self.size ** (1 / len(self.low))
        deviation = self.width / max(across - 1.0, 1.0)
        return np.asarray(np.exp(-np.maximum(near, 0.0) / (2 * deviation**2)))


MAPS.update(ram="eigenoptions.atari.ram", deep="eigenoptions.deep.encoder")


def bounds(space: Any = None, obs: ArrayLike | None = None) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Ends of each dimension of a Box; those beyond a million, or all without a space, are taken from `obs`.

    >>> from gymnasium.spaces import Box
    >>> bounds(Box(np.array([0.0, -np.inf]), np.array([1.0, np.inf]), dtype=np.float64), [[0.5, -3.0], [0.2, 2.0]])
    ((0.0, -3.0), (1.0, 2.0))
    """
    if space is None:
        low, high = np.full((2, 0 if obs is None else flattened(obs).shape[1]), np.inf)
    elif hasattr(space, "low") and hasattr(space, "high"):
        low, high = (np.array(end, dtype=np.float64).ravel() for end in (space.low, space.high))
    else:
        raise ValueError(f"these features need Box observations, these are {space}: pass a function")
    unbounded = ~((np.abs(low) <= MAX_BOUND) & (np.abs(high) <= MAX_BOUND))
    if unbounded.any():
        if obs is None:
            first = int(np.flatnonzero(unbounded)[0])
            raise ValueError(f"dimension {first} of the observations has no bounds: give low and high")
        seen = flattened(obs)
        if seen.shape[1:] != low.shape or not len(seen):
            raise ValueError(f"observations of shape {np.shape(obs)} do not fit {len(low)} dimensions")
        low[unbounded], high[unbounded] = seen.min(axis=0)[unbounded], seen.max(axis=0)[unbounded]
    # A dimension that never changes has no extent, and cannot be scaled.
    high = np.where(high > low, high, low + 1.0)
    return tuple(_short(low)), tuple(_short(high))


def record(features: Map | None) -> dict[str, Any] | None:
    """A feature map as plain JSON values; of other functions only the name.

    >>> record(Bits()), record(np.atleast_2d)
    ({'map': 'bits'}, {'function': 'numpy.atleast_2d'})
    """
    if features is None:
        return None
    if type(features) in MAPS.values():
        plain = getattr(features, "plain", None) or asdict(features)  # type: ignore[call-overload]
        return {"map": type(features).name, **plain}  # type: ignore[attr-defined]
    kind = features if hasattr(features, "__qualname__") else type(features)
    return {"function": f"{kind.__module__}.{kind.__qualname__}"}


def recalled(record: Mapping[str, Any] | None, given: Map | None = None) -> Map | None:
    """The feature map of a `record`; a function, which a record only names, must be `given`.

    >>> recalled({"map": "tiles", "low": [0.0], "high": [1.0], "tiles": 4, "tilings": 2, "size": None})
    Tiles(low=(0.0,), high=(1.0,), tiles=4, tilings=2, size=None)
    """
    if record is None or given is not None:
        return given
    if not isinstance(record, Mapping):
        raise ValueError(f"a record of features is a dict, got {record!r}")
    if "map" not in record:
        function = record.get("function")
        raise ValueError(f"the features are the function {function}, not in the file: pass features=")
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items() if k != "map"}
    if record["map"] not in MAPS or not set(settings) <= {f.name for f in fields(map_class(record["map"]))}:
        raise ValueError(f"unknown feature map {dict(record)}: known are {', '.join(MAPS)}")
    return map_class(record["map"])(**settings)  # type: ignore[no-any-return]


def rows_of(features: Map, obs: Any, n_features: int | None = None, count: int | None = None) -> Any:
    """``(N, d)`` checked features of a batch, dense or csr: finite numbers, one row per observation.

    `count` is N for batches without a length of their own (those of a Dict space).

    >>> rows_of(Raw(), np.array([[1, 2]])).tolist()
    [[1.0, 2.0]]
    """
    given = features(obs)
    phi: Any = check_csr("features", given) if issparse(given) else np.asarray(given)
    n = count if count is not None else obs.shape[0] if hasattr(obs, "shape") else len(obs)
    if phi.ndim != 2 or phi.shape[0] != n:
        raise ValueError(f"features must give ({n}, d) for {n} observations, got shape {phi.shape}")
    if n_features is not None and phi.shape[1] != n_features:
        raise ValueError(f"there must be {n_features} features, got {phi.shape[1]}")
    data = phi.data if issparse(phi) else phi
    if data.dtype.kind not in "biuf":
        raise ValueError(f"features must be numbers, got {data.dtype}")
    if data.dtype.kind == "f" and not np.isfinite(data).all():
        raise ValueError(f"features must be finite, got {data[~np.isfinite(data)][0]}")
    return phi


def flattened(obs: ArrayLike) -> NDArray[np.float64]:
    """``(N, D)`` floats of a batch of observations, checked."""
    given = np.asarray(obs)
    if given.dtype.kind not in "biuf":
        raise ValueError(f"observations must be arrays of numbers, got {given.dtype}: pass features=")
    if given.ndim < 2:
        raise ValueError(f"observations must be a batch of shape (N, ...), got shape {given.shape}")
    rows = given.reshape(len(given), prod(given.shape[1:])).astype(np.float64)
    if given.dtype.kind == "f" and not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        value = rows[row, column]
        raise ValueError(f"observation {row} has {value} in dimension {column}: it must be finite")
    return rows


def _check_sizes(features: Any, *names: str) -> None:
    """Check whole numbers from 1, and store them as ints; None stays."""
    for name in names:
        if getattr(features, name) is not None:
            object.__setattr__(features, name, check_int(name, getattr(features, name)))


def _short(ends: NDArray[np.float64]) -> list[float]:
    """Floats without the digits that come from float32: -0.07 and not -0.07000000029802322."""
    return [float(f"{x:.7g}") if np.float32(f"{x:.7g}") == np.float32(x) else float(x) for x in ends.tolist()]


def _sparse_vectors(width: int, order: int, coupled: int) -> set[tuple[int, ...]]:
    """Vectors of whole numbers in 0..order with at most `coupled` entries that are not zero."""
    count = sum(comb(width, k) * order**k for k in range(min(coupled, width) + 1))
    if count > MAX_FEATURES:
        size = f"order {order} with {coupled} coupled of {width} dimensions"
        raise ValueError(f"{size} is {count} features, more than {MAX_FEATURES}: lower order or coupled")
    found = {(0,) * width}
    for _ in range(min(coupled, width)):
        found |= {(*c[:j], n, *c[j + 1 :]) for c in found for j in range(width) for n in range(1, order + 1)}
    return found


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash numbers so that tiles spread evenly: `_kernels.learning.mix` (SplitMix64) for arrays, not compiled."""
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
