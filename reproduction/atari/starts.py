"""Start states: places far apart from which random episodes begin (paper, Appendix E).

The paper's six action sequences per game were made by hand. Here they are found in any game: skip the intro, explore
with an archive of places (Ecoffet et al., 2021, *First return, then explore*), let the player come to rest, and choose
the places that are farthest apart. The bytes of a position are known for some games (`GAMES`); in others they are the
bytes that drift apart when different actions are held.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import check_int, make_generator
from eigenoptions.atari.emulator import Bytes, Emulator, Progress, game_name
from eigenoptions.atari.games import known
from eigenoptions.atari.ram import BYTES
from eigenoptions.files import write_bytes

# Format of files of start states.
FORMAT = 1
# Most frames from the beginning of a game to a start state that is read from a file.
MAX_FRAMES = 1_000_000
# No game keeps the player waiting longer than one minute.
INTRO_FRAMES = 3_600
# Frames that an action is held, unless the caller chooses another number.
HOLD_FRAMES = 8
BURST_FRAMES = 120
# Probability that a frame of exploration repeats the action of the last one.
STICKY = 0.9
# Frames without a button that a start state must survive.
REST_FRAMES = 60
# Values of a position byte that count as one place, at first.
CELL_VALUES = 8
# States in which the player's bytes are searched.
PROBES = 32
# A byte with less than this share of the highest score is not the player's.
MIN_SCORE_SHARE = 0.25
# Two bytes are redundant above this cosine of what actions do to them.
REDUNDANT_COSINE = 0.98
# Bytes of the player, and of the finest view, in games where they are not known.
MAX_PLAYER_BYTES = 4
MAX_VIEW_BYTES = 12
# Places kept in the archive, of 8 kB each, and places tried as start states.
MAX_PLACES = 4_096
MAX_TRIES = 512
# Bursts of one exploration: a million take hours.
MAX_BURSTS = 1_000_000


@dataclass(frozen=True)
class Start:
    """A start state: the actions that lead there from the beginning of a game.

    Attributes
    ----------
    game, actions
        Name of the game, and numbers in its minimal action set, one per frame.
    watch, position
        Addresses in RAM of the player's position, and the values of these bytes after the last action.

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
        """Number of frames until there."""
        return len(self.actions)

    def plain(self) -> dict[str, Any]:
        """As plain data; actions with the number of frames that each is held."""
        runs = [[action, len(list(run))] for action, run in groupby(self.actions)]
        return {"actions": runs, "watch": list(self.watch), "position": list(self.position)}

    @classmethod
    def again(cls, game: str, plain: Mapping[str, Any]) -> Self:
        """The start state from the result of `plain`."""
        frames = sum(check_int("frames", n, 0, MAX_FRAMES) for _, n in plain["actions"])
        check_int("frames of a start state", frames, 0, MAX_FRAMES)
        actions = tuple(int(action) for action, n in plain["actions"] for _ in range(n))
        return cls(game, actions, tuple(map(int, plain["watch"])), tuple(map(int, plain["position"])))

    def reach(self, emulator: Emulator) -> float:
        """Bring an emulator of the same game there; returns the sum of rewards on the way.

        Raises ValueError where the emulator ends up elsewhere, as another version of it might.
        """
        if emulator.game != self.game:
            raise ValueError(f"a start state of {self.game} cannot be reached in {emulator.game}")
        reward = emulator.replay(self.actions)
        found = tuple(emulator.ram()[list(self.watch)].tolist())
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
    progress: Progress | None = None,
) -> list[Start]:
    """Find n start states of any game, far apart, in each of which the player survives a second without a button.

    The first is where the player gets control; each other is the farthest from those before it.

    Parameters
    ----------
    game, n, rng
        Name of the game, number of start states (the paper has six), and seed of the exploration.
    bursts, progress
        Bursts of exploration, 120 frames each, at most a million. In games whose position bytes are not known, if too
        few places are found, as many follow with places distinguished by single values of the player's bytes, and then
        by all bytes that depend on the action. `progress` is called with bursts done and bursts in all.

    Examples
    --------
    >>> [start.position for start in find_starts("Freeway", n=2, bursts=10)]
    [(6,), (39,)]
    """
    n, bursts = check_int("n", n, maximum=MAX_TRIES), check_int("bursts", bursts, maximum=MAX_BURSTS)
    emulator = Emulator(game)
    rng = make_generator(rng)
    emulator.begin()
    intro = skip_intro(emulator)
    here, best, places = emulator.save(), 0, 0
    for view in _views(emulator, rng):
        emulator.restore(here)
        archive = _explore(emulator, view, intro, bursts, rng, progress)
        found = _farthest(emulator, archive, view, n)
        if len(found) == n:
            return found
        best, places = max(best, len(found)), max(places, len(archive))
    raise ValueError(
        f"{best} of {n} start states were found in {emulator.game} among {places} places in {bursts} bursts: "
        "raise bursts, or ask for fewer (n)"
    )


