"""One Atari game as the paper plays it: deterministic, minimal action set, frame skip 1 (Appendix E).

An `Emulator` can be saved and restored bit by bit, so looking ahead leaves no trace. Games have the names that
Gymnasium uses, such as ``Freeway`` or ``MontezumaRevenge``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import check_int

# Nothing is drawn from the emulator's own generator, since no action is sticky.
EMULATOR_SEED = 0
# ALE ends the process when one of these is loaded.
TWO_PLAYER_GAMES = {"combat", "joust", "maze_craze", "warlords"}

Bytes = NDArray[np.uint8]
Progress = Callable[[int, int], object]


class Held(NamedTuple):
    """What happened while an action was held: the reward of each frame that was played, and the memory after it.

    It `ended` if the game was over, or a life was lost that was to end it; `lost` is the first frame in which a life
    was lost, or -1.
    """

    rewards: list[float]
    rams: list[Bytes]
    ended: bool
    lost: int


class Emulator:
    """One game of the Arcade Learning Environment: no sticky actions, minimal action set, frame skip 1.

    Attributes
    ----------
    game
        Name of the game as in `games`; ``"montezuma_revenge"`` and ``"ALE/MontezumaRevenge-v5"`` are accepted too.
    actions, n_actions, noop, noop_added
        Names of the minimal action set, in order; an action is its index here. NOOP is always the first: Backgammon
        and VideoCheckers have none in their minimal set, and it is put before it.
    acts
        Frames emulated since loading, including looking ahead and replays.

    Examples
    --------
    >>> emulator = Emulator("Freeway")
    >>> emulator.actions
    ('NOOP', 'UP', 'DOWN')
    >>> here = emulator.save()
    >>> len(emulator.hold(1, frames=10).rewards), int(emulator.ram()[14])
    (10, 16)
    >>> emulator.restore(here)
    >>> int(emulator.ram()[14]), emulator.acts
    (6, 10)
    """

    def __init__(self, game: str) -> None:
        ale_py = _ale_py()
        self.game = game_name(game)
        ale = ale_py.ALEInterface()
        ale.setFloat("repeat_action_probability", 0.0)
        ale.setInt("frame_skip", 1)
        ale.setInt("random_seed", EMULATOR_SEED)
        ale.loadROM(ale_py.roms.get_rom_path(_rom_ids()[self.game]))
        self._ale = ale
        minimal, noop = tuple(ale.getMinimalActionSet()), ale_py.Action.NOOP
        self.noop_added = noop not in minimal
        self._codes = (noop, *minimal) if self.noop_added else minimal
        self.actions: tuple[str, ...] = tuple(code.name for code in self._codes)
        self.n_actions, self.noop = len(self.actions), self.actions.index("NOOP")
        self.acts = 0
        # Whether the picture that ALE holds belongs to the present state.
        self._picture_current = False
        # ALE's reset_game is not idempotent: it leaves traces in the RAM.
        self._first = ale.cloneState()

    def __repr__(self) -> str:
        return f"Emulator({self.game!r}: {self.n_actions} actions, {self.acts} frames)"

    @property
    def over(self) -> bool:
        """Whether the game is over."""
        return bool(self._ale.game_over())

    @property
    def lives(self) -> int:
        """Lives left; 0 in games that do not count them."""
        return int(self._ale.lives())

    def act(self, action: int) -> float:
        """Emulate one frame with an action; returns the reward."""
        if not 0 <= action < len(self._codes):
            names = ", ".join(self.actions)
            raise ValueError(f"action must be in 0..{len(self._codes) - 1} ({names}), got {action}")
        self.acts += 1
        self._picture_current = True
        return float(self._ale.act(self._codes[action]))

    def hold(self, action: int, frames: int, *, one_life: bool = False) -> Held:
        """Emulate some frames with the same action, until the game is over or, with `one_life`, a life is lost."""
        rewards: list[float] = []
        rams: list[Bytes] = []
        lives, lost, ended = self.lives, -1, False
        for frame in range(frames):
            rewards.append(self.act(action))
            rams.append(self.ram())
            if lost < 0 and self.lives < lives:
                lost = frame
            ended = self.over or (one_life and lost >= 0)
            if ended:
                break
        return Held(rewards, rams, ended, lost)

    def try_actions(self, state: Any, frames: int, *, one_life: bool = False) -> Iterator[Held]:
        """Hold each action in turn from a saved state, as `hold` does; the emulator is where that action led."""
        for action in range(self.n_actions):
            self.restore(state)
            yield self.hold(action, frames, one_life=one_life)

    def ram(self) -> Bytes:
        """``(128,)`` a copy of the memory."""
        memory: Bytes = self._ale.getRAM()
        return memory

    def screen(self) -> Bytes:
        """``(height, 160, 3)`` the picture in colours; most games are 210 lines high.

        A saved state has no picture. Straight after `restore` or `begin` the result is therefore the picture of the
        next frame, with no button pressed; the state stays as it is.
        """
        if not self._picture_current:
            here = self.save()
            self.act(0)
            self._ale.restoreState(here)
        picture: Bytes = self._ale.getScreenRGB()
        return picture

    def save(self) -> Any:
        """The whole state, to `restore` later."""
        return self._ale.cloneState()

    def restore(self, state: Any) -> None:
        """Go back to a saved state of this game."""
        self._ale.restoreState(state)
        self._picture_current = False

    def key(self, state: Any) -> bytes:
        """A saved state as bytes: two states with the same bytes have the same future."""
        return bytes(state.serialize())

    def begin(self) -> None:
        """Go back to the state just after loading."""
        self.restore(self._first)

    def replay(self, actions: Iterable[int]) -> float:
        """Go back to the beginning and take these actions; returns the sum of rewards."""
        self.begin()
        return sum(map(self.act, actions), 0.0)


def whereabouts(emulator: Emulator, hold: int = 4) -> tuple[float, float] | None:
    """Where the player is on the screen of any game: the pixel (x, y) in the middle of what actions change.

    Every action is held for some frames from the present state. Pixels that differ between the outcomes are those the
    player is responsible for (contingency awareness; Bellemare, Veness and Bowling, 2012). The result holds the
    medians of their coordinates, or is None where no action changes anything. The emulator is left as it was.

    >>> whereabouts(Emulator("Freeway"))
    (47.0, 189.0)
    """
    hold = check_int("hold", hold)
    here = emulator.save()
    pictures = [emulator.screen() for _ in emulator.try_actions(here, hold)]
    emulator.restore(here)
    y, x = np.nonzero((np.stack(pictures[1:]) != pictures[0]).any(axis=(0, 3)))
    return (float(np.median(x)), float(np.median(y))) if len(x) else None


def games() -> tuple[str, ...]:
    """Names of the games that come with ale-py and can be played alone, in alphabetical order.

    >>> "Freeway" in games() and "MsPacman" in games()
    True
    """
    return tuple(sorted(_rom_ids()))


def game_name(game: str) -> str:
    """The name of a game as in `games`, from any of its spellings.

    >>> game_name("ALE/MsPacman-v5"), game_name("ms_pacman"), game_name("montezuma_revenge")
    ('MsPacman', 'MsPacman', 'MontezumaRevenge')
    """
    if not isinstance(game, str):
        raise ValueError(f"game must be a name such as 'Freeway', got {type(game).__name__}")
    names = {name.lower(): name for name in _rom_ids()}
    bare = re.sub(r"^ale/|(noframeskip|deterministic)?-v\d+$", "", game.strip().lower())
    plain = re.sub(r"[^a-z0-9]", "", bare)
    if plain in names:
        return names[plain]
    near = " or ".join(names[name] for name in get_close_matches(plain, names, n=3, cutoff=0.5))
    hint = f"did you mean {near}?" if near else "atari.emulator.games() lists them"
    alone = " that can be played alone" if plain in {n.replace("_", "") for n in TWO_PLAYER_GAMES} else ""
    raise ValueError(f"there is no game {game!r}{alone} among the {len(names)} of ale-py: {hint}")


@cache
def _rom_ids() -> dict[str, str]:
    """From names of games to the ids of their ROMs."""
    ids = sorted(set(_ale_py().roms.get_all_rom_ids()) - TWO_PLAYER_GAMES)
    return {rom.title().replace("_", ""): rom for rom in ids}


@cache
def _ale_py() -> Any:
    try:
        import ale_py
        import ale_py.roms
    except ImportError as error:
        raise ImportError(
            f"Atari games need ale-py ({error}): pip install 'eigenoptions[atari]' brings it, and the games"
        ) from None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return ale_py
