"""Figures 2 to 5: options of the first eigenvectors.

The second PVF of the 4-room domain, a hill in one room and a valley in the opposite one
(Figure 2), and the options of the four smallest eigenvectors in each domain. The first
eigenvector, e1, has eigenvalue zero.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import eigenoptions as eo
from eigenoptions._types import FloatArray, IntegerArray
from eigenoptions.discovery.methods.bottleneck import find_rooms
from eigenoptions.plots import draw_policy, draw_values
from reproduction.claims import Finding, claim, list_items, list_rows
from reproduction.drawing import make_maps
from reproduction.lab import Data, Job, Jobs, Results, stack_tables
from reproduction.runs.options import (
    ANGLES,
    MAZES,
    describe_options,
    make_eigenoptions,
)

SECTION = "4.1"
ORDER = 20
QUICK = {"eigenvectors": 8}
CAPTION = "Red: the option stops."

# Row and column.
Cell = tuple[int, int]

# The room of a cell that is a doorway.
DOORWAY = -1


def list_jobs(
    *, mazes: Sequence[str] = MAZES, eigenvectors: int = 16, gamma: float = 0.9
) -> Jobs:
    """Options of both signs of the first eigenvectors under two Laplacians."""
    options = [
        Job(
            find_stops,
            {
                "maze": maze,
                "operator": operator,
                "n": 2 * eigenvectors,
                "gamma": gamma,
            },
            {"domain": maze, "operator": operator},
        )
        for maze in mazes
        for operator in ("normalized", "combinatorial")
    ]
    return {
        "options": options,
        "cells": [Job(list_cells, {"maze": maze}) for maze in mazes],
        "rooms": [Job(tell_rooms_apart, {})],
        "turned": [
            Job(compare_lengths, {"angle": angle, "gamma": gamma}) for angle in ANGLES
        ],
    }


def find_stops(*, maze: str, operator: str, n: int, gamma: float) -> Data:
    """Describe the first options of a maze, and list the cells where they stop."""
    mdp = eo.maze(maze)
    options = make_eigenoptions(mdp, n, operator=operator, gamma=gamma)
    cells = list_cells(maze=maze)
    stops = [
        cells[option.termination].assign(operator=operator, option=option.label)
        for option in options
    ]
    return {"options": describe_options(options), "stops": pd.concat(stops)}


def list_cells(*, maze: str) -> pd.DataFrame:
    """One row per state of a maze: its cell, and the room that it is in."""
    mdp = eo.maze(maze)
    room, _ = find_rooms(mdp)
    cells = pd.DataFrame(np.asarray(mdp.coords), columns=["row", "column"])
    return cells.assign(domain=maze, room=room)


def tell_rooms_apart() -> dict[str, float]:
    """How well eigenvectors tell the rooms of the 4-room domain apart."""
    mdp = eo.maze("four-rooms")
    room, _ = find_rooms(mdp)
    vectors = eo.spectrum(eo.graph(mdp), k=4).vectors
    return {
        "e2": classify_rooms(vectors[:, 1:2], room),
        "e2_to_e4": classify_rooms(vectors[:, 1:], room),
    }


def classify_rooms(vectors: FloatArray, room: IntegerArray) -> float:
    """Share of the states, doorways left out, whose room has the nearest mean."""
    is_inside = room != DOORWAY
    n_rooms = room.max() + 1
    means = np.stack([vectors[room == i].mean(axis=0) for i in range(n_rooms)])
    distances = np.linalg.norm(vectors[is_inside][:, None] - means, axis=2)
    is_right = distances.argmin(axis=1) == room[is_inside]
    return float(is_right.mean())


def compare_lengths(*, angle: float, gamma: float) -> dict[str, float]:
    """How much longer e2 runs than e4 in another basis of the open room."""
    options = make_eigenoptions(eo.maze("open-room"), 8, angle=angle, gamma=gamma)
    ratio = options["e2+"].mean_length / options["e4+"].mean_length
    return {"angle": angle, "length_ratio": ratio}


def tabulate_results(results: Results) -> Data:
    """Options and their stops, cells of the mazes, and what eigenvectors tell."""
    options = [value["options"].assign(**names) for names, value in results["options"]]
    return {
        "options": pd.concat(options),
        "stops": pd.concat([value["stops"] for _, value in results["options"]]),
        "cells": stack_tables(results["cells"]),
        "pvf": pd.DataFrame([row for _, row in results["rooms"]]),
        "bases": pd.DataFrame([row for _, row in results["turned"]]),
    }


def draw_figure(data: Data) -> Figure:
    """The second eigenvector of each domain, and its first four options."""
    domains = data["cells"].domain.unique()
    figure, axes = make_maps(5 * len(domains), width=8.4, columns=5)
    for row, domain in enumerate(domains):
        mdp = eo.maze(domain)
        first, *others = axes[5 * row : 5 * row + 5]
        draw_values(first, mdp, eo.spectrum(eo.graph(mdp), k=4).vectors[:, 1])
        first.set_title(f"{domain}: second PVF")

        positive_signs = make_eigenoptions(mdp, 8)[::2]
        for ax, option in zip(others, positive_signs, strict=True):
            draw_policy(ax, mdp, option.policy)
            ax.set_title(f"{option.label}  λ = {option.eigenvalue:.3g}")
    return figure


# The second PVF of the 4-room domain


@claim(
    "pvf-rooms",
    "We should be able to automatically distinguish between the different rooms in the "
    "environment. This is exactly what PVFs do.",
    section="3",
)
def distinguish_rooms(data: Data) -> Finding:
    share = data["pvf"].iloc[0]
    return Finding(
        tests=[share.e2 == 1, share.e2_to_e4 == 1],
        measured=f"nearest room by the value of e2 alone: right for {share.e2:.0%} of "
        f"the states; by e2 to e4: {share.e2_to_e4:.0%}",
        evidence="A state belongs to the room whose mean is nearest. Two tests: all "
        "are right by the second PVF, which Figure 2 shows, and by the first three "
        "together.",
    )


@claim(
    "opposite-room",
    "A PVF is a desire to reach the highest point of the plot or, with the other sign, "
    "the lowest point, corresponding to the opposite room.",
    section="3",
)
def reach_opposite_room(data: Data) -> Finding:
    rooms = _find_rooms(data, "four-rooms")
    (up, high), (down, low) = _find_second_stops(data).items()
    stops = high + low
    reached = {rooms[cell] for cell in stops} - {DOORWAY}
    is_opposite = (
        len(stops) == 2 and len(reached) == 2 and not _share_doorway(rooms, reached)
    )
    words = "that share no doorway" if is_opposite else "next to each other"
    return Finding(
        tests=[is_opposite],
        measured=f"{up} stops at {name_cells(high)} and {down} at {name_cells(low)}, "
        f"in rooms {words}",
        evidence="Opposite rooms share no doorway.",
    )


@claim(
    "peak-centre",
    "The highest point of the plot corresponds to the centre of the room.",
    section="3",
)
def peak_at_centre(data: Data) -> Finding:
    rooms = _find_rooms(data, "four-rooms")
    _, corner, *_ = _find_corners(data, "four-rooms")
    own_room = [cell for cell, room in rooms.items() if room == rooms[corner]]
    centre = np.mean(own_room, axis=0)

    (up, high), _ = _find_second_stops(data).items()
    farthest = max(np.abs(np.asarray(cell) - centre).sum() for cell in high)
    return Finding(
        tests=[farthest <= 1, farthest <= 3],
        measured=f"{up} stops at {name_cells(high)}, {farthest:g} steps from the "
        "centre of its room",
        evidence=f"The centre is the mean of the room's cells, ({centre[0]:g}, "
        f"{centre[1]:g}). Two tests: at most one step from it, at most three. The "
        "caption of Figure 2 says corner instead.",
    )


@claim(
    "peak-corner",
    "Second PVF and its option in the 4-room domain: terminate is in the top right "
    "corner.",
    section="3",
)
def terminate_in_corner(data: Data) -> Finding:
    rooms = _find_rooms(data, "four-rooms")
    _, corner, *_ = _find_corners(data, "four-rooms")
    (up, high), _ = _find_second_stops(data).items()
    farthest = max(_measure_distance(cell, corner) for cell in high)
    is_near = len(high) == 1 and rooms[high[0]] == rooms[corner] and farthest <= 2

    combinatorial = [
        cell
        for label in ("e2+", "e2-")
        for cell in _find_stops(data, "four-rooms", label, "combinatorial")
    ]
    nearest = min(combinatorial, key=lambda cell: _measure_distance(cell, corner))
    return Finding(
        tests=[farthest == 0, is_near],
        measured=f"{up} stops at {name_cells(high)}, {farthest} steps from the corner "
        f"{corner}",
        evidence="The caption of Figure 2. The normalized Laplacian weighs states by "
        "the root of their degree, so its peak lies away from the walls. With the "
        f"combinatorial one the option ends at {nearest}.",
    )


# The open room


@claim(
    "corners",
    "We discover meaningful options, such as going to the corners of an open room.",
)
def go_to_corners(data: Data) -> Finding:
    labels = ("e2+", "e2-", "e3+", "e3-")
    stops = {label: _find_stops(data, "open-room", label) for label in labels}
    corners = _find_corners(data, "open-room")
    farthest = {}
    for operator in ("normalized", "combinatorial"):
        distances = []
        for label in labels:
            for cell in _find_stops(data, "open-room", label, operator):
                nearest = min(_measure_distance(cell, corner) for corner in corners)
                distances.append(nearest)
        farthest[operator] = max(distances)
    return Finding(
        tests=[farthest["normalized"] == 0, farthest["normalized"] <= 2],
        measured=list_items(
            "{} stops at {}", {label: name_cells(stops[label]) for label in labels}
        ),
        evidence=f"They end at most {farthest['normalized']} steps from a corner with "
        "the normalized Laplacian, which the paper uses, and "
        f"{farthest['combinatorial']} with the combinatorial one. The grid is square, "
        "so e2 and e3 have the same eigenvalue, and any basis of their plane is "
        "right. In another one they end in the middle of a wall.",
    )


@claim(
    "twice-as-often",
    "The fourth eigenoption terminates, on expectation, twice as often as the second "
    "eigenoption.",
    section="4.2",
)
def terminate_twice_as_often(data: Data) -> Finding:
    stops, length = _compare_second_with_fourth(data, "normalized")
    other_stops, other_length = _compare_second_with_fourth(data, "combinatorial")
    turned = list_rows("{length_ratio:.3g} (turned by {angle} degrees)", data["bases"])
    return Finding(
        tests=[abs(stops - 2) < 0.2, abs(length - 2) < 0.2],
        measured=f"e4 stops in {stops:.3g} times as many states as e2, and e2 runs "
        f"{length:.3g} times as long as e4 on average",
        evidence="Lengths are means over the states where an option may start. With "
        f"the combinatorial Laplacian the ratios are {other_stops:.3g} and "
        f"{other_length:.3g}; in other bases of the repeated eigenvalue the lengths "
        f"have the ratio {turned.replace(', ', ' and ')}. Twice as many ends do not "
        "halve the way to the nearest one.",
    )


# The I-Maze


@claim(
    "corridor",
    "We discover meaningful options, such as walking down a corridor.",
)
def walk_down_corridor(data: Data) -> Finding:
    stops = {label: _find_stops(data, "i-maze", label) for label in ("e2+", "e2-")}
    rows = {}
    for label, cells in stops.items():
        rows[label] = {row for row, _ in cells}
    lengths = _select(data["options"], "i-maze").mean_length
    maze_rows = data["cells"][data["cells"].domain == "i-maze"].row
    bars = {maze_rows.min(), maze_rows.max()}

    ends_in_one_bar = len(rows["e2+"]) == 1 and len(rows["e2-"]) == 1
    ends_in_both_bars = rows["e2+"] | rows["e2-"] == bars
    return Finding(
        tests=[ends_in_one_bar and ends_in_both_bars],
        measured=f"e2+ stops at {name_cells(stops['e2+'])} and e2- at "
        f"{name_cells(stops['e2-'])}, after {lengths['e2+']:.2f} and "
        f"{lengths['e2-']:.2f} steps on average",
        evidence="The corridor of the I-Maze runs from the upper to the lower bar: "
        "each sign must end in one of them only.",
    )


# The 4-room domain


@claim(
    "fifth-is-first-doorway",
    "Doorways are not the first options we discover in the 4-room domain (the fifth "
    "eigenoption is the first to terminate at the entrance of a doorway).",
)
def discover_doorway_fifth(data: Data) -> Finding:
    number, first = _find_first_entrance(data, "normalized")
    _, other_first = _find_first_entrance(data, "combinatorial")
    doorways = _list_doorways(_find_rooms(data, "four-rooms"))
    return Finding(
        tests=[number == 5],
        measured=f"eigenvalue zero aside, the first is {first}",
        evidence=f"The doorways are {name_cells(doorways)}; an entrance is a doorway "
        "or a cell beside one, and either sign counts. With the combinatorial "
        f"Laplacian the first is {other_first}. The eigenvector of eigenvalue zero, "
        "which the paper counts, has no direction: it follows the degree of the "
        "states.",
    )


@claim(
    "first-to-rooms",
    "The first eigenoptions lead agents to individual rooms.",
    section="4.2",
)
def lead_to_rooms(data: Data) -> Finding:
    rooms = _find_rooms(data, "four-rooms")
    words = {room: f"room {room + 1}" for room in rooms.values()}
    words[DOORWAY] = "a doorway"

    tests = []
    names = {}
    for label in ("e2+", "e2-", "e3+", "e3-", "e4+", "e4-"):
        stops = _find_stops(data, "four-rooms", label)
        reached = {rooms[cell] for cell in stops}
        tests.append(DOORWAY not in reached)
        names[label] = " and ".join(words[room] for room in sorted(reached))
    return Finding(
        tests=tests,
        measured=list_items("{} stops in {}", names),
        evidence="Every run must end inside a room, none in a doorway; an option may "
        "have an end in each of two rooms.",
    )


# What the tables say about options and cells


def _select(
    table: pd.DataFrame, domain: str, operator: str = "normalized"
) -> pd.DataFrame:
    """Rows of a domain and a Laplacian, by option."""
    is_chosen = (table.domain == domain) & (table.operator == operator)
    return table[is_chosen].set_index("option")


def _find_stops(
    data: Data, domain: str, option: str, operator: str = "normalized"
) -> list[Cell]:
    """Cells where an option terminates."""
    stops = _select(data["stops"], domain, operator)
    cells = stops[stops.index == option][["row", "column"]]
    return list(cells.itertuples(index=False, name=None))


def _find_second_stops(data: Data) -> dict[str, list[Cell]]:
    """Where e2+ and e2- stop in the 4-room domain.

    The sign that stops nearer to the top right corner, of which the paper speaks, comes
    first: the sign of an eigenvector is a matter of choice.
    """
    _, corner, *_ = _find_corners(data, "four-rooms")
    stops = {label: _find_stops(data, "four-rooms", label) for label in ("e2+", "e2-")}

    def measure_way(label: str) -> int:
        return min(_measure_distance(cell, corner) for cell in stops[label])

    return {label: stops[label] for label in sorted(stops, key=measure_way)}


def _compare_second_with_fourth(data: Data, operator: str) -> tuple[float, float]:
    """How many more states e4 stops in than e2, and how much longer e2 runs."""
    options = _select(data["options"], "open-room", operator)
    e2 = options.loc["e2+"]
    e4 = options.loc["e4+"]
    return e4.n_stops / e2.n_stops, e2.mean_length / e4.mean_length


def _find_first_entrance(data: Data, operator: str) -> tuple[int, str]:
    """The first eigenvector with an option that stops at a doorway or beside one.

    The result is its number, 0 if there is none, and its options as text.
    """
    doorways = _list_doorways(_find_rooms(data, "four-rooms"))
    labels = _select(data["options"], "four-rooms", operator).index
    entrances: dict[int, list[str]] = {}
    for i, label in enumerate(labels):
        for cell in _find_stops(data, "four-rooms", label, operator):
            distance = min(_measure_distance(cell, door) for door in doorways)
            # The first two options have eigenvalue zero.
            if i > 1 and distance <= 1:
                entrances.setdefault(i // 2 + 1, []).append(f"{label} at {cell}")

    if not entrances:
        return 0, "none examined"
    number = min(entrances)
    return number, ", ".join(entrances[number])


def _find_rooms(data: Data, domain: str) -> dict[Cell, int]:
    """The room of each cell, or `DOORWAY`."""
    cells = data["cells"][data["cells"].domain == domain]
    rooms: dict[Cell, int] = cells.set_index(["row", "column"]).room.to_dict()
    return rooms


def _list_doorways(rooms: Mapping[Cell, int]) -> list[Cell]:
    """The cells that are doorways."""
    return [cell for cell, room in rooms.items() if room == DOORWAY]


def _share_doorway(rooms: Mapping[Cell, int], pair: set[int]) -> bool:
    """Whether both rooms of a pair are beside the same doorway."""
    for door in _list_doorways(rooms):
        beside = {
            room for cell, room in rooms.items() if _measure_distance(cell, door) == 1
        }
        if pair <= beside:
            return True
    return False


def _find_corners(data: Data, domain: str) -> list[Cell]:
    """Free cells nearest to the top left, top right, bottom left and bottom right."""
    cells = _find_rooms(data, domain)
    return [
        min(cells, key=lambda cell: down * cell[0] + right * cell[1])
        for down in (1, -1)
        for right in (1, -1)
    ]


def _measure_distance(cell: Cell, other: Cell) -> int:
    """Number of moves between two cells if there are no walls."""
    return abs(cell[0] - other[0]) + abs(cell[1] - other[1])


def name_cells(cells: Sequence[Any]) -> str:
    """Cells as text.

    >>> name_cells([(1, 2), (3, 4)])
    '(1, 2) and (3, 4)'
    """
    if not cells:
        return "no cell"
    *others, last = [str(cell) for cell in cells]
    if not others:
        return last
    return f"{', '.join(others)} and {last}"
