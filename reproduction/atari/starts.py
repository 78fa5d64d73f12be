"""Start states: places far apart from which random episodes begin (paper, Appendix E).

The paper's six action sequences per game were made by hand. Here they are found: skip the intro, explore with an
archive of places (Ecoffet et al., 2021, *First return, then explore*), let the player come to rest, and choose the
places that are farthest apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any, Self

import numpy as np

from eigenoptions.atari import Emulator, published_starts
from reproduction.atari.games import get_game

# Frames for which an action is repeated where states are searched.
FRAME_SKIP = 8
# Frames with NOOP that a start state must survive.
REST_FRAMES = 60
# Number of values of a byte of the position that are one place.
PLACE_WIDTH = 8


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
    def reach(cls, game: str, actions: tuple[int, ...]) -> Self:
        """The start state to which actions lead."""
        emulator, watch = Emulator(game), get_game(game).position
        emulator.replay(actions)
        return cls(emulator.game, actions, watch, read_position(emulator, watch))


def read_position(emulator: Emulator, watch: tuple[int, ...]) -> tuple[int, ...]:
    """Values of the bytes at these addresses."""
    return tuple(emulator.ram()[list(watch)].tolist())


def find_cell(position: tuple[int, ...]) -> tuple[int, ...]:
    """The place of a position."""
    return tuple(value // PLACE_WIDTH for value in position)


def find_published_starts(game: str) -> list[Start]:
    """The start states that the paper's authors published."""
    return [Start.reach(game, actions) for actions in published_starts(game)]


def find_starts(
    game: str, n: int = 6, *, bursts: int = 400, rng: int | np.random.Generator = 0
) -> list[Start]:
    """Find n start states far apart, in each of which the player survives a second with NOOP.

    The first is where the player gets control; each other is the farthest from those before it. `bursts` are those of
    exploration, 120 frames each.

    >>> [start.position for start in find_starts("Freeway", n=2, bursts=10)]
    [(6,), (39,)]
    """
    emulator, watch = Emulator(game), get_game(game).position
    emulator.reset()
    n_intro = skip_intro(emulator)
    archive = _explore(emulator, watch, n_intro, bursts, np.random.default_rng(rng))
    found = _choose_farthest(emulator, archive, watch, n)
    if len(found) < n:
        raise ValueError(
            f"{len(found)} of {n} start states were found in {emulator.game}: raise bursts ({bursts}), or lower n"
        )
    return found


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


@dataclass
class _Place:
    """A place in the archive, and the actions that lead there."""

    actions: bytes
    state: Any
    position: tuple[int, ...]
    visits: int = 0


def _explore(
    emulator: Emulator,
    watch: tuple[int, ...],
    n_intro: int,
    bursts: int,
    rng: np.random.Generator,
    *,
    burst_frames: int = 120,
    repeat_probability: float = 0.9,
    max_places: int = 4_096,
) -> list[_Place]:
    """Go back to a rarely visited place, and on from there with random actions that repeat; new places are kept."""
    position = read_position(emulator, watch)
    cells = {find_cell(position): _Place(bytes(n_intro), emulator.save(), position)}
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
            position = read_position(emulator, watch)
            place = cells.get(find_cell(position))
            if place is not None:
                place.visits += 1
            elif len(archive) < max_places:
                place = cells[find_cell(position)] = _Place(base.actions + taken, emulator.save(), position)
                archive.append(place)
    return archive


def _choose_farthest(
    emulator: Emulator, archive: list[_Place], watch: tuple[int, ...], n: int, max_tries: int = 512
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
        position = read_position(emulator, watch)
        if survives and find_cell(position) not in {find_cell(start.position) for start in found}:
            actions = (*archive[i].actions, *[0] * REST_FRAMES)
            found.append(Start(emulator.game, actions, watch, position))
            distance = np.minimum(distance, np.linalg.norm(positions - np.array(position), axis=1))
            if len(found) == n:
                break
    return found
