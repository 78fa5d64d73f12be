"""Feature maps: from batches of observations ``(N, ...)`` to rows phi(s) ``(N, d)`` (paper, Section 5.2).

One-hot states and tiles come out sparse, RAM bits as booleans, the others as floats; any function of a batch serves
as well. Maps that look at positions scale observations to [0, 1] between `low` and `high` first, and clip what lies
outside. The maps are frozen records with names, so that an options file can say which one it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import import_module
from math import comb, prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

Map = Callable[[Any], Any]

VAST = 1e6  # bounds beyond this say nothing about where observations lie
MOST = 1 << 16  # features that a map makes without being told to: more are asked for by hand
HASHED = 2048  # tiles that `named` keeps apart; more are hashed together

_GOLDEN, _MIX_1, _MIX_2 = (np.uint64(k) for k in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_27, _30, _31 = (np.uint64(k) for k in (27, 30, 31))


@dataclass(frozen=True)
class OneHot:
    """One feature a state: phi(s) is a unit vector. Sparse; `Gram` keeps such states as mere numbers.

    Attributes
    ----------
    n_states
        Number of states, and of features.

    Examples
    --------
    >>> OneHot(3)(np.array([2, 0])).toarray().tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    n_states: int
    name: ClassVar[str] = "one-hot"

    def __call__(self, obs: ArrayLike) -> csr_array:
        """``(N,)`` state numbers to ``(N, n_states)``."""
        states = np.asarray(obs)
        if states.ndim != 1 or states.dtype.kind not in "iu":
            raise ValueError(
                f"one-hot features need state numbers (N,), got {states.dtype} of shape {states.shape}"
            )
        if len(states) and not (states.min() >= 0 and states.max() < self.n_states):
            raise ValueError(f"states must be in 0..{self.n_states - 1}, got {states.min()}..{states.max()}")
        n = len(states)
        return csr_array((np.ones(n), states.astype(np.int64), np.arange(n + 1)), shape=(n, self.n_states))


@dataclass(frozen=True)
class Raw:
    """The observation itself, flattened; between `low` and `high` brought to [0, 1] where they are given.

    Examples
    --------
    >>> Raw((0.0, -1.0), (10.0, 1.0))(np.array([[5.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """

    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    name: ClassVar[str] = "raw"

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ValueError("low and high go together: give both or neither")
        if self.low is not None:
            _box(self)

    def __call__(self, obs: ArrayLike) -> NDArray[np.float64]:
        """``(N, ...)`` to ``(N, d)``."""
        rows = _rows(obs)
        return rows if self.low is None or self.high is None else _scaled(rows, self.low, self.high)


@dataclass(frozen=True)
class Bits:
    """Bits of bytes, the lowest first: the paper's 1,024 features of Atari's RAM (Section 5.2). Booleans.

    Examples
    --------
    >>> Bits()(np.array([[5, 128]], dtype=np.uint8)).astype(int).tolist()
    [[1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]]
    """

    name: ClassVar[str] = "bits"

    def __call__(self, obs: ArrayLike) -> NDArray[np.bool_]:
        """``(N, ...)`` bytes to ``(N, 8 * bytes)``; what is boolean already is flattened."""
        given = np.asarray(obs)
        if given.ndim < 2 or given.dtype not in (np.uint8, np.bool_):
            raise ValueError(
                f"bits need bytes (uint8) of shape (N, ...), got {given.dtype} of shape {given.shape}"
            )
        flat = given.reshape(len(given), -1)
        return (
            flat
            if flat.dtype == np.bool_
            else np.unpackbits(flat, axis=1, bitorder="little").astype(np.bool_)
        )


