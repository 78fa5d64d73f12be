"""Figure 5: the first options of the 4-room domain, and the first of them that stops at a doorway."""

from __future__ import annotations

from eigenoptions.experiments import Claim, Results
from eigenoptions.experiments.claims import experiment, judge
from eigenoptions.experiments.paper import first_options as first

SETTINGS = first.settings("four-rooms", 16, 8, 4)


def claims(results: Results) -> list[Claim]:
    """Which option is the first to stop at the entrance of a doorway: in it, or in a cell beside it."""
    found = {operator: _at_doors(results, operator) for operator in first.OPERATORS}
    earliest = {operator: min((i for i, *_ in hits if i > 1), default=0) for operator, hits in found.items()}
    listed = {operator: _listed(hits, earliest[operator]) for operator, hits in found.items()}
    zero = [cell for i, _, cell in found["normalized"] if i == 1]
    room = first.room_of(results)
    labels = ("e2+", "e2-", "e3+", "e3-", "e4+", "e4-")
    at = {label: {room[cell] for cell in first.stops(results, label)} for label in labels}
    return [
        judge(
            "fifth-is-first-doorway",
            earliest["normalized"] == 5,
            ours=listed["normalized"],
            other=listed["combinatorial"],
            doors=first.names(first.doorways(results)),
            many=[len(first.stops(results, label)) for label in ("e1+", "e1-")],
            zero=f", also at entrances: {first.names(zero, 3)}." if zero else ".",
        ),
        judge(
            "first-to-rooms",
            *(len(ends) == 1 and -1 not in ends for ends in at.values()),
            ends={label: _rooms_of(ends) for label, ends in at.items()},
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


EXPERIMENT = experiment("figure5", SETTINGS, run=first.run, figure=first.figure, claims=claims)
