"""One Atari game as the paper plays it: deterministic, minimal action set, frame skip 1 (Appendix E).

An `Emulator` can be saved and restored bit by bit, so looking ahead leaves no trace. Games are known by the names
that Gymnasium uses, ``Freeway`` or ``MontezumaRevenge``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

BYTES = 128  # of RAM
BITS = 8 * BYTES  # the paper's features
SEED = 0  # of the emulator: nothing is drawn from it, since no action is sticky
FOR_TWO = {"combat", "joust", "maze_craze", "warlords"}  # ALE ends the process when one of these is loaded

Bytes = NDArray[np.uint8]


class Emulator:
    """One game of the Arcade Learning Environment: no sticky actions, minimal action set, frame skip 1.

    Parameters
    ----------
    game
        Its name: ``"MontezumaRevenge"``, ``"montezuma_revenge"`` and ``"ALE/MontezumaRevenge-v5"`` are the same.

    Attributes
    ----------
    game
        Its name as in `games`.
    actions
        Names of the minimal action set, in order; an action is its number here.
    acts
        Frames emulated since loading, looking ahead and replays included.

    Examples
    --------
    >>> emulator = Emulator("Freeway")
    >>> emulator.actions
    ('NOOP', 'UP', 'DOWN')
    >>> here = emulator.save()
    >>> for frame in range(10):
    ...     reward = emulator.act(1)
    >>> int(emulator.ram()[14])
    16
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
        ale.setInt("random_seed", SEED)
        ale.setBool("sound", False)
        ale.setBool("display_screen", False)
        ale.loadROM(ale_py.roms.get_rom_path(_ids()[self.game]))
        self._ale = ale
        self._codes = tuple(ale.getMinimalActionSet())
        self.actions: tuple[str, ...] = tuple(code.name for code in self._codes)
        self.acts = 0
        self._shown = False  # whether ALE's picture belongs to the state we are in
        self._first = ale.cloneState()  # reset_game is not idempotent: it leaves traces in the RAM

    def __repr__(self) -> str:
        return f"Emulator({self.game!r}: {self.n_actions} actions, {self.acts} frames)"

    @property
    def n_actions(self) -> int:
        """Number of actions A."""
        return len(self._codes)

    @property
    def over(self) -> bool:
        """Whether the game is over."""
        return bool(self._ale.game_over())

    @property
    def lives(self) -> int:
        """Lives left; 0 in games that do not count them."""
        return int(self._ale.lives())

    def act(self, action: int) -> float:
        """Emulate one frame with the joystick held so; the reward."""
        if not 0 <= action < len(self._codes):
            raise ValueError(
                f"action must be in 0..{len(self._codes) - 1} ({', '.join(self.actions)}), got {action}"
            )
        self.acts += 1
        self._shown = True
        return float(self._ale.act(self._codes[action]))

    def ram(self) -> Bytes:
        """``(128,)`` the memory, a copy."""
        memory: Bytes = self._ale.getRAM()
        return memory

    def screen(self) -> Bytes:
        """``(height, 160, 3)`` the picture in colours; most games are 210 lines high.

        A saved state has no picture. Straight after `restore` or `begin` the one given is therefore that of the next
        frame, with no button pressed; the state stays as it is.
        """
        if not self._shown:
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
        self._shown = False

    def key(self, state: Any) -> bytes:
        """A saved state as bytes: two states with the same bytes have the same future."""
        text: bytes = state.serialize()
        return text

    def begin(self) -> None:
        """Go back to the state just after loading."""
        self.restore(self._first)

    def replay(self, actions: Iterable[int]) -> float:
        """Begin, and take these actions; the sum of rewards."""
        self.begin()
        return sum(map(self.act, actions), 0.0)


def games() -> tuple[str, ...]:
    """Names of the games that come with ale-py and can be played alone, in alphabetical order.

    >>> "Freeway" in games() and "MsPacman" in games()
    True
    """
    return tuple(sorted(_ids()))


def game_name(game: str) -> str:
    """The name of a game as in `games`, whatever way it is spelt.

    >>> game_name("ALE/MsPacman-v5"), game_name("ms_pacman"), game_name("montezuma_revenge")
    ('MsPacman', 'MsPacman', 'MontezumaRevenge')
    """
    if not isinstance(game, str):
        raise ValueError(f"game must be a name such as 'Freeway', got {type(game).__name__}")
    known = {name.lower(): name for name in _ids()}
    bare = re.sub(r"^ale/|(noframeskip|deterministic)?-v\d+$", "", game.strip().lower())
    plain = re.sub(r"[^a-z0-9]", "", bare)
    if plain in known:
        return known[plain]
    near = get_close_matches(plain, known, n=3, cutoff=0.5)
    hint = (
        f"did you mean {' or '.join(known[name] for name in near)}?"
        if near
        else "atari.emulator.games() lists them"
    )
    alone = " that can be played alone" if plain in {name.replace("_", "") for name in FOR_TWO} else ""
    raise ValueError(f"there is no game {game!r}{alone} among the {len(known)} of ale-py: {hint}")


def bits(ram: Bytes) -> NDArray[np.bool_]:
    """``(..., 1024)`` the bits of RAM ``(..., 128)``: bit j of byte b is feature ``8 b + j``, the lowest first.

    >>> ram = np.zeros(128, dtype=np.uint8)
    >>> ram[14] = 6
    >>> np.flatnonzero(bits(ram)).tolist()
    [113, 114]
    """
    return np.unpackbits(np.asarray(ram, dtype=np.uint8), axis=-1, bitorder="little").astype(np.bool_)


@cache
def _ids() -> dict[str, str]:
    """From names of games to the ids of their ROMs."""
    ids = sorted(set(_ale_py().roms.get_all_rom_ids()) - FOR_TWO)
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
