"""Start states: places far apart from which random episodes begin (paper, Appendix E).

The paper's six action sequences a game were made by hand. Here they are found, in any game: skip the intro, explore
with an archive of places (Ecoffet et al., 2021, *First return, then explore*), let the player come to rest, and choose
the places that are farthest apart. Where a place is in memory is known for three games; in others it is the bytes that
drift apart when different actions are held.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from eigenoptions.atari.emulator import BYTES, Emulator, game_name
from eigenoptions.atari.games import known
from eigenoptions.files import write_bytes
from eigenoptions.parallel import Progress

FORMAT = 1  # of files
INTRO = 3_600  # frames, one minute: longer no game keeps the player waiting
HELD = 8  # frames that an action is held to see what it does
BURST = 120  # frames of a burst of exploration
STICKY = 0.9  # chance that the next frame's action is the last one's
REST = 60  # frames without a button, which a start state must survive
CELL = 8  # values of a position byte that count as one place, at first
PROBES = 32  # states in which bytes of the player are looked for
SURE = 0.25  # of the surest byte's score: below it a byte is not the player's
SAME = 0.98  # cosine of what actions do to two bytes: above it they say the same
MOST_BYTES = 4  # of the player, where they are not known
MOST_VIEW = 12  # bytes that tell places apart when the player's do not
MOST_CELLS = 4_096  # places that an archive keeps, of 8 kB each
MOST_TRIES = 512  # places that are tried as start states

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Start:
    """A start state: the actions that lead there from the beginning of a game.

    Attributes
    ----------
    game
        Its name.
    actions
        Numbers in the minimal action set, one a frame.
    watch
        Addresses in RAM of the player's place.
    position
        The bytes there after the last action.

    Examples
    --------
    >>> Start("Freeway", (0,) * 60, (14,), (6,)).plain()
    {'actions': [[0, 60]], 'watch': [14], 'position': [6]}
    """

    game: str
    actions: tuple[int, ...]
    watch: tuple[int, ...]
    position: tuple[int, ...]

    @property
    def frames(self) -> int:
        """Length of the way there."""
        return len(self.actions)

    def plain(self) -> dict[str, Any]:
        """As plain data; actions with the number of frames each is held."""
        runs = [[action, len(list(run))] for action, run in groupby(self.actions)]
        return {"actions": runs, "watch": list(self.watch), "position": list(self.position)}

    @classmethod
    def again(cls, game: str, plain: Mapping[str, Any]) -> Self:
        """The start state that `plain` made plain data of."""
        actions = tuple(int(action) for action, frames in plain["actions"] for _ in range(frames))
        return cls(game, actions, tuple(map(int, plain["watch"])), tuple(map(int, plain["position"])))

    def reach(self, emulator: Emulator) -> float:
        """Bring an emulator of the same game there; the sum of rewards on the way.

        Raises ValueError where the emulator does not end up there, as another version of it might.
        """
        if emulator.game != self.game:
            raise ValueError(f"a start state of {self.game} cannot be reached in {emulator.game}")
        reward = emulator.replay(self.actions)
        found = _place(emulator.ram(), self.watch)
        if found != self.position:
            raise ValueError(
                f"this emulator comes to {found} instead of {self.position} in {self.game}: the start states were "
                "made with another version of it; find them again (find_starts)"
            )
        return reward


def find_starts(
    game: str,
    n: int = 6,
    *,
    rng: int | np.random.Generator = 0,
    bursts: int = 400,
    progress: Callable[[Progress], object] | None = None,
) -> list[Start]:
    """Find n start states of any game, far apart, in each of which the player survives a second without a button.

    Parameters
    ----------
    game
        Its name.
    n
        How many; the paper has six a game. The first is where the player gets control.
    rng
        Of the exploration.
    bursts
        Of exploration, 120 frames each. In games whose position bytes are not known, where they show too few places,
        there are as many again with places told apart by single values of the player's bytes, and once more by all
        bytes that depend on the action.
    progress
        Called with a `Progress` of the bursts.

    Returns
    -------
    list of Start
        In the order of choice: each is the one farthest from those before it.

    Examples
    --------
    >>> [start.position for start in find_starts("Freeway", n=2, bursts=10)]
    [(6,), (39,)]
    """
    if not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n must be at least 1, got {n!r}")
    if not isinstance(bursts, int | np.integer) or bursts < 1:
        raise ValueError(f"bursts must be at least 1, got {bursts!r}")
    emulator = Emulator(game)
    rng = np.random.default_rng(rng)
    emulator.begin()
    intro = skip_intro(emulator)
    here, best, places = emulator.save(), 0, 0
    for watch, width in _views(emulator, rng):
        emulator.restore(here)
        archive = _explore(emulator, watch, width, (0,) * intro, int(bursts), rng, progress)
        found = _farthest(emulator, archive, watch, width, n)
        if len(found) == n:
            return found
        best, places = max(best, len(found)), max(places, len(archive))
    raise ValueError(
        f"{best} of {n} start states were found in {emulator.game} among {places} places in {bursts} bursts: "
        "raise bursts, or ask for fewer (n)"
    )


def skip_intro(emulator: Emulator) -> int:
    """Advance to the first frame where the player is in control; the number of frames without a button until there.

    In control: what is on the screen after holding a button for 8 frames depends on which one it is. Memory would not
    do, since it mirrors the joystick also while nobody listens. A frame is passed over from which a life is lost within
    a second without a button, if there is another: some games begin by taking one. Frames are tried in steps of 8.
    """
    first: tuple[int, Any] | None = None
    for frame in range(0, INTRO, HELD):
        here = emulator.save()
        if _screens_differ(emulator, here):
            emulator.restore(here)
            first = first or (frame, here)
            if _rests(emulator):
                emulator.restore(here)
                return frame
        emulator.restore(here)
        for _ in range(HELD):
            emulator.act(0)
        if emulator.over:
            break
    if first is None:
        raise ValueError(
            f"no action changes the picture of {emulator.game} in its first {INTRO} frames: it cannot be played so"
        )
    emulator.restore(first[1])
    return first[0]


def influence(
    emulator: Emulator, states: Iterable[Any], hold: int = HELD, rest: int = 0
) -> NDArray[np.float64]:
    """``(128,)`` in which share of the states a byte depends on the action that is held for some frames.

    Bytes of share 0 are out of the player's hands, at least so soon. With a `rest` of some frames without any action
    only what lasts counts: an echo of the joystick is gone by then. The emulator is left as it was.
    """
    here = emulator.save()
    differ = [
        (after != after[0]).any(axis=0)
        for state in states
        for after in [_successors(emulator, state, (hold,), rest)[0]]
    ]
    emulator.restore(here)
    if not differ:
        raise ValueError("there are no states: give at least one")
    share: NDArray[np.float64] = np.mean(differ, axis=0)
    return share


def player_bytes(emulator: Emulator, rng: int | np.random.Generator = 0) -> tuple[int, ...]:
    """Addresses of the bytes that look like the player's place: at most four.

    From states of a random walk every action is held for 4 and for 8 frames. A byte of the player's place differs
    between actions, and the more the longer they are held; it counts twice where some action raises it and another
    lowers it, compared with no button. Of bytes that move together one is enough. If no byte drifts so, those count
    that depend on the action at all. The emulator is left as it was.
    """
    rng = np.random.default_rng(rng)
    here, drifts, differs, moves = emulator.save(), np.zeros(BYTES), np.zeros(BYTES), []
    state, lives = here, emulator.lives
    for _ in range(PROBES):
        half, whole = (after.astype(np.int64) for after in _successors(emulator, state, (HELD // 2, HELD)))
        early, late = np.ptp(half, axis=0), np.ptp(whole, axis=0)
        drift = (early > 0) & (late > early) & (late <= np.minimum(4 * early, 128))
        both = (whole.max(axis=0) > whole[0]) & (whole.min(axis=0) < whole[0])  # action 0 is no button
        drifts += drift * (1 + both)
        differs += late > 0
        moves.append(whole - whole[0])
        emulator.restore(state)
        action = int(rng.integers(emulator.n_actions))
        for _ in range(3 * HELD):
            emulator.act(action)
        state = here if emulator.over or emulator.lives < lives else emulator.save()
    emulator.restore(here)
    score = drifts if drifts.any() else differs
    if not score.any():
        raise ValueError(
            f"no byte of {emulator.game} depends on the action held: no start states can be told apart"
        )
    order = [int(b) for b in np.argsort(-score, kind="stable") if score[b] >= SURE * score.max()]
    moved = np.concatenate(moves)[:, order].astype(np.float64)
    alike = np.abs(moved.T @ moved) / np.sqrt(np.outer(*2 * [(moved**2).sum(axis=0)]))
    chosen: list[int] = []
    for i in range(len(order)):
        if len(chosen) < MOST_BYTES and not any(alike[i, j] > SAME for j in chosen):
            chosen.append(i)
    return tuple(sorted(order[i] for i in chosen))


def save_starts(path: str | Path, starts: Sequence[Start]) -> None:
    """Write start states of one game to a JSON file, whole or not at all."""
    if not starts or len({start.game for start in starts}) != 1:
        raise ValueError("give at least one start state, all of one game")
    text = {
        "kind": "start states",
        "format": FORMAT,
        "game": starts[0].game,
        "starts": [s.plain() for s in starts],
    }
    write_bytes(path, (json.dumps(text) + "\n").encode())


def load_starts(path: str | Path, game: str | None = None) -> list[Start]:
    """Read start states that `save_starts` wrote; those of another game than `game` are refused."""
    try:
        text = json.loads(Path(path).read_text(encoding="utf-8"))
        kind, version, name = text["kind"], text["format"], text["game"]
        starts = [Start.again(name, start) for start in text["starts"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged or holds no start states: {error!r}") from None
    if (kind, version) != ("start states", FORMAT):
        raise ValueError(f"{path} holds {kind!r} of format {version}, not start states of format {FORMAT}")
    if game is not None and game_name(game) != name:
        raise ValueError(
            f"{path} holds start states of {name}, not of {game_name(game)}: find them (find_starts)"
        )
    return starts


@dataclass
class _Cell:
    """A place in the archive, and how to get there."""

    actions: bytes
    state: Any
    position: tuple[int, ...]
    visits: int = 0


def _views(emulator: Emulator, rng: np.random.Generator) -> Iterator[tuple[tuple[int, ...], int]]:
    """Ways to tell places apart, from coarse to fine: bytes, and how many of their values are one place."""
    place = known(emulator.game).position
    if place:
        yield place, CELL
        return
    here, states = emulator.save(), []
    watch = player_bytes(emulator, rng)
    yield watch, CELL
    yield watch, 1
    emulator.restore(here)
    for _ in range(PROBES):
        for action in rng.integers(emulator.n_actions, size=HELD).tolist():
            emulator.act(action)
        states.append(emulator.save())
        if emulator.over:
            emulator.restore(here)
    share = influence(emulator, states)
    order = np.argsort(-share, kind="stable")[:MOST_VIEW]
    yield tuple(sorted(int(b) for b in order if share[b] > 0)), 1


def _explore(
    emulator: Emulator,
    watch: tuple[int, ...],
    width: int,
    intro: tuple[int, ...],
    bursts: int,
    rng: np.random.Generator,
    progress: Callable[[Progress], object] | None,
) -> list[_Cell]:
    """Go back to a place seldom visited, and on from there with sticky random actions: new places are kept."""
    begin = time.perf_counter()
    position = _place(emulator.ram(), watch)
    cells = {_cell(position, width): _Cell(bytes(intro), emulator.save(), position)}
    archive = list(cells.values())
    for burst in range(bursts):
        if progress is not None:
            progress(Progress(burst, bursts, time.perf_counter() - begin))
        weight = np.array([1 / np.sqrt(cell.visits + 1) for cell in archive])
        base = archive[int(rng.choice(len(archive), p=weight / weight.sum()))]
        base.visits += 1
        emulator.restore(base.state)
        lives, taken = emulator.lives, bytearray()
        stays = rng.random(BURST) < STICKY
        draws = rng.integers(emulator.n_actions, size=BURST)
        action = int(draws[0])
        for frame in range(BURST):
            action = action if stays[frame] and frame else int(draws[frame])
            emulator.act(action)
            taken.append(action)
            if emulator.over or emulator.lives < lives:
                break
            position = _place(emulator.ram(), watch)
            here = cells.get(_cell(position, width))
            if here is not None:
                here.visits += 1
            elif len(archive) < MOST_CELLS:
                cells[_cell(position, width)] = _Cell(base.actions + bytes(taken), emulator.save(), position)
                archive.append(cells[_cell(position, width)])
    if progress is not None:
        progress(Progress(bursts, bursts, time.perf_counter() - begin))
    return archive


def _farthest(
    emulator: Emulator, archive: list[_Cell], watch: tuple[int, ...], width: int, n: int
) -> list[Start]:
    """Of places where the player survives a rest, one by one the farthest from those chosen before."""
    where = np.array([cell.position for cell in archive], dtype=np.float64)
    found: list[Start] = []
    apart = np.full(len(archive), np.inf)
    untried = np.ones(len(archive), dtype=bool)
    for _ in range(min(len(archive), MOST_TRIES)):
        i = int(np.where(untried, apart, -1.0).argmax())  # the first of equals: where the player got control
        untried[i] = False
        emulator.restore(archive[i].state)
        survives = _rests(emulator)
        position = _place(emulator.ram(), watch)
        new = all(_cell(position, width) != _cell(start.position, width) for start in found)
        if not (survives and new):
            continue
        actions = tuple(archive[i].actions) + (0,) * REST
        found.append(Start(emulator.game, actions, watch, position))
        if len(found) == n:
            break
        apart = np.minimum(apart, np.linalg.norm(where - np.array(position), axis=1))
    return found


def _rests(emulator: Emulator) -> bool:
    """Let a second pass without a button; whether no life was lost."""
    lives = emulator.lives
    for _ in range(REST):
        emulator.act(0)
        if emulator.over or emulator.lives < lives:
            return False
    return True


def _place(ram: Bytes, watch: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(ram[list(watch)].tolist())


def _cell(position: tuple[int, ...], width: int) -> tuple[int, ...]:
    return tuple(value // width for value in position)


def _successors(emulator: Emulator, state: Any, frames: tuple[int, ...], rest: int = 0) -> list[Bytes]:
    """For each number of frames ``(A, 128)`` the memory after holding each action so long, the last after a rest."""
    after = np.empty((len(frames), emulator.n_actions, BYTES), dtype=np.uint8)
    if rest and "NOOP" not in emulator.actions:
        raise ValueError(f"{emulator.game} has no action NOOP, so the player cannot rest")
    nothing = emulator.actions.index("NOOP") if rest else 0
    for action in range(emulator.n_actions):
        emulator.restore(state)
        for frame in range(1, frames[-1] + 1):
            emulator.act(action)
            if frame in frames:
                after[frames.index(frame), action] = emulator.ram()
        for _ in range(rest):
            emulator.act(nothing)
        after[-1, action] = emulator.ram()
    return list(after)


def _screens_differ(emulator: Emulator, state: Any) -> bool:
    first: Bytes | None = None
    for action in range(emulator.n_actions):
        emulator.restore(state)
        for _ in range(HELD):
            emulator.act(action)
        picture = emulator.screen()
        if first is None:
            first = picture
        elif not np.array_equal(picture, first):
            return True
    return False
