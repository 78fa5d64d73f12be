"""Figure 5: the first options of the 4-room domain, and the first of them that stops at a doorway."""

from __future__ import annotations

from eigenoptions.experiments import Claim, Experiment, Results, verdict
from eigenoptions.experiments.paper import first_options as first

SETTINGS = first.settings("four-rooms", 16, 8, 4)


def claims(results: Results) -> list[Claim]:
    """Which option is the first to stop at the entrance of a doorway: in it, or in a cell beside it."""
    doors = first.doorways(results)
    found = {operator: _at_doors(results, operator) for operator in first.OPERATORS}
    earliest = {operator: min((i for i, *_ in hits if i > 1), default=0) for operator, hits in found.items()}
    many = [len(first.stops(results, label)) for label in ("e1+", "e1-")]
    zero = [cell for i, _, cell in found["normalized"] if i == 1]
    room = first.room_of(results)
    labels = ("e2+", "e2-", "e3+", "e3-", "e4+", "e4-")
    at = {label: {room[cell] for cell in first.stops(results, label)} for label in labels}
    return [
        Claim(
            "Doorways are not the first options we discover in the 4-room domain (the fifth eigenoption is "
            "the first to terminate at the entrance of a doorway).",
            "4.1",
            f"eigenvalue zero aside, the first is {_listed(found['normalized'], earliest['normalized'])}",
            verdict(earliest["normalized"] == 5),
            f"The doorways are {first.names(doors)}; an entrance is a doorway or a cell beside one, and "
            "either sign counts. With the combinatorial Laplacian the first is "
            f"{_listed(found['combinatorial'], earliest['combinatorial'])}. The eigenvector of eigenvalue "
            "zero, which the paper counts as the first, has no direction: it follows the degree of the "
            f"states. Its options stop in {many[0]} and {many[1]} states"
            + (f", also at entrances: {first.names(zero, 3)}." if zero else "."),
            "fifth-is-first-doorway",
        ),
        Claim(
            "The first eigenoptions lead agents to individual rooms.",
            "4.2",
            "; ".join(f"{label} stops in {_rooms_of(ends)}" for label, ends in at.items()),
            verdict(*(len(ends) == 1 and -1 not in ends for ends in at.values())),
            "e2 to e4, which Figure 5 shows, both signs: all ends of an option must lie in one room, none in a "
            "doorway.",
            "first-to-rooms",
        ),
    ]


def _rooms_of(ends: set[int]) -> str:
    inside = sorted(i + 1 for i in ends if i >= 0)
    words = f"room{'s' * (len(inside) != 1)} {' and '.join(map(str, inside))}" if inside else ""
    return words + (" and a doorway" if -1 in ends else "")


def _at_doors(results: Results, operator: str) -> list[tuple[int, str, first.Cell]]:
    """Eigenvector, option and cell of every stop at an entrance, in order."""
    doors = first.doorways(results)
    return [
        (i // 2 + 1, label, cell)
        for i, label in enumerate(results["labels"])
        for cell in first.stops(results, label, operator)
        if any(first.steps(cell, door) <= 1 for door in doors)
    ]


def _listed(hits: list[tuple[int, str, first.Cell]], number: int) -> str:
    mine = [(label, cell) for i, label, cell in hits if i == number]
    return ", ".join(f"{label} at {cell}" for label, cell in mine) or "none of those examined"


EXPERIMENT = Experiment(
    "figure5",
    "Figure 5: options of the 4-room domain",
    "4.1",
    "Options of the four smallest eigenvectors in the 4-room domain (the second is the PVF of Figure 2); "
    "they go to rooms, not to doorways.",
    SETTINGS,
    first.run,
    first.figure,
    claims,
    order=60,
)
