"""Atari 2600 games: eigenoptions from the memory of an emulator (paper, Section 5.2 and Appendix E).

The 1,024 bits of a game's RAM are the features; an emulator that can be saved and restored tries every action. This
is the only door to ale-py, which comes with the games: ``pip install 'eigenoptions[atari]'``.
"""

from __future__ import annotations

from eigenoptions.atari.emulator import Emulator, bits, game_name, games
from eigenoptions.atari.games import Game, known, whereabouts
from eigenoptions.atari.starts import Start, find_starts, load_starts, save_starts

__all__ = [
    "Emulator",
    "Game",
    "Start",
    "bits",
    "find_starts",
    "game_name",
    "games",
    "known",
    "load_starts",
    "save_starts",
    "whereabouts",
]