def skip_intro(emulator: Emulator) -> int:
    """Advance to the first frame where the player is in control; returns the frames without a button until there.

    In control: the screen after holding an action for 8 frames depends on the action. Memory does not serve, since it
    mirrors the joystick also while the game ignores it. A frame from which a life is lost within a second without a
    button is passed over if there is another: some games begin by taking one. Frames are tried in steps of 8.
    """
    first: tuple[int, Any] | None = None
    for frame in range(0, INTRO_FRAMES, HOLD_FRAMES):
        here = emulator.save()
        if _screens_differ(emulator, here):
            emulator.restore(here)
            first = first or (frame, here)
            if _rests(emulator):
                emulator.restore(here)
                return frame
        emulator.restore(here)
        if emulator.hold(0, HOLD_FRAMES).ended:
            break
    if first is None:
        raise ValueError(
            f"no action changes the picture of {emulator.game} in its first {INTRO_FRAMES} frames: it cannot be played"
        )
    emulator.restore(first[1])
    return first[0]


def influence(
    emulator: Emulator, states: Iterable[Any], hold: int = HOLD_FRAMES, rest: int = 0
) -> NDArray[np.float64]:
    """``(128,)`` the share of the states in which a byte depends on the action that is held for `hold` frames.

    The player has no influence on bytes of share 0, at least so soon. With a `rest` of some frames without any action
    only a lasting influence counts: an echo of the joystick is gone by then. The emulator is left as it was.
    """
    here = emulator.save()
    after = [_successors(emulator, state, (hold,), rest)[0] for state in states]
    emulator.restore(here)
    if not after:
        raise ValueError("there are no states: give at least one")
    share: NDArray[np.float64] = np.mean([(ram != ram[0]).any(axis=0) for ram in after], axis=0)
    return share


