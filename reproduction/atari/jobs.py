"""Jobs of the Atari experiments: plain settings in, a few numbers per option out (paper, Section 5.2, Appendix E).

The options of a roll-out have a *kind*:

========= ============================================================================================================
singular  right singular vectors of T, non-zero values only, both signs; `many` evenly spaced ones, or all (None)
random    `bases` of random orthonormal directions on the features that ever changed, `many` of each, both signs
rotated   the same, but within the span of the singular vectors: another basis of where transitions went
rows      rows of V instead of its columns, as the published program takes them; `many` of all features, one sign
published the same with the other fault of that program, rewards relative to another state (see `published`)
constant  each action held all the time
walk      `many` uniformly random walks
========= ============================================================================================================

A *variant* determines the coding of memory and how options are followed; `PAPER` is the paper's way, with the
published program's rule for a frame where no action is positive: nothing is done. With ``plan``, a number of states,
options are solved on a chart of the game (`atari.charts`) with ``gamma``, and followed in the emulator. Each worker
computes the collections that it needs (they are a pure function of settings, and take seconds), so jobs stay plain.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.atari.charts import Chart, chart, follow, plan
from eigenoptions.atari.emulator import Bytes, Emulator
from eigenoptions.atari.games import known
from eigenoptions.atari.lockstep import lockstep
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
from eigenoptions.atari.rollouts import Rollouts, Rules, play
from eigenoptions.atari.slow_features import (
    DECISIONS,
    EPISODE_DECISIONS,
    held_play,
    held_spectrum,
    lasting_bytes,
)
from eigenoptions.atari.starts import Start, find_starts
from eigenoptions.spectra import Spectrum
from reproduction.atari.measures import KINDS, OPTION, Array, histogram, joined, measure
from reproduction.atari.published import published_rollouts, rows_of_v

Job = Mapping[str, Any]
Option = dict[str, Any]
PAPER = {"name": "paper", "coding": {"code": "bits"}, "hold": 1, "depth": 1, "gamma": 0.0, "after": "noop"}
# The paper's protocol with 128 features, the bytes of the memory, instead of its 1,024 bits.
BYTES = {**PAPER, "name": "bytes", "coding": {"code": "bytes"}}
# Kinds that do not look at what actions do.
BLIND = ("constant", "walk")
# Width of a bin of a histogram, in units of position.
BIN = 8


def starts(job: Job) -> list[dict[str, Any]]:
    """Start states of a game, as plain data: ``{"game", "starts", "seed", "bursts"}``."""
    found = find_starts(job["game"], job["starts"], rng=job["seed"], bursts=job["bursts"])
    return [start.plain() for start in found]


def rollouts(job: Job) -> dict[str, Any]:
    """Roll out options of several kinds from one start, and measure each.

    The job has ``game``, ``seed`` (of the collection), ``starts`` (plain, all of them), ``start`` (the number of one,
    or a list), ``transitions``, ``longest``, ``variant``, ``kinds`` (see the module), ``frames``, ``until``, and
    ``heights`` (whether to keep histograms). The result has ``table``: columns of keys and measures; ``heights``:
    ``(n, 32)`` frames at each value of the last coordinate, in bins of 8 units, or None; ``acts``: frames emulated;
    ``facts``: about the collection, or None.
    """
    collection = collection_of(job)
    options = _options(job["kinds"], _emulator(job["game"]).n_actions, collection)
    tables, heights, acts = [], [], 0
    for number in job["start"] if isinstance(job["start"], list) else [job["start"]]:
        for part, rolled, start in _roll({**job, "start": number}, options, collection):
            keys = {name: np.array([option[name] for option in part], dtype=float) for name in OPTION[1:]}
            keys["kind"] = np.array([KINDS.index(option["kind"]) for option in part], dtype=float)
            keys["start"] = np.full(len(part), float(number))
            tables.append({**keys, **measure(rolled, start.position, known(job["game"]).regions)})
            acts += rolled.acts
            if job.get("heights"):
                counts = histogram(rolled, axis=-1)
                heights.append(counts.reshape(len(counts), -1, BIN).sum(axis=2).astype(np.int32))
    return {
        "table": joined(tables),
        "heights": np.concatenate(heights) if heights else None,
        "acts": acts,
        "facts": None if collection is None else collection.facts(),
    }


def trace(job: Job) -> dict[str, Any]:
    """What given options did: ``actions (n, frames)`` and ``positions (n, frames, p)``, -1 and 0 after the end.

    The job is as in `rollouts`, with ``options`` (each ``{"kind", "basis", "direction", "sign"}``) for ``kinds``.
    """
    options = list(job["options"])
    found: dict[Any, Any] = {}
    for part, rolled, _ in _roll(job, options, collection_of(job)):
        found |= dict(zip(map(_name, part), zip(rolled.actions, rolled.watched, strict=True), strict=True))
    actions, positions = zip(*(found[_name(option)] for option in options), strict=True)
    return {"actions": np.stack(actions), "positions": np.stack(positions)}


def _roll(
    job: Job, options: list[Option], collection: Collection | None
) -> Iterator[tuple[list[Option], Rollouts, Start]]:
    """Roll-outs of options, in as few calls as possible."""
    variant, emulator = job["variant"], _emulator(job["game"])
    start = Start.again(job["game"], job["starts"][job["start"]])
    start.reach(emulator)
    state = emulator.save()
    blind = [option for option in options if option["kind"] in BLIND]
    if blind:
        actions = np.stack([_blind_actions(option, job, emulator.n_actions) for option in blind])
        yield blind, play(emulator, state, actions, until=job["until"], watch=start.watch), start
    for published in (False, True):
        part = [o for o in options if o["kind"] not in BLIND and (o["kind"] == "published") == published]
        if not part:
            continue
        assert collection is not None
        coding = collection.coding
        vectors = np.stack([o["sign"] * collection.direction(*_name(o)[:3]) for o in part])
        rules = Rules("noop", until=job["until"], watch=start.watch, rng=job["seed"])
        if variant.get("plan"):
            charted = _chart(json.dumps([job["game"], job["starts"], variant["hold"], variant["plan"]]))
            planned = plan(charted, vectors, coding, variant["gamma"])
            yield part, follow(emulator, state, charted, planned, job["frames"], rules), start
        else:
            rules = replace(rules, **{name: variant[name] for name in ("after", "hold", "depth", "gamma")})
            roll = published_rollouts if published else lockstep
            yield part, roll(emulator, state, vectors, coding, job["frames"], rules), start


@lru_cache(maxsize=1)
def _emulator(game: str) -> Emulator:
    return Emulator(game)


@lru_cache(maxsize=2)
def _chart(text: str) -> Chart:
    """The chart on which a variant plans."""
    game, starts, hold, limit = json.loads(text)
    return chart(game, [Start.again(game, plain) for plain in starts], hold=hold, limit=limit)


def _options(kinds: Job, n_actions: int, collection: Collection | None) -> list[Option]:
    """The options of a job's kinds."""
    names: list[tuple[str, int, int, int]] = []
    for kind, how in kinds.items():
        if kind in BLIND:
            names += product([kind], [0], range(n_actions if kind == "constant" else how["many"]), [1])
            continue
        assert collection is not None
        signs = (1,) if kind in ("rows", "published") else (1, -1)
        numbers = collection.numbers(kind, how["many"], how.get("end"))
        names += product([kind], range(how.get("bases", 1)), numbers, signs)
    return [dict(zip(OPTION, name, strict=True)) for name in names]


