"""What is known about games: where memory holds the player's position, named places, and start states.

Section 5.2 of the paper mentions lanes, ladders, ropes, doors and corners. To judge whether options go there, these
places need boundaries. They are ours, and were fixed before any option was looked at:

* Positions on the screen: a line fitted through where actions change pixels (100 states per game), checked by eye.
* Freeway: a lane is 16 lines of the screen, between two rows of dashes.
* Montezuma's Revenge, first room: ladders, the rope and the doors are where an exploration of 50,000 frames saw the
  player climb (x = 77, 133; by symmetry 21), hang (x = 109) and be stopped (x = 24, 130).
* Ms. Pac-Man, first maze: a junction is a position from which moves in three or four directions were seen in 68,000
  frames of random walks; the 36 junctions are symmetric. Corners are the ends of the outer corridors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from eigenoptions.atari import published_starts
from eigenoptions.atari.emulator import find_game_name

# For each byte of a position the smallest and the largest value, included.
Box = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Game:
    """What is known about a game.

    >>> freeway = get_game("Freeway")
    >>> freeway.to_screen((6,)).tolist(), freeway.find_region((30,))
    ([47.0, 191.0], 'lane 2')
    """

    name: str
    position: tuple[int, ...]  # addresses in memory of the player's position
    regions: Mapping[str, Box]  # named places
    # Pixels (x, y) from the upper left corner are position @ scale + offset.
    scale: tuple[tuple[float, float], ...]
    offset: tuple[float, float]
    context: tuple[
        int, ...
    ] = ()  # other bytes that distinguish the states of a game graph: room, direction

    def to_screen(self, positions: ArrayLike) -> NDArray[np.float64]:
        """``(..., 2)`` pixels of positions ``(..., bytes)``."""
        return np.asarray(positions, dtype=float) @ np.array(self.scale) + self.offset

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
    """The actions, one per frame, that lead to each of the six starts of a collection (paper, Appendix E).

    ``starts.csv`` has those of collections 1 to 3 and 21 to 23. An exploration (Ecoffet et al., 2021) found them:
    places far apart in which the player survives a second without an action. Others have the starts of the authors.
    """
    table = pd.read_csv(Path(__file__).parent / "starts.csv")
    table = table[(table.game == game) & (table.collection == collection)]
    if table.empty:
        return published_starts(game)
    # A text such as "60*0 8*1": 60 frames of action 0, then 8 of action 1.
    runs = [re.findall(r"(\d+)\*(\d+)", text) for text in table.actions]
    return [
        tuple(int(action) for count, action in run for _ in range(int(count)))
        for run in runs
    ]


def _around(x: int, y: int, reach: int) -> Box:
    return (x - reach, x + reach), (y - reach, y + reach)


# Junctions of Ms. Pac-Man's first maze left of its axis x = 88; the others are their mirror images.
_LEFT = [
    *[
        (26, 26),
        (42, 26),
        (58, 26),
        (66, 26),
        (26, 50),
        (66, 50),
        (26, 74),
        (66, 74),
        (26, 98),
    ],
    *[
        (58, 98),
        (66, 98),
        (74, 98),
        (26, 122),
        (42, 122),
        (74, 122),
        (74, 134),
        (42, 158),
        (74, 158),
    ],
]
_ROAD: dict[str, Box] = {
    "bottom": ((0, 13),),
    **{f"lane {k}": ((16 * k - 2, 16 * k + 13),) for k in range(1, 11)},
    "top": ((174, 255),),
}
_FIRST_ROOM: dict[str, Box] = {
    "central ladder": ((73, 81), (193, 234)),
    "left ladder": ((17, 25), (149, 191)),
    "right ladder": ((129, 137), (149, 191)),
    "rope": ((107, 111), (187, 234)),
    "left door": ((0, 25), (235, 255)),
    "right door": ((129, 255), (235, 255)),
    "key": ((8, 20), (193, 226)),
}
_FIRST_MAZE: dict[str, Box] = {
    "upper left corner": _around(18, 2, 8),
    "upper right corner": _around(158, 2, 8),
    "lower left corner": _around(18, 158, 8),
    "lower right corner": _around(158, 158, 8),
    **{
        f"junction {x},{y}": _around(x, y, 3)
        for x, y in sorted(_LEFT + [(176 - x, y) for x, y in _LEFT])
    },
}
GAMES = {
    game.name: game
    for game in (
        Game("Freeway", (14,), _ROAD, ((0, -1),), (47, 197)),
        Game(
            "MontezumaRevenge",
            (42, 43),
            _FIRST_ROOM,
            ((1, 0), (0, -1)),
            (3, 318),
            context=(3,),
        ),
        Game(
            "MsPacman", (10, 16), _FIRST_MAZE, ((1, 0), (0, 1)), (-8, 6), context=(56,)
        ),
    )
}
