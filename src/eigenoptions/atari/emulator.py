"""One Atari game as the paper plays it: deterministic, minimal action set, one frame per action (Appendix E).

An `Emulator` can be saved and restored exactly, so looking ahead leaves no trace. Games have the names that Gymnasium
uses, such as ``Freeway`` or ``MontezumaRevenge``. This is the only module that imports ale-py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import check_int, suggest_name

# ALE ends the process when one of these is loaded.
TWO_PLAYER_GAMES = {"combat", "joust", "maze_craze", "warlords"}

Bytes = NDArray[np.uint8]


class Step(NamedTuple):
    """What happened while an action was repeated: the reward of each frame, and the memory ``(128,)`` after it.

    `ended` tells whether the game is over, or the life that it was played for is lost; `life_lost` is the first frame
    in which a life was lost, or -1.
    """

    rewards: list[float]
    rams: list[Bytes]
    ended: bool
    life_lost: int


class Emulator:
    """One game of the Arcade Learning Environment: no sticky actions, minimal action set.

    Attributes
    ----------
    game : str
        Name of the game, as ``"MontezumaRevenge"``. ``"montezuma_revenge"`` and ``"ALE/MontezumaRevenge-v5"`` are
        accepted too.
    actions : tuple of str
        Names of the actions; an action is its index here. NOOP is the first: Backgammon and VideoCheckers do not have
        it in their minimal set, and it is put before the others (`noop_added`).

    Examples
    --------
    >>> emulator = Emulator("Freeway")
    >>> emulator.actions
    ('NOOP', 'UP', 'DOWN')
    >>> here = emulator.save()
    >>> step = emulator.step(1, frame_skip=10)
    >>> len(step.rewards), int(emulator.ram()[14])
    (10, 16)
    >>> emulator.restore(here)
    >>> int(emulator.ram()[14])
    6
    """

    def __init__(self, game: str) -> None:
        ale_py = import_ale_py()
        self.game = game_name(game)
        ale = self._ale = ale_py.ALEInterface()
        ale.setFloat("repeat_action_probability", 0.0)
        ale.setInt("frame_skip", 1)
        # No random number is drawn without sticky actions; the seed only silences ALE.
        ale.setInt("random_seed", 0)
        ale.loadROM(ale_py.roms.get_rom_path(_rom_ids()[self.game]))
        minimal, noop = tuple(ale.getMinimalActionSet()), ale_py.Action.NOOP
        self.noop_added = noop not in minimal
        self._codes = (noop, *minimal) if self.noop_added else minimal
        self.actions: tuple[str, ...] = tuple(code.name for code in self._codes)
        self.n_actions = len(self.actions)
        # Whether the picture that ALE holds belongs to the present state.
        self._picture_is_current = False
        # ALE's reset_game leaves traces in the memory, so `reset` restores this state instead.
        self._first = ale.cloneState()

    def __repr__(self) -> str:
        return f"Emulator({self.game!r}: {self.n_actions} actions)"

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
        action = check_int("action", action, 0, self.n_actions - 1)
        self._picture_is_current = True
        return float(self._ale.act(self._codes[action]))

    def step(self, action: int, frame_skip: int = 1, *, one_life: bool = False) -> Step:
        """Repeat an action for `frame_skip` frames, or until the game is over or, with `one_life`, a life is lost."""
        rewards: list[float] = []
        rams: list[Bytes] = []
        lives, life_lost, ended = self.lives, -1, False
        while len(rewards) < frame_skip and not ended:
            rewards.append(self.act(action))
            rams.append(self.ram())
            if life_lost < 0 and self.lives < lives:
                life_lost = len(rewards) - 1
            ended = self.over or (one_life and life_lost >= 0)
        return Step(rewards, rams, ended, life_lost)

    def try_actions(
        self, state: Any, frame_skip: int = 1, *, one_life: bool = False
    ) -> Iterator[Step]:
        """`step` with each action in turn from a saved state; the emulator is where that action led."""
        for action in range(self.n_actions):
            self.restore(state)
            yield self.step(action, frame_skip, one_life=one_life)

    def ram(self) -> Bytes:
        """``(128,)`` a copy of the memory."""
        memory: Bytes = self._ale.getRAM()
        return memory

    def screen(self) -> Bytes:
        """``(height, 160, 3)`` the picture in colours; most games are 210 lines high.

        A saved state has no picture. Right after `restore` or `reset` this is the picture of the next frame with NOOP;
        the state does not change.
        """
        if not self._picture_is_current:
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
        self._picture_is_current = False

    def key(self, state: Any) -> bytes:
        """A saved state as bytes: states with the same bytes have the same future."""
        return bytes(state.serialize())

    def reset(self) -> None:
        """Go back to the state just after loading."""
        self.restore(self._first)

    def replay(self, actions: Iterable[int]) -> float:
        """Go back to the beginning and take these actions, one per frame; returns the sum of rewards."""
        self.reset()
        return sum(map(self.act, actions), 0.0)


def game_name(game: str) -> str:
    """The name of a game as Gymnasium uses it, from any of its spellings.

    >>> game_name("ALE/MsPacman-v5"), game_name("ms_pacman"), game_name("montezuma_revenge")
    ('MsPacman', 'MsPacman', 'MontezumaRevenge')
    """
    names = {name.lower(): name for name in _rom_ids()}
    bare = re.sub(
        r"^ale/|(noframeskip|deterministic)?-v\d+$", "", str(game).strip().lower()
    )
    plain = re.sub(r"[^a-z0-9]", "", bare)
    if plain not in names:
        raise ValueError(
            f"unknown game {game!r}{suggest_name(plain, names)}; names are as in ALE/MsPacman-v5"
        )
    return names[plain]


@cache
def _rom_ids() -> dict[str, str]:
    """From names of games that one player can play to the ids of their ROMs."""
    ids = sorted(set(import_ale_py().roms.get_all_rom_ids()) - TWO_PLAYER_GAMES)
    return {rom.title().replace("_", ""): rom for rom in ids}


@cache
def import_ale_py() -> Any:
    """The package ale-py, which brings the games."""
    try:
        import ale_py
        import ale_py.roms
    except ImportError as error:
        raise ImportError(
            f"Atari games need ale-py ({error}): pip install 'eigenoptions[atari]'"
        ) from None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return ale_py
