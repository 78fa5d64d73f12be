"""One Atari game as the paper plays it (Appendix E).

It is deterministic, with the minimal action set and one frame per action. An `Emulator`
can be saved and restored exactly, so looking ahead leaves no trace. Games have the
names that Gymnasium uses, such as ``Freeway`` or ``MontezumaRevenge``.

This is the only module that imports ale-py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import check_int, explain_extra, suggest_name

# ALE ends the process when one of these is loaded.
_TWO_PLAYER_GAMES = {"combat", "joust", "maze_craze", "warlords"}

Bytes = NDArray[np.uint8]


class EmulatorStep(NamedTuple):
    """What happened while an action was repeated.

    Attributes
    ----------
    rewards : list of float
        The reward of each frame.
    rams : list of array (128,)
        The memory after each frame.
    ended : bool
        Whether the game is over, or the one life that it was played for is lost.
    life_lost : int
        The first frame in which a life was lost, or -1.
    """

    rewards: list[float]
    rams: list[Bytes]
    ended: bool
    life_lost: int


class Emulator:
    """One game of the Arcade Learning Environment, without sticky actions.

    Parameters
    ----------
    game : str
        Name of the game, such as ``"MontezumaRevenge"``. ``"montezuma_revenge"`` and
        ``"ALE/MontezumaRevenge-v5"`` are accepted too.

    Attributes
    ----------
    game : str
        Name of the game, as Gymnasium uses it.
    actions : tuple of str
        Names of the actions of the minimal set; an action is its index here. NOOP is
        the first.
    n_actions : int
        Number of actions.
    noop_added : bool
        Whether NOOP was put before the minimal set, which does not have it. So it is in
        Backgammon and VideoCheckers.

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
        ale_py = _import_ale_py()
        self.game = find_game_name(game)

        self._ale = ale_py.ALEInterface()
        self._ale.setFloat("repeat_action_probability", 0.0)
        self._ale.setInt("frame_skip", 1)
        # No random number is drawn without sticky actions; the seed only silences ALE.
        self._ale.setInt("random_seed", 0)
        rom_id = _list_rom_ids()[self.game]
        self._ale.loadROM(ale_py.roms.get_rom_path(rom_id))

        codes = tuple(self._ale.getMinimalActionSet())
        noop = ale_py.Action.NOOP
        self.noop_added = noop not in codes
        if self.noop_added:
            codes = (noop, *codes)
        self._codes = codes
        self.actions: tuple[str, ...] = tuple(code.name for code in codes)
        self.n_actions = len(self.actions)

        # Whether the picture that ALE holds belongs to the present state.
        self._picture_is_current = False
        # ALE's own reset leaves traces in the memory: `reset` restores this state.
        self._first_state = self._ale.cloneState()

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
        """Emulate one frame with an action, and return the reward."""
        action = check_int("action", action, 0, self.n_actions - 1)
        self._picture_is_current = True
        return float(self._ale.act(self._codes[action]))

    def step(
        self, action: int, frame_skip: int = 1, *, one_life: bool = False
    ) -> EmulatorStep:
        """Repeat an action.

        Parameters
        ----------
        action : int
            The action.
        frame_skip : int, default=1
            Number of frames. There are fewer if the game is over before.
        one_life : bool, default=False
            Whether to end when a life is lost.
        """
        rewards: list[float] = []
        rams: list[Bytes] = []
        lives_at_start = self.lives
        life_lost = -1
        ended = False
        while len(rewards) < frame_skip and not ended:
            rewards.append(self.act(action))
            rams.append(self.ram())
            if life_lost < 0 and self.lives < lives_at_start:
                life_lost = len(rewards) - 1
            ended = self.over or (one_life and life_lost >= 0)
        return EmulatorStep(rewards, rams, ended, life_lost)

    def try_actions(
        self, state: Any, frame_skip: int = 1, *, one_life: bool = False
    ) -> Iterator[EmulatorStep]:
        """Repeat each action in turn from a saved state.

        After each `EmulatorStep` the emulator is where that action led. The parameters
        are those of `step`.
        """
        for action in range(self.n_actions):
            self.restore(state)
            yield self.step(action, frame_skip, one_life=one_life)

    def ram(self) -> Bytes:
        """A copy of the memory, ``(128,)``."""
        memory: Bytes = self._ale.getRAM()
        return memory

    def screen(self) -> Bytes:
        """The picture in colours, ``(height, 160, 3)``; most games are 210 lines high.

        A saved state has no picture. Right after `restore` or `reset` this is the
        picture of the next frame with NOOP; the state does not change.
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
        self.restore(self._first_state)

    def replay(self, actions: Iterable[int]) -> float:
        """Take actions from the beginning, one per frame; return the sum of rewards."""
        self.reset()
        return sum((self.act(action) for action in actions), start=0.0)


def find_game_name(game: str) -> str:
    """Find the name of a game as Gymnasium uses it, from any of its spellings.

    Examples
    --------
    >>> find_game_name("ALE/MsPacman-v5"), find_game_name("ms_pacman")
    ('MsPacman', 'MsPacman')
    """
    names = {name.lower(): name for name in _list_rom_ids()}
    spelling = str(game).strip().lower()
    without_version = re.sub(r"^ale/|(noframeskip|deterministic)?-v\d+$", "", spelling)
    letters = re.sub(r"[^a-z0-9]", "", without_version)
    if letters not in names:
        raise ValueError(
            f"unknown game {game!r}{suggest_name(letters, names)}; "
            "names are as in ALE/MsPacman-v5"
        )
    return names[letters]


@cache
def _list_rom_ids() -> dict[str, str]:
    """The ids of ROMs by the names of the games; those for two players are left out."""
    all_ids = set(_import_ale_py().roms.get_all_rom_ids())
    rom_ids = sorted(all_ids - _TWO_PLAYER_GAMES)
    return {rom_id.title().replace("_", ""): rom_id for rom_id in rom_ids}


@cache
def _import_ale_py() -> Any:
    """Import the package ale-py, which brings the games."""
    try:
        import ale_py
        import ale_py.roms
    except ImportError as error:
        raise ImportError(
            f"Atari games need ale-py ({error}): {explain_extra('atari')}"
        ) from None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return ale_py
