"""Start states: places far apart from which random episodes begin (paper, Appendix E).

The paper's six action sequences per game were made by hand. Here they are found in any game: skip the intro, explore
with an archive of places (Ecoffet et al., 2021, *First return, then explore*), let the player come to rest, and choose
the places that are farthest apart. The bytes of a position are known for some games (`games`); in others they are the
bytes that drift apart when different actions are repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Self

import numpy as np

from eigenoptions.atari import Emulator, published_starts
from eigenoptions.atari.emulator import Bytes
from eigenoptions.atari.ram import N_BYTES
from eigenoptions.atari.slow import influence
from reproduction.atari.games import get_game

# Frames for which an action is repeated where states are searched.
FRAME_SKIP = 8
# Frames with NOOP that a start state must survive.
REST_FRAMES = 60
# States in which the player's bytes are searched.
N_PROBES = 32


@dataclass(frozen=True)
class Start:
    """A start state: the actions, one per frame, that lead there from the beginning of a game.

    `watch` are the addresses in memory of the player's position, and `position` the values of these bytes there.

    >>> Start("Freeway", (0,) * 60 + (1,), (14,), (7,)).to_text()
    '60*0 1*1'
    """

    game: str
    actions: tuple[int, ...]
    watch: tuple[int, ...]
    position: tuple[int, ...]

    def to_text(self) -> str:
        """The actions as text, runs of equal ones together."""
        return " ".join(f"{len(list(run))}*{action}" for action, run in groupby(self.actions))

    @staticmethod
    def parse_actions(text: str) -> list[int]:
        """The actions of such a text."""
        runs = [run.split("*") for run in text.split()]
        return [int(action) for count, action in runs for _ in range(int(count))]

    @classmethod
    def reach(cls, game: str, actions: tuple[int, ...], watch: tuple[int, ...] = ()) -> Self:
        """The start state to which actions lead."""
        emulator = Emulator(game)
        emulator.replay(actions)
        watch = watch or get_game(game).position
        return cls(emulator.game, actions, watch, tuple(emulator.ram()[list(watch)].tolist()))


def find_published_starts(game: str) -> list[Start]:
    """The start states that the paper's authors published."""
    return [Start.reach(game, actions) for actions in published_starts(game)]


def find_starts(
    game: str, n: int = 6, *, bursts: int = 400, rng: int | np.random.Generator = 0
) -> list[Start]:
    """Find n start states of any game, far apart, in each of which the player survives a second with NOOP.

    The first is where the player gets control; each other is the farthest from those before it. `bursts` are those of
    exploration, 120 frames each; in games whose position bytes are not known, if too few places are found, as many
    follow with places distinguished by single values of the player's bytes, and then by all bytes that depend on the
    action.

    >>> [start.position for start in find_starts("Freeway", n=2, bursts=10)]
    [(6,), (39,)]
    """
    emulator, rng = Emulator(game), np.random.default_rng(rng)
    emulator.reset()
    n_intro = skip_intro(emulator)
    here, most = emulator.save(), 0
    for view in _make_views(emulator, rng):
        emulator.restore(here)
        found = _choose_farthest(emulator, _explore(emulator, view, n_intro, bursts, rng), view, n)
        if len(found) == n:
            return found
        most = max(most, len(found))
    raise ValueError(
        f"{most} of {n} start states were found in {emulator.game}: raise bursts ({bursts}), or lower n"
    )


def skip_intro(emulator: Emulator, max_frames: int = 3_600) -> int:
    """Advance to the first frame where the player is in control; returns the number of frames with NOOP until there.

    In control: the screen after repeating an action for 8 frames depends on the action. Memory does not serve, since it
    mirrors the joystick also while the game ignores it. A frame from which a life is lost within a second is passed
    over if there is another: some games begin by taking one. Frames are tried in steps of 8.
    """
    first: tuple[int, Any] | None = None
    for frame in range(0, max_frames, FRAME_SKIP):
        here = emulator.save()
        screens = {emulator.screen().tobytes() for _ in emulator.try_actions(here, FRAME_SKIP)}
        emulator.restore(here)
        if len(screens) > 1:
            first = first or (frame, here)
            survives = not emulator.step(0, REST_FRAMES, one_life=True).ended
            emulator.restore(here)
            if survives:
                return frame
        if emulator.step(0, FRAME_SKIP).ended:
            break
    if first is None:
        raise ValueError(
            f"no action changes the screen of {emulator.game} in {max_frames} frames: it cannot be played"
        )
    emulator.restore(first[1])
    return first[0]


