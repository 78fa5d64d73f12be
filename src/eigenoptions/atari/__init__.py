"""Atari 2600 games: eigenoptions from the memory of an emulator (paper, Section 5.2 and Appendix E).

The 1,024 bits of a game's RAM are the features; an emulator that can be saved and restored tries every action. This
is the only door to ale-py, which comes with the games: ``pip install 'eigenoptions[atari]'``.
`eigenoptions.atari.emulator.games` lists them.
"""

from __future__ import annotations

from eigenoptions.atari.charting import Chart, chart, follow, plan
from eigenoptions.atari.emulator import Emulator, bits, game_name
from eigenoptions.atari.games import Game, known, whereabouts
from eigenoptions.atari.protocol import (
    active,
    collect,
    complete,
    directions,
    paper_order,
    random_directions,
    rank,
    rows_of_v,
)
from eigenoptions.atari.rolling import Rollouts, play
from eigenoptions.atari.skills import atari_options, bind
from eigenoptions.atari.slowness import slow_directions
from eigenoptions.atari.starts import Start, find_starts, influence, load_starts, player_bytes, save_starts

__all__ = [
    "Chart",
    "Emulator",
    "Game",
    "Rollouts",
    "Start",
    "active",
    "atari_options",
    "bind",
    "bits",
    "chart",
    "collect",
    "complete",
    "directions",
    "find_starts",
    "follow",
    "game_name",
    "influence",
    "known",
    "load_starts",
    "paper_order",
    "plan",
    "play",
    "player_bytes",
    "random_directions",
    "rank",
    "rows_of_v",
    "save_starts",
    "slow_directions",
    "whereabouts",
]
