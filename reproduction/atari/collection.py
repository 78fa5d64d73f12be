"""Collections of transitions of a game, and the directions of options from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from eigenoptions._types import FloatArray
from eigenoptions.atari import Emulator, Ram, slow_directions
from eigenoptions.atari.slow import play_randomly
from eigenoptions.samples.incidence import (
    Incidence,
    feature_spectrum,
    incidence_spectrum,
)
from eigenoptions.spectra import Spectrum
from reproduction.atari.game_graph import GameGraph, explore_game
from reproduction.atari.games import load_starts
from reproduction.atari.protocol import collect_ram, published_starts
from reproduction.atari.settings import Kind, Variant


@dataclass(frozen=True, eq=False)
class Collection:
    """Directions from transitions of one game.

    Attributes
    ----------
    game : str
        Name of the game.
    variant : Variant
        How options are made and followed.
    seed : int
        Seed of the transitions and of the random bases.
    starts : sequence of tuples of int
        The actions that lead to each start.
    spectrum : Spectrum
        The singular vectors.
    """

    game: str
    variant: Variant
    seed: int
    starts: Sequence[tuple[int, ...]]
    spectrum: Spectrum

    @property
    def features(self) -> Ram:
        """The map from the memory to features."""
        features = self.spectrum.features
        assert isinstance(features, Ram)
        return features

    @property
    def rank(self) -> int:
        """Number of directions in which transitions went."""
        return len(self.spectrum.values) - self.spectrum.n_zero

    @cached_property
    def graph(self) -> GameGraph:
        """The graph of the game on which options are planned."""
        return explore_game(
            self.game, self.starts, self.variant.frame_skip, self.variant.graph_states
        )

    def choose_numbers(self, kind: Kind) -> list[int]:
        """Numbers of the directions of a kind, evenly spaced unless it has an end.

        Singular directions are numbered as in the paper, from 0, the largest singular
        value first.
        """
        if kind.numbers:
            return list(kind.numbers)
        if kind.name in ("constant", "walk"):
            return list(range(kind.n or Emulator(self.game).n_actions))

        n_all = self.rank
        if kind.name in ("rows", "published"):
            n_all = len(self.spectrum.vectors)
        n = n_all if kind.n is None else min(kind.n, n_all)

        # Any random directions are as good as others.
        if kind.name == "random" or kind.end == "large":
            return list(range(n))
        if kind.end == "small":
            return list(range(n_all - n, n_all))
        return [int(number) for number in np.linspace(0, n_all - 1, n).round()]

    @lru_cache(maxsize=24)  # noqa: B019 (a worker has few collections)
    def make_basis(self, kind: str, basis: int = 0) -> FloatArray:
        """``(m, d)`` the directions of one kind."""
        vectors = self.spectrum.vectors
        n_features = len(vectors)
        singular = vectors[:, self.spectrum.n_zero :][:, ::-1].T
        if kind == "singular":
            return singular

        has_changed = np.abs(vectors).max(axis=1) > 0
        if kind in ("rows", "published"):
            # ``U, s, V = np.linalg.svd(T)`` gives V transposed; the published program
            # transposes it again and takes row i, so that entry j of a direction
            # belongs to singular value j instead of bit j.
            unchanged = np.eye(n_features)[:, ~has_changed]
            return np.concatenate([vectors[:, ::-1], unchanged], axis=1)

        rng = np.random.default_rng([self.seed, basis])
        if self.variant.slow:
            # Slow features have variance 1 instead of length 1; random directions then
            # too.
            mixture = draw_orthonormal(self.rank, self.rank, rng)
            return mixture @ singular[::-1]
        directions = np.zeros((self.rank, n_features))
        directions[:, has_changed] = draw_orthonormal(
            self.rank, int(has_changed.sum()), rng
        )
        return directions


@lru_cache(maxsize=2)
def load_collection(game: str, variant: Variant, seed: int) -> Collection:
    """Collect transitions, and find their singular vectors.

    With a frame skip of 1 the paper's protocol is followed; else each decision of
    random play is one transition.
    """
    starts = load_starts(game, seed)
    if variant.published_starts:
        starts = published_starts(game)

    features = Ram(variant.code)
    rng = np.random.default_rng([seed, variant.frame_skip])
    if variant.frame_skip == 1:
        sample = collect_ram(
            game,
            starts,
            variant.transitions,
            features=features,
            max_episode_frames=variant.max_episode_frames,
            rng=seed,
        )
        spectrum = feature_spectrum(sample, features, whiten=False)
    elif variant.slow:
        spectrum = slow_directions(
            game,
            starts,
            frame_skip=variant.frame_skip,
            n_decisions=variant.decisions,
            rng=rng,
        )
    else:
        incidence = Incidence()
        episodes, _ = play_randomly(
            Emulator(game), starts, variant.frame_skip, variant.decisions, rng
        )
        for ram in episodes:
            incidence.add(features(ram[:-1]), features(ram[1:]))
        spectrum = incidence_spectrum(incidence.rows, features=features)
    return Collection(game, variant, seed, starts, spectrum)


def draw_orthonormal(k: int, d: int, rng: np.random.Generator) -> FloatArray:
    """``(k, d)`` orthonormal rows, uniform over all of them.

    They are the QR of a Gaussian matrix, with signs that remove its bias.
    """
    q, r = np.linalg.qr(rng.standard_normal((d, k)))
    signs = np.where(np.diag(r) < 0, -1.0, 1.0)
    rows: FloatArray = (q * signs).T
    return rows