def find_player_bytes(
    emulator: Emulator,
    rng: int | np.random.Generator = 0,
    *,
    n_bytes: int = 4,
    min_score: float = 0.25,
    max_cosine: float = 0.98,
) -> tuple[int, ...]:
    """Addresses of the bytes that look like the player's position: at most `n_bytes`.

    From states of a random walk every action is repeated for 4 and for 8 frames. A byte of the position differs between
    actions, and the more the longer they are repeated; it counts twice where some action raises it and another lowers
    it, compared with NOOP. Bytes with less than `min_score` of the highest score are left out, and of bytes that move
    together (`max_cosine`) one is taken. If no byte drifts like this, those count that depend on the action at all. The
    emulator is left as it was.
    """
    rng = np.random.default_rng(rng)
    here, drifts, differs, moves = emulator.save(), np.zeros(N_BYTES), np.zeros(N_BYTES), []
    state, lives = here, emulator.lives
    for _ in range(N_PROBES):
        steps = [step.rams for step in emulator.try_actions(state, FRAME_SKIP)]
        half, full = (
            np.stack([rams[min(frames, len(rams)) - 1] for rams in steps]).astype(np.int64)
            for frames in (FRAME_SKIP // 2, FRAME_SKIP)
        )
        early, late = np.ptp(half, axis=0), np.ptp(full, axis=0)
        drift = (early > 0) & (late > early) & (late <= np.minimum(4 * early, 128))
        both = (full.max(axis=0) > full[0]) & (full.min(axis=0) < full[0])
        drifts += drift * (1 + both)
        differs += late > 0
        moves.append(full - full[0])
        emulator.restore(state)
        emulator.step(int(rng.integers(emulator.n_actions)), 3 * FRAME_SKIP)
        state = here if emulator.over or emulator.lives < lives else emulator.save()
    emulator.restore(here)
    score = drifts if drifts.any() else differs
    if not score.any():
        raise ValueError(f"no byte of {emulator.game} depends on the action: there are no places to find")
    order = [int(b) for b in np.argsort(-score, kind="stable") if score[b] >= min_score * score.max()]
    moved = np.concatenate(moves)[:, order].astype(np.float64)
    length = np.sqrt((moved**2).sum(axis=0))
    cosine = np.abs(moved.T @ moved) / np.outer(length, length)
    chosen: list[int] = []
    for i in range(len(order)):
        if len(chosen) < n_bytes and not any(cosine[i, j] > max_cosine for j in chosen):
            chosen.append(i)
    return tuple(sorted(order[i] for i in chosen))


@dataclass(frozen=True)
class _View:
    """A way to distinguish places: by bytes of memory, and the number of values of each byte that are one place."""

    watch: tuple[int, ...]
    width: int

    def position(self, ram: Bytes) -> tuple[int, ...]:
        return tuple(ram[list(self.watch)].tolist())

    def cell(self, position: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(value // self.width for value in position)


@dataclass
class _Place:
    """A place in the archive, and the actions that lead there."""

    actions: bytes
    state: Any
    position: tuple[int, ...]
    visits: int = 0


def _make_views(emulator: Emulator, rng: np.random.Generator) -> Iterator[_View]:
    """Ways to distinguish places, from coarse to fine."""
    position = get_game(emulator.game).position
    if position:
        yield _View(position, 8)
        return
    here, states = emulator.save(), []
    watch = find_player_bytes(emulator, rng)
    yield _View(watch, 8)
    yield _View(watch, 1)
    emulator.restore(here)
    for _ in range(N_PROBES):
        for action in rng.integers(emulator.n_actions, size=FRAME_SKIP).tolist():
            emulator.act(action)
        states.append(emulator.save())
        if emulator.over:
            emulator.restore(here)
    share = influence(emulator, states)
    order = np.argsort(-share, kind="stable")[:12]
    yield _View(tuple(sorted(int(b) for b in order if share[b] > 0)), 1)


def _explore(
    emulator: Emulator,
    view: _View,
    n_intro: int,
    bursts: int,
    rng: np.random.Generator,
    *,
    burst_frames: int = 120,
    repeat_probability: float = 0.9,
    max_places: int = 4_096,
) -> list[_Place]:
    """Go back to a rarely visited place, and on from there with random actions that repeat; new places are kept."""
    position = view.position(emulator.ram())
    cells = {view.cell(position): _Place(bytes(n_intro), emulator.save(), position)}
    archive = list(cells.values())
    for _ in range(bursts):
        weight = np.array([1 / np.sqrt(place.visits + 1) for place in archive])
        base = archive[int(rng.choice(len(archive), p=weight / weight.sum()))]
        base.visits += 1
        emulator.restore(base.state)
        lives, taken = emulator.lives, bytearray()
        repeats = rng.random(burst_frames) < repeat_probability
        draws = rng.integers(emulator.n_actions, size=burst_frames).tolist()
        for frame in range(burst_frames):
            taken.append(taken[-1] if repeats[frame] and frame else draws[frame])
            emulator.act(taken[-1])
            if emulator.over or emulator.lives < lives:
                break
            position = view.position(emulator.ram())
            place = cells.get(view.cell(position))
            if place is not None:
                place.visits += 1
            elif len(archive) < max_places:
                place = cells[view.cell(position)] = _Place(base.actions + taken, emulator.save(), position)
                archive.append(place)
    return archive


def _choose_farthest(
    emulator: Emulator, archive: list[_Place], view: _View, n: int, max_tries: int = 512
) -> list[Start]:
    """Of the places where the player survives a rest, one by one the farthest from those chosen before."""
    positions = np.array([place.position for place in archive], dtype=np.float64)
    found: list[Start] = []
    distance = np.full(len(archive), np.inf)
    untried = np.ones(len(archive), dtype=bool)
    for _ in range(min(len(archive), max_tries)):
        # The first of equals: at the beginning, where the player got control.
        i = int(np.where(untried, distance, -1.0).argmax())
        untried[i] = False
        emulator.restore(archive[i].state)
        survives = not emulator.step(0, REST_FRAMES, one_life=True).ended
        position = view.position(emulator.ram())
        if survives and view.cell(position) not in {view.cell(start.position) for start in found}:
            actions = (*archive[i].actions, *[0] * REST_FRAMES)
            found.append(Start(emulator.game, actions, view.watch, position))
            distance = np.minimum(distance, np.linalg.norm(positions - np.array(position), axis=1))
            if len(found) == n:
                break
    return found