@dataclass(frozen=True)
class Fourier:
    """Cosines ``cos(pi c . x)`` of the scaled observation x, c whole numbers up to `order` (Konidaris et al., 2011).

    Attributes
    ----------
    low, high
        Ends of each dimension, brought to 0 and 1; what lies outside is clipped.
    order
        Largest entry of c.
    coupled
        Most entries of c that are not zero: with 2 there are ``1 + D n + D (D - 1) / 2 n^2`` features of D dimensions
        instead of ``(n + 1)^D``.

    Examples
    --------
    >>> waves = Fourier((0.0, 0.0), (1.0, 1.0), order=2)
    >>> waves.n_features
    9
    >>> waves(np.array([[0.0, 1.0]])).round(12).tolist()
    [[1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0]]
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    order: int = 3
    coupled: int = 2
    name: ClassVar[str] = "fourier"

    def __post_init__(self) -> None:
        _box(self)
        _at_least(self, "order", 1)
        _at_least(self, "coupled", 1)

    @cached_property
    def frequencies(self) -> NDArray[np.float64]:
        """``(d, D)`` the vectors c."""
        found = sorted(_sparse_vectors(len(self.low), self.order, self.coupled))
        return np.array(found, dtype=np.float64)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.frequencies)

    def __call__(self, obs: ArrayLike) -> NDArray[np.float64]:
        """``(N, D)`` to ``(N, d)``."""
        waves: NDArray[np.float64] = np.cos(
            np.pi * (_scaled(_rows(obs), self.low, self.high) @ self.frequencies.T)
        )
        return waves


@dataclass(frozen=True)
class Tiles:
    """Tile coding: several grids over the observations, each shifted a little; one tile of each is on. Sparse.

    Attributes
    ----------
    low, high
        Ends of each dimension; what lies outside belongs to the tile at the edge.
    tiles
        Along each dimension.
    tilings
        Number of grids; grid t is shifted by ``t (1, 3, 5, ...) / tilings`` tiles, so that no two line up.
    size
        None: ``tilings * (tiles + 1)^D`` features. Or so many: tiles are hashed together, two by chance on one
        feature, which keeps large spaces small.

    Examples
    --------
    >>> grid = Tiles((0.0, 0.0), (1.0, 1.0), tiles=2, tilings=2)
    >>> grid.n_features, np.flatnonzero(grid(np.array([[0.1, 0.9]])).toarray()).tolist()
    (18, [1, 11])
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    tiles: int = 8
    tilings: int = 8
    size: int | None = None
    name: ClassVar[str] = "tiles"

    def __post_init__(self) -> None:
        _box(self)
        _at_least(self, "tiles", 1)
        _at_least(self, "tilings", 1)
        if self.size is not None:
            _at_least(self, "size", 1)
        elif self.tilings * (self.tiles + 1) ** len(self.low) > 2**31:
            raise ValueError(
                f"{self.tilings} tilings of {self.tiles + 1}^{len(self.low)} tiles are too many to number: give size, "
                "and tiles are hashed"
            )

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.tilings * (self.tiles + 1) ** len(self.low) if self.size is None else self.size

    def __call__(self, obs: ArrayLike) -> csr_array:
        """``(N, D)`` to ``(N, d)``, with `tilings` ones a row."""
        x = _scaled(_rows(obs), self.low, self.high) * self.tiles
        n, width = x.shape
        steps = np.arange(self.tilings)[:, None] * (2 * np.arange(width) + 1) % self.tilings
        at = np.floor(x[:, None, :] + steps / self.tilings).astype(np.int64)  # (N, tilings, D), in 0..tiles
        grid = np.arange(self.tilings)
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
        ones.sum_duplicates()  # two tiles of one observation may meet in the hash
        return ones


MAPS: dict[str, Any] = {kind.name: kind for kind in (OneHot, Raw, Bits, Fourier, Tiles)}
# Maps of packages above this one by the module that registers them; it is imported when the map is named.
MAPS_ELSEWHERE = {"ram": "eigenoptions.atari.ram"}


def register(kind: Any) -> Any:
    """Register a feature map (a frozen dataclass with a `name`), so that `named` and files of options find it."""
    MAPS[kind.name] = kind
    return kind


def names() -> tuple[str, ...]:
    """Names of the registered feature maps.

    >>> names()
    ('one-hot', 'raw', 'bits', 'fourier', 'tiles', 'ram')
    """
    return tuple(dict.fromkeys([*MAPS, *MAPS_ELSEWHERE]))


def _map_class(name: str) -> Any:
    if name not in MAPS and name in MAPS_ELSEWHERE:
        import_module(MAPS_ELSEWHERE[name])
    return MAPS[name]


