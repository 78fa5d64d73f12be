"""Tile coding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from eigenoptions._splitmix import GOLDEN, mix_bits
from eigenoptions._ties import COMPUTED_TOLERANCE
from eigenoptions._types import (
    FloatArray,
    IndexArray,
)
from eigenoptions.samples.features.bounded import BoundedMap


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
