"""Figure 2: the second PVF of the 4-room domain as a surface, and its option."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenoptions import plots
from eigenoptions.experiments import Claim, Experiment, Results, verdict
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
    away = [first.steps(cell, corner) for cell in high]
    other = first.stops(results, up, "combinatorial") + first.stops(results, down, "combinatorial")
    exact = min(other, key=lambda cell: first.steps(cell, corner))
    inside = [cell for cell in room if room[cell] == room[corner]]
    centre = tuple(float(np.mean([cell[i] for cell in inside])) for i in (0, 1))
    off = max(abs(cell[0] - centre[0]) + abs(cell[1] - centre[1]) for cell in high)
    return [
        _rooms(results, room),
        Claim(
            "A PVF is a desire to reach the highest point of the plot or, with the other sign, the lowest "
            "point, corresponding to the opposite room.",
            "3",
            f"{up} stops at {first.names(high)} and {down} at {first.names(low)}, in rooms "
            + ("that share no doorway" if opposite else "next to each other"),
            verdict(opposite),
            "Rooms are what is left in one piece when the doorways are closed; opposite rooms share none.",
            "opposite-room",
        ),
        Claim(
            "The highest point of the plot corresponds to the centre of the room.",
            "3",
            f"{up} stops at {first.names(high)}, {off:g} steps from the centre of its room",
            verdict(off <= 1, off <= 3),
            f"The centre is the mean of the room's cells, ({centre[0]:g}, {centre[1]:g}). Two tests: at most one step "
            "from it, at most three. The caption of Figure 2 says corner instead.",
            "peak-centre",
        ),
        Claim(
            "Second PVF and its option in the 4-room domain: terminate is in the top right corner.",
            "Figure 2",
            f"{up} stops at {first.names(high)}, {max(away)} steps from the corner {corner}",
            verdict(max(away) == 0, len(high) == 1 and room[high[0]] == room[corner] and max(away) <= 2),
            "The normalized Laplacian weighs states by the root of their degree, so its peak lies away from "
            f"the walls. With the combinatorial Laplacian the option ends at {exact}. The paper's text "
            "speaks of the centre of the room, its caption of the corner.",
            "peak-corner",
        ),
    ]


def _rooms(results: Results, room: dict[first.Cell, int]) -> Claim:
    """Whether values of the second PVF distinguish the rooms, alone or with its neighbours."""
    of = np.array([room[int(r), int(c)] for r, c in results["coords"]])
    e = results["vectors"][:, 1:]
    own = {k: _nearest(e[:, :k], of) for k in (1, e.shape[1])}
    return Claim(
        "We should be able to automatically distinguish between the different rooms in the environment. This is "
        "exactly what PVFs do.",
        "3",
        f"nearest room by the value of e2 alone: right for {own[1]:.0%} of the states; by e2 to e{e.shape[1] + 1}: "
        f"{own[e.shape[1]]:.0%}",
        verdict(own[1] == 1, own[e.shape[1]] == 1),
        "A state belongs to the room whose mean value is nearest, doorways left out. Two tests: all states are right "
        "by the second PVF, which the figure shows, and by the first three together.",
        "pvf-rooms",
    )


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


EXPERIMENT = Experiment(
    "figure2",
    "Figure 2: second PVF and its option",
    "3",
    "The second PVF of the 4-room domain has a hill in one room and a valley in the opposite one; its option "
    "climbs from everywhere to the top right.",
    SETTINGS,
    first.run,
    figure,
    claims,
    order=20,
)
