"""Figure 2: the second PVF of the 4-room domain as a surface, and its option."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions import plots
from eigenoptions.experiments import Claim, Results
from eigenoptions.experiments.claims import experiment, judge
from eigenoptions.experiments.paper import first_options as first

SETTINGS = first.settings("four-rooms", 4, 4, 2)


def figure(results: Results) -> Any:
    """Draw the PVF with the sign that is high at the top right, as in the paper, and its option."""
    e, coords = results["vectors"][:, 1], results["coords"]
    sign = _sign(results)
    # The options of e2 come third and fourth, first with a plus sign.
    at = 2 if sign > 0 else 3
    return plots.figure(
        [
            plots.surface_panel(coords, sign * e, "Second PVF"),
            plots.policy_panel(coords, results["policy"][at], f"Its option ({results['labels'][at]})"),
        ]
    )


def claims(results: Results) -> list[Claim]:
    """Where the options of the second PVF end."""
    up, down = ("e2+", "e2-") if _sign(results) > 0 else ("e2-", "e2+")
    high, low = first.stops(results, up), first.stops(results, down)
    room = first.room_of(results)
    opposite = len(high) == len(low) == 1 and _opposite(results, room[high[0]], room[low[0]])
    corner = first.corners(results)[1]
    away = max(first.steps(cell, corner) for cell in high)
    other = first.stops(results, up, "combinatorial") + first.stops(results, down, "combinatorial")
    exact = min(other, key=lambda cell: first.steps(cell, corner))
    inside = [cell for cell in room if room[cell] == room[corner]]
    centre = tuple(float(np.mean([cell[i] for cell in inside])) for i in (0, 1))
    off = max(abs(cell[0] - centre[0]) + abs(cell[1] - centre[1]) for cell in high)
    there = len(high) == 1 and room[high[0]] == room[corner] and away <= 2
    beside = "that share no doorway" if opposite else "next to each other"
    ends = {"up": up, "high": first.names(high)}
    return [
        _rooms(results, room),
        judge("opposite-room", opposite, **ends, down=down, low=first.names(low), where=beside),
        judge("peak-centre", off <= 1, off <= 3, **ends, off=off, centre=centre),
        judge("peak-corner", away == 0, there, **ends, away=away, corner=corner, exact=exact),
    ]


def _rooms(results: Results, room: dict[first.Cell, int]) -> Claim:
    """Whether values of the second PVF distinguish the rooms, alone or with its neighbours."""
    of = np.array([room[int(r), int(c)] for r, c in results["coords"]])
    e = results["vectors"][:, 1:]
    alone, together = _nearest(e[:, :1], of), _nearest(e, of)
    return judge("pvf-rooms", alone == 1, together == 1, alone=alone, together=together, last=e.shape[1] + 1)


def _nearest(e: np.ndarray[Any, Any], room: np.ndarray[Any, Any]) -> float:
    """Share of the states whose room has the nearest mean."""
    inside = room >= 0
    means = np.stack([e[room == i].mean(axis=0) for i in range(room.max() + 1)])
    away = np.linalg.norm(e[inside][:, None] - means, axis=2)
    return float((away.argmin(axis=1) == room[inside]).mean())


def _sign(results: Results) -> float:
    """Sign with which the second PVF is highest at the top right."""
    e = results["vectors"][:, 1]
    toward = results["coords"][:, 1] - results["coords"][:, 0]
    return float(np.sign(toward[np.argmax(e)] - toward[np.argmin(e)]))


def _opposite(results: Results, a: int, b: int) -> bool:
    """Whether two are different rooms that share no doorway."""
    room = first.room_of(results)
    doors = ({room[cell] for cell in room if first.steps(cell, d) == 1} for d in first.doorways(results))
    return a != b and -1 not in (a, b) and not any({a, b} <= beside for beside in doors)


EXPERIMENT = experiment("figure2", SETTINGS, run=first.run, figure=figure, claims=claims)
