"""Figure 2: second PVF and its option.

The second PVF of the 4-room domain has a hill in one room and a valley in the opposite one; its option climbs from
everywhere to the top right.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from eigenoptions.plots import draw_policy, draw_values
from reproduction.drawing import make_maps
from reproduction.figures.first_options import (
    distance,
    find_corners,
    find_options,
    find_policy,
    find_rooms,
    find_stops,
    maze_of,
    name_cells,
)
from reproduction.lab import Claim, Data, Lab

SECTION, ORDER = "3", 20
CAPTION = "Red: the option stops."


def run(lab: Lab, *, maze: str = "four-rooms", eigenvectors: int = 4, gamma: float = 0.9) -> Data:
    """Options of the first eigenvectors."""
    return find_options(maze, eigenvectors, gamma)


def figure(data: Data) -> Any:
    # The sign that is high at the top right, as in the paper.
    sign, mdp = find_sign(data), maze_of(data)
    label = "e2+" if sign > 0 else "e2-"
    picture, (values, arrows) = make_maps(2, width=5.0)
    draw_values(values, mdp, sign * find_vectors(data)[:, 1], colorbar="value")
    draw_policy(arrows, mdp, find_policy(data, label).action)
    values.set_title("Second PVF")
    arrows.set_title(f"Its option ({label})")
    return picture


def claims(data: Data) -> Iterator[Claim]:
    vectors, room = find_vectors(data), data["rooms"].room.to_numpy()
    alone, together = classify_rooms(vectors[:, 1:2], room), classify_rooms(vectors[:, 1:], room)
    yield Claim(
        "pvf-rooms",
        "We should be able to automatically distinguish between the different rooms in the environment. This "
        "is exactly what PVFs do.",
        tests=[alone == 1, together == 1],
        measured=f"nearest room by the value of e2 alone: right for {alone:.0%} of the states; by e2 to "
        f"e{vectors.shape[1]}: {together:.0%}",
        evidence="A state belongs to the room whose mean value is nearest, doorways left out. Two tests: all "
        "states are right by the second PVF, which the figure shows, and by the first three together.",
    )
    up, down = ("e2+", "e2-") if find_sign(data) > 0 else ("e2-", "e2+")
    high, low = find_stops(data, up), find_stops(data, down)
    rooms, corner = find_rooms(data), find_corners(data)[1]
    opposite = len(high) == len(low) == 1 and share_no_doorway(rooms, rooms[high[0]], rooms[low[0]])
    yield Claim(
        "opposite-room",
        "A PVF is a desire to reach the highest point of the plot or, with the other sign, the lowest point, "
        "corresponding to the opposite room.",
        tests=[opposite],
        measured=f"{up} stops at {name_cells(high)} and {down} at {name_cells(low)}, in rooms "
        f"{'that share no doorway' if opposite else 'next to each other'}",
        evidence="Rooms are what is left in one piece when the doorways are closed; opposite rooms share none.",
    )
    centre = np.mean([cell for cell in rooms if rooms[cell] == rooms[corner]], axis=0)
    off = max(np.abs(np.asarray(cell) - centre).sum() for cell in high)
    yield Claim(
        "peak-centre",
        "The highest point of the plot corresponds to the centre of the room.",
        tests=[off <= 1, off <= 3],
        measured=f"{up} stops at {name_cells(high)}, {off:g} steps from the centre of its room",
        evidence=f"The centre is the mean of the room's cells, ({centre[0]:g}, {centre[1]:g}). Two tests: at "
        "most one step from it, at most three. The caption of Figure 2 says corner instead.",
    )
    away = max(distance(cell, corner) for cell in high)
    combinatorial = [cell for option in (up, down) for cell in find_stops(data, option, "combinatorial")]
    yield Claim(
        "peak-corner",
        "Second PVF and its option in the 4-room domain: terminate is in the top right corner.",
        section="Figure 2",
        tests=[away == 0, len(high) == 1 and rooms[high[0]] == rooms[corner] and away <= 2],
        measured=f"{up} stops at {name_cells(high)}, {away} steps from the corner {corner}",
        evidence="The normalized Laplacian weighs states by the root of their degree, so its peak lies away "
        "from the walls. With the combinatorial Laplacian the option ends at "
        f"{min(combinatorial, key=lambda cell: distance(cell, corner))}. The paper's text speaks of the centre "
        "of the room, its caption of the corner.",
    )


def find_vectors(data: Data) -> Any:
    """``(S, k)`` eigenvectors."""
    return data["eigenvectors"].pivot(index="state", columns="eigenvector", values="value").to_numpy()


def find_sign(data: Data) -> float:
    """Sign with which the second PVF is highest at the top right."""
    e, toward = find_vectors(data)[:, 1], (data["rooms"].column - data["rooms"].row).to_numpy()
    return float(np.sign(toward[np.argmax(e)] - toward[np.argmin(e)]))


def classify_rooms(vectors: Any, room: Any) -> float:
    """Share of the states whose room has the nearest mean."""
    inside = room >= 0
    means = np.stack([vectors[room == i].mean(axis=0) for i in range(room.max() + 1)])
    distances = np.linalg.norm(vectors[inside][:, None] - means, axis=2)
    return float((distances.argmin(axis=1) == room[inside]).mean())


def share_no_doorway(rooms: dict[Any, int], a: int, b: int) -> bool:
    """Whether two are different rooms without a common doorway."""
    doors = [cell for cell, room in rooms.items() if room < 0]
    beside = [{room for cell, room in rooms.items() if distance(cell, door) == 1} for door in doors]
    return a != b and -1 not in (a, b) and not any({a, b} <= pair for pair in beside)
