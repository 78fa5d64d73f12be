"""Atari 2600 games: eigenoptions from the memory of an emulator (paper, Section 5.2 and Appendix E).

The 1,024 bits of a game's RAM are the features; an emulator that can be saved and restored tries every action. This
is the only door to ale-py, which comes with the games: ``pip install 'eigenoptions[atari]'``.
"""

from __future__ import annotations

from eigenoptions.atari.emulator import Emulator, bits, game_name, games

__all__ = ["Emulator", "bits", "game_name", "games"]
