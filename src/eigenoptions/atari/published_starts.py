"""The start states of the paper's own experiments (Appendix E), as action sequences that its authors published.

The sequences are in the folder ``ale/humanStarts`` of github.com/mcmachado/options: a person played them with each
action held for 5 frames. There are six for each of the paper's games, the first a short wait.
"""

from __future__ import annotations

import re

from eigenoptions.atari.emulator import Emulator, game_name
from eigenoptions.atari.games import known
from eigenoptions.atari.starts import Start

# Frames that each action is held.
FRAMES = 5
LETTERS = {
    **{"N": "NOOP", "F": "FIRE", "U": "UP", "R": "RIGHT", "L": "LEFT", "D": "DOWN"},
    **{"r": "UPRIGHTFIRE", "l": "UPLEFTFIRE"},
}
# An action by its letter, and how many times it is taken in a row.
SEQUENCES: dict[str, tuple[str, ...]] = {
    "Freeway": (
        "N18",
        "N61 U4 N3 U1 N8",
        "N79 U5 N1 U7 N5",
        "N52 U22 N2",
        "N91 U12 N4 U15 N25",
        "N96 U39 N2",
    ),
    "MontezumaRevenge": (
        "N23",
        "N92 D5 N8 D1 N7 D4 N2 R10 r8 R4 r2 R4 D10 N2 L7 N10 L3 N4 L2 N6",
        "N109 R2 N10 r2 R8 N10",
        "N85 L1 l3 L8 N4",
        "N34 D12 R13 r3 R4 r2 R4 D10 L16 N12",
        "N113 D8 R8 r4 R2 r2 R2 D10 N8 L2 N4 L2 N14 L2 N12 L1 N9 L2 N4 l2 L14 U8 L4 N2 F2 N6",
    ),
    "MsPacman": (
        "N15",
        "N21 R40 N9 D2 N13",
        "N14 L43 N11 D2 N14",
        "N22 R41 N6 D2 R4 N5 U2 N23",
        "N32 L3 N13 L3 N16 D3 N3 L2 U5 N23",
        "N20 R4 N4 R4 N8 R2 N4 R2 N5 R2 N5 U4 N12 L4 N6",
    ),
}


def published_starts(game: str) -> list[Start]:
    """The six start states that the paper's authors published, of Freeway, MontezumaRevenge or MsPacman.

    `find_starts` finds others, in any game.

    Examples
    --------
    The chicken at different heights of the road; from the last one it has crossed, and is back.

    >>> [start.position for start in published_starts("Freeway")]
    [(6,), (31,), (66,), (116,), (141,), (6,)]
    """
    name = game_name(game)
    if name not in SEQUENCES:
        raise ValueError(
            f"the authors published start states of {', '.join(SEQUENCES)}, got {name}: use find_starts"
        )
    emulator, watch = Emulator(name), known(name).position
    found = []
    for text in SEQUENCES[name]:
        taken = [
            emulator.actions.index(LETTERS[letter])
            for letter, many in re.findall(r"(\w)(\d+)", text)
            for _ in range(FRAMES * int(many))
        ]
        emulator.replay(taken)
        found.append(Start(name, tuple(taken), watch, tuple(emulator.ram()[list(watch)].tolist())))
    return found
