"""What is known about games: the player's position, named places, and start states.

Section 5.2 of the paper mentions lanes, ladders, ropes, doors and corners. To judge
whether options go there, these places need boundaries. They are ours, and were fixed
before any option was looked at:

* Positions on the screen: a line fitted through where actions change pixels (100 states
  per game), checked by eye.
* Freeway: a lane is 16 lines of the screen, between two rows of dashes.
* Montezuma's Revenge, first room: ladders, the rope and the doors are where an
  exploration of 50,000 frames saw the player climb (x = 77, 133; by symmetry 21), hang
  (x = 109) and be stopped (x = 24, 130).
* Ms. Pac-Man, first maze: a junction is a position from which moves in three or four
  directions were seen in 68,000 frames of random walks; the 36 junctions are symmetric.
  Corners are the ends of the outer corridors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from eigenoptions._types import FloatArray
from eigenoptions.atari.emulator import find_game_name
from reproduction.atari.protocol import published_starts

# For each byte of a position the smallest and the largest value, included.
Box = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Game:
    """What is known about a game.

    Attributes
    ----------
    name : str
        Name of the game.
    position : tuple of int
        Addresses in memory of the player's position.
    regions : mapping
        Named places.
    scale, offset
        Pixels (x, y) from the upper left corner are ``position @ scale + offset``.
    context : tuple of int
        Addresses of other bytes that distinguish the states of a game graph: room,
        direction.

    Examples
    --------
    >>> freeway = get_game("Freeway")
    >>> freeway.to_screen((6,)).tolist(), freeway.find_region((30,))
    ([47.0, 191.0], 'lane 2')
    """

    name: str
    position: tuple[int, ...]
    regions: Mapping[str, Box]
    scale: tuple[tuple[float, float], ...]
    offset: tuple[float, float]
    context: tuple[int, ...] = ()

    def to_screen(self, positions: ArrayLike) -> FloatArray:
        """``(..., 2)`` pixels of positions ``(..., bytes)``."""
        pixels: FloatArray = np.asarray(positions, dtype=float) @ np.array(self.scale)
        return pixels + self.offset

    def find_region(self, position: ArrayLike) -> str:
        """The region that holds a position, or ``""``."""
        for name, box in self.regions.items():
            low, high = np.transpose(box)
            if np.all((low <= position) & (position <= high)):
                return name
        return ""


def get_game(game: str) -> Game:
    """What is known about a game of the paper, by any spelling of its name."""
    name = find_game_name(game)
    if name not in GAMES:
        raise ValueError(f"game must be one of {', '.join(GAMES)}, got {game!r}")
    return GAMES[name]


def load_starts(game: str, collection: int) -> list[tuple[int, ...]]:
    """The actions, one per frame, that lead to each of the six starts of a collection.

    ``starts.csv`` has those of collections 1 to 3 and 21 to 23. An exploration (Ecoffet
    et al., 2021) found them: places far apart in which the player survives a second
    without an action. Other collections have the starts of the authors (Appendix E).
    """
    table = pd.read_csv(Path(__file__).parent / "starts.csv")
    table = table[(table.game == game) & (table.collection == collection)]
    if table.empty:
        return published_starts(game)
    return [_read_actions(text) for text in table.actions]


def _read_actions(text: str) -> tuple[int, ...]:
    """The actions of a text: "60*0 8*1" is 60 frames of action 0, then 8 of 1."""
    actions: list[int] = []
    for count, action in re.findall(r"(\d+)\*(\d+)", text):
        actions += [int(action)] * int(count)
    return tuple(actions)


def _surround(x: int, y: int, reach: int) -> Box:
    """The square around a position."""
    return (x - reach, x + reach), (y - reach, y + reach)


def _list_lanes() -> dict[str, Box]:
    """The pavements of Freeway, and the ten lanes between them."""
    regions: dict[str, Box] = {"bottom": ((0, 13),)}
    for lane in range(1, 11):
        regions[f"lane {lane}"] = ((16 * lane - 2, 16 * lane + 13),)
    regions["top"] = ((174, 255),)
    return regions


def _list_crossings() -> dict[str, Box]:
    """Corners and junctions of Ms. Pac-Man's first maze."""
    regions = {
        "upper left corner": _surround(18, 2, 8),
        "upper right corner": _surround(158, 2, 8),
        "lower left corner": _surround(18, 158, 8),
        "lower right corner": _surround(158, 158, 8),
    }
    mirrored = [(176 - x, y) for x, y in _LEFT_JUNCTIONS]
    for x, y in sorted(_LEFT_JUNCTIONS + mirrored):
        regions[f"junction {x},{y}"] = _surround(x, y, 3)
    return regions


# Junctions left of the axis x = 88 of the maze; the others are their mirror images.
_LEFT_JUNCTIONS = [
    (26, 26),
    (42, 26),
    (58, 26),
    (66, 26),
    (26, 50),
    (66, 50),
    (26, 74),
    (66, 74),
    (26, 98),
    (58, 98),
    (66, 98),
    (74, 98),
    (26, 122),
    (42, 122),
    (74, 122),
    (74, 134),
    (42, 158),
    (74, 158),
]

# Places of the first room of Montezuma's Revenge.
_FIRST_ROOM: dict[str, Box] = {
    "central ladder": ((73, 81), (193, 234)),
    "left ladder": ((17, 25), (149, 191)),
    "right ladder": ((129, 137), (149, 191)),
    "rope": ((107, 111), (187, 234)),
    "left door": ((0, 25), (235, 255)),
    "right door": ((129, 255), (235, 255)),
    "key": ((8, 20), (193, 226)),
}

GAMES = {
    "Freeway": Game(
        name="Freeway",
        position=(14,),
        regions=_list_lanes(),
        scale=((0, -1),),
        offset=(47, 197),
    ),
    "MontezumaRevenge": Game(
        name="MontezumaRevenge",
        position=(42, 43),
        regions=_FIRST_ROOM,
        scale=((1, 0), (0, -1)),
        offset=(3, 318),
        context=(3,),
    ),
    "MsPacman": Game(
        name="MsPacman",
        position=(10, 16),
        regions=_list_crossings(),
        scale=((1, 0), (0, 1)),
        offset=(-8, 6),
        context=(56,),
    ),
}
