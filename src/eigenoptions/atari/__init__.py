"""Atari 2600 games: eigenoptions from the memory of an emulator (paper, Section 5.2 and Appendix E).

The 1,024 bits of a game's RAM are the features; an emulator that can be saved and restored tries every action. The
steps of `discover` are `find_starts`, `collect`, `directions` and `atari_options`. Only this package imports ale-py,
which brings the games: ``pip install 'eigenoptions[atari]'``. `eigenoptions.atari.emulator.games` lists them.
"""

from __future__ import annotations

from eigenoptions.atari.charts import Chart, chart, follow, plan
from eigenoptions.atari.emulator import Emulator, game_name, whereabouts
from eigenoptions.atari.games import Game, known, register
from eigenoptions.atari.options import atari_options, bind, discover
from eigenoptions.atari.protocol import (
    active,
    collect,
    complete,
    directions,
    paper_order,
    random_directions,
    rank,
)
from eigenoptions.atari.published_starts import published_starts
from eigenoptions.atari.ram import Ram, bits
from eigenoptions.atari.rollouts import Rollouts, Rules, play
from eigenoptions.atari.slow_features import slow_directions
from eigenoptions.atari.starts import Start, find_starts, influence, load_starts, player_bytes, save_starts

# fmt: off
__all__ = [
    "Chart", "Emulator", "Game", "Ram", "Rollouts", "Rules", "Start", "active", "atari_options", "bind", "bits",
    "chart", "collect", "complete", "directions", "discover", "find_starts", "follow", "game_name", "influence",
    "known", "load_starts", "paper_order", "plan", "play", "player_bytes", "published_starts", "random_directions",
    "rank", "register", "save_starts", "slow_directions", "whereabouts",
]
