"""What is known of a game: where the player is in memory, where that is on the screen, and places that have names.

Section 5.2 speaks of lanes, ladders, ropes, doors and corners; to judge whether options go there, these places need
boundaries. They are ours, and were fixed before any option was looked at:

* Positions on the screen: a line fitted through `whereabouts` against the bytes (100 states a game), checked by eye.
* Freeway: a lane is 16 lines of the screen, between two rows of dashes.
* Montezuma's Revenge, first room: ladders, the rope and the doors lie where an exploration of 50,000 frames saw the
  player climb (x = 77, 133; by symmetry 21), hang (x = 109) and be held up (x = 24, 130); floors are the heights at
  which it stood (148, 192, 235), from edge to edge as drawn on the screen.
* Ms. Pac-Man, first maze: a junction is a position from which moves in three or four directions were seen in 68,000
  frames of random walks; the 36 found are symmetric. Corners are the ends of the outer corridors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions.atari.emulator import Emulator, game_name

Box = tuple[tuple[int, int], ...]  # for each byte of the position the smallest and the largest value


@dataclass(frozen=True)
class Game:
    """What is known of a game.

    Attributes
    ----------
    name
        As in `games`.
    position
        Addresses in RAM of the player's place; ``()``: unknown.
    regions
        Named places: boxes of positions, the bounds of each byte included.
    axes
        How positions become pixels ``(x, y)``: for each the number of the byte (None: constant), scale and offset.

    Examples
    --------
    >>> freeway = known("Freeway")
    >>> freeway.position, freeway.to_screen((6,)).tolist()
    ((14,), [47.0, 191.0])
    >>> [name for name in freeway.regions if freeway.inside(name, (30,))]
    ['lane 2']
    """

    name: str
    position: tuple[int, ...] = ()
    regions: Mapping[str, Box] = field(default_factory=dict)
    axes: tuple[tuple[int | None, float, float], ...] = ()

    def to_screen(self, position: ArrayLike) -> NDArray[np.float64]:
        """``(..., 2)`` pixels x and y (from the upper left corner) of positions ``(..., bytes)``."""
        at = self._checked(position).astype(np.float64)
        return np.stack(
            [
                np.full(at.shape[:-1], offset) if byte is None else scale * at[..., byte] + offset
                for byte, scale, offset in self.axes
            ],
            axis=-1,
        )

    def inside(self, region: str, position: ArrayLike) -> NDArray[np.bool_]:
        """``(...)`` whether positions ``(..., bytes)`` lie in a region."""
        if region not in self.regions:
            raise ValueError(
                f"{self.name} has the regions {', '.join(self.regions) or 'none'}, got {region!r}"
            )
        at = self._checked(position)
        low, high = np.array(self.regions[region]).T
        within: NDArray[np.bool_] = ((at >= low) & (at <= high)).all(axis=-1)
        return within

    def _checked(self, position: ArrayLike) -> NDArray[np.int64]:
        if not self.position:
            raise ValueError(
                f"the player's place in the memory of {self.name} is not known: ask whereabouts(emulator)"
            )
        at = np.asarray(position, dtype=np.int64)
        if at.shape[-1:] != (len(self.position),):
            raise ValueError(f"positions must have shape (..., {len(self.position)}), got {at.shape}")
        return at


def known(game: str) -> Game:
    """What is known of a game; of most, only its name.

    >>> known("montezuma_revenge").position, known("Pong").position
    ((42, 43), ())
    """
    name = game_name(game)
    return KNOWN.get(name, Game(name))


def whereabouts(emulator: Emulator, hold: int = 4) -> tuple[float, float] | None:
    """Where the player is on the screen of any game: the pixel (x, y) in the middle of what actions change.

    Every action is held for some frames from the present state. Pixels that differ between the outcomes are those the
    player is responsible for (contingency awareness; Bellemare, Veness and Bowling, 2012), and their medians are
    the answer. None where no action changes anything. The emulator is left as it was.

    Examples
    --------
    >>> emulator = Emulator("Freeway")
    >>> emulator.begin()
    >>> whereabouts(emulator)
    (47.0, 189.0)
    """
    if not isinstance(hold, int | np.integer) or hold < 1:
        raise ValueError(f"hold must be at least 1, got {hold!r}")
    here, pictures = emulator.save(), []
    for action in range(emulator.n_actions):
        emulator.restore(here)
        for _ in range(hold):
            emulator.act(action)
        pictures.append(emulator.screen())
    emulator.restore(here)
    changed = np.zeros(pictures[0].shape[:2], dtype=np.bool_)
    for picture in pictures[1:]:
        changed |= (picture != pictures[0]).any(axis=2)
    y, x = np.nonzero(changed)
    return (float(np.median(x)), float(np.median(y))) if len(x) else None


def _around(x: int, y: int, reach: int) -> Box:
    return (x - reach, x + reach), (y - reach, y + reach)


_LEFT = [  # junctions of Ms. Pac-Man's first maze left of its axis x = 88; the others are their mirror images
    *[(26, 26), (42, 26), (58, 26), (66, 26), (26, 50), (66, 50), (26, 74), (66, 74), (26, 98)],
    *[(58, 98), (66, 98), (74, 98), (26, 122), (42, 122), (74, 122), (74, 134), (42, 158), (74, 158)],
]
_JUNCTIONS = sorted(_LEFT + [(176 - x, y) for x, y in _LEFT])

KNOWN = {
    game.name: game
    for game in (
        Game(
            "Freeway",
            (14,),
            {
                "bottom": ((0, 13),),
                **{f"lane {k}": ((16 * k - 2, 16 * k + 13),) for k in range(1, 11)},
                "top": ((174, 255),),
            },
            ((None, 0.0, 47.0), (0, -1.0, 197.0)),
        ),
        Game(
            "MontezumaRevenge",
            (42, 43),
            {
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
            },
            ((0, 1.0, 3.0), (1, -1.0, 318.0)),
        ),
        Game(
            "MsPacman",
            (10, 16),
            {
                "upper left corner": _around(18, 2, 8),
                "upper right corner": _around(158, 2, 8),
                "lower left corner": _around(18, 158, 8),
                "lower right corner": _around(158, 158, 8),
                **{f"junction {x},{y}": _around(x, y, 3) for x, y in _JUNCTIONS},
            },
            ((0, 1.0, -8.0), (1, 1.0, 6.0)),
        ),
    )
}