def __getattr__(name: str) -> Any:
    if name == "Ram":
        return _map_class("ram")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def named(name: str, space: Any = None, obs: ArrayLike | None = None, **settings: Any) -> Map:
    """A feature map by name, for the observations of a Gymnasium space.

    Parameters
    ----------
    name
        ``"one-hot"``, ``"raw"``, ``"bits"``, ``"fourier"``, ``"tiles"`` or ``"ram"``.
    space
        Of the observations. Its bounds are the map's; see `bounds` for those that are not finite. None: all from `obs`.
    obs
        Observations ``(N, ...)``, which take the place of bounds that are not finite (CartPole's velocities).
    settings
        Of the map: `order`, `tiles` and so on. More than 2,048 tiles are hashed, unless `size` says otherwise.

    Examples
    --------
    >>> from gymnasium.spaces import Box
    >>> named("fourier", Box(np.array([-1.2, -0.07]), np.array([0.6, 0.07]), dtype=np.float64), order=5)
    Fourier(low=(-1.2, -0.07), high=(0.6, 0.07), order=5, coupled=2)
    """
    if name not in names():
        raise ValueError(
            f"features must be one of {', '.join(names())} or a function of observations, got {name!r}"
        )
    kind = _map_class(name)
    if name == "one-hot":
        if space is None and obs is not None:
            return OneHot(int(np.max(obs)) + 1)
        if not hasattr(space, "n") or space.shape:
            raise ValueError(
                f"one-hot features need Discrete observations, these are {space}: use fourier or tiles"
            )
        return OneHot(int(space.n), **settings)
    if name in ("bits", "ram") or (name == "raw" and space is not None and not hasattr(space, "low")):
        return kind(**settings)  # type: ignore[no-any-return]
    low, high = bounds(space, obs)
    if name == "tiles" and "size" not in settings:
        tiles = kind(low, high, **{**settings, "size": 1})
        whole = tiles.tilings * (tiles.tiles + 1) ** len(low)
        settings["size"] = None if whole <= HASHED else HASHED
    made: Map = kind(low, high, **settings)
    return made


