"""Collections: transitions of one game from one seed, and the directions that come of them (paper, Appendix E)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.atari.starts import Start
from eigenoptions.features.ram import Ram

ROWS = 25_000  # of the incidence matrix, sampled from all transitions

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Collection:
    """What one collection of transitions gives.

    Attributes
    ----------
    coding
        The features phi.
    values, vectors
        ``(K,)`` ascending and ``(d, K)``: all eigenvectors of T'T, those of value zero first.
    n_zero
        How many are zero: directions in which no transition went.
    active
        ``(d,)`` whether a feature ever changed.
    rows
        Of T, before sampling.
    seed
        Of the random bases.
    """

    coding: Ram
    values: Array
    vectors: Array
    n_zero: int
    active: NDArray[np.bool_]
    rows: int
    seed: int
    _bases: dict[int, Array] = field(default_factory=dict)

    def facts(self) -> dict[str, int]:
        """Sizes, for a table."""
        return {
            "rows": self.rows,
            "features": len(self.vectors),
            "active": int(self.active.sum()),
            "rank": len(self.values) - self.n_zero,
        }

    def numbers(self, kind: str, many: int | None = None) -> list[int]:
        """Numbers of `many` directions of a kind, evenly spaced among all; None: all of them."""
        first = self.n_zero if kind == "singular" else 0
        last = len(self.values) if kind == "singular" else len(self.vectors)
        if kind == "random":
            return list(range(int(self.active.sum()) if many is None else many))
        if many is None or many >= last - first:
            return list(range(first, last))
        return np.linspace(first, last - 1, many).round().astype(int).tolist()

    def direction(self, kind: str, basis: int, number: int) -> Array:
        """``(d,)`` one direction; see `atari_jobs` for the kinds."""
        if kind == "singular":
            return self.vectors[:, number]
        if kind in ("rows", "published"):
            return self.vectors[number, ::-1]  # its columns in the order of numpy's svd: largest first
        if basis not in self._bases:
            self._bases[basis] = self._basis(basis)
        return self._bases[basis][number]

    def _basis(self, basis: int) -> Array:
        """``(m, d)`` random orthonormal directions on the active features."""
        from eigenoptions.atari.protocol import random_directions

        wide = np.zeros((int(self.active.sum()), len(self.active)))
        wide[:, self.active] = random_directions(
            int(self.active.sum()), np.random.default_rng([self.seed, basis])
        )
        return wide


def start_of(game: str, plain: Mapping[str, Any]) -> Start:
    """A start state again from its plain data."""
    actions = tuple(int(action) for action, frames in plain["actions"] for _ in range(frames))
    return Start(game, actions, tuple(plain["watch"]), tuple(plain["position"]))


@lru_cache(maxsize=2)
def collection(text: str) -> Collection:
    """The collection that settings as JSON text describe: the same settings, the same collection."""
    from eigenoptions.atari.protocol import collect, directions

    given: dict[str, Any] = json.loads(text)
    seed = given["seed"]
    starts = [start_of(given["game"], plain) for plain in given["starts"]]
    coding = Ram(**given["coding"])
    gram = collect(given["game"], starts, given["transitions"], rng=seed, coding=coding)
    spectrum = directions(gram, min(ROWS, len(gram)), rng=seed)
    active = np.asarray(gram.matrix.diagonal()) > 0
    return Collection(coding, spectrum.values, spectrum.vectors, spectrum.n_zero, active, len(gram), seed)