def _name(option: Option) -> tuple[Any, ...]:
    return tuple(option[name] for name in OPTION)


def _blind_actions(option: Option, job: Job, n_actions: int) -> NDArray[np.int8]:
    """``(frames,)`` actions of a constant or a walk."""
    if option["kind"] == "constant":
        return np.full(int(job["frames"]), option["direction"], dtype=np.int8)
    rng = np.random.default_rng([job["seed"], job["start"], option["direction"]])
    return rng.integers(n_actions, size=int(job["frames"])).astype(np.int8)


@dataclass(frozen=True, eq=False)
class Collection:
    """Transitions of one game from one seed, and their directions.

    Attributes
    ----------
    coding, spectrum
        The feature map phi, and all eigenvectors of T'T.
    rows
        Number of new transitions, from which those of T were drawn.
    seed
        Seed of the random bases.
    slow
        Whether directions are slow features, scaled to variance 1 instead of length 1; random ones are then too.
    """

    coding: Ram
    spectrum: Spectrum
    rows: int
    seed: int
    slow: bool = False
    _bases: dict[tuple[str, int], Array] = field(default_factory=dict)

    def facts(self) -> dict[str, int]:
        """Sizes, for a table."""
        sizes = {"rows": self.rows, "features": len(self.spectrum.vectors)}
        return sizes | {"active": int(active(self.spectrum).sum()), "rank": rank(self.spectrum)}

    def numbers(self, kind: str, many: int | None = None, end: str | None = None) -> list[int]:
        """Numbers of `many` directions of a kind, evenly spaced among all; None: all of them.

        Singular directions are numbered as in the paper, from 0, the largest singular value first; with an `end`,
        ``"small"`` or ``"large"``, the result holds the last or the first ones.
        """
        last = len(self.spectrum.vectors) if kind in ("rows", "published") else rank(self.spectrum)
        if many is None or many >= last:
            return list(range(last))
        # Any random directions are as good as others.
        if kind in ("random", "rotated") or end == "large":
            return list(range(many))
        if end == "small":
            return list(range(last - many, last))
        return [int(i) for i in np.linspace(0, last - 1, many).round()]

    def direction(self, kind: str, basis: int, number: int) -> Array:
        """``(d,)`` one direction of a kind."""
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


