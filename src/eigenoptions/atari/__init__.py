"""Atari 2600 games: eigenoptions from the memory of an emulator.

The features are the 1,024 bits of a game's memory (paper, Section 5.2 and Appendix E).
The emulator can be saved and restored, so an option tries every action.

Needs ale-py, which brings the games: ``pip install 'eigenoptions[atari]'`` (in a clone
``'.[atari]'``).
"""

from eigenoptions.atari.emulator import Emulator
from eigenoptions.atari.options import ram_options
from eigenoptions.atari.ram import Ram
from eigenoptions.atari.slow import slow_directions

__all__ = [
    "Emulator",
    "Ram",
    "ram_options",
    "slow_directions",
]
