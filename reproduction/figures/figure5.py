"""Figure 5: options of the 4-room domain.

Options of the four smallest eigenvectors in the 4-room domain (the second is the PVF of Figure 2); they go to rooms,
not to doorways.
"""

from collections.abc import Iterator

from reproduction.figures.first_options import (
    Cell,
    distance,
    draw_options,
    find_options,
    find_rooms,
    find_stops,
    name_cells,
)
from reproduction.lab import Claim, Data, Lab

SECTION, ORDER = "4.1", 60
QUICK = {"eigenvectors": 8}
CAPTION = "Red: the option stops."


def run(lab: Lab, *, maze: str = "four-rooms", eigenvectors: int = 16, gamma: float = 0.9) -> Data:
    """Options of the first eigenvectors."""
    return find_options(maze, eigenvectors, gamma)


def claims(data: Data) -> Iterator[Claim]:
    rooms = find_rooms(data)
    doors = [cell for cell, room in rooms.items() if room < 0]
    first, listed = {}, {}
    for operator in ("normalized", "combinatorial"):
        entrances = find_entrances(data, doors, operator)
        first[operator] = min((i for i, _, _ in entrances if i > 1), default=0)
        names = [f"{label} at {cell}" for i, label, cell in entrances if i == first[operator]]
        listed[operator] = ", ".join(names) if first[operator] else "none of those examined"
    zero = [cell for i, _, cell in find_entrances(data, doors, "normalized") if i == 1]
    stops = [len(find_stops(data, label)) for label in ("e1+", "e1-")]
    yield Claim(
        "fifth-is-first-doorway",
        "Doorways are not the first options we discover in the 4-room domain (the fifth eigenoption is the "
        "first to terminate at the entrance of a doorway).",
        tests=[first["normalized"] == 5],
        measured=f"eigenvalue zero aside, the first is {listed['normalized']}",
        evidence=f"The doorways are {name_cells(doors)}; an entrance is a doorway or a cell beside one, and "
        f"either sign counts. With the combinatorial Laplacian the first is {listed['combinatorial']}. The "
        "eigenvector of eigenvalue zero, which the paper counts as the first, has no direction: it follows the "
        f"degree of the states. Its options stop in {stops[0]} and {stops[1]} states"
        + (f", also at entrances: {name_cells(zero, 3)}." if zero else "."),
    )
    ends = {
        label: {rooms[cell] for cell in find_stops(data, label)}
        for label in ("e2+", "e2-", "e3+", "e3-", "e4+", "e4-")
    }
    yield Claim(
        "first-to-rooms",
        "The first eigenoptions lead agents to individual rooms.",
        section="4.2",
        tests=[-1 not in numbers for numbers in ends.values()],
        measured="; ".join(f"{label} stops in {name_rooms(numbers)}" for label, numbers in ends.items()),
        evidence="e2 to e4, which Figure 5 shows, both signs: every run must end inside a room, none in a doorway. "
        "An option may have an end in each of two rooms, and lead to the nearer one.",
    )


def find_entrances(data: Data, doors: list[Cell], operator: str) -> list[tuple[int, str, Cell]]:
    """Number of the eigenvector, option and cell of every termination at an entrance, in order."""
    return [
        (i // 2 + 1, label, cell)
        for i, label in enumerate(data["options"].option.unique())
        for cell in find_stops(data, label, operator)
        if any(distance(cell, door) <= 1 for door in doors)
    ]


def name_rooms(numbers: set[int]) -> str:
    """Rooms as text.

    >>> name_rooms({-1, 0, 2})
    'rooms 1 and 3 and a doorway'
    """
    inside = sorted(i + 1 for i in numbers if i >= 0)
    words = f"room{'s' * (len(inside) != 1)} {' and '.join(map(str, inside))}" if inside else ""
    return words + (" and a doorway" if -1 in numbers else "")


figure = draw_options
