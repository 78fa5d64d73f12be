"""What is known about games: where memory holds the player's position, where that is on the screen, named places.

Section 5.2 of the paper mentions lanes, ladders, ropes, doors and corners. To judge whether options go there, these
places need boundaries. They are ours, and were fixed before any option was looked at:

* Positions on the screen: a line fitted through where actions change pixels (100 states per game), checked by eye.
* Freeway: a lane is 16 lines of the screen, between two rows of dashes.
* Montezuma's Revenge, first room: ladders, the rope and the doors are where an exploration of 50,000 frames saw the
  player climb (x = 77, 133; by symmetry 21), hang (x = 109) and be stopped (x = 24, 130); floors are the heights at
  which it stood (148, 192, 235), from edge to edge as drawn on the screen.
* Ms. Pac-Man, first maze: a junction is a position from which moves in three or four directions were seen in 68,000
  frames of random walks; the 36 junctions are symmetric. Corners are the ends of the outer corridors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions.atari.emulator import game_name

# For each byte of a position the smallest and the largest value.
Box = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Game:
    """What is known about a game.

    Attributes
    ----------
    name, position, context
        Name of the game; addresses in memory of the player's position; and of the bytes that distinguish the states of
        a game graph beside it: the room, the direction.
    regions, axes
        Named places, boxes of positions with their bounds included; and how positions become pixels ``(x, y)``: for
        each the number of the byte (None: constant), scale and offset.

    Examples
    --------
    >>> freeway = get_game("Freeway")
    >>> freeway.to_screen((6,)).tolist(), freeway.find_region((30,))
    ([47.0, 191.0], 'lane 2')
    """

    name: str
    position: tuple[int, ...]
    regions: Mapping[str, Box]
    axes: tuple[tuple[int | None, float, float], ...]
    context: tuple[int, ...] = ()

    def to_screen(self, positions: ArrayLike) -> NDArray[np.float64]:
        """``(..., 2)`` pixels x and y (from the upper left corner) of positions ``(..., bytes)``."""
        at = np.asarray(positions, dtype=np.float64)
        terms = [0.0 * at[..., 0] if byte is None else scale * at[..., byte] for byte, scale, _ in self.axes]
        return np.stack(terms, axis=-1) + [offset for _, _, offset in self.axes]

    def find_region(self, position: ArrayLike) -> str:
        """The region that holds a position, or ``""``."""
        at = np.asarray(position, dtype=float)
        for name, box in self.regions.items():
            if all(low <= x <= high for x, (low, high) in zip(at, box, strict=True)):
                return name
        return ""


def get_game(game: str) -> Game:
    """What is known about a game of the paper.

    >>> get_game("montezuma_revenge").position
    (42, 43)
    """
    name = game_name(game)
    if name not in GAMES:
        raise ValueError(f"game must be one of {', '.join(GAMES)}, got {game!r}")
    return GAMES[name]


def _around(x: int, y: int, reach: int) -> Box:
    return (x - reach, x + reach), (y - reach, y + reach)


# Junctions of Ms. Pac-Man's first maze left of its axis x = 88; the others are their mirror images.
_LEFT = [
    *[(26, 26), (42, 26), (58, 26), (66, 26), (26, 50), (66, 50), (26, 74), (66, 74), (26, 98)],
    *[(58, 98), (66, 98), (74, 98), (26, 122), (42, 122), (74, 122), (74, 134), (42, 158), (74, 158)],
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
    "upper left platform": ((26, 54), (235, 255)),
    "upper platform": ((64, 90), (235, 255)),
    "upper right platform": ((100, 128), (235, 255)),
    "conveyor": ((57, 98), (192, 192)),
    "left platform": ((0, 34), (192, 192)),
    "right platform": ((121, 255), (192, 192)),
    "floor": ((0, 255), (0, 148)),
}
_FIRST_MAZE: dict[str, Box] = {
    "upper left corner": _around(18, 2, 8),
    "upper right corner": _around(158, 2, 8),
    "lower left corner": _around(18, 158, 8),
    "lower right corner": _around(158, 158, 8),
    **{f"junction {x},{y}": _around(x, y, 3) for x, y in sorted(_LEFT + [(176 - x, y) for x, y in _LEFT])},
}
GAMES = {
    "Freeway": Game("Freeway", (14,), _ROAD, ((None, 0.0, 47.0), (0, -1.0, 197.0))),
    "MontezumaRevenge": Game(
        "MontezumaRevenge", (42, 43), _FIRST_ROOM, ((0, 1.0, 3.0), (1, -1.0, 318.0)), context=(3,)
    ),
    "MsPacman": Game("MsPacman", (10, 16), _FIRST_MAZE, ((0, 1.0, -8.0), (1, 1.0, 6.0)), context=(56,)),
}