def collection_of(job: Job) -> Collection | None:
    """The collection from which a job's options come, if there is one."""
    kinds = {option["kind"] for option in job["options"]} if "options" in job else {*job["kinds"]}
    if kinds <= {*BLIND}:
        return None
    given = {name: job[name] for name in ("game", "seed", "starts", "transitions", "longest")}
    given |= {name: job["variant"].get(name) for name in ("coding", "hold", "bytes", "slow")}
    return collection(json.dumps(given, sort_keys=True))


@lru_cache(maxsize=2)
def collection(text: str) -> Collection:
    """The collection for settings given as JSON text.

    With ``hold`` 1 it is the paper's (Appendix E). Otherwise random actions are held, and one hold is one transition;
    ``bytes`` may then be ``"lasting"``, and ``slow`` selects slow features (see `atari.slow_features`). The number of
    decisions is that of `slow_directions` per 25,000 transitions.
    """
    given: dict[str, Any] = json.loads(text)
    game, seed, hold = given["game"], given["seed"], given["hold"]
    starts = [Start.again(game, plain) for plain in given["starts"]]
    if hold == 1:
        coding = Ram(**given["coding"])
        gram = collect(game, starts, given["transitions"], rng=seed, coding=coding, longest=given["longest"])
        return Collection(coding, directions(gram, min(ROWS, len(gram)), rng=seed), len(gram), seed)
    decisions = max(given["transitions"] * DECISIONS // ROWS, 2 * EPISODE_DECISIONS)
    episodes, lasting = _played(game, seed, hold, decisions, json.dumps(given["starts"]))
    # All bytes in a game in which the influence of no action lasts.
    chosen = (lasting or None) if given.get("bytes") == "lasting" else None
    coding = Ram(**given["coding"], addresses=chosen)
    slow = bool(given.get("slow"))
    gram, spectrum = held_spectrum(episodes, coding, slow=slow)
    return Collection(coding, spectrum, len(gram), seed, slow=slow)


@lru_cache(maxsize=3)
def _played(
    game: str, seed: int, hold: int, decisions: int, starts: str
) -> tuple[list[Bytes], tuple[int, ...]]:
    """Episodes of random play and bytes of lasting influence, which serve several variants of one seed."""
    emulator, rng = Emulator(game), np.random.default_rng([seed, hold])
    first = [Start.again(game, plain) for plain in json.loads(starts)]
    episodes, states = held_play(emulator, first, hold, decisions, rng)
    return episodes, lasting_bytes(emulator, states, required=False)
