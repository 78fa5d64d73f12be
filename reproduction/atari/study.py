"""One game from start states to tables: collections of transitions, and roll-outs of their options (Section 5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eigenoptions.atari import (
    Emulator,
    Ram,
    collect_ram,
    published_starts,
    slow_directions,
)
from eigenoptions.atari.slow import play_randomly
from eigenoptions.spectra import Spectrum
from eigenoptions.spectra.incidence import (
    Incidence,
    feature_spectrum,
    incidence_spectrum,
)
from reproduction.atari.games import get_game, load_starts
from reproduction.atari.measures import AXES, OPTION, measure
from reproduction.atari.pictures import choose_highlights
from reproduction.atari.rollouts import (
    GameGraph,
    Rollouts,
    explore_game,
    look_ahead,
    make_plans,
    roll_out,
)
from reproduction.atari.settings import Kind, Variant, make_variants
from reproduction.lab import Data, Lab


def run_study(lab: Lab, game: str, variants: Sequence[Variant]) -> Data:
    """Collect, roll out, compare: everything about one game that comes from the emulator.

    ``rollouts`` has one row per variant, collection, start and option; ``long`` the same of long roll-outs;
    ``highlights`` are options to show, and ``traces`` what these did, frame by frame.
    """
    jobs: list[dict[str, Any]] = []
    for variant in variants:
        starts = list(range(1 if variant.long else variant.n_starts))
        # One game graph serves all starts.
        parts = [starts] if variant.graph_states else [[start] for start in starts]
        pairs = product(variant.collections, parts)
        jobs += [
            {"game": game, "variant": variant, "seed": seed, "starts": part}
            for seed, part in pairs
        ]
    tables = lab.pmap(measure_options, jobs)
    data: Data = {}
    for job, table in zip(jobs, tables, strict=True):
        name = "long" if job["variant"].long else "rollouts"
        data[name] = (
            pd.concat([data[name], table], ignore_index=True) if name in data else table
        )
    highlights = data["highlights"] = choose_highlights(data["rollouts"])
    by_name = {variant.name: variant for variant in variants if not variant.long}
    jobs = [
        {
            "game": game,
            "variant": by_name[name],
            "seed": seed,
            "start": start,
            "options": options,
        }
        for (name, seed, start), options in highlights.groupby(
            ["variant", "collection", "start"]
        )
    ]
    data["traces"] = pd.concat(lab.pmap(trace_options, jobs), ignore_index=True)
    return data


def run_small_study(lab: Lab, game: str) -> Data:
    """The paper's protocol in a small run."""
    size = "quick" if lab.quick else "paper"
    return run_study(lab, game, make_variants(game, size))


def measure_options(
    game: str, variant: Variant, seed: int, starts: Sequence[int]
) -> pd.DataFrame:
    """Roll out options of all kinds of a variant from some of the starts, and measure each."""
    collection, tables, rows = load_collection(game, variant, seed), [], []
    for kind in variant.kinds:
        signs = (1, -1) if kind.name in ("singular", "random") else (1,)
        rows += product(
            [kind.name], range(kind.bases), collection.choose_numbers(kind), signs
        )
    options = pd.DataFrame(rows, columns=OPTION)
    keys = {
        "variant": variant.name,
        "collection": seed,
        "rank": collection.rank,
        "frames": variant.frames,
    }
    for start in starts:
        for part, log in roll_out_options(collection, start, options):
            table = part.reset_index(drop=True).join(measure(log, get_game(game)))
            tables.append(
                pd.DataFrame({**keys, "start": start}, index=table.index).join(table)
            )
    return pd.concat(tables, ignore_index=True)


def trace_options(
    game: str, variant: Variant, seed: int, start: int, options: pd.DataFrame
) -> pd.DataFrame:
    """Of each option, from one start, its action and the player's position frame by frame."""
    traces = []
    for part, log in roll_out_options(
        load_collection(game, variant, seed), start, options
    ):
        for i, label in enumerate(part.label):
            frames = np.arange(log.length[i])
            position = dict(zip(AXES, log.watched[i, frames].T, strict=False))
            columns = {
                "label": label,
                "frame": frames,
                "action": log.actions[i, frames],
                **position,
            }
            traces.append(pd.DataFrame(columns))
    return pd.concat(traces)


