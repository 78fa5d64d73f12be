"""Collections: transitions of one game from one seed, and the directions that come of them (paper, Appendix E)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.atari.emulator import Emulator
from eigenoptions.atari.protocol import (
    ROWS,
    TOL,
    active,
    collect,
    directions,
    paper_order,
    random_directions,
    rank,
    rows_of_v,
)
from eigenoptions.atari.starts import Start
from eigenoptions.features.ram import Ram
from eigenoptions.spectra import Spectrum
from eigenoptions.spectra.gram import Gram

DECISIONS = 9_000  # of random play with actions held, where the paper has 25,000 transitions
EPISODE = 100  # decisions of an episode of it
PROBES = 60  # states in which bytes of lasting influence are looked for
LASTING = 0.02  # of these states

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


def start_of(game: str, plain: Mapping[str, Any]) -> Start:
    """A start state again from its plain data."""
    actions = tuple(int(action) for action, frames in plain["actions"] for _ in range(frames))
    return Start(game, actions, tuple(plain["watch"]), tuple(plain["position"]))


@lru_cache(maxsize=2)
def collection(text: str) -> Collection:
    """The collection that settings as JSON text describe: the same settings, the same collection.

    With ``hold`` 1 it is the paper's (Appendix E). Otherwise random actions are held, and a transition is what one
    hold does; ``bytes`` may then be ``"lasting"`` (see `lasting_bytes`), and ``slow`` changes the metric: directions e
    whose potentials change least in a step *for their variance over states*, slow features, instead of for their length
    (`Gram.spectrum`, metric).
    """
    given: dict[str, Any] = json.loads(text)
    seed, hold = given["seed"], given["hold"]
    starts = [start_of(given["game"], plain) for plain in given["starts"]]
    if hold == 1:
        coding = Ram(**given["coding"])
        gram = collect(
            given["game"], starts, given["transitions"], rng=seed, coding=coding, longest=given["longest"]
        )
        return Collection(coding, directions(gram, min(ROWS, len(gram)), rng=seed), len(gram), seed)
    decisions = max(given["transitions"] * DECISIONS // ROWS, 2 * EPISODE)
    episodes, lasting = _played(given["game"], seed, hold, decisions, json.dumps(given["starts"]))
    addresses = lasting if given.get("bytes") == "lasting" else None
    coding = Ram(**given["coding"], addresses=addresses)
    slow = bool(given.get("slow"))
    gram = Gram(
        features=coding, dedupe=not slow
    )  # slowness is a mean over time, so there every transition counts
    for ram in episodes:
        gram.add(ram[:-1], ram[1:])
    metric = np.cov(coding(np.concatenate(episodes)).astype(float), rowvar=False) if slow else None
    return Collection(coding, gram.spectrum(tol=TOL, metric=metric), len(gram), seed, slow=slow)


@lru_cache(maxsize=3)
def _played(
    game: str, seed: int, hold: int, decisions: int, starts: str
) -> tuple[list[NDArray[np.uint8]], tuple[int, ...]]:
    """Episodes of random play, and bytes of lasting influence: they serve several variants of one seed."""
    emulator, rng = Emulator(game), np.random.default_rng([seed, hold])
    begun = [start_of(game, plain) for plain in json.loads(starts)]
    episodes, states = held_play(emulator, begun, hold, decisions, rng)
    return episodes, lasting_bytes(emulator, states[:: max(1, len(states) // PROBES)])


def held_play(
    emulator: Emulator, starts: Sequence[Start], hold: int, decisions: int, rng: np.random.Generator
) -> tuple[list[NDArray[np.uint8]], list[Any]]:
    """Random play in which each action is held: memory ``(T + 1, 128)`` of each episode, decision by decision.

    Episodes begin at the starts in turn and last at most EPISODE decisions, or a life. Beside them, states of the
    emulator seen on the way, one every 16 decisions.
    """
    episodes: list[NDArray[np.uint8]] = []
    states: list[Any] = []
    begun = []
    for start in starts:
        start.reach(emulator)
        begun.append(emulator.save())
    seen = 0
    while seen < decisions:
        emulator.restore(begun[len(episodes) % len(begun)])
        lives, ram = emulator.lives, [emulator.ram()]
        for action in rng.integers(emulator.n_actions, size=EPISODE).tolist():
            if seen % 16 == 0:
                states.append(emulator.save())
            for _ in range(hold):
                emulator.act(action)
            ram.append(emulator.ram())
            seen += 1
            if emulator.over or emulator.lives < lives:
                break
        episodes.append(np.stack(ram))
    return episodes, states


def lasting_bytes(emulator: Emulator, states: Sequence[Any]) -> tuple[int, ...]:
    """Addresses of bytes on which what the player did has a *lasting* influence.

    From each state every action is held for 8 frames and nothing is done for 16 more. A byte counts if it then differs
    between actions in more than LASTING of the states: echoes of the joystick are gone by then, clocks and traffic
    never differ.
    """
    nothing = emulator.actions.index("NOOP")
    differs = np.zeros(128)
    for state in states:
        after = []
        for action in range(emulator.n_actions):
            emulator.restore(state)
            for taken in [action] * 8 + [nothing] * 16:
                emulator.act(taken)
            after.append(emulator.ram())
        differs += (np.stack(after) != after[0]).any(axis=0)
    found = np.flatnonzero(differs > LASTING * len(states))
    if not len(found):
        raise ValueError(f"no byte of {emulator.game} keeps a trace of the action held: use all bytes")
    return tuple(found.tolist())