def player_bytes(emulator: Emulator, rng: int | np.random.Generator = 0) -> tuple[int, ...]:
    """Addresses of the bytes that look like the player's position: at most four.

    From states of a random walk every action is held for 4 and for 8 frames. A byte of the position differs between
    actions, and the more the longer they are held; it counts twice where some action raises it and another lowers it,
    compared with no button. Of bytes that move together one is taken. If no byte drifts like this, those count that
    depend on the action at all. The emulator is left as it was.
    """
    rng = make_generator(rng)
    here, drifts, differs, moves = emulator.save(), np.zeros(BYTES), np.zeros(BYTES), []
    state, lives = here, emulator.lives
    for _ in range(PROBES):
        half, full = _successors(emulator, state, (HOLD_FRAMES // 2, HOLD_FRAMES)).astype(np.int64)
        early, late = np.ptp(half, axis=0), np.ptp(full, axis=0)
        drift = (early > 0) & (late > early) & (late <= np.minimum(4 * early, 128))
        # Action 0 is no button.
        both = (full.max(axis=0) > full[0]) & (full.min(axis=0) < full[0])
        drifts += drift * (1 + both)
        differs += late > 0
        moves.append(full - full[0])
        emulator.restore(state)
        action = int(rng.integers(emulator.n_actions))
        emulator.hold(action, 3 * HOLD_FRAMES)
        state = here if emulator.over or emulator.lives < lives else emulator.save()
    emulator.restore(here)
    score = drifts if drifts.any() else differs
    if not score.any():
        raise ValueError(
            f"no byte of {emulator.game} depends on the action held: there are no places to find"
        )
    order = [int(b) for b in np.argsort(-score, kind="stable") if score[b] >= MIN_SCORE_SHARE * score.max()]
    moved = np.concatenate(moves)[:, order].astype(np.float64)
    alike = np.abs(moved.T @ moved) / np.sqrt(np.outer(*2 * [(moved**2).sum(axis=0)]))
    chosen: list[int] = []
    for i in range(len(order)):
        if len(chosen) < MAX_PLAYER_BYTES and not any(alike[i, j] > REDUNDANT_COSINE for j in chosen):
            chosen.append(i)
    return tuple(sorted(order[i] for i in chosen))


def save_starts(path: str | Path, starts: Sequence[Start]) -> None:
    """Write start states of one game to a JSON file, completely or not at all."""
    if not starts or len({start.game for start in starts}) != 1:
        raise ValueError("give at least one start state, all of one game")
    head = {"kind": "start states", "format": FORMAT, "game": starts[0].game}
    text = json.dumps({**head, "starts": [start.plain() for start in starts]})
    write_bytes(path, f"{text}\n".encode())


def load_starts(path: str | Path, game: str | None = None) -> list[Start]:
    """Read start states that `save_starts` wrote; those of another game than `game` are refused."""
    try:
        text = json.loads(Path(path).read_text(encoding="utf-8"))
        kind, version, name = text["kind"], text["format"], text["game"]
        starts = [Start.again(name, start) for start in text["starts"]]
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged or holds no start states: {error!r}") from None
    if (kind, version) != ("start states", FORMAT):
        raise ValueError(f"{path} holds {kind!r} of format {version}, not start states of format {FORMAT}")
    if game is not None and (wanted := game_name(game)) != name:
        raise ValueError(f"{path} holds start states of {name}, not of {wanted}: find them (find_starts)")
    return starts


@dataclass
class _Cell:
    """A place in the archive, and the actions that lead there."""

    actions: bytes
    state: Any
    position: tuple[int, ...]
    visits: int = 0


@dataclass(frozen=True)
class _View:
    """A way to distinguish places: by addresses, and the number of values of each byte that are one place."""

    watch: tuple[int, ...]
    width: int

    def position(self, ram: Bytes) -> tuple[int, ...]:
        return tuple(ram[list(self.watch)].tolist())

    def cell(self, position: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(value // self.width for value in position)


def _views(emulator: Emulator, rng: np.random.Generator) -> Iterator[_View]:
    """Ways to distinguish places, from coarse to fine."""
    position = known(emulator.game).position
    if position:
        yield _View(position, CELL_VALUES)
        return
    here, states = emulator.save(), []
    watch = player_bytes(emulator, rng)
    yield _View(watch, CELL_VALUES)
    yield _View(watch, 1)
    emulator.restore(here)
    for _ in range(PROBES):
        for action in rng.integers(emulator.n_actions, size=HOLD_FRAMES).tolist():
            emulator.act(action)
        states.append(emulator.save())
        if emulator.over:
            emulator.restore(here)
    share = influence(emulator, states)
    order = np.argsort(-share, kind="stable")[:MAX_VIEW_BYTES]
    yield _View(tuple(sorted(int(b) for b in order if share[b] > 0)), 1)


def _explore(
    emulator: Emulator,
    view: _View,
    intro: int,
    bursts: int,
    rng: np.random.Generator,
    progress: Progress | None,
) -> list[_Cell]:
    """Go back to a rarely visited place, and on from there with sticky random actions; new places are kept."""
    position = view.position(emulator.ram())
    cells = {view.cell(position): _Cell(bytes(intro), emulator.save(), position)}
    archive = list(cells.values())
    for burst in range(bursts):
        if progress is not None:
            progress(burst, bursts)
        weight = np.array([1 / np.sqrt(cell.visits + 1) for cell in archive])
        base = archive[int(rng.choice(len(archive), p=weight / weight.sum()))]
        base.visits += 1
        emulator.restore(base.state)
        lives, taken = emulator.lives, bytearray()
        stays = rng.random(BURST_FRAMES) < STICKY
        draws = rng.integers(emulator.n_actions, size=BURST_FRAMES).tolist()
        for frame in range(BURST_FRAMES):
            taken.append(taken[-1] if stays[frame] and frame else draws[frame])
            emulator.act(taken[-1])
            if emulator.over or emulator.lives < lives:
                break
            position = view.position(emulator.ram())
            here = cells.get(view.cell(position))
            if here is not None:
                here.visits += 1
            elif len(archive) < MAX_PLACES:
                here = cells[view.cell(position)] = _Cell(base.actions + taken, emulator.save(), position)
                archive.append(here)
    if progress is not None:
        progress(bursts, bursts)
    return archive


def _farthest(emulator: Emulator, archive: list[_Cell], view: _View, n: int) -> list[Start]:
    """Of the places where the player survives a rest, one by one the farthest from those chosen before."""
    where = np.array([cell.position for cell in archive], dtype=np.float64)
    found: list[Start] = []
    apart = np.full(len(archive), np.inf)
    untried = np.ones(len(archive), dtype=bool)
    for _ in range(min(len(archive), MAX_TRIES)):
        # The first of equals: at the beginning, where the player got control.
        i = int(np.where(untried, apart, -1.0).argmax())
        untried[i] = False
        emulator.restore(archive[i].state)
        survives = _rests(emulator)
        position = view.position(emulator.ram())
        if survives and view.cell(position) not in {view.cell(start.position) for start in found}:
            actions = (*archive[i].actions, *[0] * REST_FRAMES)
            found.append(Start(emulator.game, actions, view.watch, position))
            apart = np.minimum(apart, np.linalg.norm(where - np.array(position), axis=1))
            if len(found) == n:
                break
    return found


def _rests(emulator: Emulator) -> bool:
    """Let a second pass without a button; returns whether no life was lost."""
    return not emulator.hold(0, REST_FRAMES, one_life=True).ended


def _successors(emulator: Emulator, state: Any, frames: tuple[int, ...], rest: int = 0) -> Bytes:
    """``(len(frames), A, 128)`` the memory after holding each action so long, the last after a rest."""
    after = np.empty((len(frames), emulator.n_actions, BYTES), dtype=np.uint8)
    for action, held in enumerate(emulator.try_actions(state, frames[-1])):
        after[:, action] = [held.rams[min(frame, len(held.rams)) - 1] for frame in frames]
        if rest:
            after[-1, action] = emulator.hold(emulator.noop, rest).rams[-1]
    return after


def _screens_differ(emulator: Emulator, state: Any) -> bool:
    screens = (emulator.screen().tobytes() for _ in emulator.try_actions(state, HOLD_FRAMES))
    first = next(screens)
    return any(screen != first for screen in screens)