def roll_out_options(
    collection: Collection, start: int, options: pd.DataFrame
) -> Iterator[tuple[pd.DataFrame, Rollouts]]:
    """Roll-outs of options from one start, in as few calls as possible."""
    variant, emulator = collection.variant, Emulator(collection.game)
    frames, watch = variant.frames, get_game(collection.game).position
    calls = {"constant": "actions", "walk": "actions", "published": "published"}
    for call, part in options.groupby(options.kind.map(calls).fillna("directions")):
        if call == "actions":
            rngs = [
                np.random.default_rng([collection.seed, start, number])
                for number in part.direction
            ]
            walks = np.stack(
                [rng.integers(emulator.n_actions, size=frames) for rng in rngs]
            )
            actions = np.where(part[["kind"]] == "walk", walks, part[["direction"]])
            choose, skip = lambda _, at, live, t, a=actions: a[live, t], 1
        else:
            e = [
                o.sign * collection.make_basis(o.kind, o.basis)[o.direction]
                for o in part.itertuples()
            ]
            features, skip = collection.spectrum.features, variant.frame_skip
            if variant.graph_states:
                choose = make_plans(np.stack(e), features, collection.graph)
            else:
                choose = look_ahead(
                    np.stack(e), features, published=call == "published"
                )
        emulator.replay(collection.starts[start])
        yield part, roll_out(emulator, len(part), choose, frames, watch, skip)


@dataclass(frozen=True, eq=False)
class Collection:
    """Directions from transitions of one game; the seed is also that of the random bases."""

    game: str
    variant: Variant
    seed: int
    starts: Sequence[tuple[int, ...]]
    spectrum: Spectrum

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
        """Numbers of the directions of a kind, evenly spaced among all unless it has an end.

        Singular directions are numbered as in the paper, from 0, the largest singular value first.
        """
        if kind.name in ("constant", "walk"):
            return list(range(kind.n or Emulator(self.game).n_actions))
        last = (
            len(self.spectrum.vectors)
            if kind.name in ("rows", "published")
            else self.rank
        )
        n = last if kind.n is None else min(kind.n, last)
        # Any random directions are as good as others.
        if kind.name == "random" or kind.end == "large":
            return list(range(n))
        if kind.end == "small":
            return list(range(last - n, last))
        return [int(i) for i in np.linspace(0, last - 1, n).round()]

    @lru_cache(maxsize=24)  # noqa: B019 (a worker has few collections)
    def make_basis(self, kind: str, basis: int = 0) -> NDArray[np.float64]:
        """``(m, d)`` the directions of one kind."""
        vectors = self.spectrum.vectors
        singular = vectors[:, self.spectrum.n_zero :][:, ::-1].T
        if kind == "singular":
            return singular
        changed = np.abs(vectors).max(axis=1) > 0
        if kind in ("rows", "published"):
            # ``U, s, V = np.linalg.svd(T)`` gives V transposed; the published program transposes it again and takes
            # row i, so that entry j of a direction belongs to singular value j instead of bit j.
            return np.concatenate(
                [vectors[:, ::-1], np.eye(len(vectors))[:, ~changed]], axis=1
            )
        rng = np.random.default_rng([self.seed, basis])
        if self.variant.slow:
            # Slow features have variance 1 instead of length 1; random directions then too.
            return draw_orthonormal(self.rank, self.rank, rng) @ singular[::-1]
        directions = np.zeros((self.rank, len(vectors)))
        directions[:, changed] = draw_orthonormal(self.rank, int(changed.sum()), rng)
        return directions


def draw_orthonormal(k: int, d: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """``(k, d)`` orthonormal rows, uniform: QR of a Gaussian matrix, with signs that remove its bias."""
    q, r = np.linalg.qr(rng.standard_normal((d, k)))
    return (q * np.where(np.diag(r) < 0, -1.0, 1.0)).T


@lru_cache(maxsize=2)
def load_collection(game: str, variant: Variant, seed: int) -> Collection:
    """Collect transitions; with a frame skip of 1 by the paper's protocol, else each decision is one transition."""
    starts = (
        published_starts(game) if variant.published_starts else load_starts(game, seed)
    )
    features, skip, n = Ram(variant.code), variant.frame_skip, variant.decisions
    rng = np.random.default_rng([seed, skip])
    if skip == 1:
        settings: Any = {
            "features": features,
            "max_episode_frames": variant.max_episode_frames,
            "rng": seed,
        }
        sample = collect_ram(game, starts, variant.transitions, **settings)
        spectrum = feature_spectrum(sample, features, whiten=False)
    elif variant.slow:
        spectrum = slow_directions(
            game, starts, frame_skip=skip, n_decisions=n, rng=rng
        )
    else:
        T = Incidence()
        for ram in play_randomly(Emulator(game), starts, skip, n, rng)[0]:
            T.add(features(ram[:-1]), features(ram[1:]))
        spectrum = incidence_spectrum(T.rows, features=features)
    return Collection(game, variant, seed, starts, spectrum)