def bounds(space: Any = None, obs: ArrayLike | None = None) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Ends of each dimension of a Box; those that are infinite, or beyond a million, become the ends of `obs`.

    Without a space all of them do.

    Examples
    --------
    >>> from gymnasium.spaces import Box
    >>> bounds(Box(np.array([0.0, -np.inf]), np.array([1.0, np.inf]), dtype=np.float64), [[0.5, -3.0], [0.2, 2.0]])
    ((0.0, -3.0), (1.0, 2.0))
    """
    if space is None:
        low, high = np.full((2, 0 if obs is None else _rows(obs).shape[1]), np.inf)
    elif hasattr(space, "low") and hasattr(space, "high"):
        low, high = (np.array(end, dtype=np.float64).ravel() for end in (space.low, space.high))
    else:
        raise ValueError(
            f"these features need Box observations, these are {space}: pass a function from a batch of them to an array"
        )
    open_ = ~((np.abs(low) <= VAST) & (np.abs(high) <= VAST))
    if open_.any():
        if obs is None:
            raise ValueError(
                f"dimension {int(np.flatnonzero(open_)[0])} of the observations has no bounds: give low and high, "
                "or observations to take them from"
            )
        seen = _rows(obs)
        if seen.shape[1:] != low.shape or not len(seen):
            raise ValueError(
                f"observations of shape {np.shape(obs)} do not fit a space of {len(low)} dimensions"
            )
        low[open_], high[open_] = seen.min(axis=0)[open_], seen.max(axis=0)[open_]
    high = np.where(high > low, high, low + 1.0)  # a dimension that never moves
    return tuple(_short(low)), tuple(_short(high))


def record(features: Map | None) -> dict[str, Any] | None:
    """A feature map as plain JSON values, or the name of a function that cannot be written down.

    >>> record(Bits()), record(np.atleast_2d)
    ({'map': 'bits'}, {'function': 'numpy.atleast_2d'})
    """
    if features is None:
        return None
    if type(features) in MAPS.values():
        return {"map": features.name, **asdict(features)}  # type: ignore[attr-defined, call-overload]
    kind = features if hasattr(features, "__qualname__") else type(features)
    return {"function": f"{kind.__module__}.{kind.__qualname__}"}


def recalled(record: Mapping[str, Any] | None, given: Map | None = None) -> Map | None:
    """The feature map of a `record`; a function that could not be written down must be `given`.

    >>> recalled({"map": "tiles", "low": [0.0], "high": [1.0], "tiles": 4, "tilings": 2, "size": None})
    Tiles(low=(0.0,), high=(1.0,), tiles=4, tilings=2, size=None)
    """
    if record is None or given is not None:
        return given
    if "map" not in record:
        made_by = record.get("function")
        raise ValueError(f"the features are the function {made_by}, which is not in the file: pass features=")
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items() if k != "map"}
    try:
        made: Map = _map_class(record["map"])(**fields)
    except (KeyError, TypeError):
        raise ValueError(f"unknown feature map {record['map']!r}: known are {', '.join(names())}") from None
    return made


def rows_of(features: Map, obs: Any, n_features: int | None = None, count: int | None = None) -> Any:
    """``(N, d)`` checked features of a batch, dense or csr: finite numbers, a row an observation.

    `count` is N where the batch does not tell (that of a Dict space).

    >>> rows_of(Raw(), np.array([[1, 2]])).tolist()
    [[1.0, 2.0]]
    """
    given = features(obs)
    phi: Any = given if issparse(given) else np.asarray(given)
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


def _rows(obs: ArrayLike) -> NDArray[np.float64]:
    """``(N, D)`` floats of a batch of observations, checked."""
    given = np.asarray(obs)
    if given.dtype.kind not in "biuf":
        raise ValueError(
            f"observations must be arrays of numbers, got {given.dtype}: pass features=, a function of a batch of them"
        )
    if given.ndim < 2:
        raise ValueError(f"observations must be a batch of shape (N, ...), got shape {given.shape}")
    rows = given.reshape(len(given), prod(given.shape[1:])).astype(np.float64)
    if given.dtype.kind == "f" and not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise ValueError(
            f"observation {row} has {rows[row, column]} in dimension {column}: it must be finite"
        )
    return rows


def _scaled(
    rows: NDArray[np.float64], low: tuple[float, ...], high: tuple[float, ...]
) -> NDArray[np.float64]:
    if rows.shape[1] != len(low):
        raise ValueError(f"observations must have {len(low)} dimensions, got {rows.shape[1]}")
    bottom = np.array(low)
    x: NDArray[np.float64] = np.clip((rows - bottom) / (np.array(high) - bottom), 0.0, 1.0)
    return x


def _box(features: Any) -> None:
    """Check the ends, and keep them as tuples of floats."""
    for end in ("low", "high"):
        given = np.asarray(getattr(features, end), dtype=np.float64)
        if given.ndim != 1 or not given.size or not np.isfinite(given).all():
            raise ValueError(f"{end} must be finite, one number a dimension, got {getattr(features, end)}")
        object.__setattr__(features, end, tuple(given.tolist()))
    low, high = features.low, features.high
    if len(low) != len(high) or not all(a < b for a, b in zip(low, high, strict=True)):
        raise ValueError(f"low must be below high in every dimension, got {low} and {high}")


def _at_least(features: Any, field: str, least: int) -> None:
    value = getattr(features, field)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{field} must be at least {least}, got {value!r}")
    object.__setattr__(features, field, int(value))


def _short(ends: NDArray[np.float64]) -> list[float]:
    """Floats without the tail that comes from float32: -0.07 and not -0.07000000029802322."""
    return [float(f"{x:.7g}") if np.float32(f"{x:.7g}") == np.float32(x) else float(x) for x in ends.tolist()]


def _sparse_vectors(width: int, order: int, coupled: int) -> set[tuple[int, ...]]:
    """Whole vectors in 0..order with at most `coupled` entries that are not zero."""
    count = sum(comb(width, k) * order**k for k in range(min(coupled, width) + 1))
    if count > MOST:
        raise ValueError(
            f"order {order} with {coupled} coupled of {width} dimensions is {count} features, more than {MOST}: "
            "lower order or coupled"
        )
    found = {(0,) * width}
    for _ in range(min(coupled, width)):
        found |= {(*c[:j], n, *c[j + 1 :]) for c in found for j in range(width) for n in range(1, order + 1)}
    return found


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble numbers (SplitMix64), so that tiles spread evenly."""
    z = z + _GOLDEN
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)
