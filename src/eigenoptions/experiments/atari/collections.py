"""Collections: transitions of one game from one seed, and the directions that come of them (paper, Appendix E)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.atari.emulator import Emulator
from eigenoptions.atari.protocol import (
    ROWS,
    active,
    collect,
    directions,
    paper_order,
    random_directions,
    rank,
)
from eigenoptions.atari.ram import Ram
from eigenoptions.atari.slow_features import (
    DECISIONS,
    EPISODE_DECISIONS,
    held_play,
    held_spectrum,
    lasting_bytes,
)
from eigenoptions.atari.starts import Start
from eigenoptions.experiments.atari.published import rows_of_v
from eigenoptions.spectra import Spectrum

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Collection:
    """What one collection of transitions gives.

    Attributes
    ----------
    coding
        The features phi.
    spectrum
        All eigenvectors of T'T.
    rows
        New transitions, of which those of T were drawn.
    seed
        Of the random bases.
    slow
        Whether directions are those of slow features: of variance 1, not of length 1. Random ones are then as well.
    """

    coding: Ram
    spectrum: Spectrum
    rows: int
    seed: int
    slow: bool = False
    _bases: dict[tuple[str, int], Array] = field(default_factory=dict)

    def facts(self) -> dict[str, int]:
        """Sizes, for a table."""
        return {
            "rows": self.rows,
            "features": len(self.spectrum.vectors),
            "active": int(active(self.spectrum).sum()),
            "rank": rank(self.spectrum),
        }

    def numbers(self, kind: str, many: int | None = None, end: str | None = None) -> list[int]:
        """Numbers of `many` directions of a kind, evenly spaced among all; None: all of them.

        Singular directions are counted as the paper does, from 0, the largest singular value first; with an `end`,
        ``"small"`` or ``"large"``, they are the last or the first ones.
        """
        whole = kind in ("rows", "published")
        last = len(self.spectrum.vectors) if whole else rank(self.spectrum)
        if many is None or many >= last:
            return list(range(last))
        if kind in ("random", "rotated") or end == "large":  # any random ones are as good as others
            return list(range(many))
        if end == "small":
            return list(range(last - many, last))
        return [int(i) for i in np.linspace(0, last - 1, many).round()]

    def direction(self, kind: str, basis: int, number: int) -> Array:
        """``(d,)`` one direction; see `jobs` for the kinds."""
        key = ("rows" if kind == "published" else kind, basis)
        if key not in self._bases:
            self._bases[key] = self._basis(*key)
        found: Array = self._bases[key][number]
        return found

    def _basis(self, kind: str, basis: int) -> Array:
        """``(m, d)`` directions of one kind."""
        if kind == "singular":
            return self.spectrum.vectors[:, paper_order(self.spectrum)[: rank(self.spectrum)]].T
        if kind == "rows":
            return rows_of_v(self.spectrum)
        inside = "data" if kind == "rotated" or self.slow else "features"
        return random_directions(self.spectrum, np.random.default_rng([self.seed, basis]), inside=inside)


@lru_cache(maxsize=2)
def collection(text: str) -> Collection:
    """The collection that settings as JSON text describe: the same settings, the same collection.

    With ``hold`` 1 it is the paper's (Appendix E). Otherwise random actions are held, and a transition is what one
    hold does; ``bytes`` may then be ``"lasting"`` (see `slow_features`), and ``slow`` means
    slow features. There are then as many decisions for 25,000 transitions as `slow_directions` takes by default.
    """
    given: dict[str, Any] = json.loads(text)
    seed, hold = given["seed"], given["hold"]
    starts = [Start.again(given["game"], plain) for plain in given["starts"]]
    if hold == 1:
        coding = Ram(**given["coding"])
        gram = collect(
            given["game"], starts, given["transitions"], rng=seed, coding=coding, longest=given["longest"]
        )
        return Collection(coding, directions(gram, min(ROWS, len(gram)), rng=seed), len(gram), seed)
    decisions = max(given["transitions"] * DECISIONS // ROWS, 2 * EPISODE_DECISIONS)
    episodes, lasting = _played(given["game"], seed, hold, decisions, json.dumps(given["starts"]))
    addresses = lasting if given.get("bytes") == "lasting" else None
    coding = Ram(**given["coding"], addresses=addresses)
    slow = bool(given.get("slow"))
    gram, spectrum = held_spectrum(episodes, coding, slow=slow)
    return Collection(coding, spectrum, len(gram), seed, slow=slow)


@lru_cache(maxsize=3)
def _played(
    game: str, seed: int, hold: int, decisions: int, starts: str
) -> tuple[list[NDArray[np.uint8]], tuple[int, ...]]:
    """Episodes of random play, and bytes of lasting influence: they serve several variants of one seed."""
    emulator, rng = Emulator(game), np.random.default_rng([seed, hold])
    begun = [Start.again(game, plain) for plain in json.loads(starts)]
    episodes, states = held_play(emulator, begun, hold, decisions, rng)
    return episodes, lasting_bytes(emulator, states)
