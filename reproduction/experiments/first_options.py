"""Figures 2 to 5: options of the first eigenvectors.

The second PVF of the 4-room domain, a hill in one room and a valley in the opposite one (Figure 2), and the options of
the four smallest eigenvectors in each domain. The first eigenvector, e1, has eigenvalue zero.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import eigenoptions as eo
from eigenoptions.discovery.methods.bottleneck import find_rooms
from eigenoptions.plots import draw_policy, draw_values
from reproduction.drawing import Figure, make_maps
from reproduction.experiments.agents import ANGLES, MAZES, make_eigenoptions
from reproduction.lab import Claim, Claims, Data, Lab, list_items, list_rows

SECTION, ORDER = "4.1", 20
QUICK = {"eigenvectors": 8}
CAPTION = "Red: the option stops."
Cell = tuple[int, int]


def run(lab: Lab, *, mazes=MAZES, eigenvectors=16, gamma=0.9) -> Data:
    """Options of both signs of the first eigenvectors under two Laplacians, and where they stop."""
    options, stops, cells = [], [], []
    for maze in mazes:
        mdp = eo.maze(maze)
        places = pd.DataFrame(np.asarray(mdp.coords), columns=["row", "column"])
        cells.append(places.assign(domain=maze, room=find_rooms(mdp)[0]))
        for operator in ("normalized", "combinatorial"):
            found = make_eigenoptions(
                mdp, 2 * eigenvectors, operator=operator, gamma=gamma
            )
            key = {"domain": maze, "operator": operator}
            options.append(describe_options(found).assign(**key))
            stops += [
                cells[-1][o.termination].assign(**key, option=o.label) for o in found
            ]
    rooms = eo.maze("four-rooms")
    vectors, room = (
        eo.spectrum(eo.graph(rooms), k=4).vectors[:, 1:],
        find_rooms(rooms)[0],
    )
    told = {
        "e2": [classify_rooms(vectors[:, :1], room)],
        "e2_to_e4": classify_rooms(vectors, room),
    }
    turned = {
        angle: make_eigenoptions(eo.maze("open-room"), 8, angle=angle, gamma=gamma)
        for angle in ANGLES
    }
    ratios = [
        (angle, o["e2+"].mean_length / o["e4+"].mean_length)
        for angle, o in turned.items()
    ]
    tables = {
        "options": pd.concat(options),
        "stops": pd.concat(stops),
        "cells": pd.concat(cells),
    }
    bases = pd.DataFrame(ratios, columns=["angle", "length_ratio"])
    return {**tables, "pvf": pd.DataFrame(told), "bases": bases}


def describe_options(options: eo.OptionSet) -> pd.DataFrame:
    """One row per option: the number of states it terminates in, its mean length, and where it may start."""
    columns = {"option": options.labels, "n_stops": options.termination.sum(axis=1)}
    columns |= {
        "mean_length": options.mean_length,
        "start_share": options.initiation.mean(axis=1),
    }
    return pd.DataFrame(columns)


def classify_rooms(vectors: NDArray[np.float64], room: NDArray[np.int64]) -> float:
    """Share of the states, doorways left out, whose room has the nearest mean."""
    inside = room >= 0
    means = np.stack([vectors[room == i].mean(axis=0) for i in range(room.max() + 1)])
    distances = np.linalg.norm(vectors[inside][:, None] - means, axis=2)
    return float((distances.argmin(axis=1) == room[inside]).mean())


def figure(data: Data) -> Figure:
    domains = data["cells"].domain.unique()
    picture, axes = make_maps(5 * len(domains), width=8.4, columns=5)
    for i, domain in enumerate(domains):
        mdp, (first, *others) = eo.maze(domain), axes[5 * i : 5 * i + 5]
        draw_values(first, mdp, eo.spectrum(eo.graph(mdp), k=4).vectors[:, 1])
        first.set_title(f"{domain}: second PVF")
        for ax, option in zip(others, make_eigenoptions(mdp, 8)[::2], strict=True):
            draw_policy(ax, mdp, option.policy)
            ax.set_title(f"{option.label}  λ = {option.eigenvalue:.3g}")
    return picture


def claims(data: Data) -> Claims:
    yield from judge_second_pvf(data)
    yield from judge_open_room(data)
    ends = [find_stops(data, "i-maze", label) for label in ("e2+", "e2-")]
    rows = [{row for row, _ in cells} for cells in ends]
    lengths = select(data["options"], "i-maze").mean_length
    bars = data["cells"][data["cells"].domain == "i-maze"].row.agg({"min", "max"})
    yield Claim(
        "corridor",
        "We discover meaningful options, such as walking down a corridor.",
        tests=[len(rows[0]) == len(rows[1]) == 1 and rows[0] | rows[1] == set(bars)],
        measured=f"e2+ stops at {name_cells(ends[0])} and e2- at {name_cells(ends[1])}, after {lengths['e2+']:.2f} and "
        f"{lengths['e2-']:.2f} steps on average",
        evidence="The corridor of the I-Maze runs from the upper to the lower bar: each sign must end in one of them "
        "only.",
    )
    yield from judge_four_rooms(data)


def judge_second_pvf(data: Data) -> Claims:
    told = data["pvf"].iloc[0]
    yield Claim(
        "pvf-rooms",
        "We should be able to automatically distinguish between the different rooms in the environment. This is "
        "exactly what PVFs do.",
        section="3",
        tests=[told.e2 == 1, told.e2_to_e4 == 1],
        measured=f"nearest room by the value of e2 alone: right for {told.e2:.0%} of the states; by e2 to e4: "
        f"{told.e2_to_e4:.0%}",
        evidence="A state belongs to the room whose mean is nearest. Two tests: all are right by the second PVF, which "
        "Figure 2 shows, and by the first three together.",
    )
    rooms, corner = find_cells(data, "four-rooms"), find_corners(data, "four-rooms")[1]
    ends = {label: find_stops(data, "four-rooms", label) for label in ("e2+", "e2-")}
    up, down = sorted(
        ends, key=lambda label: min(distance(cell, corner) for cell in ends[label])
    )
    high, low = ends[up], ends[down]
    pair, doors = (
        {rooms[cell] for cell in high + low},
        [cell for cell, room in rooms.items() if room < 0],
    )
    beside = [
        {room for cell, room in rooms.items() if distance(cell, door) == 1}
        for door in doors
    ]
    opposite = len(high + low) == len(pair - {-1}) == 2 and not any(
        pair <= other for other in beside
    )
    yield Claim(
        "opposite-room",
        "A PVF is a desire to reach the highest point of the plot or, with the other sign, the lowest point, "
        "corresponding to the opposite room.",
        section="3",
        tests=[opposite],
        measured=f"{up} stops at {name_cells(high)} and {down} at {name_cells(low)}, in rooms "
        f"{'that share no doorway' if opposite else 'next to each other'}",
        evidence="Opposite rooms share no doorway.",
    )
    centre = np.mean(
        [cell for cell, room in rooms.items() if room == rooms[corner]], axis=0
    )
    off = max(np.abs(np.asarray(cell) - centre).sum() for cell in high)
    yield Claim(
        "peak-centre",
        "The highest point of the plot corresponds to the centre of the room.",
        section="3",
        tests=[off <= 1, off <= 3],
        measured=f"{up} stops at {name_cells(high)}, {off:g} steps from the centre of its room",
        evidence=f"The centre is the mean of the room's cells, ({centre[0]:g}, {centre[1]:g}). Two tests: at most "
        "one step from it, at most three. The caption of Figure 2 says corner instead.",
    )
    away = max(distance(cell, corner) for cell in high)
    other = [
        cell
        for label in ends
        for cell in find_stops(data, "four-rooms", label, "combinatorial")
    ]
    yield Claim(
        "peak-corner",
        "Second PVF and its option in the 4-room domain: terminate is in the top right corner.",
        section="3",
        tests=[
            away == 0,
            len(high) == 1 and rooms[high[0]] == rooms[corner] and away <= 2,
        ],
        measured=f"{up} stops at {name_cells(high)}, {away} steps from the corner {corner}",
        evidence="The caption of Figure 2. The normalized Laplacian weighs states by the root of their degree, so "
        "its peak lies away from the walls. With the combinatorial one the option ends at "
        f"{min(other, key=lambda cell: distance(cell, corner))}.",
    )


def judge_open_room(data: Data) -> Claims:
    labels, corners = ("e2+", "e2-", "e3+", "e3-"), find_corners(data, "open-room")
    ends = {label: find_stops(data, "open-room", label) for label in labels}
    away, ratios = {}, {}
    for operator in ("normalized", "combinatorial"):
        cells = [
            cell
            for label in labels
            for cell in find_stops(data, "open-room", label, operator)
        ]
        away[operator] = max(
            min(distance(cell, corner) for corner in corners) for cell in cells
        )
        options = select(data["options"], "open-room", operator)
        e2, e4 = options.loc["e2+"], options.loc["e4+"]
        ratios[operator] = (e4.n_stops / e2.n_stops, e2.mean_length / e4.mean_length)
    yield Claim(
        "corners",
        "We discover meaningful options, such as going to the corners of an open room.",
        tests=[away["normalized"] == 0, away["normalized"] <= 2],
        measured=list_items(
            "{} stops at {}", {label: name_cells(ends[label]) for label in labels}
        ),
        evidence=f"They end at most {away['normalized']} steps from a corner with the normalized Laplacian, which "
        f"the paper uses, and {away['combinatorial']} with the combinatorial one. The grid is square, so e2 and e3 "
        "have the same eigenvalue, and any basis of their plane is right. In another one they end in the middle of a "
        "wall.",
    )
    stops, length = ratios["normalized"]
    others = list_rows(
        "{length_ratio:.3g} (turned by {angle} degrees)", data["bases"]
    ).replace(", ", " and ")
    yield Claim(
        "twice-as-often",
        "The fourth eigenoption terminates, on expectation, twice as often as the second eigenoption.",
        section="4.2",
        tests=[abs(ratio - 2) < 0.2 for ratio in (stops, length)],
        measured=f"e4 stops in {stops:.3g} times as many states as e2, and e2 runs {length:.3g} times as long as e4 on "
        "average",
        evidence="Lengths are means over the states where an option may start. With the combinatorial Laplacian the "
        f"ratios are {ratios['combinatorial'][0]:.3g} and {ratios['combinatorial'][1]:.3g}; in other bases of the "
        f"repeated eigenvalue the lengths have the ratio {others}. Twice as many ends do not halve the way to the "
        "nearest one.",
    )


def judge_four_rooms(data: Data) -> Claims:
    rooms = find_cells(data, "four-rooms")
    doors = [cell for cell, room in rooms.items() if room < 0]
    first = {}
    for operator in ("normalized", "combinatorial"):
        entrances = [
            (i // 2 + 1, f"{label} at {cell}")
            for i, label in enumerate(
                select(data["options"], "four-rooms", operator).index
            )
            for cell in find_stops(data, "four-rooms", label, operator)
            if i > 1 and min(distance(cell, door) for door in doors) <= 1
        ]
        number = min(entrances, default=(0, ""))[0]
        first[operator] = (
            number,
            ", ".join(text for i, text in entrances if i == number) or "none examined",
        )
    yield Claim(
        "fifth-is-first-doorway",
        "Doorways are not the first options we discover in the 4-room domain (the fifth eigenoption is the first to "
        "terminate at the entrance of a doorway).",
        tests=[first["normalized"][0] == 5],
        measured=f"eigenvalue zero aside, the first is {first['normalized'][1]}",
        evidence=f"The doorways are {name_cells(doors)}; an entrance is a doorway or a cell beside one, and either "
        f"sign counts. With the combinatorial Laplacian the first is {first['combinatorial'][1]}. The eigenvector of "
        "eigenvalue zero, which the paper counts, has no direction: it follows the degree of the states.",
    )
    labels = [f"e{i}{sign}" for i in (2, 3, 4) for sign in "+-"]
    ends = {
        label: {rooms[cell] for cell in find_stops(data, "four-rooms", label)}
        for label in labels
    }
    words = {-1: "a doorway"} | {
        room: f"room {room + 1}" for room in rooms.values() if room >= 0
    }
    names = {
        label: " and ".join(words[room] for room in sorted(numbers))
        for label, numbers in ends.items()
    }
    yield Claim(
        "first-to-rooms",
        "The first eigenoptions lead agents to individual rooms.",
        section="4.2",
        tests=[-1 not in numbers for numbers in ends.values()],
        measured=list_items("{} stops in {}", names),
        evidence="Every run must end inside a room, none in a doorway; an option may have an end in each of two rooms.",
    )


def select(
    table: pd.DataFrame, domain: str, operator: str = "normalized"
) -> pd.DataFrame:
    """Rows of a domain and a Laplacian, by option."""
    return table[(table.domain == domain) & (table.operator == operator)].set_index(
        "option"
    )


def find_stops(
    data: Data, domain: str, option: str, operator: str = "normalized"
) -> list[Cell]:
    """Cells where an option terminates."""
    stops = select(data["stops"], domain, operator)[["row", "column"]]
    return list(stops[stops.index == option].itertuples(index=False, name=None))


def find_cells(data: Data, domain: str) -> dict[Cell, int]:
    """Room of each cell; -1 for a doorway."""
    cells = data["cells"][data["cells"].domain == domain]
    return cells.set_index(["row", "column"]).room.to_dict()  # type: ignore[no-any-return]


def find_corners(data: Data, domain: str) -> list[Cell]:
    """Free cells nearest to the top left, top right, bottom left and bottom right of a maze."""
    cells = find_cells(data, domain)
    return [
        min(cells, key=lambda cell: y * cell[0] + x * cell[1])
        for y in (1, -1)
        for x in (1, -1)
    ]


def distance(cell: Cell, other: Cell) -> int:
    """Number of moves between two cells if there are no walls."""
    return abs(cell[0] - other[0]) + abs(cell[1] - other[1])


def name_cells(cells: Sequence[Cell]) -> str:
    """Cells as text.

    >>> name_cells([(1, 2), (3, 4)])
    '(1, 2) and (3, 4)'
    """
    *others, last = map(str, cells) if cells else ["no cell"]
    return f"{', '.join(others)} and {last}" if others else last
